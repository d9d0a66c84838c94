"""Land cover: regions that hang together, and one picture made of several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pipelines.arrays import Ranges, block, coordinate
from pipelines.boxes.box import ITSELF, REMOVAL, STATED, ArrayBox, Besides, Grid, Port, param
from pipelines.boxes.extraction import ExtractAbove
from pipelines.boxes.groups import Aggregate
from pipelines.boxes.reduce import Pair, Reducing
from pipelines.datasets import Array, Attribute, Dataset, Time
from pipelines.errors import Refused
from pipelines.grids import one_of, quantity, variable_of, with_variables
from pipelines.moments import same_places
from pipelines.steps import Reals, Whole, averaged, like, precision, steps, variables

WAYS = {4: ((0, 1), (1, 0)), 8: ((0, 1), (1, 0), (1, 1), (1, -1))}  # each there and back


@dataclass(frozen=True, slots=True)
class Label(ArrayBox):
    """Regions of cells above or below a threshold that hang together, by number, step by step.

    A cell is of a region if it is greater than the threshold (`above`) or less (`below`). Cells
    hang together along rows and columns, and across corners too where there are 8 `neighbours`.
    Longitude wraps where the grid closes the circle. A region's number is that of its first cell,
    counted from 1 along the rows, so it does not depend on chunks or on other regions. Cells of
    no region have 0; missing cells are of none. What is made is called `label`.
    """

    variable: str = param("", "which variable; the first, if none is named")
    threshold: float = param(0.0, "what its cells are held against")
    side: str = param("above", "above or below")
    neighbours: int = param(8, "4, or 8 with those across corners", low=4, high=8)

    name: ClassVar = "label"
    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = (
        "All cells of the region that the cell is of, and those next to them, at which it ends; "
        "the cell alone where it is of none."
    )
    influence: ClassVar = STATED
    flat: ClassVar = True
    examples: ClassVar = (
        {"variable": "a", "threshold": 0.0},
        {"variable": "b", "threshold": 0.5, "neighbours": 4},
        {"threshold": 0.0, "side": "below"},
    )

    def __post_init__(self) -> None:
        one_of(self.side, ("above", "below"), "side", self.name)
        if self.neighbours not in (4, 8):
            raise Refused(f'box "{self.name}": neighbours is {self.neighbours}; it may be 4 or 8')

    def attributes_of(self, given: Mapping[str, tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
        kept = variables(given["field"])
        dims = variable_of(kept, self.variable, self.name).dims
        return with_variables(kept, [quantity("label", "", dims)])

    def of(self, array: Dataset) -> str:
        """The variable whose cells are labelled."""
        return variable_of(array.attributes, self.variable, self.name).name

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (self.of(source),)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        array: Any = inputs["field"]
        makes = self.attributes_of({"field": array.attributes})
        # A region may reach anywhere in its step, so a chunk has whole steps.
        return like(array, makes, chunks=dict(array.size) | {array.dims[0]: array.chunks[0]},
                    dtype=np.float64)  # fmt: skip

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        array: Array = inputs["field"]
        record, *inner = array.dims
        part = tuple(slice(*ranges[d]) for d in inner)
        wanted = np.arange(*ranges[record])
        every = steps(array, self.of(array), wanted, {})
        wraps = inner[-1] in array.circular
        found = [numbered(self.within(cells), self.neighbours, wraps)[part] for _, cells in every]
        return {"label": np.stack(found).astype(np.float64)}

    def within(self, cells: Reals) -> NDArray[np.bool_]:
        """Which cells are of a region."""
        return cells > self.threshold if self.side == "above" else cells < self.threshold


@dataclass(frozen=True, slots=True)
class FindRegions(Label):
    """Regions that hang together, by number; besides, their `cells` as rows, and the `regions`.

    Each region is a row: its step, its number (`value`), how many cells it has (`value_count`),
    and from which latitude to which it reaches.
    """

    name: ClassVar = "find_regions"

    def besides(self) -> Mapping[str, Besides]:
        measured = "value:count, lat:min, lat:max"
        return {
            "cells": Besides(ExtractAbove("label", 0.0), {"field": ITSELF}),
            "regions": Besides(Aggregate("time_index, time, value", measured), {"rows": "cells"}),
        }


def numbered(within: NDArray[np.bool_], neighbours: int, wraps: bool) -> Whole:
    """The number of each cell's region: that of its first cell, from 1; 0 outside.

    >>> numbered(np.array([[1, 0, 1], [1, 0, 1]], bool), 8, wraps=True).tolist()
    [[1, 0, 1], [1, 0, 1]]
    >>> numbered(np.array([[1, 0, 1], [1, 0, 1]], bool), 8, wraps=False).tolist()
    [[1, 0, 3], [1, 0, 3]]
    """
    ends = np.concatenate([_joined(within, *way, wraps) for way in WAYS[neighbours]], axis=1)
    graph = coo_array((np.ones(ends.shape[1], bool), tuple(ends)), (within.size, within.size))
    _, region = connected_components(graph, directed=False)
    _, first, which = np.unique(region, return_index=True, return_inverse=True)
    return np.where(within, first[which].reshape(within.shape) + 1, 0).astype(np.int64)


def _joined(within: NDArray[np.bool_], down: int, right: int, wraps: bool) -> Whole:
    """The pairs of neighbours one way that are both of a region, by the numbers of the cells."""
    rows, columns = within.shape
    y, x = np.nonzero(within)
    below, beside = y + down, x + right
    there = (below < rows) & (wraps | ((beside >= 0) & (beside < columns)))
    y, x, below, beside = y[there], x[there], below[there], beside[there] % columns
    both = within[below, beside]
    return np.array([(y * columns + x)[both], (below * columns + beside)[both]])


def with_edge(region: NDArray[np.bool_], neighbours: int, wraps: bool) -> NDArray[np.bool_]:
    """A region and the cells next to it.

    >>> with_edge(np.array([[1, 0, 0, 0]], bool), 4, wraps=True).tolist()
    [[True, True, False, True]]
    """
    tall = np.pad(region, ((1, 1), (0, 0)))
    wide = np.pad(tall, ((0, 0), (1, 1)), mode="wrap" if wraps else "constant")
    rows, columns = region.shape
    there = [(0, 0), *WAYS[neighbours], *((-down, -right) for down, right in WAYS[neighbours])]
    shifted = (wide[1 + a : 1 + a + rows, 1 + b : 1 + b + columns] for a, b in there)
    return np.asarray(np.any(list(shifted), axis=0))


@dataclass(frozen=True, slots=True)
class Composite(Reducing):
    """One picture from all steps of an array: at each place the first valid cell, or the latest.

    Time keeps one place, in the middle. Missing cells are passed over; where all are missing
    there is no value.
    """

    how: str = param("latest", "first or latest")

    name: ClassVar = "composite"
    contributed: ClassVar = "The one cell that was taken; none where all are missing."
    influence: ClassVar = REMOVAL
    examples: ClassVar = ({"how": "first"}, {"how": "latest"})

    def __post_init__(self) -> None:
        one_of(self.how, ("first", "latest"), "way", self.name)

    @property
    def dims(self) -> tuple[str, ...]:
        return ("time",)

    def of_step(self, cells: Reals, start: int) -> Pair:
        return cells[..., 0], cells[..., 0]

    def joined(self, before: Pair, after: Pair) -> Pair:
        over, under = (before[0], after[0]) if self.how == "first" else (after[0], before[0])
        found = np.where(np.isnan(over), under, over)
        return found, found

    def value(self, known: Pair) -> Reals:
        return known[0]


@dataclass(frozen=True, slots=True)
class Mosaic(ArrayBox):
    """One raster from two of the same grid, cell by cell.

    `first` takes the cell of the first raster that has a value there, `latest` that of the last
    one; `max` the greatest value, `mean` the mean of all that have one. Where none has a value
    there is none. The rasters have the same coordinates and at least one variable in common.
    """

    how: str = param("first", "first, latest, max or mean")

    name: ClassVar = "mosaic"
    takes: ClassVar[tuple[Port, ...]] = (Port("first", "array"), Port("second", "array"))
    contributed: ClassVar = (
        "The cells at the datum's place that were taken: the one on top, those as great as any, "
        "or all that have a value; none where none has."
    )
    influence: ClassVar = REMOVAL
    flat: ClassVar = True
    examples: ClassVar = tuple({"how": how} for how in ("first", "latest", "max", "mean"))

    def __post_init__(self) -> None:
        one_of(self.how, ("first", "latest", "max", "mean"), "way", self.name)

    def attributes_of(self, given: Mapping[str, tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
        first, *others = (given[p.name] for p in self.takes)
        common = set.intersection(*({a.name for a in each if a.dims} for each in others))
        found = tuple(a for a in variables(first) if a.type == Time or a.name in common)
        if not any(a.dims for a in found):
            has = "; ".join(", ".join(a.name for a in each if a.dims) for each in given.values())
            raise Refused(f'the rasters of box "{self.name}" have no variable in common ({has})')
        return found

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (attribute,)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        first: Any = inputs[self.takes[0].name]
        for other in inputs.values():
            _check_same(self.name, first, other)
        makes = self.attributes_of({p: a.attributes for p, a in inputs.items()})
        return like(first, makes, dtype=_finest(inputs.values()))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        makes = self.attributes_of({p: a.attributes for p, a in inputs.items()})
        names = [a.name for a in makes if a.dims]
        stacks = {n: self.stack(inputs, n, ranges) for n in names}
        return {n: self.value(s).astype(_finest(inputs.values())) for n, s in stacks.items()}

    def stack(self, inputs: Mapping[str, Any], variable: str, ranges: Ranges) -> Reals:
        """The cells of all rasters in index ranges, raster by raster along the first axis."""
        rasters = [inputs[p.name] for p in self.takes]
        return np.stack([block(r, variable, ranges).astype(np.float64) for r in rasters])

    def value(self, cells: Reals) -> Reals:
        """What is made of the cells of the rasters, along the first axis."""
        taken = self.taken(cells)
        if self.how == "mean":
            return averaged(np.where(taken, cells, 0).sum(axis=0), taken.sum(axis=0))
        return np.where(taken.any(axis=0), np.where(taken, cells, -np.inf).max(axis=0), np.nan)

    def taken(self, cells: Reals) -> NDArray[np.bool_]:
        """Which of the cells of the rasters, along the first axis, are taken."""
        there = ~np.isnan(cells)
        if self.how == "mean":
            return there
        if self.how == "max":
            return np.asarray(there & (cells == np.where(there, cells, -np.inf).max(axis=0)))
        order = there if self.how == "first" else there[::-1]
        top = order & (np.cumsum(order, axis=0) == 1)
        return np.asarray(top if self.how == "first" else top[::-1])


@dataclass(frozen=True, slots=True)
class MosaicOfThree(Mosaic):
    """One raster from three of the same grid, by the rules of the box `mosaic`."""

    name: ClassVar = "mosaic_of_three"
    takes: ClassVar[tuple[Port, ...]] = (*Mosaic.takes, Port("third", "array"))


def _finest(arrays: Iterable[Any]) -> type[np.floating[Any]]:
    kinds = [precision(each) for each in arrays]
    return np.float64 if np.float64 in kinds else np.float32


def _check_same(box: str, first: Array, other: Any) -> None:
    """Refuse rasters of different grids."""
    for dim in first.dims:
        if not same_places(coordinate(first, dim), coordinate(other, dim)):
            raise Refused(
                f'box "{box}" takes rasters of one grid: "{first.name}" and "{other.name}" differ '
                f"in {dim}; regrid or select first"
            )
