"""Places: from coordinates on a map to the integer cells of a grid, and back to rectangles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.demo import asset
from pipelines.arrays import coordinate
from pipelines.datasets import Array

Numbers = NDArray[Any]
MOST_PIXELS = 720


@dataclass(frozen=True, slots=True)
class Axis:
    """The cells along one dimension: where each begins and ends, in rising coordinates.

    `order` says which index lies where; on a circle of `period` the first cell is shown once
    more behind the last, so that both sides of the seam have a place.

    >>> lon = Axis.of(np.arange(0, 360, 90.0), period=360)
    >>> [lon.index(x) for x in (0, 44, 46, 359, 360, -1)]
    [0, 0, 1, 0, 0, 0]
    >>> Axis.of(np.array([10.0, 0.0, -10.0])).index(-8)
    2
    """

    edges: Numbers
    order: Numbers
    period: float | None = None

    @classmethod
    def of(cls, values: Numbers, period: float | None = None) -> Axis:
        """The axis of some coordinates, even or not, rising, falling, or cut on a circle."""
        along = np.asarray(values, float)
        along = np.unwrap(along, period=period) if period else along
        order = np.argsort(along, kind="stable")
        centres = along[order]
        if period:
            centres, order = np.append(centres, centres[0] + period), np.append(order, order[0])
        return cls(_edges(centres), order, period)

    def index(self, at: float) -> int | None:
        """The index of the cell at a coordinate; None beside all of them."""
        if self.period and not self.edges[0] <= at < self.edges[-1]:
            at = self.edges[0] + (at - self.edges[0]) % self.period
        place = int(np.searchsorted(self.edges, at, "right")) - 1
        if at == self.edges[-1]:
            place -= 1
        return int(self.order[place]) if 0 <= place < len(self.order) else None

    def places(self, indices: Numbers) -> tuple[Numbers, Numbers]:
        """Where indices are shown, as pairs of which index and at which place; at a seam, twice."""
        which, place = np.nonzero(np.asarray(indices)[:, None] == self.order[None, :])
        return which, place

    def seen(self, low: float, high: float, most: int = MOST_PIXELS) -> tuple[Numbers, Numbers]:
        """The cells between two coordinates, in at most so many even pixels, and their ends."""
        first = max(int(np.searchsorted(self.edges, low, "right")) - 1, 0)
        last = min(int(np.searchsorted(self.edges, high, "left")), len(self.order))
        ends = self.edges[[first, last]]
        sizes = np.diff(self.edges[first : last + 1])
        if len(sizes) <= most and np.allclose(sizes, sizes[0], rtol=1e-3):
            return self.order[first:last], ends
        pixels = ends[0] + (np.arange(most) + 0.5) * (ends[1] - ends[0]) / most
        return self.order[np.searchsorted(self.edges, pixels, "right") - 1], ends


def _edges(centres: Numbers) -> Numbers:
    """Half way between the centres, and as far beyond the outer ones."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    inner = (centres[1:] + centres[:-1]) / 2
    return np.array([2 * centres[0] - inner[0], *inner, 2 * centres[-1] - inner[-1]])


@dataclass(frozen=True, slots=True)
class Plane:
    """Two dimensions of an array as they are drawn: one to the right, one up."""

    across: str
    up: str
    x: Axis
    y: Axis

    @classmethod
    def of(cls, array: Array, up: str, across: str) -> Plane:
        """The plane of two dimensions of an array, in their coordinates, times as indices."""
        return cls(across, up, _axis(array, across), _axis(array, up))

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of all cells."""
        x, y = self.x.edges, self.y.edges
        return float(x[0]), float(x[-1]), float(y[0]), float(y[-1])

    def cell(self, x: float, y: float) -> dict[str, int] | None:
        """The indices of the cell at a point; None if there is none."""
        column, row = self.x.index(x), self.y.index(y)
        return None if column is None or row is None else {self.across: column, self.up: row}

    def boxes(self, rows: Numbers, columns: Numbers) -> dict[str, Numbers]:
        """The rectangles of some cells, with the position of each in what was given."""
        which, right = self.x.places(columns)
        again, top = self.y.places(np.asarray(rows)[which])
        right, which = right[again], which[again]
        ends = {"left": self.x.edges[right], "right": self.x.edges[right + 1]}
        return {**ends, "bottom": self.y.edges[top], "top": self.y.edges[top + 1], "cell": which}

    def picture(self, values: Numbers, view: Sequence[float] | None = None) -> dict[str, Any]:
        """The values (up, across) seen in a view, no finer than a screen, and where they lie."""
        left, right, bottom, top = _within(view or self.extent, self.extent)
        columns, (left, right) = self.x.seen(left, right)
        rows, (bottom, top) = self.y.seen(bottom, top)
        image = np.asarray(values[np.ix_(rows, columns)], np.float32)
        return {
            "image": [image], "x": [left], "y": [bottom],
            "dw": [right - left], "dh": [top - bottom],
        }  # fmt: skip


def _within(view: Sequence[float], extent: Sequence[float]) -> list[float]:
    """The part of a view that there is something to see in; everything, if there is none."""
    cut = [max(view[0], extent[0]), min(view[1], extent[1]),
           max(view[2], extent[2]), min(view[3], extent[3])]  # fmt: skip
    return cut if cut[0] < cut[1] and cut[2] < cut[3] else list(extent)


def _axis(array: Array, dim: str) -> Axis:
    values = coordinate(array, dim)
    if values.dtype.kind not in "fiu":
        values = np.arange(len(values))
    return Axis.of(values, 360.0 if dim in array.circular else None)


@cache
def coastlines(west: float) -> tuple[list[list[float]], list[list[float]]]:
    """The coasts as lines of longitudes and latitudes in the turn that begins at `west`."""
    xs, ys = [], []
    for line in json.loads(asset("coastline-110m.json").read_text())["lines"]:
        lon, lat = np.array(line).T
        lon = west + (lon - west) % 360
        for part in np.split(np.arange(len(lon)), np.flatnonzero(abs(np.diff(lon)) > 180) + 1):
            xs.append(lon[part].tolist())
            ys.append(lat[part].tolist())
    return xs, ys
