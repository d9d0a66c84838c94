"""What labels say, read one by one and by definition."""

from __future__ import annotations

from collections.abc import Iterable

from inverses.intervals.encode import Labels

Pairs = list[tuple[int, int]]


def stated(labels: Labels) -> Pairs:
    """All pairs of ancestor and descendant that labels state, as often as they state them."""
    return [*_by_spans(labels), *_by_nesting(labels)]


def _by_spans(labels: Labels) -> Iterable[tuple[int, int]]:
    maker = {place.maker: place.node for place in labels.places}
    made = {place.made: place.node for place in labels.places}
    for first, last, since, until in labels.spans:
        for above in range(first, last + 1):
            for below in range(since, until + 1):
                yield maker[above], made[below]


def _by_nesting(labels: Labels) -> set[tuple[int, int]]:
    """Those of the same part of which one has an interval inside one of the other's."""
    found = set()
    for part, left, right, node in labels.nested:
        for other, begin, end, above in labels.nested:
            if part == other and begin < left and right < end:
                found.add((above, node))
    return found
