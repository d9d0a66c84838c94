"""Cyclones: a simulated atmosphere, the minima of its pressure, and the tracks they form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from pipelines import copied
from pipelines.arrays import Ranges, coordinate
from pipelines.boxes.box import (
    INSTEAD,
    ArrayBox,
    Box,
    CellBox,
    Grid,
    Port,
    TableBox,
    param,
)
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
from pipelines.filters import where
from pipelines.linking import code, labelled, linked, points_of
from pipelines.minima import (
    REACH,
    distinct_columns,
    has_wind,
    is_minimum,
    minima_schema,
    padded,
    pascals,
    pressure_of,
    when,
    wind_at,
)
from pipelines.spans import span
from pipelines.spark import over
from pipelines.stores import LARGEST_CHUNK
from pipelines.tables import column, held
from pipelines.weather import Weather

PLACE = ("lat", "lon", "lat_index", "lon_index")


@dataclass(frozen=True, slots=True)
class SimulateAgcm(ArrayBox):
    """A seeded global atmosphere: sea level pressure and wind with known faults."""

    resolution: float = param(2.5, "grid spacing", unit="degrees", low=0.05, high=30)
    days: float = param(60.0, "length", unit="days", low=0.25)
    hours: int = param(6, "time between steps", unit="hours", low=1, high=24)
    seed: int = param(0, "which weather", low=0)
    defects: bool = param(True, "plant a few faults to be found")
    chunk: int = param(24, "steps in a chunk, fewer where they would be too large", low=1)

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
            (self._chunk(weather), len(weather.lat), len(weather.lon)),
            METADATA,
            circular=("lon",),
            notes={"defects": planted},
        )

    def _chunk(self, weather: Weather) -> int:
        """How many steps a chunk has: as asked for, and no more than can be read again."""
        step = len(weather.lat) * len(weather.lon) * np.dtype(np.float32).itemsize
        return min(self.chunk, weather.steps, max(1, LARGEST_CHUNK // step))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        rows, columns = slice(*ranges["lat"]), slice(*ranges["lon"])
        made = self.weather.fields(*ranges["time"])
        return {name: values[:, rows, columns] for name, values in made.items()}


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
class ExtractMinima(CellBox):
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
    of_places: ClassVar = True
    lost: ClassVar = ("time", "location")
    examples: ClassVar = ({"margin": 0.0}, {"margin": 1.0})
    contributed: ClassVar = (
        "The cells of the criterion that made the cell a minimum (three by three, else five by "
        "five), the cell whose pressure it is, and the two wind components there."
    )

    def identity(self, columns: Iterable[str]) -> tuple[str, ...]:
        return ("time", "time_index", "hours", *PLACE)

    def schema(self, inputs: Mapping[str, Dataset]) -> pa.Schema:
        array = inputs["field"]
        assert isinstance(array, Array)
        pascals(array)
        return minima_schema(coordinate(array, "time").dtype, has_wind(array))

    def rows_in(self, inputs: Mapping[str, Any], ranges: Ranges) -> pa.Table:
        return pa.table(self.minima_in(inputs["field"], ranges), schema=self.schema(inputs))

    def minima_in(self, array: Array, cut: Ranges) -> dict[str, NDArray[Any]]:
        """The rows for the minima in index ranges, which are read with the halo they need."""
        first = np.array([a for a, _ in cut.values()])
        field = padded(array, pressure_of(array), cut)
        found = np.nonzero(is_minimum(field, self.margin / pascals(array), distinct_columns(array)))
        inner = field[:, REACH:-REACH, REACH:-REACH][found]
        t, y, x = (index + origin for index, origin in zip(found, first, strict=True))
        return {
            **when(array, t),
            "lat": coordinate(array, "lat")[y].astype(float),
            "lon": coordinate(array, "lon")[x].astype(float),
            "lat_index": y,
            "lon_index": x,
            "pressure": inner * pascals(array),
            **wind_at(array, cut, found),
        }


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
    influence: ClassVar = INSTEAD
    lost: ClassVar = ("track",)
    examples: ClassVar = (
        {"min_points": 2, "near_km": 3400.0, "far_km": 5000.0},
        {"min_points": 3, "near_km": 5000.0, "far_km": 1000.0},
    )
    contributed: ClassVar = (
        "To a point's time and place, the minimum it is; to its track number, the minima linked "
        "from the track's first point up to it, and every one whose removal would change it."
    )

    def identity(self, columns: Iterable[str]) -> tuple[str, ...]:
        return ("time_index", "lat_index", "lon_index")

    def alone(self, attributes: Set[str]) -> Box:
        if "track" in attributes:
            return self
        return copied.Copied(("time", "time_index", *PLACE), ("track",))

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
        schema = self.schema(inputs)
        return over(spark, pieces, lambda piece: _tracks_in(minima, piece, schema), schema)

    def schema(self, inputs: Mapping[str, Dataset]) -> pa.Schema:
        minima = inputs["minima"]
        assert isinstance(minima, Table)
        kept = ["time", "time_index", *PLACE]
        types = [(n, pa.type_for_alias(minima.types[n])) for n in kept]
        return pa.schema([*types, ("track", pa.int64())])

    def links_in(self, minima: Table, first: int, last: int) -> tuple[NDArray[np.int64], ...]:
        """The links from the steps `first` to `last` to the step after each, as point codes."""
        rows = held(minima, where(time_index=span(first, last + 1)))
        return linked(points_of(rows), self.near_km, self.far_km)


def _step_ranges(minima: Table, pieces: int) -> list[tuple[int, int]]:
    """The steps of a table, cut into ranges of about the same length."""
    if not minima.groups:
        return []
    low = min(g.bounds["time_index"][0] for g in minima.groups)
    high = max(g.bounds["time_index"][1] for g in minima.groups)
    cuts = np.unique(np.linspace(low, high + 1, pieces + 1).astype(int))
    return [(int(a), int(b) - 1) for a, b in pairwise(cuts)]


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
