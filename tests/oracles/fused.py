"""Brute-force truth about two boxes at once: change a cell of the source, look at the tracks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy.typing as npt

from tests.oracles.linking import Point, tracks
from tests.oracles.pressure import Cell, minima

Source: TypeAlias = tuple[str, int, int, int]
Behind: TypeAlias = dict[Cell, set[Source]]

PRESSURES = (-1e6, 1e6, math.nan)
WINDS = (0.0, 100.0, -100.0, 200.0, math.nan)


@dataclass(frozen=True)
class Rules:
    """The parameters of both boxes."""

    margin: float
    wraps: bool
    near_km: float
    far_km: float
    min_points: int


@dataclass(frozen=True)
class Air:
    """The source: three fields over steps, rows and columns, and where those lie."""

    slp: npt.NDArray[Any]
    u10: npt.NDArray[Any]
    v10: npt.NDArray[Any]
    hours: list[float]
    lat: list[float]
    lon: list[float]

    def with_cell(self, variable: str, cell: Cell, value: float) -> Air:
        """This air, another value in one cell."""
        field = getattr(self, variable).copy()
        field[cell] = value
        return replace(self, **{variable: field})


def point_at(air: Air, cell: Cell) -> Point:
    """A minimum with the wind of its cell."""
    t, y, x = cell
    u, v = float(air.u10[cell]), float(air.v10[cell])
    blows_from = math.degrees(math.atan2(-u, -v)) % 360
    return Point(t, air.hours[t], air.lat[y], air.lon[x], y, x, math.hypot(u, v), blows_from)


def numbers(air: Air, found: set[Cell], rules: Rules) -> dict[Cell, int]:
    """The track number of every point that some minima make."""
    points = [point_at(air, cell) for cell in sorted(found)]
    return tracks(points, rules.near_km, rules.far_km, rules.min_points)


def _other_minima(air: Air, rules: Rules, found: set[Cell], changed: Air, step: int) -> set[Cell]:
    """The minima that are left once one step of the pressure is changed."""
    here = minima(changed.slp[step : step + 1], rules.margin, rules.wraps)
    still = {(step, y, x) for _, y, x in here}
    return {cell for cell in found if cell[0] != step or cell in still}


def _changes(
    air: Air, rules: Rules, found: set[Cell]
) -> Iterator[tuple[Source, set[Cell], dict[Cell, int]]]:
    """Every change of one cell that minima feel: the minima then left, and their numbers."""
    places = [c for t in range(len(air.slp)) for c in _cells_of(air, t)]
    for cell, value in ((c, v) for c in places for v in PRESSURES):
        changed = air.with_cell("slp", cell, value)
        left = _other_minima(air, rules, found, changed, cell[0])
        if left != found:
            yield ("slp", *cell), left, numbers(changed, left, rules)
    for variable, cell in ((v, c) for v in ("u10", "v10") for c in places):
        for value in WINDS if cell in found else ():
            changed = air.with_cell(variable, cell, value)
            yield (variable, *cell), found, numbers(changed, found, rules)


def _cells_of(air: Air, step: int) -> list[Cell]:
    _, rows, columns = air.slp.shape
    return [(step, y, x) for y in range(rows) for x in range(columns)]


def that_matter(air: Air, rules: Rules) -> Mapping[str, Behind]:
    """For every track point, the source cells that can take its place or its number from it.

    Its place is gone if its cell is no minimum any more; its number, if it has another or none.
    A minimum that a change would newly make had no part in what was made, so it is left out.
    """
    found = minima(air.slp, rules.margin, rules.wraps)
    before = numbers(air, found, rules)
    matter: dict[str, Behind] = {"place": defaultdict(set), "number": defaultdict(set)}
    for source, left, after in _changes(air, rules, found):
        for cell in before:
            if cell not in left:
                matter["place"][cell].add(source)
            if after.get(cell) != before[cell]:
                matter["number"][cell].add(source)
    return matter
