"""Brute-force truth about what matters: whether an answer is another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


def same(one: Any, other: Any) -> bool:
    """Whether two answers are equal, where one NaN is another.

    >>> same(math.nan, math.nan), same((1, 2), (1, 2)), same(math.nan, 1.0)
    (True, True, False)
    """
    return bool(one == other) or (_is_nan(one) and _is_nan(other))
