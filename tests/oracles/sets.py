"""Brute-force truth about filters and about combining what they hold: item by item, set by set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

Box: TypeAlias = Mapping[str, tuple[Any, Any]]


def holds(box: Box, item: Mapping[str, Any]) -> bool:
    """Whether a box holds an item: every value from low to high, or anything from end to end.

    >>> holds({"lat": (1, 3), "lon": (0, 0)}, {"lat": 2, "lon": 0, "time": 9})
    True
    >>> holds({"lat": (-math.inf, math.inf)}, {"lat": math.nan})
    True
    """
    return all(
        low <= item[key] <= high or (low == -math.inf and high == math.inf)
        for key, (low, high) in box.items()
    )


def held(boxes: Sequence[Box], items: Mapping[Any, Mapping[str, Any]]) -> set[Any]:
    """The names of the items that some box holds.

    >>> held([{"lat": (1, 2)}, {"lat": (6, 9)}], {"low": {"lat": 2}, "between": {"lat": 4}})
    {'low'}
    """
    return {name for name, item in items.items() if any(holds(box, item) for box in boxes)}


def of_one_attribute(sets: Iterable[set[Any]], pure: bool) -> set[Any]:
    """Pure sets unite and complete ones intersect: each way the closer one is kept.

    >>> of_one_attribute([{1, 2}, {2, 3}], pure=False), of_one_attribute([{1}, {2}], pure=True)
    ({2}, {1, 2})
    """
    first, *rest = sets
    for each in rest:
        first = first | each if pure else first & each
    return first


def across_attributes(scalar: Sequence[set[Any]], aggregate: Sequence[set[Any]]) -> set[Any]:
    """What all scalar attributes share, and whatever any aggregate one has.

    >>> across_attributes([{1, 2}, {2, 3}], [{7}])
    {2, 7}
    """
    shared = set.intersection(*scalar) if scalar else set()
    return shared.union(*aggregate)
