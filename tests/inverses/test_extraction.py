"""Cells that become rows hold every promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses.registry import Registry
from inverses.trials import data_of, made_by
from pipelines.arrays import coordinate, inside
from pipelines.boxes.box import Box
from pipelines.boxes.extraction import ExtractAbove, ExtractExtrema
from pipelines.contents import held_array
from pipelines.datasets import Array, Table
from pipelines.filters import Filter
from pipelines.tables import matching
from tests.inverses.cases import Case, check, small_arrays

REGISTRY = Registry.of()
MANY = settings(max_examples=max(300, settings().max_examples))
Given = Mapping[str, Mapping[str, np.ndarray]]
Cell = tuple[int, int, int]


def row(array: Array, cell: Cell, value: float) -> dict[str, Any]:
    """A cell as a row."""
    t, y, x = cell
    times = coordinate(array, "time")
    return {
        "time": times[t].astype("datetime64[us]").item(),
        "time_index": t,
        "hours": 6.0 * t,
        "lat": float(coordinate(array, "lat")[y]),
        "lon": float(coordinate(array, "lon")[x]),
        "lat_index": y,
        "lon_index": x,
        "value": float(value),
    }


@MANY
@given(
    array=small_arrays(("a", "b"), most=(2, 2, 3)),
    threshold=st.sampled_from([0.0, 0.7]),
    below=st.booleans(),
)
def test_extract_above_holds_every_promise(array: Array, threshold: float, below: bool) -> None:
    def forward(given: Given) -> list[dict[str, Any]]:
        values = given["field"]["b"]
        kept = [c for c in np.ndindex(values.shape) if _beyond(values[c])]
        return [row(array, c, values[c]) for c in kept]

    def _beyond(value: float) -> bool:
        return bool(value < threshold if below else value > threshold)

    box = ExtractAbove("b", threshold, below)
    check(Case(box, {"field": array}, forward), REGISTRY, most=3)
    assert_made_of_its_part(box, array)


def around(cell: Cell, shape: tuple[int, ...], reach: int, circular: bool) -> set[Cell]:
    """The cells of the window around one, each once, without itself."""
    steps = range(-reach, reach + 1)
    found = set()
    for dy in steps:
        for dx in steps:
            y, x = cell[1] + dy, cell[2] + dx
            x = x % shape[2] if circular else x
            if 0 <= y < shape[1] and 0 <= x < shape[2]:
                found.add((cell[0], y, x))
    return found - {cell}


@MANY
@given(array=small_arrays(most=(2, 3, 4)), size=st.sampled_from([3, 5]), least=st.booleans())
def test_extract_extrema_holds_every_promise(array: Array, size: int, least: bool) -> None:
    def forward(given: Given) -> list[dict[str, Any]]:
        values = given["field"]["a"]
        return [row(array, c, values[c]) for c in np.ndindex(values.shape) if _best(values, c)]

    def _best(values: np.ndarray, cell: Cell) -> bool:
        others = [values[c] for c in around(cell, values.shape, size // 2, bool(array.circular))]
        there = [o for o in others if o == o]
        mine = values[cell]
        return mine == mine and all(mine < o if least else mine > o for o in there)

    box = ExtractExtrema("a", size, least)
    check(Case(box, {"field": array}, forward), REGISTRY, most=3)
    assert_made_of_its_part(box, array)


def assert_made_of_its_part(box: Box, array: Array) -> None:
    """A row is made again of the cells that its faithful inverse keeps, all others missing."""
    made = made_by(box, {"field": array})
    assert isinstance(made, Table)
    if not made.rows:
        return
    at = data_of(made)[:1]
    for weak in REGISTRY.faithful(box, "field", made, array):
        part = only(array, inside(array, weak(box, at, array)))
        again = made_by(box, {"field": part})
        assert matching(made, None).to_pylist()[0] in matching(again, None).to_pylist()


def only(array: Array, kept: Filter) -> Array:
    """An array whose cells outside a filter are missing."""
    inner = np.zeros(array.shape, bool)
    for n in range(len(kept)):
        inner[tuple(slice(s.low[n], s.high[n] + 1) for s in kept.spans.values())] = True
    values = {v: np.where(inner, array.content.variables[v], np.nan) for v in array.variables}
    coordinates = array.content.coordinates
    return held_array("part", array.attributes, coordinates, values, None, array.circular)
