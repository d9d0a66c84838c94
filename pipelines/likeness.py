"""Likeness: which rows of some columns are alike, which pairs are equal, which ranges meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Values = NDArray[Any]
Whole = NDArray[np.int64]
MOST = 2**62


def plain(values: Values) -> Values:
    """Values of which equal ones are written alike: one zero, one NaN."""
    if values.dtype.kind != "f":
        return values
    one, none = values.dtype.type(np.nan), values.dtype.type(0)
    return np.asarray(np.where(np.isnan(values), one, values + none))


def alike(columns: list[Values]) -> Whole:
    """A number for each row of some columns, the same for equal rows alone.

    >>> alike([np.array([0.0, np.nan, -0.0, np.nan]), np.array(["p", "q", "p", "p"])]).tolist()
    [0, 1, 0, 2]
    """
    found, sizes = np.zeros(len(columns[0]), np.int64), 1
    for number in map(_encoded, columns):
        size = int(number.max(initial=0)) + 1
        if sizes * size > MOST:
            found = _encoded(found)
            sizes = int(found.max()) + 1
        found = found * size + number
        sizes *= size
    return _encoded(found)


def matched(one: Sequence[Values], other: Sequence[Values]) -> tuple[Whole, Whole]:
    """A number for each row of two lots of columns, the same for equal rows of either alone.

    >>> [each.tolist() for each in matched([np.array([3, 5])], [np.array([5, 4, 3])])]
    [[0, 1], [1, 2, 0]]
    """
    both = alike([np.concatenate(each) for each in zip(one, other, strict=True)])
    return both[: len(one[0])], both[len(one[0]) :]


def _encoded(values: Values) -> Whole:
    """A number for each value, from 0 in the order they first come; by hashing, not by sorting."""
    stored = pa.array(plain(values)).dictionary_encode(null_encoding="encode")
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


def overlaps(group: Whole, low: Values, high: Values) -> tuple[Whole, Values]:
    """The same for ranges of any values, between which there is a gap unless they overlap.

    >>> [e.tolist() for e in overlaps(np.zeros(3, int), *np.array([[1, 2, 4], [3, 3, np.inf]]))]
    [[0, 2], [3.0, inf]]
    """
    ends = np.unique(np.concatenate([low, high]))
    places = (2 * np.searchsorted(ends, each) for each in (low, high))
    first, reach = runs(group, *places)
    return first, ends[reach // 2]
