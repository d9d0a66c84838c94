"""Extraction: cells of an array that become the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.arrays import Ranges, block, coordinate
from pipelines.boxes.box import CHANGE, CellBox, Port, param
from pipelines.datasets import Array, Attribute, Dataset, Location, Time
from pipelines.errors import Refused, unknown
from pipelines.minima import place_schema, when

Given = Mapping[str, tuple[Attribute, ...]]
Indices = tuple[NDArray[np.int64], ...]
PLACE = ("lat", "lon", "lat_index", "lon_index")
FIELD = (Port("field", "array"),)


def _cell_attributes(box: str, variable: str, given: Given) -> tuple[Attribute, ...]:
    """The attributes of rows that are cells of a variable."""
    there = {a.name: a for a in given["field"] if a.dims}
    if variable not in there:
        raise unknown("variable", variable, there, f'for box "{box}"')
    return (
        Attribute("time", Time, ("time", "time_index", "hours")),
        Attribute("location", Location, PLACE),
        Attribute("value", there[variable].type, ("value",), there[variable].unit),
    )


def _cell_schema(array: Array) -> pa.Schema:
    return pa.schema([*place_schema(coordinate(array, "time").dtype), ("value", pa.float64())])


def _cell_rows(array: Array, ranges: Ranges, found: Indices, values: NDArray[Any]) -> pa.Table:
    """Cells of a block as rows: when and where each is, and its value."""
    t, y, x = (i + ranges[d][0] for i, d in zip(found, array.dims, strict=True))
    rows = {
        **when(array, t),
        "lat": coordinate(array, "lat")[y].astype(float),
        "lon": coordinate(array, "lon")[x].astype(float),
        "lat_index": y,
        "lon_index": x,
        "value": values[found],
    }
    return pa.table(rows, schema=_cell_schema(array))


@dataclass(frozen=True, slots=True)
class ExtractAbove(CellBox):
    """The cells where a variable is above a threshold, or with `below` those where it is below it.

    A cell that equals the threshold is neither. A missing cell is neither. A row has when and where
    its cell lies (`time`, `lat`, `lon`, and their indices) and its `value`.
    """

    variable: str = param("a", "which variable")
    threshold: float = param(0.0, "what a cell must be above")
    below: bool = param(False, "take the cells below it instead")

    name: ClassVar = "extract_above"
    takes: ClassVar = FIELD
    contributed: ClassVar = "The one cell that the row tells of."
    influence: ClassVar = CHANGE
    monotone: ClassVar = True
    flat: ClassVar = True
    of_places: ClassVar = True
    examples: ClassVar = (
        {"variable": "a", "threshold": 0.5},
        {"variable": "b", "threshold": 0.0, "below": True},
    )

    def attributes_of(self, given: Given) -> tuple[Attribute, ...]:
        return _cell_attributes(self.name, self.variable, given)

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (self.variable,)

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        return _cell_schema(inputs["field"])

    def rows_in(self, inputs: Mapping[str, Any], ranges: Ranges) -> pa.Table:
        array: Array = inputs["field"]
        values = block(array, self.variable, ranges).astype(float)
        beyond = values < self.threshold if self.below else values > self.threshold
        return _cell_rows(array, ranges, np.nonzero(beyond), values)


@dataclass(frozen=True, slots=True)
class ExtractExtrema(CellBox):
    """The cells that are higher than all others around them, or with `least` lower than all.

    Around is a window of `size` by `size` cells of the same step. It goes round where a dimension
    is a circle, and ends where the array does. A plateau of equal cells has no extremum. A missing
    cell is none, and has no say in whether another is. Rows are those of `extract_above`.
    """

    variable: str = param("a", "which variable")
    size: int = param(3, "width of the window, an odd number", unit="cells", low=3, high=101)
    least: bool = param(False, "find the lowest instead")

    name: ClassVar = "extract_extrema"
    takes: ClassVar = FIELD
    contributed: ClassVar = "Every cell of the window around the cell that the row tells of."
    influence: ClassVar = CHANGE
    flat: ClassVar = True
    of_places: ClassVar = True
    examples: ClassVar = (
        {"variable": "a"},
        {"variable": "b", "least": True},
        {"variable": "a", "size": 5},
    )

    @property
    def reach(self) -> int:
        return self.size // 2

    def attributes_of(self, given: Given) -> tuple[Attribute, ...]:
        if self.size % 2 == 0:
            raise Refused(f'box "{self.name}": size is {self.size}; it must be odd')
        return _cell_attributes(self.name, self.variable, given)

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (self.variable,)

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        return _cell_schema(inputs["field"])

    def rows_in(self, inputs: Mapping[str, Any], ranges: Ranges) -> pa.Table:
        array: Array = inputs["field"]
        wide = _surrounded(array, self.variable, ranges, self.reach)
        inner = _moved(wide, self.reach, 0, 0)
        return _cell_rows(array, ranges, np.nonzero(self._extreme(array, wide)), inner)

    def _extreme(self, array: Array, wide: NDArray[np.float64]) -> NDArray[np.bool_]:
        up = -wide if self.least else wide
        inner = _moved(up, self.reach, 0, 0)
        found = ~np.isnan(inner)
        steps = range(-self.reach, self.reach + 1)
        for dy, dx in product(steps, steps):
            if not _itself(array, dy, dx):
                found &= ~(_moved(up, self.reach, dy, dx) >= inner)
        return np.asarray(found)


def _itself(array: Array, dy: int, dx: int) -> bool:
    """Whether a step leads back to the same cell, perhaps round a small circle."""
    steps = {"lat": dy, "lon": dx}
    return all(not (n % array.size[d] if d in array.circular else n) for d, n in steps.items())


def _surrounded(array: Array, variable: str, ranges: Ranges, reach: int) -> NDArray[np.float64]:
    """A block with the cells around it; missing where there are none."""
    wide, pads = dict(ranges), [(0, 0)]
    for dim in array.dims[1:]:
        first, last = ranges[dim][0] - reach, ranges[dim][1] + reach
        inside = (first, last)
        if dim not in array.circular:
            inside = (max(first, 0), min(last, array.size[dim]))
        wide[dim] = inside
        pads.append((inside[0] - first, last - inside[1]))
    values = block(array, variable, wide).astype(np.float64)
    return np.pad(values, pads, constant_values=np.nan)


def _moved(wide: NDArray[np.float64], reach: int, dy: int, dx: int) -> NDArray[np.float64]:
    """The block as large as without its surroundings, some cells further on."""
    height, width = (n - 2 * reach for n in wide.shape[1:])
    top, left = reach + dy, reach + dx
    return wide[:, top : top + height, left : left + width]
