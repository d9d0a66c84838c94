"""What a trace lights up in one plane of an array: outline, verified cells, removed candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.places import Plane
from inverses.answer import Found
from pipelines.arrays import inside
from pipelines.datasets import Array
from pipelines.filters import Filter, lattice
from pipelines.spans import extremes
from pipelines.tables import column

MOST = 5000
Cells = tuple[NDArray[Any], NDArray[Any]]
NONE: Cells = (np.zeros(0, int), np.zeros(0, int))


def verified(found: Found, variable: str, fixed: Mapping[str, int], plane: Plane) -> Cells:
    """The cells of an answer that lie in a plane: rows and columns."""
    array = found.dataset
    assert isinstance(array, Array)
    if variable not in array.variables:
        return NONE
    here = column(found.rows, "variable") == array.variables.index(variable)
    for dim, index in fixed.items():
        here &= column(found.rows, dim) == index
    return column(found.rows, plane.up)[here], column(found.rows, plane.across)[here]


def outlined(
    outline: Filter, array: Array, fixed: Mapping[str, int], plane: Plane
) -> dict[str, NDArray[Any]]:
    """The rectangles of a filter that cross a plane, by their edges; of very many, the hull."""
    boxes = _crossing(outline, array, fixed)
    boxes = boxes if len(boxes) <= MOST else boxes.hull()
    across, up = boxes.spans[plane.across], boxes.spans[plane.up]
    left, right = _ends(plane.x, across.low, across.high)
    bottom, top = _ends(plane.y, up.low, up.high)
    return {"left": left, "right": right, "bottom": bottom, "top": top}


def candidates(outline: Filter, array: Array, fixed: Mapping[str, int], plane: Plane) -> Cells:
    """The cells of a plane that a filter holds; none if they are too many to draw one by one."""
    boxes = _crossing(outline, array, fixed)
    spans = [boxes.spans[plane.up], boxes.spans[plane.across]]
    low, high = (np.column_stack([getattr(s, end) for s in spans]) for end in ("low", "high"))
    if np.prod(high - low + 1.0, axis=1).sum() > MOST:
        return NONE
    cells = np.unique(lattice(low, high)[1], axis=0)
    return cells[:, 0], cells[:, 1]


def without(cells: Cells, others: Cells) -> Cells:
    """The cells that are not among others.

    >>> without((np.array([1, 1]), np.array([2, 3])), (np.array([1]), np.array([2])))[1].tolist()
    [3]
    """
    taken = set(zip(*(c.tolist() for c in others), strict=True))
    left = [c for c in zip(*(c.tolist() for c in cells), strict=True) if c not in taken]
    rows, columns = np.array(left, int).reshape(-1, 2).T
    return rows, columns


def _crossing(outline: Filter, array: Array, fixed: Mapping[str, int]) -> Filter:
    """The boxes of a filter, cut to the array, that hold the fixed indices."""
    boxes = inside(array, outline)
    here = np.ones(len(boxes), bool)
    for dim, index in fixed.items():
        here &= (boxes.spans[dim].low <= index) & (boxes.spans[dim].high >= index)
    return boxes[here]


def _ends(axis: Any, low: NDArray[Any], high: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where ranges of indices begin and end along an axis, in whichever order the indices are."""
    place = np.zeros(int(axis.order.max()) + 1, int)
    place[axis.order[::-1]] = np.arange(len(axis.order))[::-1]
    first, last = extremes(place, low, high)
    return axis.edges[first], axis.edges[last + 1]
