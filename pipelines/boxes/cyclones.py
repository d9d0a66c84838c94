"""Cyclones: a simulated atmosphere, the minima of its pressure, and the tracks they form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from pipelines.arrays import Chunk, Ranges, block, chunks_of, coordinate
from pipelines.boxes.box import ArrayBox, Grid, Port, TableBox, param
from pipelines.datasets import (
    Array,
    Attribute,
    Dataset,
    Location,
    Pressure,
    Table,
    Time,
    TrackId,
    Wind,
    WindDirection,
    WindSpeed,
)
from pipelines.errors import Refused
from pipelines.filters import span, where
from pipelines.spark import over
from pipelines.tables import column, held
from pipelines.weather import Weather

PASCALS = {
    "pa": 1.0,
    "hpa": 100.0,
    "mbar": 100.0,
    "mb": 100.0,
    "millibar": 100.0,
    "millibars": 100.0,
}
REACH = 2
EARTH_KM = 6371.0
# Above what the order of 25 additions can make of equal numbers, far below any real difference.
ROUNDING = 32 * np.finfo(np.float64).eps
PLACE = ("lat", "lon", "lat_index", "lon_index")


@dataclass(frozen=True, slots=True)
class SimulateAgcm(ArrayBox):
    """A seeded global atmosphere: sea level pressure and wind every few hours, with known faults."""

    resolution: float = param(2.5, "grid spacing", unit="degrees", low=0.05, high=30)
    days: float = param(60.0, "length", unit="days", low=0.25)
    hours: int = param(6, "time between steps", unit="hours", low=1, high=24)
    seed: int = param(0, "which weather", low=0)
    defects: bool = param(True, "plant a few faults to be found")
    chunk: int = param(24, "steps in a chunk", low=1)

    name: ClassVar = "simulate_agcm"
    makes: ClassVar = (
        Attribute("time", Time, ("time",)),
        Attribute("slp", Pressure, ("slp",), "Pa", ("lat", "lon")),
        Attribute("u10", Wind, ("u10",), "m s-1", ("lat", "lon")),
        Attribute("v10", Wind, ("v10",), "m s-1", ("lat", "lon")),
    )
    asks: ClassVar = ("slp",)
    contributed: ClassVar = "Nothing: a simulated cell is made of the box's parameters alone."

    @property
    def weather(self) -> Weather:
        return Weather(self.resolution, self.days, self.hours, self.seed, self.defects)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        weather = self.weather
        planted = [asdict(d) for d in weather.planted()]
        return Grid(
            {"time": weather.times, "lat": weather.lat, "lon": weather.lon},
            (min(self.chunk, weather.steps), len(weather.lat), len(weather.lon)),
            METADATA,
            circular=("lon",),
            notes={"defects": planted},
        )

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        return self.weather.fields(*ranges["time"])


METADATA = {
    "": {"Conventions": "CF-1.11", "title": "Simulated atmosphere", "source": "simulate_agcm"},
    "time": {"standard_name": "time", "axis": "T"},
    "lat": {"standard_name": "latitude", "units": "degrees_north", "axis": "Y"},
    "lon": {"standard_name": "longitude", "units": "degrees_east", "axis": "X"},
    "slp": {"standard_name": "air_pressure_at_mean_sea_level", "units": "Pa"},
    "u10": {
        "standard_name": "eastward_wind",
        "units": "m s-1",
        "long_name": "10 m wind to the east",
    },
    "v10": {
        "standard_name": "northward_wind",
        "units": "m s-1",
        "long_name": "10 m wind to the north",
    },
}


@dataclass(frozen=True, slots=True)
class ExtractMinima(TableBox):
    """The cells where sea level pressure is lowest around.

    A cell is a minimum if all of its eight neighbours are higher, or if the mean of the other
    cells of its five by five neighbourhood is higher by more than `margin`. Longitude wraps where
    the grid closes the circle; beyond the poles and other edges there are no cells. A plateau of
    equal cells has no minimum by the first criterion. A missing cell is never a minimum, is not
    higher than anything, and is left out of the mean.

    The first criterion finds the centres of lows; the second adds the shoulders of deep ones. At
    the default margin of 1 000 Pa few are added; at 0 about half of all cells would be minima.
    """

    margin: float = param(1000.0, "how much higher the mean around must be", unit="Pa", low=0)

    name: ClassVar = "extract_minima"
    takes: ClassVar = (Port("field", "array", (Time, Pressure)),)
    makes: ClassVar = (
        Attribute("time", Time, ("time", "time_index", "hours")),
        Attribute("location", Location, PLACE),
        Attribute("pressure", Pressure, ("pressure",), "Pa"),
        Attribute("wind_speed", WindSpeed, ("wind_speed",), "m s-1"),
        Attribute("wind_direction", WindDirection, ("wind_direction",), "degrees"),
    )
    asks: ClassVar = ("time", "location", "pressure")
    contributed: ClassVar = (
        "The cells of the criterion that made the cell a minimum (three by three, else five by "
        "five), the cell whose pressure it is, and the two wind components there."
    )

    def run(self, inputs: Mapping[str, Any], spark: SparkSession) -> DataFrame:
        array: Array = inputs["field"]
        pascals(array)
        pieces = chunks_of(array, pressure_of(array))
        schema = _minima_schema(coordinate(array, "time").dtype)

        def minima(chunk: Chunk) -> Iterator[pa.RecordBatch]:
            yield pa.record_batch(self.minima_in(array, chunk), schema=schema)

        return over(spark, pieces, minima, schema)

    def minima_in(self, array: Array, chunk: Chunk) -> dict[str, NDArray[Any]]:
        """The rows for the minima of one chunk, which are read with the halo they need."""
        first = np.array([a for a, _ in chunk.ranges])
        cut = {d: (a, b + 1) for d, (a, b) in zip(array.dims, chunk.ranges, strict=True)}
        field = padded(array, chunk.variable, cut)
        found = np.nonzero(is_minimum(field, self.margin / pascals(array), _distinct(array)))
        inner = field[:, REACH:-REACH, REACH:-REACH][found]
        t, y, x = (index + origin for index, origin in zip(found, first, strict=True))
        speed, direction = _wind_at(array, cut, found)
        return {
            **_when(array, t),
            "lat": coordinate(array, "lat")[y].astype(float),
            "lon": coordinate(array, "lon")[x].astype(float),
            "lat_index": y,
            "lon_index": x,
            "pressure": inner * pascals(array),
            "wind_speed": speed,
            "wind_direction": direction,
        }


def pressure_of(array: Array) -> str:
    """The variable of an array that is sea level pressure."""
    return next(a.name for a in array.attributes if a.type == Pressure and a.dims)


def pascals(array: Array) -> float:
    """How many pascals the unit of an array's pressure is."""
    unit = array.attribute(pressure_of(array)).unit
    if unit is None or unit.lower() not in PASCALS:
        raise Refused(
            f'the pressure of "{array.name}" is in {unit or "no stated unit"}; '
            "set its units attribute to Pa or hPa"
        )
    return PASCALS[unit.lower()]


def padded(array: Array, variable: str, cut: Ranges) -> NDArray[np.float64]:
    """A block with a halo of two cells; infinity where no cell exists, NaN where one is missing."""
    wide, pads = dict(cut), [(0, 0)]
    for dim in ("lat", "lon"):
        first, last = cut[dim][0] - REACH, cut[dim][1] + REACH
        low, high = (
            (first, last)
            if dim in array.circular
            else (
                max(first, 0),
                min(last, array.size[dim]),
            )
        )
        wide[dim] = (low, high)
        pads.append((low - first, last - high))
    values = block(array, variable, wide).astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    return np.pad(values, pads, constant_values=np.inf)


def _distinct(array: Array) -> int:
    """How many columns in a row of five are different cells: fewer on a tiny circle."""
    return min(2 * REACH + 1, array.size["lon"]) if "lon" in array.circular else 2 * REACH + 1


def is_minimum(field: NDArray[np.float64], margin: float, distinct: int = 5) -> NDArray[np.bool_]:
    """Which inner cells of a padded block (time, lat, lon) are minima by either criterion.

    Every cell's sum is taken in the same order wherever chunks end, so that the result does
    not depend on them.
    """
    inner = field[:, REACH:-REACH, REACH:-REACH]
    with np.errstate(invalid="ignore"):
        lowest = np.isfinite(inner)
        for dy, dx in _offsets(1, distinct):
            lowest &= _moved(field, dy, dx) > inner
        return lowest | _below_mean(field, inner, margin, distinct)


def _below_mean(
    field: NDArray[np.float64], inner: NDArray[np.float64], margin: float, distinct: int
) -> NDArray[np.bool_]:
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
    rows = sum(values[:, :, REACH + dx : REACH + dx + width] for dx in columns)
    return np.asarray(sum(rows[:, dy : dy + height] for dy in range(2 * REACH + 1)))


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


def _wind_at(
    array: Array, cut: Ranges, found: tuple[NDArray[np.int64], ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Speed, and the direction it comes from, of the wind at the cells found; NaN without wind."""
    if not {"u10", "v10"} <= set(array.variables):
        nothing = np.full(len(found[0]), np.nan)
        return nothing, nothing
    u, v = (block(array, name, cut)[found].astype(np.float64) for name in ("u10", "v10"))
    return np.hypot(u, v), np.degrees(np.arctan2(-u, -v)) % 360


def _when(array: Array, t: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    times = coordinate(array, "time")
    since = times - times[0]
    if times.dtype.kind == "M":
        hours, shown = since / np.timedelta64(1, "h"), times.astype("datetime64[us]")
    else:
        hours = np.array([s.total_seconds() / 3600 for s in since])
        shown = np.array([str(s) for s in times], object)
    return {"time": shown[t], "time_index": t, "hours": hours[t]}


def _minima_schema(time: np.dtype[Any]) -> pa.Schema:
    stamp = pa.timestamp("us") if time.kind == "M" else pa.string()
    numbers = ["hours", "lat", "lon", "lat_index", "lon_index", "pressure", "wind_speed"]
    whole = {"lat_index", "lon_index"}
    return pa.schema(
        [("time", stamp), ("time_index", pa.int64())]
        + [(n, pa.int64() if n in whole else pa.float64()) for n in [*numbers, "wind_direction"]]
    )


@dataclass(frozen=True, slots=True)
class IdentifyTracks(TableBox):
    """Minima at consecutive steps, linked one to one into the tracks of cyclones.

    A minimum may be followed by one of the next step that is near (`near_km`), or that lies
    near where the wind would carry it, though not beyond `far_km`. Two are linked if each is the
    best the other may have: the closest one, the first by row and column among equals (distances
    are compared in whole metres). A track is a row of links; those of fewer than `min_points`
    points are left out. Its number says where it began: step, row and column of its first
    point, five digits each for the last two.
    """

    near_km: float = param(450.0, "how far a minimum moves in a step", unit="km", low=0)
    far_km: float = param(900.0, "how far with the wind", unit="km", low=0, high=20015)
    min_points: int = param(8, "the shortest track", unit="points", low=2)

    name: ClassVar = "identify_tracks"
    takes: ClassVar = (Port("minima", "table", (Time, Location)),)
    makes: ClassVar = (
        Attribute("time", Time, ("time", "time_index")),
        Attribute("location", Location, PLACE),
        Attribute("track", TrackId, ("track",)),
    )
    asks: ClassVar = ("time", "location")
    contributed: ClassVar = (
        "To a point's time and place, the minimum it is; to its track number, the minima linked "
        "from the track's first point up to it, and every one whose removal would change it."
    )

    @property
    def reach_km(self) -> float:
        return max(self.near_km, self.far_km)

    def run(self, inputs: Mapping[str, Any], spark: SparkSession) -> DataFrame:
        minima: Table = inputs["minima"]
        steps = _step_ranges(minima, 4 * spark.sparkContext.defaultParallelism)
        codes = pa.schema([("before", pa.int64()), ("after", pa.int64())])

        def links(piece: tuple[int, int]) -> Iterator[pa.RecordBatch]:
            yield pa.record_batch(list(self.links_in(minima, *piece)), schema=codes)

        found = over(spark, steps, links, codes).toArrow()
        point, track = labelled(column(found, "before"), column(found, "after"), self.min_points)
        cuts = [np.searchsorted(point, [code(a, 0, 0), code(b + 1, 0, 0)]) for a, b in steps]
        pieces = [(s, point[i:j], track[i:j]) for s, (i, j) in zip(steps, cuts, strict=True)]
        schema = _tracks_schema(minima)
        return over(spark, pieces, lambda piece: _tracks_in(minima, piece, schema), schema)

    def links_in(self, minima: Table, first: int, last: int) -> tuple[NDArray[np.int64], ...]:
        """The links from the steps `first` to `last` to the step after each, as point codes."""
        rows = held(minima, where(time_index=span(first, last + 1)))
        return linked(points_of(rows), self.near_km, self.far_km)


def code(time: Any, lat: Any, lon: Any) -> Any:
    """A point's step, row and column in one number.

    >>> code(12, 34, 71)
    120003400071
    """
    return time * 10**10 + lat * 10**5 + lon


def uncoded(number: Any) -> tuple[Any, Any, Any]:
    """The step, row and column in a track's number.

    >>> uncoded(120003400071)
    (12, 34, 71)
    """
    return number // 10**10, number // 10**5 % 10**5, number % 10**5


@dataclass(frozen=True, slots=True)
class Points:
    """Minima by columns, in the order of step, row and column."""

    code: NDArray[np.int64]
    step: NDArray[np.int64]
    hours: NDArray[np.float64]
    lat: NDArray[np.float64]
    lon: NDArray[np.float64]
    speed: NDArray[np.float64]
    direction: NDArray[np.float64]

    def __getitem__(self, index: Any) -> Points:
        return Points(*(getattr(self, n)[index] for n in self.__slots__))


def points_of(rows: pa.Table) -> Points:
    """The minima in the rows of a table."""
    return points_in({n: column(rows, n) for n in rows.column_names})


def points_in(columns: Mapping[str, NDArray[Any]]) -> Points:
    """The minima in columns of the minima table."""
    step, y, x = (columns[n] for n in ("time_index", "lat_index", "lon_index"))
    names = ("hours", "lat", "lon", "wind_speed", "wind_direction")
    points = Points(code(step, y, x), step, *(columns[n].astype(float) for n in names))
    return points[np.argsort(points.code)]


def linked(points: Points, near_km: float, far_km: float) -> tuple[NDArray[np.int64], ...]:
    """Every link between consecutive steps, as the codes of its two points."""
    before: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    after: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    steps, starts = np.unique(points.step, return_index=True)
    ends = [*starts[1:], len(points.step)]
    for i in np.flatnonzero(np.diff(steps) == 1):
        here, there = points[starts[i] : ends[i]], points[starts[i + 1] : ends[i + 1]]
        a, b = mutual_best(costs(here, there, near_km, far_km))
        before.append(here.code[a])
        after.append(there.code[b])
    return np.concatenate(before), np.concatenate(after)


def costs(here: Points, there: Points, near_km: float, far_km: float) -> NDArray[np.float64]:
    """How far, in metres, each point is from being followed by each other; infinite if it may not."""
    apart = metres(here.lat, here.lon, there.lat, there.lon)
    drifted = drift(here, there.hours[0] - here.hours[0])
    off = metres(*drifted, there.lat, there.lon)
    by_wind = (apart <= far_km * 1000) & (off <= near_km * 1000)
    near = np.where(apart <= near_km * 1000, apart, np.inf)
    return np.minimum(near, np.where(by_wind, off, np.inf))


def mutual_best(cost: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of which each is the other's cheapest, the first among equals."""
    forth, back = cost.argmin(axis=1), cost.argmin(axis=0)
    rows = np.arange(len(cost))
    mutual = (back[forth] == rows) & np.isfinite(cost[rows, forth])
    return rows[mutual], forth[mutual]


def metres(lat1: Any, lon1: Any, lat2: Any, lon2: Any) -> NDArray[np.float64]:
    """Great-circle distances from each of the first points to each of the second, in whole metres."""
    phi1, phi2 = np.radians(lat1)[:, None], np.radians(lat2)[None, :]
    turn = np.radians(np.asarray(lon2)[None, :] - np.asarray(lon1)[:, None])
    height = np.sin((phi2 - phi1) / 2) ** 2
    chord = height + np.cos(phi1) * np.cos(phi2) * np.sin(turn / 2) ** 2
    return np.rint(2 * EARTH_KM * 1000 * np.arcsin(np.sqrt(np.clip(chord, 0, 1))))


def drift(points: Points, hours: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where the wind at each point would carry it; NaN without wind."""
    phi, bearing = np.radians(points.lat), np.radians(points.direction + 180)
    arc = points.speed * hours * 3.6 / EARTH_KM
    up = np.sin(phi) * np.cos(arc) + np.cos(phi) * np.sin(arc) * np.cos(bearing)
    ahead = np.cos(phi) * np.cos(arc) - np.sin(phi) * np.sin(arc) * np.cos(bearing)
    turn = np.arctan2(np.sin(bearing) * np.sin(arc), ahead)
    return np.degrees(np.arcsin(np.clip(up, -1, 1))), points.lon + np.degrees(turn)


def labelled(
    before: NDArray[np.int64], after: NDArray[np.int64], min_points: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each point of a track that is long enough, in order, with the track's number."""
    track: dict[int, int] = {}
    for a, b in sorted(zip(before.tolist(), after.tolist(), strict=True)):
        track[b] = track.setdefault(a, a)
    point = np.array(sorted(track), np.int64)
    number = np.array([track[p] for p in point.tolist()], np.int64)
    _, which, count = np.unique(number, return_inverse=True, return_counts=True)
    kept = count[which] >= min_points if len(point) else np.zeros(0, bool)
    return point[kept], number[kept]


def _step_ranges(minima: Table, pieces: int) -> list[tuple[int, int]]:
    """The steps of a table, cut into ranges of about the same length."""
    if not minima.groups:
        return []
    low = min(g.bounds["time_index"][0] for g in minima.groups)
    high = max(g.bounds["time_index"][1] for g in minima.groups)
    cuts = np.unique(np.linspace(low, high + 1, pieces + 1).astype(int))
    return [(int(a), int(b) - 1) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


def _tracks_schema(minima: Table) -> pa.Schema:
    kept = ["time", "time_index", *PLACE]
    types = [(n, pa.type_for_alias(minima.types[n])) for n in kept]
    return pa.schema([*types, ("track", pa.int64())])


def _tracks_in(
    minima: Table, piece: tuple[tuple[int, int], Any, Any], schema: pa.Schema
) -> Iterable[pa.RecordBatch]:
    (first, last), point, track = piece
    if not len(point):
        return
    rows = held(minima, where(time_index=span(first, last)))
    codes = code(*(column(rows, n) for n in ("time_index", "lat_index", "lon_index")))
    order = np.argsort(codes)
    chosen = rows.take(order[np.searchsorted(codes, point, sorter=order)])
    chosen = chosen.select(schema.names[:-1]).append_column("track", pa.array(track))
    yield from chosen.cast(schema).to_batches()
