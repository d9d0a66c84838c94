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
    ranges: list[tuple[int, int]] = []
    blocks: list[tuple[int, Numbers]] = []
    single: list[int] = []
    for first, last, nodes in rows:
        if nodes is not None:
            blocks.append((first, np.frombuffer(nodes, STORED)))
        elif last is not None:
            ranges.append((first, last))
        else:
            single.append(first)
    found = [_within(np.array(sorted(ranges)), *_laid_out(blocks))] if ranges else []
    every: list[int] = np.sort(np.concatenate([np.array(single, np.int64), *found])).tolist()
    return every


def _laid_out(blocks: list[tuple[int, Numbers]]) -> tuple[Numbers, Numbers]:
    """The places and the nodes of all blocks."""
    places = [np.arange(first, first + len(nodes)) for first, nodes in blocks]
    return np.concatenate(places), np.concatenate([nodes for _, nodes in blocks])


def _within(ranges: Numbers, places: Numbers, nodes: Numbers) -> Numbers:
    """The nodes whose place is in a range."""
    at = np.searchsorted(ranges[:, 0], places, side="right") - 1
    inside: Numbers = nodes[(at >= 0) & (places <= ranges[at, 1])]
    return inside
