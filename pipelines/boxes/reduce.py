"""Reduce: dimensions of an array drawn together, into a mean, a sum, or the greatest and least."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges
from pipelines.boxes.box import CHANGE, REMOVAL, ArrayBox, Grid, Port, param
from pipelines.datasets import Array, Attribute, Dataset, Quantity
from pipelines.errors import Refused
from pipelines.grids import AXES, one_of, places_along
from pipelines.steps import (
    Reals,
    averaged,
    like,
    listed,
    middle,
    precision,
    steps,
    variables,
)

Pair = tuple[Reals, Reals]
EXTREMES = ("max", "min", "argmax", "argmin")
EXAMPLES = ("time", "lat", "lon", "lat,lon", "time,lon", "time,lat,lon")


class Reducing(ArrayBox):
    """What reductions share: the cells of a group are seen step after step, in one order.

    What is known of a group after some steps is a pair of numbers; so no more is held than one
    step, and what comes out does not depend on chunks.
    """

    over: str
    how: str
    takes: ClassVar = (Port("field", "array"),)
    flat: ClassVar = True

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions that are drawn together."""
        return listed(self.name, "dimension", self.over, tuple(AXES))

    @abstractmethod
    def of_step(self, cells: Reals, start: int) -> Pair:
        """What the cells of groups, along the last axis and numbered from `start`, say."""

    @abstractmethod
    def joined(self, before: Pair, after: Pair) -> Pair:
        """What both say together."""

    @abstractmethod
    def value(self, known: Pair) -> Reals:
        """The value of each group."""

    def attributes_of(self, given: Mapping[str, tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
        return variables(given["field"])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (attribute,)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        array: Any = inputs["field"]
        places = {d: np.array([middle(places_along(array, d))]) for d in self.dims}
        makes = self.attributes_of({"field": array.attributes})
        return like(array, makes, places, dtype=self.precision(array))

    def precision(self, array: Array) -> Any:
        """The kind of number that is made of an array's."""
        return precision(array)

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        array: Array = inputs["field"]
        kind = self.precision(array)
        return {v: self._block(array, v, ranges).astype(kind) for v in array.variables}

    def _block(self, array: Array, variable: str, ranges: Ranges) -> Reals:
        shape = tuple(ranges[d][1] - ranges[d][0] for d in array.dims)
        known = self._known(array, variable, ranges)
        if array.dims[0] in self.dims:
            return self.value(reduce(self.joined, known)).reshape(shape)
        return np.stack([self.value(each) for each in known]).reshape(shape)

    def _known(self, array: Array, variable: str, ranges: Ranges) -> Iterator[Pair]:
        """What each step says of its groups."""
        record, *inner = array.dims
        wide = {d: (0, array.size[d]) if d in self.dims else ranges[d] for d in array.dims}
        axes = [inner.index(d) for d in inner if d in self.dims]
        each = prod(array.size[d] for d in inner if d in self.dims)
        for step, cells in steps(array, variable, np.arange(*wide[record]), wide):
            yield self.of_step(_last(cells, axes), step * each if record in self.dims else 0)


def _last(cells: Reals, axes: list[int]) -> Reals:
    """Cells with some axes as one, the last, in one order in memory: so sums are always alike."""
    kept = [a for a in range(cells.ndim) if a not in axes]
    turned = np.ascontiguousarray(cells.transpose(*kept, *axes))
    return turned.reshape(*(cells.shape[a] for a in kept), prod(cells.shape[a] for a in axes))


@dataclass(frozen=True, slots=True)
class Reduce(Reducing):
    """The mean or the sum over one or more dimensions.

    Each dimension in `over` keeps one place, in the middle of its coordinates, and is no circle
    any more. Missing cells are left out; a group in which all are missing has no value. Every
    cell counts alike, whatever area it covers.
    """

    over: str = param("time", "the dimensions, like lat, lon")
    how: str = param("mean", "mean or sum")

    name: ClassVar = "reduce"
    contributed: ClassVar = (
        "Every cell of the group that was drawn together, missing or not: a value there counts."
    )
    influence: ClassVar = CHANGE
    examples: ClassVar = tuple({"over": o, "how": h} for o in EXAMPLES for h in ("mean", "sum"))

    def __post_init__(self) -> None:
        if self.how in EXTREMES:
            raise Refused(f'box "{self.name}": for {self.how} take the box "reduce_extreme"')
        one_of(self.how, ("mean", "sum"), "way", self.name)
        listed(self.name, "dimension", self.over, tuple(AXES))

    def of_step(self, cells: Reals, start: int) -> Pair:
        there = ~np.isnan(cells)
        return np.where(there, cells, 0).sum(axis=-1), there.sum(axis=-1).astype(np.float64)

    def joined(self, before: Pair, after: Pair) -> Pair:
        return before[0] + after[0], before[1] + after[1]

    def value(self, known: Pair) -> Reals:
        total, count = known
        return averaged(total, np.minimum(count, 1) if self.how == "sum" else count)


@dataclass(frozen=True, slots=True)
class ReduceExtreme(Reducing):
    """The greatest or least cell over one or more dimensions, or its number.

    Each dimension in `over` keeps one place, in the middle of its coordinates, and is no circle
    any more. `argmax` and `argmin` give the number of the first such cell, from 0, counted along
    the dimensions in the array's order, the last one fastest. Missing cells are left out; a group
    in which all are missing has no value.
    """

    over: str = param("time", "the dimensions, like lat, lon")
    how: str = param("max", "max, min, argmax or argmin")

    name: ClassVar = "reduce_extreme"
    contributed: ClassVar = (
        "The cells of the group that attain the extreme, all of them where several do; none "
        "where all are missing."
    )
    influence: ClassVar = REMOVAL
    examples: ClassVar = tuple({"over": o, "how": h} for o in EXAMPLES for h in EXTREMES)

    def __post_init__(self) -> None:
        one_of(self.how, EXTREMES, "way", self.name)
        listed(self.name, "dimension", self.over, tuple(AXES))

    @property
    def sign(self) -> int:
        """What to multiply cells with to look for the greatest."""
        return -1 if self.how.endswith("min") else 1

    def attributes_of(self, given: Mapping[str, tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
        kept = variables(given["field"])
        if not self.how.startswith("arg"):
            return kept
        return tuple(replace(a, type=Quantity, unit=None) if a.dims else a for a in kept)

    def precision(self, array: Array) -> Any:
        return np.float64 if self.how.startswith("arg") else precision(array)

    def of_step(self, cells: Reals, start: int) -> Pair:
        there = ~np.isnan(cells)
        top = np.where(there, self.sign * cells, -np.inf).max(axis=-1)
        attained = there & (self.sign * cells == top[..., None])
        number = start + attained.argmax(axis=-1).astype(np.float64)
        found = attained.any(axis=-1)
        return np.where(found, top, np.nan), np.where(found, number, np.nan)

    def joined(self, before: Pair, after: Pair) -> Pair:
        better = (after[0] > before[0]) | np.isnan(before[0])
        return np.where(better, after[0], before[0]), np.where(better, after[1], before[1])

    def value(self, known: Pair) -> Reals:
        return known[1] if self.how.startswith("arg") else self.sign * known[0]
