"""Parts of arrays: some places, times and variables, as they are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges, block, coordinate
from pipelines.boxes.box import ArrayBox, Grid, Port, param
from pipelines.datasets import Array, Attribute, Dataset
from pipelines.errors import Refused
from pipelines.grids import (
    degrees,
    grid_like,
    names_in,
    variable_of,
    variables_of,
    with_variables,
)
from pipelines.moments import between, checked_moment

Attributes = tuple[Attribute, ...]
Indices = NDArray[np.int64]
ROUNDING = 1e-9  # degrees, by which coordinates of 8 bytes may be off


class Picking(ArrayBox):
    """A box that takes some places of each dimension as they are."""

    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = "The cell at the same place and time."
    monotone: ClassVar = True
    flat: ClassVar = True

    @abstractmethod
    def picked(self, array: Array) -> Mapping[str, Indices]:
        """The places that are taken, by dimension; past the ends of one that goes round."""

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        return given["field"]

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (attribute,)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        field = inputs["field"]
        assert isinstance(field, Array)
        attributes = self.attributes_of({"field": field.attributes})
        picked = self.picked(field)
        for dim in (d for d, places in picked.items() if not len(places)):
            ends = coordinate(field, dim)[[0, -1]]
            raise Refused(
                f'box "{self.name}": nothing of "{field.name}" is left along {dim}, which runs '
                f"from {ends[0]} to {ends[1]}"
            )
        places = {d: coordinate(field, d)[n % field.size[d]] for d, n in picked.items()}
        round_ = tuple(d for d in field.circular if _goes_on(picked[d], field.size[d]))
        return grid_like(field, attributes, places, round_)

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field: Array = inputs["field"]
        chosen = {d: n[slice(*ranges[d])] for d, n in self.picked(field).items()}
        hull = {d: (int(n.min()), int(n.max()) + 1) for d, n in chosen.items()}
        index = np.ix_(*(chosen[d] - hull[d][0] for d in field.dims))
        names = variables_of(self.attributes_of({"field": field.attributes}))
        return {v: block(field, v, hull)[index].astype(np.float64) for v in names}


def _goes_on(places: Indices, size: int) -> bool:
    """Whether places picked evenly go all round a circle of this size."""
    step = int(places[1] - places[0]) if len(places) > 2 else 0
    return step > 0 and len(places) * step == size


@dataclass(frozen=True, slots=True)
class Subset(Picking):
    """The cells between some latitudes, longitudes and times, both ends included.

    A coordinate that was rounded when it was stored is still at its end. Longitudes are compared
    on the circle, so that -10 is 350, and 350 to 20 crosses the seam: what is left then begins in
    the west, if the grid goes round. Times are dates like 2000-01-14 or 2000-01, of which the last
    counts whole; an empty one is no limit.
    """

    south: float = param(-90.0, "the least latitude", unit="degrees", low=-90, high=90)
    north: float = param(90.0, "the greatest latitude", unit="degrees", low=-90, high=90)
    west: float = param(-180.0, "the longitude to begin at", unit="degrees", low=-360, high=720)
    east: float = param(180.0, "the longitude to end at", unit="degrees", low=-360, high=720)
    start: str = param("", "the first time, like 2000-01-14")
    end: str = param("", "the last time, like 2000-01-31T18")

    name: ClassVar = "subset"
    examples: ClassVar = (
        {"south": -60.0, "north": 30.0},
        {"west": 0.0, "east": 200.0, "start": "2000-01-01"},
        {"west": 300.0, "east": 90.0, "end": "2000-01-01"},
    )

    def __post_init__(self) -> None:
        if self.south > self.north:
            raise Refused(
                f'box "{self.name}": south is {self.south:g}, above north ({self.north:g})'
            )
        for limit in filter(None, (self.start, self.end)):
            checked_moment(limit, self.name)

    def picked(self, array: Array) -> Mapping[str, Indices]:
        lat, off = degrees(array, "lat"), _rounding(coordinate(array, "lat"))
        return {
            "time": between(coordinate(array, "time"), self.start, self.end, self.name),
            "lat": np.flatnonzero((lat >= self.south - off) & (lat <= self.north + off)),
            "lon": self._columns(array),
        }

    def _columns(self, array: Array) -> Indices:
        """The columns from west to east, which may go on past the seam of a circle."""
        width = self.east - self.west
        size = array.size["lon"]
        if width >= 360 or size == 0:
            return np.arange(size)
        lon = coordinate(array, "lon")
        off = _rounding(lon)
        past = (lon.astype(np.float64) - self.west + off) % 360
        inside = past <= width % 360 + 2 * off
        if "lon" not in array.circular or inside.all():
            return np.flatnonzero(inside)
        cut = np.flatnonzero(~inside[np.arange(size) - 1] & inside)
        begin = int(cut[0]) if len(cut) else 0
        return np.flatnonzero(inside[(np.arange(size) + begin) % size]) + begin


def _rounding(places: NDArray[Any]) -> float:
    """By how many degrees coordinates may be off for being stored in so many bytes."""
    if places.dtype.kind != "f":
        return ROUNDING
    return max(ROUNDING, 2 * float(np.spacing(np.abs(places).max(initial=0))))


@dataclass(frozen=True, slots=True)
class Select(Picking):
    """Some variables, and every so many places along each dimension, from the first on."""

    variables: str = param("", "names, with commas between them; all if empty")
    time: int = param(1, "take every so many steps", low=1)
    lat: int = param(1, "take every so many rows", low=1)
    lon: int = param(1, "take every so many columns", low=1)
    skip: int = param(0, "leave out so many steps at the start", low=0)

    name: ClassVar = "select"
    examples: ClassVar = ({}, {"lat": 2, "lon": 3, "skip": 1}, {"variables": "a", "time": 2})

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        names = names_in(self.variables) or list(variables_of(given["field"]))
        found = [variable_of(given["field"], name, self.name) for name in dict.fromkeys(names)]
        return with_variables(given["field"], found)

    def picked(self, array: Array) -> Mapping[str, Indices]:
        steps = {"time": (self.skip, self.time), "lat": (0, self.lat), "lon": (0, self.lon)}
        return {d: np.arange(*_from(steps, d, n)) for d, n in array.size.items()}


def _from(steps: Mapping[str, tuple[int, int]], dim: str, size: int) -> tuple[int, int, int]:
    first, step = steps.get(dim, (0, 1))
    return min(first, size), size, min(step, max(size, 1))
