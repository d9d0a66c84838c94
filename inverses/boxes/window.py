"""Where statistics of windows and changes came from: what faces `pipelines/boxes/window.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.reaches import reached
from inverses.registry import (
    AGGREGATE,
    ANY,
    USED,
    Inputs,
    Mask,
    Row,
    Seen,
    verifies,
    weakly_inverts,
)
from inverses.sweeps import Asked, Swept, start_of, sweeps
from pipelines.arrays import Ranges, block
from pipelines.boxes.window import (
    Gradient,
    Vorticity,
    Window,
    WindowExtreme,
    WindowMean,
    WindowMedian,
    folded,
)
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter
from pipelines.spheres import narrowing, neighbours, spread

CELLS: dict[str, Any] = {"image": ANY, "yields": [USED], "nature": AGGREGATE, "level": ELEMENT}


@weakly_inverts(WindowMean, promises=[COMPLETE, PURE, FAITHFUL], **CELLS)
@weakly_inverts(WindowExtreme, promises=[COMPLETE, FAITHFUL], **CELLS)
@weakly_inverts(WindowMedian, promises=[COMPLETE, PURE, FAITHFUL], **CELLS)
def around(box: Window, at: Filter, source: Array) -> Filter:
    """The window around a place, which ends at edges and goes on past a seam."""
    found = at.only(*source.dims)
    for dim in ("lat", "lon"):
        here, steps = np.arange(source.size[dim]), box.steps(source, dim)
        first, last = here + steps[0], here + steps[-1]
        if dim not in source.circular:
            first, last = np.maximum(first, 0), np.minimum(last, len(here) - 1)
        found = reached(found, dim, first, last, source)
    return found


@verifies(WindowExtreme, needs=[COMPLETE], promises=[COMPLETE, PURE], at_once=True, **CELLS)
def attains(box: WindowExtreme, at: Row, seen: Seen, source: Array) -> Mask:
    """The cells of a window that are as great, or as little, as any of it."""
    _, datum = np.unique(seen["owner"], return_inverse=True)
    sign = 1 if box.which == "max" else -1
    there = np.isfinite(seen["value"])
    value = np.where(there, sign * seen["value"], -np.inf)
    greatest = np.full(datum.max(initial=-1) + 1, -np.inf)
    np.maximum.at(greatest, datum, value)
    return np.asarray(there & (value == greatest[datum]))


@sweeps(WindowExtreme)
def attaining(
    box: WindowExtreme, asked: Asked, port: str, inputs: Inputs, ranges: Ranges
) -> Iterator[Swept]:
    """Window by window of a block, the cells that are what was made of it."""
    field: Any = inputs[port]
    rows, columns = (box.steps(field, dim) for dim in ("lat", "lon"))
    sizes, nearer = (len(rows), len(columns)), np.fmin if box.which == "max" else np.fmax
    time, lat, lon = start_of(field, ranges)
    for variable, wanted in asked.items():
        padded = box.padded(field, variable, ranges)
        made = np.where(wanted, box.of_windows(padded, *sizes), np.nan)
        around = [(0, 0), *((n - 1, n - 1) for n in sizes)]
        # Of all windows with a cell in them the least maximum is it, or none of them is.
        nearest = folded(nearer, np.pad(made, around, constant_values=np.nan), *sizes)
        first = (time, lat + rows[0], lon + columns[0])
        yield Swept(variable, first, padded, padded == nearest)


@weakly_inverts(Gradient, promises=[COMPLETE, PURE, FAITHFUL], **CELLS)
def either_side(box: Gradient, at: Filter, source: Array) -> Filter:
    """The neighbours before and after a place, where there is a change at all."""
    known = _known(source, box.along)
    found = _where(at.only(*source.dims), "lat", known["lat"], source)
    found = _where(found, "lon", known["lon"], source)
    before, after = (
        reached(found, box.along, each, each, source) for each in neighbours(source, box.along)
    )
    return before | after


def _known(source: Array, along: str) -> dict[str, NDArray[np.bool_]]:
    """At which latitudes and longitudes there is a change to the north or to the east."""
    everywhere = {d: np.ones(source.size[d], bool) for d in ("lat", "lon")}
    if along == "lon":
        everywhere["lat"] = ~np.isnan(narrowing(source))
    return {**everywhere, along: ~np.isnan(spread(source, along))}


def _where(at: Filter, dim: str, kept: NDArray[np.bool_], source: Array) -> Filter:
    """The same places, without those that are not kept."""
    here = np.arange(len(kept))
    return reached(at, dim, here, np.where(kept, here, here - 1), source)


@weakly_inverts(Vorticity, promises=[COMPLETE, FAITHFUL], **CELLS)
def all_sides(box: Vorticity, at: Filter, source: Array) -> Filter:
    """The neighbours to all sides of a place."""
    known = [_known(source, dim) for dim in ("lat", "lon")]
    found = at.only(*source.dims)
    for dim in ("lat", "lon"):
        found = _where(found, dim, known[0][dim] & known[1][dim], source)
    sides = [
        reached(found, dim, each, each, source)
        for dim in ("lat", "lon")
        for each in neighbours(source, dim)
    ]
    return sides[0] | sides[1] | sides[2] | sides[3]


@verifies(Vorticity, needs=[COMPLETE], promises=[COMPLETE, PURE], pointwise=True, **CELLS)
def across(box: Vorticity, at: Row, seen: Seen, source: Array) -> Mask:
    """The northward wind to the west and east, the eastward one to the south and north."""
    names = np.array(source.variables)[seen["variable"]]
    in_line = {d: np.broadcast_to(seen[d] == at[d], len(names)) for d in ("lat", "lon")}
    beside = {d: _beside(seen[d], at[d], source, d) for d in ("lat", "lon")}
    turning = (names == box.north) & in_line["lat"] & beside["lon"]
    return np.asarray(turning | ((names == box.east) & in_line["lon"] & beside["lat"]))


def _beside(cell: Any, place: Any, source: Array, dim: str) -> Mask:
    """Which cells are the neighbour before or after a place."""
    size = source.size[dim]
    before, after = neighbours(source, dim)
    return np.asarray((cell == before[place] % size) | (cell == after[place] % size))


@sweeps(Vorticity)
def turning(
    box: Vorticity, asked: Asked, port: str, inputs: Inputs, ranges: Ranges
) -> Iterator[Swept]:
    """The northward wind beside each place of a block, the eastward one above and below it."""
    field: Any = inputs[port]
    known = [_known(field, dim) for dim in ("lat", "lon")]
    rows, columns = ((known[0][d] & known[1][d])[slice(*ranges[d])] for d in ("lat", "lon"))
    step, lat, lon = np.nonzero(asked[box.result] & rows[:, None] & columns)
    wide = {**ranges, **{d: _with_neighbours(field, d, *ranges[d]) for d in ("lat", "lon")}}
    first = start_of(field, wide)
    lat, lon = lat + ranges["lat"][0], lon + ranges["lon"][0]
    for variable, dim in ((box.north, "lon"), (box.east, "lat")):
        values = block(field, variable, wide)
        kept = np.zeros(values.shape, bool)
        for each in neighbours(field, dim):
            y, x = (each[lat], lon) if dim == "lat" else (lat, each[lon])
            kept[step, y - first[1], x - first[2]] = True
        yield Swept(variable, first, values, kept)


def _with_neighbours(source: Array, dim: str, first: int, stop: int) -> tuple[int, int]:
    """A range of places with the neighbours of its ends."""
    before, after = neighbours(source, dim)
    return int(before[first]), int(after[stop - 1]) + 1
