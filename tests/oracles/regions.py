"""Regions: cells that hang together, found by pouring water on one and looking where it gets to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

Place = tuple[int, int]


def numbers(within: np.ndarray, neighbours: int, wraps: bool) -> np.ndarray:
    """For each cell within a region the place of its first one, counted from 1; 0 elsewhere."""
    known = _numbers(within.tobytes(), within.shape, neighbours, wraps)
    return np.array(known, float).reshape(within.shape)


@cache
def _numbers(cells: bytes, shape: tuple[int, int], neighbours: int, wraps: bool) -> list[int]:
    within = np.frombuffer(cells, bool).reshape(shape)
    made = np.zeros(shape, int)
    for y, x in np.argwhere(within).tolist():
        first = min(flooded(within, (y, x), neighbours, wraps))
        made[y, x] = 1 + first[0] * shape[1] + first[1]
    found: list[int] = made.ravel().tolist()
    return found


def with_edge(within: np.ndarray, cell: Place, neighbours: int, wraps: bool) -> set[Place]:
    """The region of a cell and the cells that touch it; the cell alone if it is of none."""
    wet = flooded(within, cell, neighbours, wraps) if within[cell] else set()
    return {cell}.union(*(next_to(each, within.shape, neighbours, wraps) for each in wet))


def next_to(cell: Place, shape: Any, neighbours: int, wraps: bool) -> Iterator[Place]:
    """The cells that touch a cell."""
    for down, right in [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]:
        y, x = cell[0] + down, cell[1] + right
        x = x % shape[1] if wraps else x
        if (neighbours == 8 or 0 in (down, right)) and 0 <= y < shape[0] and 0 <= x < shape[1]:
            yield y, x


def flooded(within: np.ndarray, start: Place, neighbours: int, wraps: bool) -> set[Place]:
    """The cells that water poured on one reaches, step by step to the next."""
    reached, waiting = {start}, [start]
    while waiting:
        for there in next_to(waiting.pop(), within.shape, neighbours, wraps):
            if there not in reached and within[there]:
                reached.add(there)
                waiting.append(there)
    return reached
