"""The rule for minima of pressure: which cells of a block are lowest around, and what is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.arrays import Ranges, block, coordinate
from pipelines.datasets import Array, Pressure
from pipelines.errors import Refused

PASCALS = {
    "pa": 1.0,
    "pascal": 1.0,
    "pascals": 1.0,
    "n m-2": 1.0,
    "hpa": 100.0,
    "hectopascal": 100.0,
    "hectopascals": 100.0,
    "mbar": 100.0,
    "mb": 100.0,
    "millibar": 100.0,
    "millibars": 100.0,
}
REACH = 2
# Above what the order of 25 additions can make of equal numbers, far below any real difference.
ROUNDING = 32 * np.finfo(np.float64).eps


def pressure_of(array: Array) -> str:
    """The variable of an array that is sea level pressure."""
    for each in array.attributes:
        if each.type == Pressure and each.dims:
            return each.name
    known = ", ".join(array.stored[v] for v in array.variables)
    raise Refused(
        f'none of the variables of "{array.name}" ({known}) is known for sea level pressure; '
        "say which is, like: variables: {slp: NAME}"
    )


def pascals(array: Array) -> float:
    """How many pascals the unit of an array's pressure is."""
    unit = array.attribute(pressure_of(array)).unit
    if unit is None or unit.strip().lower() not in PASCALS:
        raise Refused(
            f'the pressure of "{array.name}" is in {unit or "no stated unit"}; '
            "set its units attribute to Pa or hPa"
        )
    return PASCALS[unit.strip().lower()]


def halo(array: Array, cut: Ranges) -> dict[str, tuple[int, int]]:
    """Index ranges with two cells more on each side, as far as there are cells."""
    wide = dict(cut)
    for dim in ("lat", "lon"):
        first, last = cut[dim][0] - REACH, cut[dim][1] + REACH
        round_ = dim in array.circular
        wide[dim] = (first, last) if round_ else (max(first, 0), min(last, array.size[dim]))
    return wide


def padded(array: Array, variable: str, cut: Ranges) -> NDArray[np.float64]:
    """A block with a halo of two cells; infinity where no cell exists, NaN where one is missing."""
    wide = halo(array, cut)
    return with_edges(block(array, variable, wide), cut, wide)


def with_edges(values: NDArray[Any], cut: Ranges, wide: Ranges) -> NDArray[np.float64]:
    """The values of a halo; infinity where no cell exists, NaN where one is missing."""
    found = values.astype(np.float64)
    found[~np.isfinite(found)] = np.nan
    return np.pad(found, [(0, 0), *lacking(cut, wide)], constant_values=np.inf)


def lacking(cut: Ranges, wide: Ranges) -> list[tuple[int, int]]:
    """How many rows and columns a halo lacks at either end, where there are no cells."""
    ends = [(*cut[dim], *wide[dim]) for dim in ("lat", "lon")]
    return [(low - first + REACH, last + REACH - high) for first, last, low, high in ends]


def distinct_columns(array: Array) -> int:
    """How many columns in a row of five are different cells: fewer on a tiny circle."""
    return min(2 * REACH + 1, array.size["lon"]) if "lon" in array.circular else 2 * REACH + 1


def is_minimum(field: NDArray[np.float64], margin: float, distinct: int = 5) -> NDArray[np.bool_]:
    """Which inner cells of a padded block (time, lat, lon) are minima by either criterion.

    Every cell's sum is taken in the same order wherever chunks end, so that the result does
    not depend on them.
    """
    with np.errstate(invalid="ignore"):
        return is_lowest(field, distinct) | _below_mean(field, margin, distinct)


def is_lowest(field: NDArray[np.float64], distinct: int = 5) -> NDArray[np.bool_]:
    """Which inner cells of a padded block are minima by the first criterion."""
    inner = _moved(field, 0, 0)
    lowest = np.isfinite(inner)
    for dy, dx in _offsets(1, distinct):
        lowest &= _moved(field, dy, dx) > inner
    return lowest


def _below_mean(field: NDArray[np.float64], margin: float, distinct: int) -> NDArray[np.bool_]:
    inner = _moved(field, 0, 0)
    real = np.isfinite(field)
    values = np.where(real, field, 0.0)
    count = _window_sum(real.astype(np.int16), distinct) - 1
    total = _window_sum(values, distinct) - np.where(np.isfinite(inner), inner, 0.0)
    excess = total - count * (inner + margin)
    return np.asarray((count > 0) & (excess > ROUNDING * np.abs(total)))


def _window_sum(values: NDArray[Any], distinct: int) -> NDArray[Any]:
    """The sum over each cell's five by five window, columns first, then rows."""
    height, width = values.shape[1] - 2 * REACH, values.shape[2] - 2 * REACH
    columns = _columns(REACH, distinct)
    rows = _total([values[:, :, REACH + dx : REACH + dx + width] for dx in columns])
    return _total([rows[:, dy : dy + height] for dy in range(2 * REACH + 1)])


def _total(terms: list[NDArray[Any]]) -> NDArray[Any]:
    """The sum of arrays, from the first to the last."""
    total = terms[0].copy()
    for term in terms[1:]:
        total += term
    return total


def _columns(reach: int, distinct: int) -> list[int]:
    return list(
        {dx % distinct if distinct < 5 else dx: dx for dx in range(-reach, reach + 1)}.values()
    )


def _offsets(reach: int, distinct: int) -> list[tuple[int, int]]:
    """The places around a cell, each cell once."""
    steps = range(-reach, reach + 1)
    around = [(dy, dx) for dy in steps for dx in _columns(reach, distinct)]
    return [(dy, dx) for dy, dx in around if dy or dx % distinct]


def _moved(field: NDArray[np.float64], dy: int, dx: int) -> NDArray[np.float64]:
    height, width = field.shape[1] - 2 * REACH, field.shape[2] - 2 * REACH
    top, left = REACH + dy, REACH + dx
    return field[:, top : top + height, left : left + width]


def has_wind(array: Array) -> bool:
    """Whether an array has both components of the wind."""
    return {"u10", "v10"} <= set(array.variables)


def wind_at(
    array: Array, cut: Ranges, found: tuple[NDArray[np.int64], ...]
) -> dict[str, NDArray[np.float64]]:
    """Speed, and the direction it comes from, of the wind at the cells found, if there is wind."""
    if not has_wind(array):
        return {}
    u, v = (block(array, name, cut)[found].astype(np.float64) for name in ("u10", "v10"))
    direction = np.degrees(np.arctan2(-u, -v)) % 360
    return {"wind_speed": np.hypot(u, v), "wind_direction": direction}


def when(array: Array, t: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The times of some steps: as such, by index, and in hours since the first."""
    times = coordinate(array, "time")
    since = times - times[0]
    if times.dtype.kind == "M":
        hours, shown = since / np.timedelta64(1, "h"), times.astype("datetime64[us]")
    elif times.dtype.kind in "iuf":
        hours, shown = since.astype(float), times.astype(float)
    else:
        hours = np.array([s.total_seconds() / 3600 for s in since])
        shown = np.array([str(s) for s in times], object)
    return {"time": shown[t], "time_index": t, "hours": hours[t]}


def place_schema(time: np.dtype[Any]) -> pa.Schema:
    """The columns of a time and place; times of unusual calendars are texts."""
    kinds = {"M": pa.timestamp("us"), "O": pa.string()}
    real, whole = pa.float64(), pa.int64()
    when_ = [("time", kinds.get(time.kind, real)), ("time_index", whole), ("hours", real)]
    where = [("lat", real), ("lon", real), ("lat_index", whole), ("lon_index", whole)]
    return pa.schema([*when_, *where])


def minima_schema(time: np.dtype[Any], wind: bool = True) -> pa.Schema:
    """The columns of minima."""
    real = pa.float64()
    blown = [("wind_speed", real), ("wind_direction", real)] if wind else []
    return pa.schema([*place_schema(time), ("pressure", real), *blown])
