"""Nodes in the order of their places, packed into blocks, so that long lists are read at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from inverses.intervals.encode import Place
from inverses.intervals.ranges import Numbers

BLOCK = 256
"""A block holds at most so many nodes."""

STORED = np.dtype("<i8")


def packed(places: Sequence[Place]) -> Iterator[tuple[int, bytes, bytes]]:
    """Blocks of nodes side by side: their first place, the nodes by maker, the nodes by made."""
    first = min(place.maker for place in places)
    makers, made = np.empty(len(places), STORED), np.empty(len(places), STORED)
    for place in places:
        makers[place.maker - first] = made[place.made - first] = place.node
    for n in range(0, len(places), BLOCK):
        yield first + n, makers[n : n + BLOCK].tobytes(), made[n : n + BLOCK].tobytes()


def unpacked(rows: Iterable[Sequence[Any]]) -> list[int]:
    """The nodes that ranges, blocks and single nodes amount to, in order of number.

    >>> block = np.array([70, 50, 60], STORED).tobytes()
    >>> unpacked([(11, 12, None), (10, None, block), (5, None, None)])
    [5, 50, 60]
    """
    every: list[int] = np.sort(unordered(rows)).tolist()
    return every


def unordered(rows: Iterable[Sequence[Any]]) -> Numbers:
    """The same nodes as they come."""
    ranges: list[tuple[int, int]] = []
    blocks: list[tuple[int, bytes]] = []
    single: list[int] = []
    for first, last, nodes in rows:
        if nodes is not None:
            blocks.append((first, nodes))
        elif last is not None:
            ranges.append((first, last))
        else:
            single.append(first)
    found = _within(np.array(ranges), sorted(blocks)) if ranges else []
    return np.concatenate([np.array(single, STORED), *found])


def _within(ranges: Numbers, blocks: list[tuple[int, bytes]]) -> list[Numbers]:
    """The nodes whose place is in a range; all blocks that a range touches are there, in order."""
    nodes = np.frombuffer(b"".join(held for _, held in blocks), STORED)
    firsts = np.array([first for first, _ in blocks])
    before = np.cumsum([0, *(len(held) // STORED.itemsize for _, held in blocks[:-1])])
    at = ranges + (before - firsts)[np.searchsorted(firsts, ranges, side="right") - 1]
    return [nodes[first : last + 1] for first, last in at.tolist()]
