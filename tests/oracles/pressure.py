"""Brute-force truth about minima: which cells are, and which cells made them so."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Cell: TypeAlias = tuple[int, int, int]
Place: TypeAlias = tuple[int, int]
Field: TypeAlias = npt.NDArray[Any] | Sequence[Sequence[float]]


def neighbourhood(
    shape2d: tuple[int, int], y: int, x: int, reach: int, wraps: bool
) -> set[tuple[int, int]]:
    """The existing cells at most `reach` rows and columns away, the centre among them.

    >>> sorted(neighbourhood((3, 4), 0, 0, 1, wraps=False))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    >>> sorted(neighbourhood((3, 4), 0, 0, 1, wraps=True))
    [(0, 0), (0, 1), (0, 3), (1, 0), (1, 1), (1, 3)]
    >>> sorted(neighbourhood((1, 3), 0, 1, 2, wraps=True))
    [(0, 0), (0, 1), (0, 2)]
    """
    rows, columns = shape2d
    return {
        (row, column % columns)
        for row in range(y - reach, y + reach + 1)
        for column in range(x - reach, x + reach + 1)
        if 0 <= row < rows and (wraps or 0 <= column < columns)
    }


@cache
def _others(shape2d: tuple[int, int], y: int, x: int, reach: int, wraps: bool) -> list[Place]:
    return sorted(neighbourhood(shape2d, y, x, reach, wraps) - {(y, x)})


def _below_all(field2d: Field, value: float, others: list[Place]) -> bool:
    return bool(others) and all(field2d[row][column] > value for row, column in others)


def _below_mean(field2d: Field, value: float, others: list[Place], margin: float) -> bool:
    around = [field2d[row][column] for row, column in others]
    known = [other for other in around if not math.isnan(other)]
    # fsum adds without rounding on the way, so the order of the cells cannot decide
    return bool(known) and math.fsum(known) > len(known) * (value + margin)


def reason(field2d: Field, y: int, x: int, margin: float, wraps: bool) -> str | None:
    """Why the cell is a minimum: "neighbours", "mean", or None when it is not one.

    >>> reason([[5, 5, 5], [5, 4, 5], [5, 5, 5]], 1, 1, margin=9, wraps=False)
    'neighbours'
    >>> reason([[9, 9, 9], [9, 4, 4], [9, 9, 9]], 1, 1, margin=2, wraps=False)
    'mean'
    >>> reason([[4, 4, 4], [4, 4, 4], [4, 4, 4]], 1, 1, margin=0, wraps=False)
    """
    value = float(field2d[y][x])
    if math.isnan(value):
        return None
    shape = (len(field2d), len(field2d[0]))
    if _below_all(field2d, value, _others(shape, y, x, 1, wraps)):
        return "neighbours"
    if _below_mean(field2d, value, _others(shape, y, x, 2, wraps), margin):
        return "mean"
    return None


def is_minimum(field2d: Field, y: int, x: int, margin: float, wraps: bool) -> bool:
    """Whether either criterion holds of the cell.

    >>> is_minimum([[2, 1, 2]], 0, 1, margin=0, wraps=False)
    True
    >>> is_minimum([[2, float("nan"), 2]], 0, 1, margin=0, wraps=False)
    False
    """
    return reason(field2d, y, x, margin, wraps) is not None


def minima(slp3d: npt.ArrayLike, margin: float, wraps: bool) -> set[Cell]:
    """Every cell of every time step that is a minimum.

    >>> sorted(minima([[[3, 1, 3, 3]], [[3, 3, 3, 1]]], margin=9, wraps=False))
    [(0, 0, 1), (1, 0, 3)]
    """
    steps: list[list[list[float]]] = np.asarray(slp3d, dtype=np.float64).tolist()
    return {
        (t, y, x)
        for t, field2d in enumerate(steps)
        for y, row in enumerate(field2d)
        for x in range(len(row))
        if is_minimum(field2d, y, x, margin, wraps)
    }


def minimum(
    fields: Mapping[str, Any], key: Cell, margin: float, wraps: bool
) -> dict[str, Any] | None:
    """What is said of a minimum of pressure and wind, by attribute; None if the cell is none.

    >>> fields = {"slp": [[[3, 1, 3]]], "u10": [[[0, 3, 0]]], "v10": [[[0, -4, 0]]]}
    >>> minimum(fields, (0, 0, 1), margin=9, wraps=False)["wind_speed"]
    5.0
    >>> minimum(fields, (0, 0, 0), margin=9, wraps=False)
    """
    t, y, x = key
    if not is_minimum(fields["slp"][t], y, x, margin, wraps):
        return None
    pressure, u, v = (float(fields[name][t][y][x]) for name in ("slp", "u10", "v10"))
    return {
        "time": t,
        "location": (y, x),
        "pressure": pressure,
        "wind_speed": math.hypot(u, v),
        "wind_direction": math.degrees(math.atan2(-u, -v)) % 360,
    }


def cells_behind(
    slp3d: npt.ArrayLike, t: int, y: int, x: int, margin: float, wraps: bool
) -> set[Cell]:
    """The cells that made this one a minimum, itself among them; none if it is not one.

    >>> sorted(cells_behind([[[3, 3, 1, 3, 3]]], 0, 0, 2, margin=0, wraps=False))
    [(0, 0, 1), (0, 0, 2), (0, 0, 3)]
    >>> len(cells_behind([[[3, 1, 1, 3, 3]]], 0, 0, 2, margin=0, wraps=False))
    5
    """
    field2d = np.asarray(slp3d)[t]
    why = reason(field2d, y, x, margin, wraps)
    if why is None:
        return set()
    reach = {"neighbours": 1, "mean": 2}[why]
    rows, columns = field2d.shape
    return {(t, *place) for place in neighbourhood((rows, columns), y, x, reach, wraps)}
