"""Brute-force truth about what matters: change it, and see whether the answer changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import copy, deepcopy
from typing import Any

import numpy as np


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        pairs = zip(np.ravel(one).tolist(), np.ravel(other).tolist(), strict=False)
        return np.shape(one) == np.shape(other) and all(_same(a, b) for a, b in pairs)
    return bool(one == other) or (_is_nan(one) and _is_nan(other))


def perturbed_answers(
    compute: Callable[[Any], Any], values: Any, candidates: Iterable[Any], tries: Iterable[Any]
) -> set[Any]:
    """The candidate indices at which some tried value changes what `compute` answers.

    `compute` must be pure; `values` is left as it was found. Answers are compared with `==`,
    arrays as a whole; a NaN, alone or in an array, is the same as another.

    >>> readings = [1, 5, 3]
    >>> perturbed_answers(max, readings, candidates=range(3), tries=[0, 4])
    {1}
    >>> readings
    [1, 5, 3]
    """
    answer, tries = deepcopy(compute(values)), list(tries)

    def matters(index: Any) -> bool:
        original = copy(values[index])
        try:
            for attempt in tries:
                values[index] = attempt
                if not _same(answer, compute(values)):
                    return True
        finally:
            values[index] = original
        return False

    return {index for index in candidates if matters(index)}
