"""Windows, gradients and vorticity do what they say, and so do their inverses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inverses.boxes import window as shipped
from inverses.guarantees import COMPLETE, PURE
from inverses.registry import Registry, verifies, weakly_inverts
from pipelines.boxes import window
from pipelines.boxes.window import Gradient, Vorticity, WindowExtreme, WindowMean, WindowMedian
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.filters import Filter
from tests.inverses.cases import Case, small_arrays
from tests.inverses.grids import MANY, PATIENCE, caught, changed, holds, plain_array

pytestmark = PATIENCE
REGISTRY = Registry.from_modules([window, shipped])
Plain = Mapping[str, Any]
SIZES = st.sampled_from([(3, 3), (1, 3), (3, 1), (1, 5), (5, 7)])
SMALL = (2, 3, 4)


def members(shape: Any, y: int, x: int, size: tuple[int, int], circular: bool) -> Iterator[Any]:
    """Rows and columns of a window, each cell once."""
    rows = [r for r in range(y - size[0] // 2, y + size[0] // 2 + 1) if 0 <= r < shape[1]]
    columns = range(x - size[1] // 2, x + size[1] // 2 + 1)
    near = {c % shape[2] for c in columns} if circular else set(columns) & set(range(shape[2]))
    return ((r, c) for r in rows for c in sorted(near))


def windowed(values: Any, size: tuple[int, int], circular: bool, statistic: Any) -> Any:
    made = np.full(values.shape, np.nan)
    for y, x in np.ndindex(values.shape[1:]):
        rows, columns = zip(*members(values.shape, y, x, size, circular), strict=True)
        for t, cells in enumerate(values[:, rows, columns].tolist()):
            there = [v for v in cells if v == v]
            made[t, y, x] = statistic(there) if there else np.nan
    return made


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def window_case(box: Any, field: Array, statistic: Any, regular: bool = False) -> Case:
    def forward(given_: Plain) -> Any:
        size, round_ = (box.lat, box.lon), bool(field.circular)
        return {v: windowed(a, size, round_, statistic) for v, a in given_["field"].items()}

    return Case(box, {"field": field}, forward, regular=regular)


@given(small_arrays(("a",), most=SMALL), SIZES, st.data())
@MANY
def test_window_mean_holds_every_law(
    field: Array, size: tuple[int, int], data: st.DataObject
) -> None:
    holds(window_case(WindowMean(*size), field, mean), REGISTRY, data)


@given(small_arrays(("a",), most=SMALL), SIZES, st.sampled_from([max, min]), st.data())
@MANY
def test_window_extreme_holds_every_law(
    field: Array, size: tuple[int, int], which: Any, data: st.DataObject
) -> None:
    box = WindowExtreme(*size, which=which.__name__)
    holds(window_case(box, field, which), REGISTRY, data)


@given(small_arrays(("a",), most=SMALL), SIZES, st.data())
@MANY
def test_window_median_holds_every_law(
    field: Array, size: tuple[int, int], data: st.DataObject
) -> None:
    holds(window_case(WindowMedian(*size), field, median), REGISTRY, data)


def change(values: Any, at: list[float], n: int, round_: bool) -> tuple[Any, float]:
    """How much rows of values change about the place `n`, and over how many degrees."""
    last = len(at) - 1
    if round_ and last >= 2:
        width = 360 / len(at)
        return values[(n + 1) % len(at)] - values[n - 1], 2 * width
    before, after = max(n - 1, 0), min(n + 1, last)
    apart = np.nan if before == after or round_ else at[after] - at[before]
    return values[after] - values[before], apart


def to_the_east(values: Any, field: Array) -> Any:
    lat, lon = (field.content.coordinate(d).tolist() for d in ("lat", "lon"))
    made = np.empty(values.shape)
    for x in range(len(lon)):
        more, apart = change(np.moveaxis(values, 2, 0), lon, x, bool(field.circular))
        for y, north in enumerate(lat):
            length = np.cos(np.deg2rad(north)) * 6371000 * np.deg2rad(apart)
            made[:, y, x] = more[:, y] / (length if abs(north) < 89.999 else np.nan)
    return made


def to_the_north(values: Any, field: Array) -> Any:
    lat = field.content.coordinate("lat").tolist()
    made = np.empty(values.shape)
    for y in range(len(lat)):
        more, apart = change(np.moveaxis(values, 1, 0), lat, y, False)
        made[:, y] = more / (6371000 * np.deg2rad(apart))
    return made


SCALE = 1e6  # what changes per metre is little, and the harness compares numbers of about one


@st.composite
def globes(draw: st.DrawFn, variables: tuple[str, ...] = ("a",)) -> Array:
    """Small arrays, of which some reach the poles."""
    field = draw(small_arrays(variables, most=(2, 4, 4)))
    large = {v: SCALE * values for v, values in field.content.variables.items()}
    polar = draw(st.booleans()) and field.size["lat"] > 1
    lat = {"lat": np.linspace(-90, 90, field.size["lat"])} if polar else {}
    return changed(field, lat, large)


@given(globes(), st.sampled_from(["lat", "lon"]), st.data())
@MANY
def test_gradient_holds_every_law(field: Array, along: str, data: st.DataObject) -> None:
    made = to_the_north if along == "lat" else to_the_east

    def forward(given_: Plain) -> Any:
        return {"gradient": made(given_["field"]["a"], field)}

    box = Gradient(along=along)
    holds(Case(box, {"field": field}, forward, regular=True), REGISTRY, data)


@given(globes(("a", "b")), st.data())
@MANY
def test_vorticity_holds_every_law(field: Array, data: st.DataObject) -> None:
    lat = np.deg2rad(field.content.coordinate("lat"))[:, None]
    pole = np.abs(np.rad2deg(lat)) > 89.999

    def forward(given_: Plain) -> Any:
        u, v = given_["field"]["a"], given_["field"]["b"]
        shear = to_the_north(u * np.cos(lat), field) / np.where(pole, np.nan, np.cos(lat))
        return {"vorticity": to_the_east(v, field) - shear}

    box = Vorticity("a", "b")
    holds(Case(box, {"field": field}, forward, regular=True), REGISTRY, data)


@weakly_inverts(WindowMean, promises=[COMPLETE, PURE], **shipped.CELLS)
def without_seam(box: WindowMean, at: Filter, source: Array) -> Filter:
    """Wrong: does not go round."""
    lat, lon = at.span("lat"), at.span("lon")
    return at.to(
        time=at.span("time"),
        lat=lat and lat.grown(box.lat // 2, 0, source.size["lat"] - 1),
        lon=lon and lon.grown(box.lon // 2, 0, source.size["lon"] - 1),
    )


@weakly_inverts(WindowMean, promises=[COMPLETE, PURE], **shipped.CELLS)
def rows_for_columns(box: WindowMean, at: Filter, source: Array) -> Filter:
    """Wrong: takes the window's height for its width."""
    return shipped.around(WindowMean(box.lon, box.lat), at, source)


@verifies(WindowExtreme, needs=[COMPLETE], promises=[COMPLETE, PURE], **shipped.CELLS)
def first_that_attains(box: WindowExtreme, at: Any, seen: Any, source: Array) -> Any:
    """Wrong: one of those that attain the extreme, not all."""
    found = shipped.attains(box, at, seen, source)
    return found & (np.cumsum(found) == 1)


@weakly_inverts(WindowMedian, promises=[COMPLETE, PURE], **shipped.CELLS)
def whole_window(box: WindowMedian, at: Filter, source: Array) -> Filter:
    """Wrong: cells that could not change the median are in it."""
    return shipped.around(box, at, source)


@pytest.mark.parametrize(
    ("box", "statistic", "wrong"),
    [
        (WindowMean(1, 3), mean, without_seam),
        (WindowMean(1, 3), mean, rows_for_columns),
        (WindowExtreme(3, 3), max, first_that_attains),
        (WindowMedian(3, 3), median, whole_window),
    ],
)
def test_a_wrong_inverse_of_a_window_is_caught(box: Any, statistic: Any, wrong: Any) -> None:
    needed = tuple(w for w in REGISTRY.weak if w.box is WindowExtreme)
    caught(lambda field: window_case(box, field, statistic), Registry({}, needed, ()), wrong)


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
def test_what_cannot_be_made_is_refused_when_it_is_checked(
    box: str, params: dict[str, Any], said: str
) -> None:
    with pytest.raises(Refused, match=said):
        made = REGISTRY.boxes[box].from_params(params)
        made.attributes_of({"field": plain_array((1, 1, 1), ("a", "b")).attributes})
