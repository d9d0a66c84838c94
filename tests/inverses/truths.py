"""What each registered inverse has to find, by brute force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inverses.plans import Inversion
from inverses.registry import Registration
from pipelines.boxes.cyclones import ExtractMinima, IdentifyTracks
from pipelines.datasets import ELEMENT, TUPLE, Array
from pipelines.filters import Filter
from tests import laws, oracles
from tests.laws import Item, Items
from tests.strategies import World


def truth(world: World, image: str, level: str, row: int) -> Items:
    """What is behind one attribute of one row."""
    return TRUTHS[type(world.box), image, level](world, row)


def _cells_of_criterion(world: World, row: int) -> Items:
    key = laws.indices(world.made)[row]
    wraps = bool(world.source.circular)
    behind = oracles.cells_behind(world.field, *key, world.box.margin, wraps)
    return {("slp", *cell) for cell in behind}


def _linked_predecessors(world: World, row: int) -> Items:
    key = laws.indices(world.made)[row]
    return oracles.linked_predecessors(world.points, key, world.box.near_km, world.box.far_km)


def _own(world: World, row: int, *variables: str) -> Items:
    return {(v, *laws.indices(world.made)[row]) for v in variables}


TRUTHS: dict[tuple[type, str, str], Callable[[World, int], Items]] = {
    (ExtractMinima, "Time", TUPLE): lambda w, i: {laws.indices(w.made)[i][:1]},
    (ExtractMinima, "Pressure", TUPLE): lambda w, i: {laws.indices(w.made)[i][:1]},
    (ExtractMinima, "WindSpeed", TUPLE): lambda w, i: {laws.indices(w.made)[i][:1]},
    (ExtractMinima, "WindDirection", TUPLE): lambda w, i: {laws.indices(w.made)[i][:1]},
    (ExtractMinima, "Location", TUPLE): lambda w, i: {laws.indices(w.made)[i][:1]},
    (ExtractMinima, "Location", ELEMENT): _cells_of_criterion,
    (ExtractMinima, "Pressure", ELEMENT): lambda w, i: _own(w, i, "slp"),
    (ExtractMinima, "WindSpeed", ELEMENT): lambda w, i: _own(w, i, "u10", "v10"),
    (ExtractMinima, "WindDirection", ELEMENT): lambda w, i: _own(w, i, "u10", "v10"),
    (IdentifyTracks, "Time", TUPLE): lambda w, i: {laws.indices(w.made)[i]},
    (IdentifyTracks, "Location", TUPLE): lambda w, i: {laws.indices(w.made)[i]},
    (IdentifyTracks, "TrackId", TUPLE): _linked_predecessors,
}


def said(world: World, stated: Registration, inversion: Inversion, at: Filter) -> Items:
    """All that the weak inverses of an inversion hold, asked about one datum alone."""
    items = _all(world, stated)
    filters = [weak(world.box, at, world.source) for weak in inversion.weak]
    if stated.level == ELEMENT:
        filters.append(at.to(time=at.spans["time_index"]))
    return set.intersection(*(oracles.held(boxes_of(f), items) for f in filters))


def boxes_of(filter_: Filter) -> list[dict[str, tuple[Any, Any]]]:
    """The boxes of a filter, each end a plain value."""
    spans = filter_.spans.items()
    return [{k: (s.low[n].item(), s.high[n].item()) for k, s in spans} for n in range(len(filter_))]


def _all(world: World, stated: Registration) -> dict[Item, dict[str, Any]]:
    """Every row, step or cell that an inverse could find, by name."""
    if not isinstance(world.source, Array):
        return {p.key: vars(p) for p in world.points}
    if stated.level == TUPLE:
        return {(t,): {"time": t} for t in range(world.source.shape[0])}
    found = [a.name for a in world.source.attributes if a.dims and a.type in stated.yields]
    cells = [dict(zip(world.source.dims, c, strict=True)) for c in np.ndindex(world.source.shape)]
    return {(v, *cell.values()): cell for v in found for cell in cells}
