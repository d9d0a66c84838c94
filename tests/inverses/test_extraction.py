"""Cells that become rows hold every promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses.boxes.extraction import own_cell
from inverses.making import made_by
from inverses.registry import Registry
from inverses.trials import data_of
from pipelines.arrays import coordinate, inside
from pipelines.boxes.box import Box
from pipelines.boxes.extraction import ExtractAbove, ExtractExtrema
from pipelines.contents import held_array
from pipelines.datasets import Array, Attribute, Quantity
from pipelines.errors import Refused
from pipelines.filters import Filter
from tests.inverses.cases import Case, check, plain, small_arrays
from tests.inverses.families import MANY, PATIENCE
from tests.inverses.wrong import assert_caught, registry_with

REGISTRY = Registry.of()
pytestmark = PATIENCE
Given = Mapping[str, Mapping[str, np.ndarray]]
Cell = tuple[int, int, int]
Rows = list[dict[str, Any]]


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


@st.composite
def beyond(draw: st.DrawFn) -> Case:
    array = draw(small_arrays(("a", "b"), most=(2, 2, 3)))
    threshold, below = draw(st.sampled_from([0.0, 0.7])), draw(st.booleans())

    def forward(given: Given) -> Rows:
        values = given["field"]["b"]
        cells = np.ndindex(values.shape)
        return [row(array, c, values[c]) for c in cells if _beyond(values[c])]

    def _beyond(value: float) -> bool:
        return bool(value < threshold if below else value > threshold)

    return Case(ExtractAbove("b", threshold, below), {"field": array}, forward)


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


@st.composite
def extreme(draw: st.DrawFn) -> Case:
    array = draw(small_arrays(most=(2, 3, 4)))
    size, least = draw(st.sampled_from([3, 5])), draw(st.booleans())

    def forward(given: Given) -> Rows:
        values = given["field"]["a"]
        return [row(array, c, values[c]) for c in np.ndindex(values.shape) if _best(values, c)]

    def _best(values: np.ndarray, cell: Cell) -> bool:
        others = [values[c] for c in around(cell, values.shape, size // 2, bool(array.circular))]
        there = [o for o in others if o == o]
        mine = values[cell]
        return mine == mine and all(mine < o if least else mine > o for o in there)

    return Case(ExtractExtrema("a", size, least), {"field": array}, forward)


WORLDS = {ExtractAbove: beyond(), ExtractExtrema: extreme()}


@pytest.mark.parametrize("kind", WORLDS)
def test_every_promise_holds(kind: type[Box]) -> None:
    @settings(max_examples=MANY)
    @given(case=WORLDS[kind])
    def holds(case: Case) -> None:
        check(case, REGISTRY, most=3)
        assert_made_of_its_part(case)

    holds()


def assert_made_of_its_part(case: Case) -> None:
    """A row is made again of the cells that its faithful inverse keeps, all others missing."""
    array = case.inputs["field"]
    assert isinstance(array, Array)
    for number in range(min(len(case.made_plain), 2)):
        at = data_of(case.made)[np.array([number])]
        for weak in REGISTRY.faithful(case.box, "field", case.made, array):
            part = only(array, inside(array, weak(case.box, at, array)))
            again = made_by(case.box, {"field": part})
            assert case.made_plain[number] in plain(again)


def only(array: Array, kept: Filter) -> Array:
    """An array whose cells outside a filter are missing."""
    inner = np.zeros(array.shape, bool)
    for n in range(len(kept)):
        inner[tuple(slice(s.low[n], s.high[n] + 1) for s in kept.spans.values())] = True
    values = {v: np.where(inner, array.content.variables[v], np.nan) for v in array.variables}
    coordinates = array.content.coordinates
    return held_array("part", array.attributes, coordinates, values, None, array.circular)


def nearest_only(box: Any, at: Filter, source: Array) -> Filter:
    """It forgets the outer ring of a wide window, and the seam."""
    lat, lon = at.spans["lat_index"].grown(1), at.spans["lon_index"].grown(1)
    return at.to(time=at.span("time_index"), lat=lat, lon=lon)


def any_step(box: Any, at: Filter, source: Array) -> Filter:
    """It takes all steps for this one."""
    return at.to(lat=at.span("lat_index"), lon=at.span("lon_index"))


WRONG = {
    "a window is wider": (extreme, "window", {"function": nearest_only}),
    "a step is one step": (beyond, "own_cell", {"function": any_step}),
    "neighbours have a say": (extreme, "window", {"function": own_cell}),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_inverse_is_caught(fault: str) -> None:
    cases, name, changed = WRONG[fault]
    registry = registry_with(name, **changed)
    assert_caught(lambda data: check(data.draw(cases()), registry), "missing|not behind it")


def test_what_cannot_be_is_refused_when_a_pipeline_is_checked() -> None:
    field = {"field": (Attribute("a", Quantity, ("a",), "1", ("lat", "lon")),)}
    with pytest.raises(Refused, match='no variable "b" for box "extract_above"'):
        ExtractAbove("b").attributes_of(field)
    with pytest.raises(Refused, match="size is 4; it must be odd"):
        ExtractExtrema("a", 4).attributes_of(field)
