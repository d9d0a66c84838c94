"""Other grids: an array at another resolution, or coarser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges, block
from pipelines.boxes.box import ArrayBox, Grid, Port, param
from pipelines.datasets import Array, Attribute, Dataset
from pipelines.grids import grid_like, one_of, places_along, still_circular
from pipelines.moments import middle
from pipelines.weights import Weights, axis_of, bilinear, divided, nearest, overlapping

Attributes = tuple[Attribute, ...]
Indices = NDArray[np.int64]
PLACES = ("lat", "lon")


@dataclass(frozen=True, slots=True)
class Regrid(ArrayBox):
    """Every variable on a regular grid of about this resolution.

    The new cells divide what the old ones cover evenly (up to the poles, and round where longitude
    goes round), into as many as come nearest to the resolution. `nearest` takes the old cell
    nearest to a new one's middle, the first of two; `bilinear` the two old ones about it along
    each dimension, the nearer weighing more, or the last one at an edge; `conservative` all that
    overlap it, by the area they share. Cells that are missing or infinite are left out, and the
    others weigh more; a cell without any other is missing.
    """

    resolution: float = param(
        1.0, "how far apart new cells are", unit="degrees", low=0.05, high=180
    )
    method: str = param("bilinear", "nearest, bilinear or conservative")

    name: ClassVar = "regrid"
    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = "Every cell that the method weighs for the place, missing ones too."
    flat: ClassVar = True
    examples: ClassVar = (
        {"resolution": 25.0},
        {"resolution": 45.0, "method": "nearest"},
        {"resolution": 70.0, "method": "conservative"},
    )

    def __post_init__(self) -> None:
        one_of(self.method, ("nearest", "bilinear", "conservative"), "method", self.name)

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        return given["field"]

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (attribute,)

    def weights(self, array: Array, dim: str) -> Weights:
        """Of which old places each new one along a dimension is made."""
        axis = axis_of(array, dim, self.name)
        edges = divided(axis, self.resolution)
        if self.method == "conservative":
            return overlapping(axis, edges, dim)
        return nearest(axis, edges) if self.method == "nearest" else bilinear(axis, edges)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        field = inputs["field"]
        assert isinstance(field, Array)
        axes = {d: axis_of(field, d, self.name) for d in PLACES}
        edges = {d: divided(axis, self.resolution) for d, axis in axes.items()}
        middles = {d: axes[d].sign * (e[1:] + e[:-1]) / 2 for d, e in edges.items()}
        round_ = tuple(d for d in field.circular if still_circular(field, d, len(middles[d])))
        return grid_like(field, field.attributes, middles, round_)

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field: Array = inputs["field"]
        weights = {d: self.weights(field, d) for d in PLACES}
        return {v: _weighed(field, v, ranges, weights) for v in field.variables}


def _weighed(
    array: Array, variable: str, ranges: Ranges, weights: Mapping[str, Weights]
) -> NDArray[np.float64]:
    """The weighted means of what is there."""
    cuts = {d: slice(*ranges[d]) for d in weights}
    wide = {
        d: (int(w.first[cuts[d]].min()), int(w.last[cuts[d]].max()) + 1) for d, w in weights.items()
    }
    values = block(array, variable, {**ranges, **wide}).astype(np.float64)
    there = np.isfinite(values)
    total, weight = np.where(there, values, 0.0), there.astype(np.float64)
    for dim in ("lon", "lat"):
        where = (array.dims.index(dim), wide[dim][0], ranges[dim])
        total, weight = (weights[dim].applied(each, *where) for each in (total, weight))
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), np.nan)


@dataclass(frozen=True, slots=True)
class Coarsen(ArrayBox):
    """The mean of so many neighbouring cells along each dimension, from the first on.

    The last of the new cells may be made of fewer. All cells count alike; those that are missing
    or infinite are left out, and a new cell without any other is missing.
    """

    time: int = param(1, "steps that make one", low=1)
    lat: int = param(2, "rows that make one", low=1)
    lon: int = param(2, "columns that make one", low=1)

    name: ClassVar = "coarsen"
    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = "Every cell that the new one covers, missing ones too."
    flat: ClassVar = True
    examples: ClassVar = ({}, {"time": 2, "lat": 3, "lon": 1})

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        return given["field"]

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (attribute,)

    def factor(self, array: Array, dim: str) -> int:
        """How many old places make a new one: no more than there are."""
        factors = {"time": self.time, "lat": self.lat, "lon": self.lon}
        return min(factors.get(dim, 1), max(array.size[dim], 1))

    def covered(self, array: Array, dim: str) -> tuple[Indices, Indices]:
        """The first and last old place that each new one covers."""
        factor = self.factor(array, dim)
        first = np.arange(0, array.size[dim], factor)
        return first, np.minimum(first + factor, array.size[dim]) - 1

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        field = inputs["field"]
        assert isinstance(field, Array)
        places = {d: places_along(field, d) for d in field.dims}
        ends = {d: self.covered(field, d) for d in field.dims}
        middles = {d: middle(places[d][a], places[d][b]) for d, (a, b) in ends.items()}
        even = [d for d in field.circular if field.size[d] % self.factor(field, d) == 0]
        round_ = tuple(d for d in even if still_circular(field, d, len(middles[d])))
        return grid_like(field, field.attributes, middles, round_)

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field: Array = inputs["field"]
        return {v: self._means(field, v, ranges) for v in field.variables}

    def _means(self, array: Array, variable: str, ranges: Ranges) -> NDArray[np.float64]:
        factors = {d: self.factor(array, d) for d in array.dims}
        whole = {d: (a * factors[d], b * factors[d]) for d, (a, b) in ranges.items()}
        cut = {d: (a, min(b, array.size[d])) for d, (a, b) in whole.items()}
        values = block(array, variable, cut).astype(np.float64)
        pads = [(0, whole[d][1] - cut[d][1]) for d in array.dims]
        padded = np.pad(values, pads, constant_values=np.nan)
        parts = [tuple(slice(n, None, f) for n, f in zip(start, factors.values(), strict=True))
                 for start in product(*map(range, factors.values()))]  # fmt: skip
        there = np.isfinite(padded)
        total = sum(np.where(there[part], padded[part], 0.0) for part in parts)
        count = sum(there[part].astype(np.int64) for part in parts)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)
