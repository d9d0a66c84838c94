"""Gridding: rows of a table that are put into the cells of a regular array."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines import binning
from pipelines.arrays import Ranges
from pipelines.binning import Bins
from pipelines.boxes.box import REMOVAL, ArrayBox, Grid, Port, param
from pipelines.boxes.groups import aggregated
from pipelines.columns import bearing, check_known, gathered
from pipelines.datasets import Attribute, Dataset, Quantity, Table, Time
from pipelines.errors import Refused, unknown
from pipelines.filters import Filter
from pipelines.spans import Span
from pipelines.tables import column, held

Given = Mapping[str, tuple[Attribute, ...]]
MOST_CELLS = 2**24
SMALL = {
    "lat": "x",
    "lon": "y",
    "resolution": 5.0,
    "south": -10.2,
    "north": 9.8,
    "west": -10.2,
    "east": 9.8,
}
ROUND = {**SMALL, "resolution": 60.0, "south": -90.2, "north": 89.8, "west": -180.2, "east": 179.8}
STEPPED = {"time": "k", "start": "0", "every": 1.0, "steps": 3}
POINTS = {"step": "k", "track": "y", "steps": 3}
LATITUDE = {"standard_name": "latitude", "units": "degrees_north", "axis": "Y"}
LONGITUDE = {"standard_name": "longitude", "units": "degrees_east", "axis": "X"}


@dataclass(frozen=True, slots=True)
class RowsOnGrid(ArrayBox):
    """What boxes that put rows on a regular grid have in common."""

    resolution: float = param(2.5, "size of a cell", unit="degrees", low=0.001, high=360)
    south: float = param(-90.0, "where the grid begins", unit="degrees", low=-90.5, high=90)
    north: float = param(90.0, "where the grid ends", unit="degrees", low=-90, high=90.5)
    west: float = param(0.0, "where the grid begins", unit="degrees", low=-360, high=360)
    east: float = param(360.0, "where the grid ends", unit="degrees", low=-360, high=720)
    lat: str = param("lat", "the column with the latitude")
    lon: str = param("lon", "the column with the longitude")

    takes: ClassVar = (Port("rows", "table"),)
    influence: ClassVar = REMOVAL
    flat: ClassVar = True

    @property
    @abstractmethod
    def aggregate(self) -> tuple[str, str]:
        """The column that is put together in each cell, and how."""

    @property
    @abstractmethod
    def when(self) -> str:
        """The column that says which step a row belongs to; empty if all belong to one."""

    @abstractmethod
    def steps_of(self, rows: Table) -> Bins | None:
        """The bins of that column."""

    @abstractmethod
    def times(self, rows: Table) -> NDArray[Any]:
        """The times of the steps."""

    @property
    @abstractmethod
    def variable(self) -> str:
        """What the array's variable is called."""

    @property
    def named(self) -> list[str]:
        """The columns that are looked at."""
        return [c for c in (self.lat, self.lon, self.when, self.aggregate[0]) if c]

    def attributes_of(self, given: Given) -> tuple[Attribute, ...]:
        check_known(self.name, self.named, given["rows"])
        if len({self.lat, self.lon, self.when}) < 3:
            raise Refused(f'box "{self.name}": latitude, longitude and time need a column each')
        of = [a for a in given["rows"] if self.aggregate[0] in a.columns]
        kind, unit = (of[0].type, of[0].unit) if of else (Quantity, "1")
        made = Attribute(self.variable, kind, (self.variable,), unit, ("lat", "lon"))
        return (Attribute("time", Time, ("time",)), made)

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return bearing(source, self.named)

    def bins(self, rows: Table) -> dict[str, tuple[str, Bins]]:
        """For each dimension that rows are told apart by, the column and its bins."""
        found = {
            "lat": (self.lat, binning.degrees(self.south, self.north, self.resolution)),
            "lon": (self.lon, binning.longitudes(self.west, self.east, self.resolution)),
        }
        steps = self.steps_of(rows)
        return {**found, "time": (self.when, steps)} if steps is not None else found

    def check_types(self, rows: Table) -> None:
        """Refuse places and values that are no numbers."""
        for name in (n for n in self.named if n != self.when):
            if not _is_number(rows.types[name]):
                raise Refused(f'box "{self.name}": "{name}" is {rows.types[name]}, not a number')

    def grid(self, inputs: Mapping[str, Any]) -> Grid:
        self.check_types(inputs["rows"])
        bins = self.bins(inputs["rows"])
        cells = bins["lat"][1].count * bins["lon"][1].count
        if cells > MOST_CELLS:
            raise Refused(
                f'box "{self.name}": a step would have {cells:,} cells, over {MOST_CELLS:,}; '
                "make them larger"
            )
        middle = self.resolution * (np.arange(max(b.count for _, b in bins.values())) + 0.5)
        places = {d: start + middle[: bins[d][1].count]
                  for d, start in (("lat", self.south), ("lon", self.west))}  # fmt: skip
        return Grid(
            {"time": self.times(inputs["rows"]), **places},
            (1, *(len(c) for c in places.values())),
            {"": {}, "lat": LATITUDE, "lon": LONGITUDE, self.variable: {}},
            circular=("lon",) if binning.circles(self.west, self.east) else (),
            dtype=np.float64,
        )

    def within(self, rows: Table, at: Filter) -> Filter:
        """The rows that fall into cells, by the values of their columns."""
        bins = self.bins(rows).items()
        spans = {c: each.spans(at.span(d), len(at)) for d, (c, each) in bins}
        turns = [dict(zip(spans, each, strict=True)) for each in product(*spans.values())]
        found = [at.to(**turn) for turn in turns]
        whole = found[0]
        for each in found[1:]:
            whole = whole | each
        return whole

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        table: Table = inputs["rows"]
        shape = tuple(b - a for a, b in ranges.values())
        cells = {d: Span(np.array([a]), np.array([b - 1])) for d, (a, b) in ranges.items()}
        rows = held(table, self.within(table, Filter(np.zeros(1, np.int64), cells)))
        places = [self._places(table, rows, d) - ranges[d][0] for d in ranges]
        flat = np.ravel_multi_index(places, shape) if rows.num_rows else np.zeros(0, np.int64)
        return {self.variable: self._put(rows, flat, int(np.prod(shape))).reshape(shape)}

    def _places(self, table: Table, rows: pa.Table, dim: str) -> NDArray[np.int64]:
        """The index of each row along a dimension."""
        if dim not in self.bins(table):
            return np.zeros(rows.num_rows, np.int64)
        name, bins = self.bins(table)[dim]
        return bins.of(column(rows, name))

    def _put(self, rows: pa.Table, cell: NDArray[np.int64], cells: int) -> NDArray[np.float64]:
        of, how = self.aggregate
        if how == "count":
            return np.bincount(cell, minlength=cells).astype(float)
        found, values = np.full(cells, np.nan), column(rows, of).astype(float)
        for group in gathered(cell):
            found[cell[group[0]]] = aggregated(values[group], how)
        return found


def _is_number(stored: str) -> bool:
    return stored.startswith(("int", "uint", "float", "double"))


@dataclass(frozen=True, slots=True)
class GridRows(RowsOnGrid):
    """Rows put on a regular grid by latitude, longitude and time: their count, mean or max.

    A cell holds the rows from its southern, western and earliest edge up to the next cell's; the
    last latitude belongs to the last cell. Longitudes may be given from -180 or from 0 where the
    grid goes round the earth. Steps begin at `start` and are `every` hours long; where the column
    is a number, `start` and `every` are numbers like it. Rows outside the grid, and those whose
    place is missing, are in no cell. Missing values are left out of a mean or max; a cell
    without any is missing. Without a column for the time there is one step. The array's variable
    is called `count`, or by the column and what is made of it, like `x_mean`.
    """

    how: str = param("count", "what to make of the rows in a cell: count, mean or max")
    of: str = param("", "the column to take the mean or max of")
    time: str = param("time", "the column with the time, or nothing for one step")
    start: str = param("2000-01-01", "when the first step begins")
    every: float = param(24.0, "length of a step", unit="hours", low=1e-6)
    steps: int = param(1, "how many steps", low=1, high=1_000_000)

    name: ClassVar = "grid_rows"
    contributed: ClassVar = (
        "The rows that fall into the cell: to a count all of them, to a mean those that have a "
        "value, to a max those that attain it; where none has a value, all."
    )
    examples: ClassVar = (
        {**SMALL, **STEPPED},
        {**SMALL, **STEPPED, "how": "mean", "of": "y"},
        {**SMALL, "how": "max", "of": "x", "resolution": 10.0, "time": ""},
    )

    @property
    def aggregate(self) -> tuple[str, str]:
        if self.how not in ("count", "mean", "max"):
            raise unknown("way to put rows together", self.how, ["count", "mean", "max"])
        if self.how != "count" and not self.of:
            raise Refused(f'box "grid_rows": of which column is the {self.how}? Say it with of')
        return "" if self.how == "count" else self.of, self.how

    @property
    def variable(self) -> str:
        return "count" if self.how == "count" else f"{self.of}_{self.how}"

    @property
    def when(self) -> str:
        return self.time

    def steps_of(self, rows: Table) -> Bins | None:
        if not self.time:
            return None
        dated = rows.types[self.time].startswith("timestamp")
        if not dated and not _is_number(rows.types[self.time]):
            raise Refused(f'box "{self.name}": "{self.time}" is {rows.types[self.time]}, no time')
        return (binning.times if dated else binning.numbers)(self.start, self.every, self.steps)

    def times(self, rows: Table) -> NDArray[Any]:
        steps = self.steps_of(rows)
        if steps is None:
            return binning.dates(self.start, self.every, 1).astype("datetime64[ns]")
        first = steps.edges[:-1]
        return first.astype("datetime64[ns]") if first.dtype.kind == "M" else first


@dataclass(frozen=True, slots=True)
class RasterizeTracks(RowsOnGrid):
    """The points of tracks put on a regular grid: the number of the track in each cell.

    Where several tracks share a cell at one step it has the least of their numbers; with `count`,
    it has how many points there are. The step is that of the point's `time_index`; it is dated
    from `start`, `hours` apart. A cell that no track passes is missing, or 0 if counted.
    """

    count: bool = param(False, "count the points instead")
    track: str = param("track", "the column with the number of the track")
    step: str = param("time_index", "the column with the number of the step")
    start: str = param("2000-01-01", "when the first step is")
    hours: float = param(6.0, "time between steps", unit="hours", low=1e-6)
    steps: int = param(1, "how many steps", low=1, high=1_000_000)

    name: ClassVar = "rasterize_tracks"
    contributed: ClassVar = (
        "The points in the cell: to a count all of them, to a track's number those that bear it."
    )
    examples: ClassVar = (
        {**SMALL, **POINTS},
        {**ROUND, **POINTS, "count": True},
    )

    @property
    def aggregate(self) -> tuple[str, str]:
        return ("", "count") if self.count else (self.track, "min")

    @property
    def variable(self) -> str:
        return "count" if self.count else "track"

    @property
    def when(self) -> str:
        return self.step

    def steps_of(self, rows: Table) -> Bins | None:
        return binning.numbers("0", 1, self.steps)

    def times(self, rows: Table) -> NDArray[Any]:
        return binning.dates(self.start, self.hours, self.steps).astype("datetime64[ns]")
