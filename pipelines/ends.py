"""Ends of ranges: how far values of a type go, and what lies beyond without going round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
FARTHEST = 2**63 - 1


def least_and_greatest(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the greatest value a column of this type can hold."""
    if dtype.kind == "f":
        return -np.inf, np.inf
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    if dtype.kind == "b":
        return False, True
    if dtype.kind in "Mm":
        return np.array(-FARTHEST).view(dtype)[()], np.array(FARTHEST).view(dtype)[()]
    return "", chr(0x10FFFF) * 8


def exact(values: Any) -> Values:
    """Values as numpy compares them exactly: texts as objects, not cut where they end in NUL.

    >>> exact("a\\0") == np.array(["a", "a\\0"], object)
    array([False,  True])
    """
    found = np.asarray(values)
    return np.asarray(values, object) if found.dtype.kind == "U" else found


def further(ends: Values, by: Any) -> Values:
    """Ends `by` further up: whole numbers and times stop at the extremes, and stay there.

    >>> further(np.array([-(2**63), 5, 2**63 - 3, 2**63 - 1]), 7).tolist()
    [-9223372036854775808, 12, 9223372036854775807, 9223372036854775807]
    >>> further(np.array([1], np.uint8), -2).tolist()
    [-1]
    """
    if ends.dtype.kind == "M":
        steps = np.asarray(by).astype(ends.dtype.str.replace("M", "m")).view(np.int64)
        return _stopped(ends.view(np.int64), steps, -FARTHEST).view(ends.dtype)
    if ends.dtype.kind in "iu" and np.asarray(by).dtype.kind in "iu":
        return _stopped(whole(ends), whole(np.asarray(by)), -FARTHEST - 1)
    return np.asarray(ends + by)


def whole(values: Values) -> NDArray[np.int64]:
    """Whole numbers of any width as the widest that have a sign."""
    if values.dtype != np.uint64:
        return values.astype(np.int64)
    return np.minimum(values, np.uint64(FARTHEST)).astype(np.int64)


def _stopped(ends: NDArray[np.int64], by: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    up, down = np.maximum(by, 0), -np.clip(by, -FARTHEST, 0)
    raised = np.minimum(ends, FARTHEST - up) + up
    moved = np.maximum(raised, least + down) - down
    return np.where((ends >= FARTHEST) | (ends <= least), ends, moved)
