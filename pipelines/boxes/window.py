"""Around each place: the mean, extremes and median of a window, gradients, and vorticity."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from pipelines.arrays import Ranges, block
from pipelines.boxes.box import REMOVAL, ArrayBox, Grid, Port, param
from pipelines.datasets import Array, Attribute, Dataset
from pipelines.errors import Refused
from pipelines.grids import (
    check_name,
    degrees,
    grid_like,
    one_of,
    quantity,
    variable_of,
    with_variables,
)
from pipelines.spheres import along, difference, metres, narrowing

Attributes = tuple[Attribute, ...]
Values = NDArray[np.float64]
AT_ONCE = 2**20  # cells of windows that are sorted together


@dataclass(frozen=True, slots=True)
class Window(ArrayBox):
    """A statistic of the cells in a window of rows and columns around each place.

    Every variable is treated so, each step by itself. A window goes round where longitude does,
    and has each cell once even if it is wider than the circle; elsewhere it ends at the edge.
    Cells that are missing or infinite are left out; a window without any other is missing.
    """

    lat: int = param(3, "rows, an odd number", low=1, high=999)
    lon: int = param(3, "columns, an odd number", low=1, high=999)

    takes: ClassVar = (Port("field", "array"),)
    flat: ClassVar = True
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"lat": 1, "lon": 5})

    def __post_init__(self) -> None:
        for dim, size in (("lat", self.lat), ("lon", self.lon)):
            if size % 2 == 0:
                raise Refused(f'box "{self.name}": {dim} is {size}; a window has an odd number')

    @abstractmethod
    def of_windows(self, padded: Values, rows: int, columns: int) -> Values:
        """The statistic of every window of a padded block, in which NaN is no cell."""

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        return given["field"]

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (attribute,)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        field = inputs["field"]
        assert isinstance(field, Array)
        return grid_like(field, field.attributes)

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field: Array = inputs["field"]
        sizes = [len(self.steps(field, dim)) for dim in ("lat", "lon")]
        padded = {v: self.padded(field, v, ranges) for v in field.variables}
        return {v: self.of_windows(values, *sizes) for v, values in padded.items()}

    def steps(self, array: Array, dim: str) -> range:
        """The places of a window along a dimension, counted from its middle."""
        width, size = (self.lat if dim == "lat" else self.lon), array.size[dim]
        if dim in array.circular and width >= size:
            return range(-((size - 1) // 2), size // 2 + 1)
        return range(-(width // 2), width // 2 + 1)

    def padded(self, array: Array, variable: str, ranges: Ranges) -> Values:
        """A block with what its windows need around it; NaN where no cell is, or none to use."""
        wide, pads = dict(ranges), dict.fromkeys(array.dims, (0, 0))
        for dim in ("lat", "lon"):
            steps, (first, last) = self.steps(array, dim), ranges[dim]
            low, high = first + steps[0], last + steps[-1]
            round_ = dim in array.circular
            wide[dim] = (low, high) if round_ else (max(low, 0), min(high, array.size[dim]))
            pads[dim] = (wide[dim][0] - low, high - wide[dim][1])
        values = block(array, variable, wide).astype(np.float64)
        values[~np.isfinite(values)] = np.nan
        return np.pad(values, [pads[d] for d in array.dims], constant_values=np.nan)


@dataclass(frozen=True, slots=True)
class WindowMean(Window):
    """The mean of the cells in a window of `lat` rows and `lon` columns around each place.

    Every variable is treated so, each step by itself. A window goes round where longitude does,
    and ends at an edge. Cells that are missing or infinite are left out; a window without any
    other is missing.
    """

    name: ClassVar = "window_mean"
    contributed: ClassVar = "Every cell of the window, missing ones too."

    def of_windows(self, padded: Values, rows: int, columns: int) -> Values:
        there = np.isfinite(padded)
        count = folded(np.add, there.astype(np.int64), rows, columns)
        total = folded(np.add, np.where(there, padded, 0.0), rows, columns)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@dataclass(frozen=True, slots=True)
class WindowExtreme(Window):
    """The greatest or least of the cells in a window of `lat` rows and `lon` columns.

    Every variable is treated so, each step by itself. A window goes round where longitude does,
    and ends at an edge. Cells that are missing or infinite are left out; a window without any
    other is missing.
    """

    which: str = param("max", "max or min")

    name: ClassVar = "window_extreme"
    contributed: ClassVar = "The cells of the window that attain its greatest or least value."
    influence: ClassVar = REMOVAL
    examples: ClassVar = ({}, {"which": "min", "lat": 1, "lon": 5})

    def __post_init__(self) -> None:
        Window.__post_init__(self)
        one_of(self.which, ("max", "min"), "extreme", self.name)

    def of_windows(self, padded: Values, rows: int, columns: int) -> Values:
        return folded(np.fmax if self.which == "max" else np.fmin, padded, rows, columns)


@dataclass(frozen=True, slots=True)
class WindowMedian(Window):
    """The median of the cells in a window of `lat` rows and `lon` columns around each place.

    Of an even number of cells it is the mean of the two in the middle. Every variable is treated
    so, each step by itself. A window goes round where longitude does, and ends at an edge. Cells
    that are missing or infinite are left out; a window without any other is missing.
    """

    name: ClassVar = "window_median"
    contributed: ClassVar = "Every cell of the window, missing ones too."

    def of_windows(self, padded: Values, rows: int, columns: int) -> Values:
        windows = sliding_window_view(padded, (rows, columns), axis=(1, 2))
        steps, height, width = windows.shape[:3]
        made = np.empty((steps, height, width))
        # Some at a time, since all windows take as many times the block as each has cells.
        some = max(1, AT_ONCE // (rows * columns))
        for step, row, first in product(range(steps), range(height), range(0, width, some)):
            part = windows[step, row, first : first + some]
            made[step, row, first : first + some] = median(part.reshape(len(part), -1))
        return made


def median(values: Values) -> Values:
    """The median of what is there in each row.

    >>> median(np.array([[3, np.nan, 1, 7], [4, np.nan, 1, np.nan]])).tolist()
    [3.0, 2.5]
    """
    ordered = np.sort(values, axis=1)
    count = np.isfinite(ordered).sum(axis=1)
    rows, last = np.arange(len(ordered)), ordered.shape[1] - 1
    low = ordered[rows, np.maximum(count - 1, 0) // 2]
    high = ordered[rows, np.minimum(count // 2, last)]
    return np.where(count > 0, (low + high) / 2, np.nan)


def folded(
    join: Callable[[Any, Any], Any], values: NDArray[Any], rows: int, columns: int
) -> NDArray[Any]:
    """Every window's cells joined, columns first, then rows, in the same order wherever it lies."""
    height, width = values.shape[1] - rows + 1, values.shape[2] - columns + 1
    along: Iterable[NDArray[Any]] = (values[:, :, n : n + width] for n in range(columns))
    lines = reduce(join, along)
    return np.asarray(reduce(join, (lines[:, n : n + height] for n in range(rows))))


@dataclass(frozen=True, slots=True)
class Gradient(ArrayBox):
    """How much a variable changes per metre to the north or to the east.

    It is the difference of the neighbours before and after a place, over the distance between
    them on a sphere of 6371 km; at an edge, that of the place itself and its only neighbour.
    Longitude goes round where the grid does. Where a neighbour is missing, where there is none,
    and at the poles, where nothing lies east, it is missing.
    """

    variable: str = param("", "which variable; the first if empty")
    along: str = param("lon", "lat (to the north) or lon (to the east)")
    result: str = param("gradient", "the name of what is made")

    name: ClassVar = "gradient"
    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = (
        "The neighbours before and after the place; at an edge, the place itself for the absent "
        "one."
    )
    monotone: ClassVar = True
    flat: ClassVar = True
    examples: ClassVar = ({}, {"variable": "a", "along": "lat"})

    def __post_init__(self) -> None:
        one_of(self.along, ("lat", "lon"), "direction", self.name)

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        found = variable_of(given["field"], self.variable, self.name)
        check_name(self.result, (), self.name)
        unit = f"{found.unit} m-1" if found.unit and found.unit != "1" else "m-1"
        return with_variables(given["field"], [quantity(self.result, unit, found.dims)])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (variable_of(source.attributes, self.variable, self.name).name,)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        field = inputs["field"]
        assert isinstance(field, Array)
        return grid_like(field, self.attributes_of({"field": field.attributes}))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field: Array = inputs["field"]
        (variable,) = self.used("", "field", field)
        change = difference(field, variable, self.along, ranges)
        return {self.result: change / metres(field, self.along, ranges)}


@dataclass(frozen=True, slots=True)
class Vorticity(ArrayBox):
    """How much the wind turns about each place, to the left counted as more.

    It is the change of the northward wind to the east less that of the eastward wind to the
    north, with the eastward one weighted by the length of its circle of latitude. Changes are
    those of `gradient`; missing where one of them is.
    """

    east: str = param("u10", "the eastward wind")
    north: str = param("v10", "the northward wind")
    result: str = param("vorticity", "the name of what is made")

    name: ClassVar = "vorticity"
    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = (
        "The northward wind at the neighbours to the west and east, and the eastward wind at those "
        "to the south and north; at an edge, at the place itself for the absent one."
    )
    monotone: ClassVar = True
    flat: ClassVar = True
    examples: ClassVar = ({"east": "a", "north": "b"}, {"east": "b", "north": "a"})

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        east, north = (variable_of(given["field"], n, self.name) for n in (self.east, self.north))
        if east == north:
            raise Refused(f'box "{self.name}": both winds are "{east.name}"; name two variables')
        check_name(self.result, (), self.name)
        return with_variables(given["field"], [quantity(self.result, "s-1", east.dims)])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return self.east, self.north

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        field = inputs["field"]
        assert isinstance(field, Array)
        return grid_like(field, self.attributes_of({"field": field.attributes}))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field: Array = inputs["field"]
        turning = difference(field, self.north, "lon", ranges) / metres(field, "lon", ranges)
        circles = np.cos(np.radians(degrees(field, "lat")))
        shearing = difference(field, self.east, "lat", ranges, circles)
        here = along(field, "lat", narrowing(field), ranges)
        return {self.result: turning - shearing / (metres(field, "lat", ranges) * here)}
