"""Grouping: which steps of an array belong together, and the mean of each group."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges, coordinate
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.steps import Reals, Whole, averaged, middle, steps

CYCLES = ("month", "day", "hour")
STRETCHES = ("steps", "day")
Dates = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Steps in groups: the number of each step's group, and the time that each group bears."""

    of_step: Whole
    times: Dates

    def __len__(self) -> int:
        return len(self.times)

    def steps(self, first: int, last: int) -> Whole:
        """The steps of the groups from `first` to before `last`."""
        return np.flatnonzero((self.of_step >= first) & (self.of_step < last))

    def only(self, wanted: Whole) -> Groups:
        """Some groups, numbered anew; other steps are in none."""
        number = np.searchsorted(wanted, self.of_step)
        there = np.isin(self.of_step, wanted)
        return Groups(np.where(there, number, -1), self.times[wanted])


def cycles(array: Array, by: str) -> Groups:
    """Steps grouped by the month, the day of the year or the hour of the day they fall in.

    A group bears the time of its month, day or hour in the year 2000, which has every day. A day
    of the year is known by month and day, so that 1 March is one day in every year.
    """
    times = _dates(array)
    marks = _marks(times, by) if times.dtype.kind == "M" else _other_marks(times, by)
    found, number = np.unique(marks, return_inverse=True)
    return Groups(number.ravel().astype(np.int64), found)


def stretches(array: Array, by: str, every: int) -> Groups:
    """Steps in stretches: so many after another, or those of one day; each bears its mean time."""
    times = coordinate(array, array.dims[0])
    most = min(every, len(times))
    of_step = np.arange(len(times)) // most if by == "steps" else _days(_dates(array))
    starts = np.flatnonzero(np.diff(of_step, prepend=-1))
    means = [middle(part) for part in np.split(times, starts[1:])]
    return Groups(of_step, np.array(means))


def _days(times: Dates) -> Whole:
    """The number of each step's day, counted by changes of the day."""
    if times.dtype.kind == "M":
        changes = np.diff(times.astype("datetime64[D]")).astype(np.int64) != 0
    else:
        days = [(t.year, t.month, t.day) for t in times]
        changes = np.array([a != b for a, b in pairwise(days)], bool)
    return np.concatenate([[0], np.cumsum(changes)]).astype(np.int64)


def _dates(array: Array) -> Dates:
    times = coordinate(array, array.dims[0])
    if times.dtype.kind not in "MO":
        raise Refused(
            f'the times of "{array.name}" are {times.dtype} numbers, which have no months, days or '
            "hours; give dates"
        )
    return times


def _marks(times: Dates, by: str) -> Dates:
    """The time in the year 2000 of each date's month, day or hour."""
    year, month, day, hour = (times.astype(f"datetime64[{unit}]") for unit in "YMDh")
    if by == "hour":
        return np.asarray(np.datetime64("2000-01-01", "h") + (hour - day), times.dtype)
    months = np.datetime64("2000", "M") + (month - year)
    days = months.astype("datetime64[D]") + (day - month) * (by == "day")
    return np.asarray(days, times.dtype)


def _other_marks(times: Dates, by: str) -> Dates:
    """The same for dates of another calendar."""
    start = {"minute": 0, "second": 0, "microsecond": 0, "year": 2000}
    rest = {"month": {"day": 1, "hour": 0}, "day": {"hour": 0}, "hour": {"month": 1, "day": 1}}
    return np.array([t.replace(**start, **rest[by]) for t in times], object)


def means(array: Array, variable: str, groups: Groups, ranges: Ranges) -> Reals:
    """The mean of each group in index ranges of groups and places; missing cells are left out."""
    first, last = ranges[array.dims[0]]
    shape = [b - a for a, b in (ranges[d] for d in array.dims)]
    total, count = np.zeros(shape), np.zeros(shape)
    for step, cells in steps(array, variable, groups.steps(first, last), ranges):
        there = ~np.isnan(cells)
        total[groups.of_step[step] - first] += np.where(there, cells, 0)
        count[groups.of_step[step] - first] += there
    return averaged(total, count)
