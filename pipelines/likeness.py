"""Likeness: which rows of some columns are alike, which pairs are equal, which ranges meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Values = NDArray[Any]
Whole = NDArray[np.int64]


def alike(columns: list[Values]) -> Whole:
    """A number for each row of some columns, the same for equal rows alone."""
    found = np.zeros(len(columns[0]), np.int64)
    for each in columns:
        number = _encoded(each)
        found = _encoded(found * (number.max(initial=0) + 1) + number)
    return found


def _encoded(values: Values) -> Whole:
    """A number for each value, from 0 in the order they first come; by hashing, not by sorting."""
    stored = pa.array(values).dictionary_encode(null_encoding="encode")
    return np.asarray(stored.indices).astype(np.int64)


def pairs(left: Values, right: Values) -> tuple[Whole, Whole]:
    """The positions of every pair of equal values."""
    if np.array_equal(left, right) and len(np.unique(left)) == len(left):
        same = np.arange(len(left))
        return same, same
    order = np.argsort(right, kind="stable")
    first = np.searchsorted(right, left, "left", sorter=order)
    last = np.searchsorted(right, left, "right", sorter=order)
    mine = np.repeat(np.arange(len(left)), last - first)
    step = np.arange(len(mine)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    return mine, order[first[mine] + step]


def runs(group: Whole, low: Whole, high: Whole) -> tuple[Whole, Whole]:
    """Where runs of ranges without a gap start, and how far each reaches.

    They come sorted by group and low end; no run goes on from one group to the next.

    >>> [each.tolist() for each in runs(*np.array([[0, 0, 0, 1], [1, 2, 7, 8], [3, 4, 7, 9]]))]
    [[0, 2, 3], [4, 7, 9]]
    """
    apart = group * (high.max() - low.min() + 2)
    reach = np.maximum.accumulate(apart + high) - apart
    starts = np.ones(len(group), bool)
    starts[1:] = (group[1:] != group[:-1]) | (low[1:] > reach[:-1] + 1)
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(group)) - 1
    return first, reach[last]
