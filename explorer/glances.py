"""Glances at data for views: one step of a field, one place over time, the points of a table."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipelines.arrays import block, coordinate
from pipelines.datasets import Array, Table
from pipelines.tables import matching
from pipelines.workspace import Workspace

Result = TypeVar("Result")
KEPT = 64
LONGEST = 500
PLACE = ("time_index", "lat_index", "lon_index")


@dataclass(slots=True)
class Glances:
    """What was looked at lately, shared by all visitors and keyed by the version looked at."""

    _kept: OrderedDict[tuple[Any, ...], Any] = field(default_factory=OrderedDict)
    _alone: threading.Lock = field(default_factory=threading.Lock)

    def slice(self, array: Array, variable: str, dim: str, index: int) -> NDArray[Any]:
        """The values at one index of one dimension."""
        key = (array.path, *array.key, _state(array), variable, dim, index)
        axis = array.dims.index(dim)
        ranges = {dim: (index, index + 1)}
        return self._once(key, lambda: np.squeeze(block(array, variable, ranges), axis))

    def series(
        self, array: Array, variable: str, at: dict[str, int], around: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The values of one cell over time, in as many steps around one as a view can show."""
        record, *others = array.dims
        first = max(0, min(around - LONGEST // 2, array.shape[0] - LONGEST))
        ranges = {record: (first, min(first + LONGEST, array.shape[0]))}
        ranges |= {d: (at[d], at[d] + 1) for d in others}
        key = (array.path, *array.key, _state(array), variable, *sorted(ranges.items()))
        values = self._once(key, lambda: block(array, variable, ranges).reshape(-1))
        return coordinate(array, record)[slice(*ranges[record])], values

    def points(self, workspace: Workspace, table: Table) -> pd.DataFrame:
        """The rows of a table that has places, with what its inputs say of the same places."""
        key = (table.path, *table.key)
        return self._once(key, lambda: _points(workspace, table))

    def _once(self, key: tuple[Any, ...], read: Callable[[], Result]) -> Result:
        with self._alone:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast(Result, self._kept[key])
        found = read()
        with self._alone:
            self._kept[key] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found


def _state(array: Array) -> str:
    return str((array.origin or {}).get("newest", ""))


def _points(workspace: Workspace, table: Table) -> pd.DataFrame:
    rows: pd.DataFrame = matching(table, None).to_pandas()
    for name, version in table.made.inputs.values() if table.made else ():
        given = workspace.dataset(name, version)
        if not isinstance(given, Table) or not given.kept:
            continue
        if set(PLACE) <= set(given.columns) & set(rows.columns):
            theirs = matching(given, None).to_pandas()
            new = [c for c in theirs.columns if c not in rows.columns]
            rows = rows.merge(theirs[[*PLACE, *new]], on=list(PLACE), how="left")
    return rows


def has_places(dataset: Table | Array) -> bool:
    """Whether the rows of a dataset are points of a map over time."""
    return isinstance(dataset, Table) and {*PLACE, "lat", "lon"} <= set(dataset.columns)


def ranked(values: NDArray[Any], position: int) -> str:
    """Where a value stands among all, in words; nothing unless it is near an end.

    >>> ranked(np.array([3.0, 1.0, 2.0]), 1), ranked(np.arange(1000), 500)
    ('lowest of 3', '')
    """
    known = np.asarray(values, float)
    here = known[position]
    count = int(np.isfinite(known).sum())
    for word, before in (("lowest", known < here), ("highest", known > here)):
        rank = int(before.sum()) + 1
        if rank <= max(1, min(10, count // 10)):
            place = "" if rank == 1 else f"{_ordinal(rank)} "
            return f"{place}{word} of {count:,}"
    return ""


def _ordinal(number: int) -> str:
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }"


class Lines:
    """The tracks of a table as lines, cut at the seam, with the steps each one lives."""

    def __init__(self, rows: pd.DataFrame | None) -> None:
        self.rows = rows
        self._tracks: list[tuple[int, int, list[Any], list[Any]]] = []
        if rows is not None and "track" in rows:
            for _, one in rows.sort_values("time_index").groupby("track"):
                steps = one["time_index"].to_numpy()
                cuts = np.flatnonzero(abs(np.diff(one["lon"])) > 180) + 1
                xs, ys = (np.split(one[c].to_numpy(), cuts) for c in ("lon", "lat"))
                self._tracks.append((int(steps[0]), int(steps[-1]), xs, ys))

    def alive(self, step: int) -> tuple[list[Any], list[Any]]:
        """The lines of all tracks that have a point at this step or around it."""
        now = [t for t in self._tracks if t[0] <= step <= t[1]]
        return [x for t in now for x in t[2]], [y for t in now for y in t[3]]
