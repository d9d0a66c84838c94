"""Parts of arrays are what walking from place to place finds, and so are the cells behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import cftime
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.guarantees import EXACT
from pipelines.boxes.select import Select, Subset
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.filters import Filter
from pipelines.here import Here
from pipelines.moments import between
from tests.inverses import wrong
from tests.inverses.cases import Case, Plain, check, small_arrays
from tests.inverses.families import MANY, PATIENCE, cells, in_parts, traced
from tests.inverses.grids import changed, plain_array
from tests.inverses.wrong import REGISTRY

pytestmark = PATIENCE
SMALL = (2, 3, 4)
LATS = st.sampled_from([(-90, 90), (-60, 30), (-20, 90)])
LONS = st.sampled_from([(-180, 180), (0, 200), (300, 90), (-30, 20), (170, 0)])
TIMES = st.sampled_from([("", ""), ("", "2000-01-01T00"), ("2000-01-01", "2000")])


@st.composite
def subsets(draw: st.DrawFn) -> Case:
    field = draw(small_arrays(most=SMALL))
    lat, lon, time = draw(LATS), draw(LONS), draw(TIMES)
    rows = [y for y, n in enumerate(_at(field, "lat")) if lat[0] <= n <= lat[1]]
    columns = _eastward(field, *lon)
    steps = [0] if time[1].endswith("T00") else list(range(field.size["time"]))
    assume(rows and columns)

    def forward(given_: Plain) -> Any:
        return {v: a[np.ix_(steps, rows, columns)] for v, a in given_["field"].items()}

    return Case(Subset(*map(float, (*lat, *lon)), *time), {"field": field}, forward)


def _at(field: Array, dim: str) -> list[float]:
    found: list[float] = field.content.coordinate(dim).tolist()
    return found


def _eastward(field: Array, west: float, east: float) -> list[int]:
    """The columns from west to east, walking a degree at a time."""
    walked = [d % 360 for d in range(int(west), int(east) + (360 if east <= west else 0) + 1)]
    whole = len(walked) > 360
    size = field.size["lon"]
    held = [x for x, n in enumerate(_at(field, "lon")) if whole or _walked(n, walked)]
    if not field.circular or len(held) == size:
        return held
    starts = [x for x in held if (x - 1) % size not in held]
    return [(x + starts[0]) % size for x in range(size) if (x + starts[0]) % size in held]


def _walked(lon: float, walked: list[int]) -> bool:
    return lon % 360 in walked or (int(lon) in walked and int(lon) + 1 in walked)


@st.composite
def selected(draw: st.DrawFn) -> Case:
    field = draw(small_arrays(("a", "b"), most=(2, 2, 4)))
    names = draw(st.sampled_from(["", "b", " b , a"]))
    t, y, x = draw(st.tuples(*[st.integers(1, 3)] * 3))
    skip = draw(st.integers(0, field.size["time"] - 1))

    def forward(given_: Plain) -> Any:
        return {v: a[skip:][::t, ::y, ::x] for v, a in given_["field"].items()}

    case = Case(Select(names, t, y, x, skip), {"field": field}, forward)
    assert case.made.variables == {"": ["a", "b"], "b": ["b"]}.get(names, ["b", "a"])
    return case


WORLDS: dict[Any, st.SearchStrategy[Case]] = {Subset: subsets(), Select: selected()}


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_a_part_finds_what_is_promised(kind: Any, data: st.DataObject) -> None:
    check(data.draw(WORLDS[kind]), REGISTRY, 4)


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_a_part_can_be_made_and_inverted_in_parts(kind: Any, data: st.DataObject) -> None:
    in_parts(data.draw(WORLDS[kind]), REGISTRY, data)


def same_index(box: Any, at: Filter, source: Array) -> Filter:
    return at.only(*source.dims)


@pytest.mark.parametrize("kind", WORLDS)
def test_a_wrong_inverse_of_a_part_is_caught(kind: Any) -> None:
    registry = wrong.registry_with("same_cell", function=same_index)
    law = "missing|not behind it"
    wrong.assert_caught(lambda data: check(data.draw(WORLDS[kind]), registry), law)


def test_a_part_over_the_seam_is_traced_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    field = np.arange(96, dtype=np.float32).reshape(2, 6, 8)
    boxes = """
  atlantic: {box: subset, inputs: {field: air},
             params: {west: -90, east: 45, start: 2001-03-01T06}, keep: false}
  thin: {box: select, inputs: {field: atlantic}, params: {lon: 3}}
"""
    answer = traced({"air": field}, boxes, "thin", "lat = 18", spark, tmp_path)
    assert cells(answer, "air") == {(1, 2, 6), (1, 2, 1)}
    assert answer.guarantee("air") == EXACT


def test_what_is_found_is_told_within_its_coordinates_over_the_seam_too(tmp_path: Path) -> None:
    boxes = """
  atlantic: {box: subset, inputs: {field: air}, params: {west: -90, east: 45}}
  smooth: {box: window_mean, inputs: {field: atlantic}, params: {lat: 1}}
"""
    field = np.arange(96, dtype=np.float32).reshape(2, 6, 8)
    here = cast(SparkSession, Here(2))
    asked = "lon = 315 and lat = 18 and time = '2001-03-01'"
    answer = traced({"air": field}, boxes, "smooth", asked, here, tmp_path)
    assert set(answer.cells("atlantic")["lon"].to_pylist()) == {270, 315, 0}
    told = "time = 2001-03-01T00:00 and lat = 18 and lon 0..315"
    assert answer.lineage["atlantic"].text() == told


def test_parts_say_whether_they_still_go_round() -> None:
    field = plain_array((2, 4, 12), circular=True)
    said = {
        Select(lon=2): True,
        Select(lon=5): False,
        Subset(): True,
        Subset(west=0, east=200): False,
    }
    assert {box: bool(box.grid({"field": field}).circular) for box in said} == said


TENTHS = np.arange(10) * 0.1
PARTS = {
    "south": (Subset(south=45.1, north=45.4), "lat", 45 + TENTHS, [1, 2, 3, 4]),
    "north": (Subset(south=-45.4, north=-45.1), "lat", -45 - TENTHS, [1, 2, 3, 4]),
    "west": (Subset(west=0.3, east=0.6), "lon", TENTHS, [3, 4, 5, 6]),
    "east": (Subset(west=359.1, east=359.7), "lon", 359 + TENTHS, [1, 2, 3, 4, 5, 6, 7]),
}


@pytest.mark.parametrize("side", PARTS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_part_has_the_cells_at_its_ends_however_they_are_rounded(side: str, kind: Any) -> None:
    box, dim, places, expected = PARTS[side]
    field = changed(plain_array((1, 10, 10)), {dim: places.astype(kind)})
    assert box.picked(field)[dim].tolist() == expected


def test_what_is_thinned_beyond_its_size_has_its_first_places() -> None:
    field, far = plain_array((2, 3, 4)), 10**30
    found = Select(time=far, lat=far, lon=2).picked(field)
    assert {d: places.tolist() for d, places in found.items()} == {
        "time": [0],
        "lat": [0],
        "lon": [0, 2],
    }
    with pytest.raises(Refused, match='nothing of "field" is left along time'):
        Select(skip=far).grid({"field": field})


def test_a_part_with_nothing_in_it_is_refused() -> None:
    with pytest.raises(Refused, match=r'nothing of "field" is left along lat, which runs from 60'):
        Subset(south=80.0).grid({"field": plain_array((1, 3, 3))})


def test_times_of_other_calendars_are_compared_too() -> None:
    days = np.array([cftime.Datetime360Day(2000, 2, d) for d in (28, 29, 30)])
    assert between(days, "2000-02-29", "", "subset").tolist() == [1, 2]
    assert between(days, "", "2000-02-30T00", "subset").tolist() == [0, 1, 2]


@pytest.mark.parametrize("limits", [{"start": "2000"}, {"end": "2000"}])
def test_times_that_are_no_dates_lie_between_none(limits: dict[str, str]) -> None:
    field = changed(plain_array((2, 1, 1)), {"time": np.arange(2.0)})
    with pytest.raises(Refused, match="the times are float64 numbers, which lie in no part"):
        Subset(**limits).grid({"field": field})
    assert Subset().grid({"field": field}).shape == (2, 1, 1)


@pytest.mark.parametrize(
    ("box", "params", "said"),
    [
        ("subset", {"south": 10, "north": -10}, "south is 10, above north"),
        ("subset", {"start": "today"}, "is no time; a time is written like"),
        ("select", {"variables": "a, c"}, 'no variable "c"'),
    ],
)
def test_parts_that_cannot_be_are_refused(box: str, params: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        made = REGISTRY.boxes[box].from_params(params)
        made.attributes_of({"field": plain_array((1, 1, 1), ("a", "b")).attributes})
