"""Windows, gradients and vorticity are those of plain loops, and so are the cells behind them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.boxes.window import around, attains
from inverses.guarantees import EXACT
from pipelines.boxes.window import Gradient, Vorticity, WindowExtreme, WindowMean, WindowMedian
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.filters import Filter
from tests.inverses import wrong
from tests.inverses.cases import Case, Plain, check, small_arrays
from tests.inverses.families import MANY, PATIENCE, cells, in_parts, traced
from tests.inverses.grids import changed, plain_array
from tests.inverses.wrong import REGISTRY

pytestmark = PATIENCE
SIZES = st.sampled_from([(3, 3), (1, 3), (3, 1), (1, 5), (5, 7)])
SCALE = 1e6  # what changes per metre is little, and the harness compares numbers of about one


@cache
def members(shape: Any, size: tuple[int, int], circular: bool) -> list[Any]:
    """Each place with the rows and columns of its window, each cell once."""
    found = []
    for y, x in np.ndindex(shape[1:]):
        rows = [r for r in range(y - size[0] // 2, y + size[0] // 2 + 1) if 0 <= r < shape[1]]
        columns = range(x - size[1] // 2, x + size[1] // 2 + 1)
        near = {c % shape[2] for c in columns} if circular else set(columns) & set(range(shape[2]))
        found.append((y, x, np.ix_(range(shape[0]), rows, sorted(near))))
    return found


def windowed(values: Any, size: tuple[int, int], circular: bool, statistic: Any) -> Any:
    made = np.full(values.shape, np.nan)
    for y, x, window in members(values.shape, size, circular):
        for t, inside in enumerate(values[window].reshape(len(values), -1).tolist()):
            there = [v for v in inside if v == v]
            made[t, y, x] = statistic(there) if there else np.nan
    return made


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def windows(kind: Any, statistic: Any, **params: Any) -> st.SearchStrategy[Case]:
    """Worlds of a window's statistic, which is given what is there."""

    def case(field: Array, size: tuple[int, int]) -> Case:
        def forward(given_: Plain) -> Any:
            round_ = bool(field.circular)
            return {v: windowed(a, size, round_, statistic) for v, a in given_["field"].items()}

        regular = kind is not WindowExtreme
        return Case(kind(*size, **params), {"field": field}, forward, regular=regular)

    return st.builds(case, small_arrays(("a",), most=(2, 3, 4)), SIZES)


def change(values: Any, at: Any, n: int, round_: bool) -> tuple[Any, float]:
    """How much rows of values change about the place `n`, and over how many degrees."""
    last = len(at) - 1
    if round_ and last >= 2:
        width = 360 / len(at)
        return values[(n + 1) % len(at)] - values[n - 1], 2 * width
    before, after = max(n - 1, 0), min(n + 1, last)
    apart = np.nan if before == after or round_ else at[after] - at[before]
    return values[after] - values[before], apart


def to_the_east(values: Any, field: Array) -> Any:
    lat, lon = (field.content.coordinate(d) for d in ("lat", "lon"))
    circles = np.where(np.abs(lat) < 89.999, 6371000 * np.cos(np.deg2rad(lat)), np.nan)
    made = np.empty(values.shape)
    for x in range(len(lon)):
        more, apart = change(values.transpose(2, 0, 1), lon, x, bool(field.circular))
        made[:, :, x] = more / (circles * np.deg2rad(apart))
    return made


def to_the_north(values: Any, field: Array) -> Any:
    lat = field.content.coordinate("lat")
    made = np.empty(values.shape)
    for y in range(len(lat)):
        more, apart = change(values.transpose(1, 0, 2), lat, y, False)
        made[:, y] = more / (6371000 * np.deg2rad(apart))
    return made


@st.composite
def globes(draw: st.DrawFn, variables: tuple[str, ...] = ("a",)) -> Array:
    """Small arrays, of which some reach the poles."""
    field = draw(small_arrays(variables, most=(2, 3, 4)))
    large = {v: SCALE * values for v, values in field.content.variables.items()}
    polar = draw(st.booleans()) and field.size["lat"] > 1
    lat = {"lat": np.linspace(-90, 90, field.size["lat"])} if polar else {}
    return changed(field, lat, large)


def gradients(field: Array, along: str) -> Case:
    def forward(given_: Plain) -> Any:
        made = to_the_north if along == "lat" else to_the_east
        return {"gradient": made(given_["field"]["a"], field)}

    return Case(Gradient(along=along), {"field": field}, forward, regular=True)


def turning(field: Array) -> Case:
    lat = np.deg2rad(field.content.coordinate("lat"))[:, None]
    circles = np.where(np.abs(lat) > np.deg2rad(89.999), np.nan, np.cos(lat))

    def forward(given_: Plain) -> Any:
        u, v = given_["field"]["a"], given_["field"]["b"]
        return {"vorticity": to_the_east(v, field) - to_the_north(u * np.cos(lat), field) / circles}

    return Case(Vorticity("a", "b"), {"field": field}, forward, regular=True)


WORLDS: dict[Any, st.SearchStrategy[Case]] = {
    WindowMean: windows(WindowMean, mean),
    WindowMedian: windows(WindowMedian, median),
    WindowExtreme: windows(WindowExtreme, max) | windows(WindowExtreme, min, which="min"),
    Gradient: st.builds(gradients, globes(), st.sampled_from(["lat", "lon"])),
    Vorticity: st.builds(turning, globes(("a", "b"))),
}


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_a_window_finds_what_is_promised(kind: Any, data: st.DataObject) -> None:
    check(data.draw(WORLDS[kind]), REGISTRY, 4)


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_a_window_can_be_made_and_inverted_in_parts(kind: Any, data: st.DataObject) -> None:
    in_parts(data.draw(WORLDS[kind]), REGISTRY, data)


def without_seam(box: Any, at: Filter, source: Array) -> Filter:
    lat, lon = at.spans["lat"], at.spans["lon"]
    return at.to(
        time=at.span("time"),
        lat=lat.grown(box.lat // 2, 0, source.size["lat"] - 1),
        lon=lon.grown(box.lon // 2, 0, source.size["lon"] - 1),
    )


def rows_for_columns(box: Any, at: Filter, source: Array) -> Filter:
    return around(type(box)(box.lon, box.lat), at, source)


def first_that_attains(box: Any, at: Any, seen: Any, source: Array) -> Any:
    found = attains(box, at, seen, source)
    return found & (np.diff(seen["owner"], prepend=-1) != 0)


def own_place(box: Any, at: Filter, source: Array) -> Filter:
    return at.only(*source.dims)


def both_winds(box: Any, at: Any, seen: Any, source: Array) -> Any:
    return np.ones(len(seen["owner"]), bool)


WRONG: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "forgets the seam": (WindowMean, "around", {"function": without_seam}),
    "takes rows for columns": (WindowMedian, "around", {"function": rows_for_columns}),
    "takes the window for what attains": (WindowExtreme, "around", {"promises": EXACT}),
    "forgets what attains as well": (WindowExtreme, "attains", {"function": first_that_attains}),
    "takes the place for its neighbours": (Gradient, "either_side", {"function": own_place}),
    "takes either wind": (Vorticity, "across", {"function": both_winds}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_inverse_of_a_window_is_caught(case: str) -> None:
    kind, name, made_wrong = WRONG[case]
    registry = wrong.registry_with(name, **made_wrong)
    law = "missing|not behind it"
    wrong.assert_caught(lambda data: check(data.draw(WORLDS[kind]), registry), law)


def test_the_greatest_gradient_around_is_traced_over_the_seam_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    field = np.zeros((2, 6, 8), np.float32)
    field[1, 2, 0] = 5
    boxes = """
  smooth: {box: window_mean, inputs: {field: air}, params: {lat: 1, lon: 3}, keep: false}
  steep: {box: gradient, inputs: {field: smooth}}
  most: {box: window_extreme, inputs: {field: steep}}
"""
    where = "time > '2001-03-01T03:00' and lat = 18 and lon = 315"
    answer = traced({"air": field}, boxes, "most", where, spark, tmp_path)
    # Columns 6 and 7 are as steep: of what lies three columns from the one and from the other.
    assert cells(answer, "steep") == {(1, 2, 6), (1, 2, 7)}
    assert cells(answer, "air") == {(1, 2, x) for x in (4, 5, 6, 7, 0, 1)}
    assert answer.guarantee("air") == EXACT


def test_a_vortex_turns_to_the_left() -> None:
    field = plain_array((1, 5, 8), ("a", "b"), circular=True)
    lon = np.deg2rad(field.content.coordinate("lon"))
    held = {"a": np.zeros((1, 5, 8)), "b": np.sin(lon) + np.zeros((1, 5, 8))}
    whole = {d: (0, n) for d, n in field.size.items()}
    turned = Vorticity("a", "b").block({"field": changed(field, None, held)}, whole)["vorticity"]
    assert turned[0, 2, 0] > 0 > turned[0, 2, 4]


@pytest.mark.parametrize(
    ("box", "params", "said"),
    [
        ("window_mean", {"lat": 4}, "lat is 4; a window has an odd number"),
        ("window_median", {"lon": 0}, "at least 1"),
        ("window_extreme", {"which": "mox"}, 'did you mean "max"'),
        ("gradient", {"along": "time"}, 'no direction "time"'),
        ("gradient", {"variable": "c"}, 'no variable "c"'),
        ("vorticity", {"east": "a", "north": "a"}, "name two variables"),
        ("vorticity", {}, 'no variable "u10"'),
    ],
)
def test_windows_that_cannot_be_are_refused(box: str, params: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        made = REGISTRY.boxes[box].from_params(params)
        made.attributes_of({"field": plain_array((1, 1, 1), ("a", "b")).attributes})
