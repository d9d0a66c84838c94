"""Several intervals for each node over a tree cover: exact for any graph, never exponential."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from inverses.intervals.cut import Parents, children_of
from inverses.intervals.poset import Poset, runs

Range = tuple[int, int]
Span = tuple[int, int, int, int]
"""From this maker to that one, all made everything from this to that."""

AT_ONCE = 8_192
"""Descendants are counted for so many nodes at a time, a bit for each."""


def maker_order(order: Sequence[int], parents: Parents) -> list[int]:
    """Nodes so ordered that the ancestors of each stand side by side, as far as may be.

    Every node hangs on that one of its children from which most was made, and stands next to
    what else went into that child. No other tree gives the nodes fewer intervals in all.
    """
    number = {node: n for n, node in enumerate(order)}
    below = children_of(parents)
    children = [[number[child] for child in below.get(node, ())] for node in order]
    counts = descendants(children)
    hosts = [max(each, key=counts.__getitem__, default=None) for each in children]
    return [order[n] for n in _walked(hosts)]


def descendants(children: Sequence[Sequence[int]]) -> list[int]:
    """How many descendants each node has; children have higher numbers than their parents.

    >>> descendants([[1, 2], [3], [3], []])
    [3, 1, 1, 0]
    """
    counts = [0] * len(children)
    for first in range(0, len(children), AT_ONCE):
        masks = [0] * len(children)
        for node in reversed(range(min(first + AT_ONCE, len(children)))):
            mask = 0
            for child in children[node]:
                mask |= masks[child]
            counts[node] += mask.bit_count()
            masks[node] = mask | 1 << node - first if node >= first else mask
    return counts


def made_order(poset: Poset) -> list[int]:
    """Nodes so ordered that what was made from the same stands side by side."""
    above = [mask.bit_count() for mask in poset.above]
    return _walked([max(each, key=above.__getitem__, default=None) for each in poset.parents])


def _walked(hosts: Sequence[int | None]) -> list[int]:
    """A tree given by the host of each node, walked so that all that hangs on one is together."""
    branches: dict[int | None, list[int]] = {}
    for node, host in enumerate(hosts):
        branches.setdefault(host, []).append(node)
    seen, waiting = [], branches.get(None, [])[::-1]
    while waiting:
        at = waiting.pop()
        seen.append(at)
        waiting += branches.get(at, [])[::-1]
    return seen


class Seats:
    """The places of a few nodes among all makers, and sets of these nodes as ranges of places.

    >>> seats = Seats([7, 3, 4, 9])
    >>> seats.ranges(seats.bit(3) | seats.bit(4) | seats.bit(7))
    [(3, 4), (7, 7)]
    """

    def __init__(self, places: Iterable[int]) -> None:
        self.places = sorted(places)
        self._bit = {place: 1 << n for n, place in enumerate(self.places)}
        self._ends = [n for n, (a, b) in enumerate(pairwise(self.places)) if b > a + 1]

    def bit(self, place: int) -> int:
        return self._bit[place]

    def ranges(self, mask: int) -> list[Range]:
        """The places of a set in as few ranges as can be."""
        return [piece for run in runs(mask) for piece in self._pieces(*run)]

    def _pieces(self, first: int, last: int) -> Iterator[Range]:
        """Seats side by side, cut where others sit between them."""
        for n in range(bisect_left(self._ends, first), len(self._ends)):
            if (end := self._ends[n]) >= last:
                break
            yield self.places[first], self.places[end]
            first = end + 1
        yield self.places[first], self.places[last]


def spans(rows: Iterable[Collection[Range]], first: int) -> Iterator[Span]:
    """Ranges of makers for each node in turn, as one span where neighbours have the same range.

    >>> list(spans([[(0, 3)], [(0, 3), (7, 9)], [(7, 9)]], first=20))
    [(0, 3, 20, 21), (7, 9, 21, 22)]
    """
    since: dict[Range, int] = {}
    last: Collection[Range] = ()
    place = first - 1
    for place, ranges in enumerate(rows, first):
        if ranges is last:
            continue
        here = set(ranges)
        for gone in [each for each in since if each not in here]:
            yield (*gone, since.pop(gone), place - 1)
        for new in ranges:
            since.setdefault(new, place)
        last = ranges
    for left in since:
        yield (*left, since[left], place)
