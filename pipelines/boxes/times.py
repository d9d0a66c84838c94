"""Times: means over stretches of time, over cycles of it, and departures from those."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges, block
from pipelines.boxes.box import ArrayBox, Grid, Port, param
from pipelines.datasets import Array, Attribute, Dataset
from pipelines.errors import Refused
from pipelines.grids import one_of
from pipelines.grouping import CYCLES, STRETCHES, Groups, cycles, means, stretches
from pipelines.steps import HANDY, Reals, averaged, like, precision, variables


class OverTime(ArrayBox):
    """What boxes over time share: every variable, at its own place."""

    takes: ClassVar = (Port("field", "array"),)
    flat: ClassVar = True

    def attributes_of(self, given: Mapping[str, tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
        return variables(given["field"])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (attribute,)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        array: Any = inputs["field"]
        return like(array, variables(array.attributes))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        array: Array = inputs["field"]
        found = {v: self.values(array, v, ranges) for v in array.variables}
        return {v: values.astype(precision(array)) for v, values in found.items()}

    @abstractmethod
    def values(self, array: Array, variable: str, ranges: Ranges) -> Reals:
        """The values of one variable in index ranges, last excluded."""


@dataclass(frozen=True, slots=True)
class RollingMean(OverTime):
    """The mean over a window of steps that moves with the step.

    A `centred` window reaches as far back as ahead, so it has an odd number of steps; a `trailing`
    one ends with the step. At both ends of time the window has only the steps there are. Missing
    cells are left out; where all are missing there is no value.
    """

    window: int = param(5, "how long the window is", unit="steps", low=1)
    align: str = param("centred", "centred on the step, or trailing behind it")

    name: ClassVar = "rolling_mean"
    contributed: ClassVar = "The cells at the datum's place in all steps of its window."
    examples: ClassVar = (
        {"window": 3},
        {"window": 5},
        {"window": 1},
        {"window": 3, "align": "trailing"},
        {"window": 2, "align": "trailing"},
    )

    def __post_init__(self) -> None:
        one_of(self.align, ("centred", "trailing"), "alignment", self.name)
        if self.align == "centred" and self.window % 2 == 0:
            raise Refused(
                f'box "{self.name}": window is {self.window}; a centred one has an odd number of '
                "steps, or let it be trailing"
            )

    def reach(self, steps: int) -> tuple[int, int]:
        """How many steps the window reaches back and ahead, where there are so many at all."""
        half, most = self.window // 2, max(steps - 1, 0)
        back, ahead = (half, half) if self.align == "centred" else (self.window - 1, 0)
        return min(back, most), min(ahead, most)

    def values(self, array: Array, variable: str, ranges: Ranges) -> Reals:
        record = array.dims[0]
        (first, last), (back, ahead) = ranges[record], self.reach(array.size[record])
        start, stop = max(first - back, 0), min(last + ahead, array.size[record])
        cells = block(array, variable, {**ranges, record: (start, stop)}).astype(np.float64)
        before, after = start - (first - back), last + ahead - stop
        ends = [(before, after), *[(0, 0)] * (cells.ndim - 1)]
        return _moving(np.pad(cells, ends, constant_values=np.nan), back + 1 + ahead)


def _moving(cells: Reals, window: int) -> Reals:
    """The mean over each window of steps; each is added up in the order of time."""
    size = len(cells) - window + 1
    total, count = np.zeros((size, *cells.shape[1:])), np.zeros((size, *cells.shape[1:]))
    for n in range(window):
        there = ~np.isnan(cells[n : n + size])
        total += np.where(there, cells[n : n + size], 0)
        count += there
    return averaged(total, count)


@dataclass(frozen=True, slots=True)
class ResampleMean(OverTime):
    """The mean over each stretch of time: of `every` so many steps, or of each day.

    The first stretch begins with the first step; the last may be shorter. A day is one of the
    array's calendar and ends where the next step is of another. A stretch bears the mean of its
    steps' times. Missing cells are left out; where all are missing there is no value.
    """

    every: int = param(4, "how many steps make a stretch, by steps", unit="steps", low=1)
    by: str = param("steps", "by steps, or by day")

    name: ClassVar = "resample_mean"
    contributed: ClassVar = "The cells at the datum's place in all steps of its stretch."
    examples: ClassVar = ({"every": 2}, {"every": 3}, {"every": 1}, {"by": "day"})

    def __post_init__(self) -> None:
        one_of(self.by, STRETCHES, "stretch", self.name)

    def groups(self, array: Array) -> Groups:
        """The stretches of an array."""
        return stretches(array, self.by, self.every)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        array: Any = inputs["field"]
        record, groups = array.dims[0], self.groups(array)
        size = array.chunks[0] * len(groups) // array.shape[0]
        places = {record: groups.times}
        return like(array, variables(array.attributes), places, {record: size})

    def values(self, array: Array, variable: str, ranges: Ranges) -> Reals:
        return means(array, variable, self.groups(array), ranges)


@dataclass(frozen=True, slots=True)
class Climatology(OverTime):
    """The mean over all steps of one month, of one day of the year, or of one hour of the day.

    Time has one place for each month, day or hour that occurs, in order, which bears its time in
    the year 2000. A day of the year is known by month and day. Missing cells are left out; where
    all are missing there is no value.
    """

    by: str = param("month", "by month, day (of the year) or hour")

    name: ClassVar = "climatology"
    contributed: ClassVar = (
        "The cells at the datum's place in all steps of its month, day of the year or hour."
    )
    examples: ClassVar = tuple({"by": by} for by in CYCLES)

    def __post_init__(self) -> None:
        one_of(self.by, CYCLES, "cycle", self.name)

    def groups(self, array: Array) -> Groups:
        """The months, days or hours of an array."""
        return cycles(array, self.by)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        array: Any = inputs["field"]
        record, groups = array.dims[0], self.groups(array)
        # A chunk reads every step of its groups, so it has as many groups as fit.
        size = HANDY // int(np.prod(array.chunks[1:]) * 8)
        return like(array, variables(array.attributes), {record: groups.times}, {record: size})

    def values(self, array: Array, variable: str, ranges: Ranges) -> Reals:
        return means(array, variable, self.groups(array), ranges)


@dataclass(frozen=True, slots=True)
class Anomaly(OverTime):
    """How far each cell departs from the mean over its month, day of the year or hour.

    The mean is that of the box `climatology`, over the same array: over all steps of the cell's
    own group, itself included, without those that are missing. A missing cell departs from
    nothing: it stays missing.
    """

    by: str = param("month", "by month, day (of the year) or hour")

    name: ClassVar = "anomaly"
    contributed: ClassVar = (
        "The cells at the datum's place in all steps of its month, day of the year or hour, its "
        "own among them."
    )
    examples: ClassVar = tuple({"by": by} for by in CYCLES)

    def __post_init__(self) -> None:
        one_of(self.by, CYCLES, "cycle", self.name)

    def groups(self, array: Array) -> Groups:
        """The months, days or hours of an array."""
        return cycles(array, self.by)

    def values(self, array: Array, variable: str, ranges: Ranges) -> Reals:
        record, groups = array.dims[0], self.groups(array)
        here = groups.of_step[slice(*ranges[record])]
        wanted, which = np.unique(here, return_inverse=True)
        cut = {**ranges, record: (0, len(wanted))}
        usual = means(array, variable, groups.only(wanted), cut)
        return block(array, variable, ranges).astype(np.float64) - usual[which.ravel()]
