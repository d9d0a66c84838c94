"""Who was made from whom among a few nodes, held as bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Poset:
    """Nodes 0, 1, ... so numbered that each comes after those it was made from.

    >>> diamond = Poset.of([(), (0,), (0,), (1, 2)])
    >>> list(bits(diamond.above[3])), list(bits(diamond.apart[1]))
    ([0, 1, 2], [2])
    """

    parents: tuple[tuple[int, ...], ...]
    above: tuple[int, ...]
    below: tuple[int, ...]

    @classmethod
    def of(cls, parents: Iterable[Iterable[int]]) -> Poset:
        """The order that arrows make; each node's parents are numbers lower than its own."""
        listed = tuple(tuple(each) for each in parents)
        return cls(listed, tuple(_above(listed)), tuple(_below(listed)))

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def everything(self) -> int:
        return (1 << len(self)) - 1

    @property
    def apart(self) -> list[int]:
        """The incomparability graph: for each node those that are neither above nor below it."""
        pairs = enumerate(zip(self.above, self.below, strict=True))
        return [self.everything & ~(up | down | 1 << n) for n, (up, down) in pairs]

    @property
    def related(self) -> list[int]:
        """For each node those above or below it."""
        return [up | down for up, down in zip(self.above, self.below, strict=True)]

    @property
    def children(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.parents]
        for node, parents in enumerate(self.parents):
            for parent in parents:
                found[parent].append(node)
        return found


def _above(parents: Sequence[Sequence[int]]) -> list[int]:
    above: list[int] = []
    for each in parents:
        mask = 0
        for parent in each:
            mask |= above[parent] | 1 << parent
        above.append(mask)
    return above


def _below(parents: Sequence[Sequence[int]]) -> list[int]:
    below = [0] * len(parents)
    for node in reversed(range(len(parents))):
        mask = below[node] | 1 << node
        for parent in parents[node]:
            below[parent] |= mask
    return below


def bits(mask: int) -> Iterator[int]:
    """The places at which there is a one, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def runs(mask: int) -> list[tuple[int, int]]:
    """Where ones stand side by side: the first and the last place of each run.

    >>> runs(0b1110011)
    [(0, 1), (4, 6)]
    """
    found, place = [], 0
    while mask:
        gap = (mask & -mask).bit_length() - 1
        mask >>= gap
        ones = (~mask & (mask + 1)).bit_length() - 1
        found.append((place + gap, place + gap + ones - 1))
        place += gap + ones
        mask >>= ones
    return found


def components(members: int, near: Sequence[int]) -> list[int]:
    """The members in groups that no line joins, each as bits; by their lowest member."""
    found = []
    while members:
        reached = edge = members & -members
        while edge:
            seen = 0
            for each in bits(edge):
                seen |= near[each]
            edge = seen & members & ~reached
            reached |= edge
        found.append(reached)
        members &= ~reached
    return found
