"""Where labels and mosaics came from: the inverses that face `pipelines/boxes/landcover.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
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
from pipelines import tables
from pipelines.arrays import Ranges, block, cells_at
from pipelines.boxes.landcover import Composite, Label, Mosaic, numbered, with_edge
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter

CELLS: dict[str, Any] = {"image": ANY, "yields": [USED], "nature": AGGREGATE, "level": ELEMENT}
EXACTLY: dict[str, Any] = {**CELLS, "needs": [COMPLETE], "promises": [COMPLETE, PURE]}


@weakly_inverts(Label, **CELLS, promises=[COMPLETE, FAITHFUL])
def whole_step(box: Label, at: Filter, source: Array) -> Filter:
    """A region lies in one step, anywhere in it."""
    return at.only(source.dims[0])


@verifies(Label, **EXACTLY)
def region(box: Label, at: Row, seen: Seen, source: Array) -> Mask:
    """The cells that hang together with the cell, and those next to them; else the cell alone.

    A cell that is next to a region and not of it has a say: with another value, it would be of it.
    """
    rows, columns = source.dims[1:]
    field = np.full(source.shape[1:], np.nan)
    field[seen[rows], seen[columns]] = seen["value"]
    wraps = columns in source.circular
    number = numbered(box.within(field), box.neighbours, wraps)
    mine = number[at[rows], at[columns]]
    if mine:
        found = with_edge(number == mine, box.neighbours, wraps)
        return np.asarray(found[seen[rows], seen[columns]])
    return np.asarray((seen[rows] == at[rows]) & (seen[columns] == at[columns]))


@sweeps(Label)
def regions(box: Label, asked: Asked, port: str, inputs: Inputs, ranges: Ranges) -> Iterator[Swept]:
    """Step by step, the regions of the cells, what is next to them, and the cells of none."""
    field: Any = inputs[port]
    record, *inner = field.dims
    cells = block(field, box.of(field), {record: ranges[record]}).astype(np.float64)
    wanted, kept = np.zeros(cells.shape, bool), np.zeros(cells.shape, bool)
    wanted[:, *(slice(*ranges[d]) for d in inner)] = asked["label"]
    wraps = inner[-1] in field.circular
    for step, values in enumerate(cells):
        number = numbered(box.within(values), box.neighbours, wraps)
        mine = np.isin(number, number[wanted[step] & (number > 0)])
        kept[step] = with_edge(mine, box.neighbours, wraps) | (wanted[step] & (number == 0))
    yield Swept(box.of(field), start_of(field, {record: ranges[record]}), cells, kept)


@weakly_inverts(Composite, **CELLS, promises=[COMPLETE, FAITHFUL])
def all_steps(box: Composite, at: Filter, source: Array) -> Filter:
    """Any step may have been taken, at the same place."""
    return at.only(*source.dims[1:])


@verifies(Composite, **EXACTLY, at_once=True)
def on_top(box: Composite, at: Row, seen: Seen, source: Array) -> Mask:
    """The first valid cell in time, or the latest."""
    sign = 1 if box.how == "first" else -1
    time = np.where(np.isnan(seen["value"]), np.inf, sign * seen[source.dims[0]])
    group = tables.numbered([seen["owner"], seen["variable"]])
    best = np.full(group.max(initial=-1) + 1, np.inf)
    np.minimum.at(best, group, time)
    return np.asarray((time == best[group]) & np.isfinite(time))


@sweeps(Composite)
def uppermost(
    box: Composite, asked: Asked, port: str, inputs: Inputs, ranges: Ranges
) -> Iterator[Swept]:
    """Place by place of a block, the first valid cell in time, or the latest."""
    field: Any = inputs[port]
    places = {d: ranges[d] for d in field.dims[1:]}
    for variable, wanted in asked.items():
        cells = block(field, variable, places)
        there = ~np.isnan(cells) if box.how == "first" else ~np.isnan(cells[::-1])
        top = there & (np.cumsum(there, axis=0) == 1)
        kept = wanted & (top if box.how == "first" else top[::-1])
        yield Swept(variable, start_of(field, places), cells, kept)


@weakly_inverts(Mosaic, **CELLS, promises=[COMPLETE, FAITHFUL])
def its_place(box: Mosaic, at: Filter, source: Array) -> Filter:
    """Each raster's cell at the datum's place may have been taken."""
    return at.only(*source.dims)


@verifies(Mosaic, **EXACTLY, pointwise=True, beside=True)
def taken(box: Mosaic, at: Row, seen: Seen, port: str, inputs: Inputs) -> Mask:
    """The raster's cell if it was taken, beside those of the other rasters at its place."""
    rasters: dict[str, Any] = {p.name: inputs[p.name] for p in box.takes}
    source, place = rasters[port], list(rasters).index(port)
    found = np.zeros(len(seen["owner"]), bool)
    for number in np.unique(seen["variable"]):
        mine = np.flatnonzero(seen["variable"] == number)
        points = {d: seen[d][mine] for d in source.dims}
        stack = [cells_at(r, source.variables[number], points) for r in rasters.values()]
        found[mine] = box.taken(np.array(stack))[place]
    return found


@sweeps(Mosaic)
def taken_there(
    box: Mosaic, asked: Asked, port: str, inputs: Inputs, ranges: Ranges
) -> Iterator[Swept]:
    """Place by place of a block, the raster's cell if it was taken."""
    field: Any = inputs[port]
    raster = [p.name for p in box.takes].index(port)
    for variable, wanted in asked.items():
        cells = box.stack(inputs, variable, ranges)
        kept = wanted & box.taken(cells)[raster]
        yield Swept(variable, start_of(field, ranges), cells[raster], kept)
