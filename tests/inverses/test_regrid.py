"""Regridding, coarsening and subsets do what they say, and so do their inverses."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import cftime
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inverses.boxes import regrid as shipped
from inverses.registry import AGGREGATE, Registry, weakly_inverts
from pipelines.boxes import regrid
from pipelines.boxes.regrid import Coarsen, Regrid, Select, Subset
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.filters import Filter
from pipelines.moments import between
from tests.inverses.cases import Case, small_arrays
from tests.inverses.grids import MANY, PATIENCE, caught, changed, holds, plain_array

pytestmark = PATIENCE
REGISTRY = Registry.from_modules([regrid, shipped])
Plain = Mapping[str, Any]
SMALL = (2, 4, 4)


def mixed(values: Any, lat: Any, lon: Any) -> Any:
    """The means of what is there, by the weights that rows and columns have for each new cell."""
    there = ~np.isnan(values)
    total = np.tensordot(np.where(there, values, 0), lat, (1, 1))
    weight = np.tensordot(there.astype(float), lat, (1, 1))
    total, weight = (np.tensordot(each, lon, (1, 1)) for each in (total, weight))
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1), np.nan)


def cells_about(places: list[float], dim: str) -> list[tuple[float, float]]:
    """The ends of each old cell, the lesser first."""
    if len(places) == 1:
        return [(places[0], places[0])]
    halves = [(b - a) / 2 for a, b in pairwise(places)]
    before, after = [halves[0], *halves], [*halves, halves[-1]]
    ends = [(p - b, p + a) for p, b, a in zip(places, before, after, strict=True)]
    limit = 90 if dim == "lat" else 1e9
    return [(max(min(e), -limit), min(max(e), limit)) for e in ends]


def new_cells(places: list[float], dim: str, resolution: float) -> list[tuple[float, float]]:
    ends = cells_about(places, dim)
    low, high = min(a for a, _ in ends), max(b for _, b in ends)
    count = max(1, round((high - low) / resolution))
    width = (high - low) / count
    made = [(low + n * width, low + (n + 1) * width) for n in range(count)]
    return made[::-1] if places[-1] < places[0] else made


def weights_for(field: Array, dim: str, box: Regrid) -> Any:
    """For each new cell, what each old one weighs, found by looking at every pair."""
    places = field.content.coordinate(dim).tolist()
    round_ = dim in field.circular and len(places) > 2
    old, rows = cells_about(places, dim), []
    for low, high in new_cells(places, dim, box.resolution):
        at = (low + high) / 2
        if box.method == "conservative":
            rows.append([_shared(o, (low, high), dim) for o in old])
        else:
            rows.append((_nearest if box.method == "nearest" else _linear)(places, at, round_))
    return np.array(rows)


def _shared(old: tuple[float, float], new: tuple[float, float], dim: str) -> float:
    if old[0] == old[1]:
        return 1.0
    low, high = max(old[0], new[0]), min(old[1], new[1])
    if high - low < 1e-7:
        return 0.0
    return np.sin(np.deg2rad(high)) - np.sin(np.deg2rad(low)) if dim == "lat" else high - low


def _apart(place: float, at: float, round_: bool) -> float:
    turns = (0, 360, -360) if round_ else (0,)
    return min(abs(place + t - at) for t in turns)


def _nearest(places: list[float], at: float, round_: bool) -> list[float]:
    away = [round(_apart(p, at, round_), 7) for p in places]
    tied = [n for n, each in enumerate(away) if each == min(away)]
    # Of two that are as near, the one before; before the first comes the last of a circle.
    first = tied[-1] if tied == [0, len(places) - 1] and round_ and len(places) > 2 else tied[0]
    return [float(n == first) for n in range(len(places))]


def _linear(places: list[float], at: float, round_: bool) -> list[float]:
    found = [0.0] * len(places)
    around = sorted((_apart(p, at, round_), n) for n, p in enumerate(places))
    inside = round_ or min(places) < at < max(places)
    if len(places) == 1 or not inside or around[0][0] < 1e-7:
        found[around[0][1]] = 1.0
        return found
    size = len(places)
    for n in range(size if round_ else size - 1):
        one, other = places[n], places[(n + 1) % size]
        step = abs(other - one) if n + 1 < size else 360 - abs(places[-1] - places[0])
        near, far = _apart(one, at, round_), _apart(other, at, round_)
        if abs(near + far - step) < 1e-7:
            found[n], found[(n + 1) % size] = far / step, near / step
    return found


@given(
    small_arrays(("a",), most=SMALL),
    st.sampled_from([15.0, 25.0, 45.0, 70.0, 180.0]),
    st.sampled_from(["nearest", "bilinear", "conservative"]),
    st.data(),
)
@MANY
def test_regrid_holds_every_law(
    field: Array, resolution: float, method: str, data: st.DataObject
) -> None:
    box = Regrid(max(resolution, 8 * resolution / field.size["lon"] ** 2), method)
    weights = [weights_for(field, d, box) for d in ("lat", "lon")]

    def forward(given_: Plain) -> Any:
        return {v: mixed(values, *weights) for v, values in given_["field"].items()}

    holds(Case(box, {"field": field}, forward), REGISTRY, data)


@given(small_arrays(("a",), most=SMALL), st.tuples(*[st.integers(1, 3)] * 3), st.data())
@MANY
def test_coarsen_holds_every_law(
    field: Array, factors: tuple[int, int, int], data: st.DataObject
) -> None:
    def forward(given_: Plain) -> Any:
        return {v: _coarser(values, factors) for v, values in given_["field"].items()}

    holds(Case(Coarsen(*factors), {"field": field}, forward), REGISTRY, data)


def _coarser(values: Any, factors: tuple[int, int, int]) -> Any:
    shape = [-(-n // f) for n, f in zip(values.shape, factors, strict=True)]
    made = np.full(shape, np.nan)
    for cell in np.ndindex(*shape):
        inside = [slice(n * f, (n + 1) * f) for n, f in zip(cell, factors, strict=True)]
        there = [v for v in values[tuple(inside)].ravel().tolist() if v == v]
        made[cell] = sum(there) / len(there) if there else np.nan
    return made


@given(
    small_arrays(("a", "b"), most=SMALL),
    st.sampled_from([(-90, 90), (-60, 30), (-20, 90)]),
    st.sampled_from([(-180, 180), (0, 200), (300, 90), (-30, 20), (170, 0)]),
    st.sampled_from([("", ""), ("", "2000-01-01T00"), ("2000-01-01", "2000")]),
    st.data(),
)
@MANY
def test_subset_holds_every_law(
    field: Array, lat: Any, lon: Any, time: Any, data: st.DataObject
) -> None:
    rows = [y for y, n in enumerate(_at(field, "lat")) if lat[0] <= n <= lat[1]]
    columns = _eastward(field, *lon)
    steps = [0] if time[1].endswith("T00") else list(range(field.size["time"]))

    def forward(given_: Plain) -> Any:
        return {v: a[np.ix_(steps, rows, columns)] for v, a in given_["field"].items()}

    box = Subset(*map(float, (*lat, *lon)), *time)
    if not rows or not columns:
        with pytest.raises(Refused, match="nothing of"):
            box.grid({"field": field})
        return
    holds(Case(box, {"field": field}, forward), REGISTRY, data)


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


@given(small_arrays(("a", "b"), most=SMALL), st.tuples(*[st.integers(1, 3)] * 3), st.data())
@MANY
def test_select_holds_every_law(
    field: Array, steps: tuple[int, int, int], data: st.DataObject
) -> None:
    names = data.draw(st.sampled_from(["", "b", " b , a"]))
    skip = data.draw(st.integers(0, field.size["time"] - 1))

    def forward(given_: Plain) -> Any:
        t, y, x = steps
        return {v: a[skip:][::t, ::y, ::x] for v, a in given_["field"].items()}

    case = Case(Select(names, *steps, skip), {"field": field}, forward)
    assert [a.name for a in case.made.attributes[1:]] == {"": ["a", "b"], "b": ["b"]}.get(
        names, ["b", "a"]
    )
    holds(case, REGISTRY, data)


@weakly_inverts(Coarsen, nature=AGGREGATE, **shipped.CELLS)
def past_the_edge(box: Coarsen, at: Filter, source: Array) -> Filter:
    """Wrong: as many cells from the last one back."""
    lon, last = at.spans["lon"], source.size["lon"] - 1
    whole = shipped.covered(box, at.only("time", "lat"), source)
    return whole & at.to(
        lon=type(lon)(last - (lon.high + 1) * box.lon + 1, last - lon.low * box.lon)
    )


@weakly_inverts(Regrid, nature=AGGREGATE, **shipped.CELLS)
def only_nearest(box: Regrid, at: Filter, source: Array) -> Filter:
    """Wrong: forgets all but the nearest cell."""
    return shipped.weighed(Regrid(box.resolution, "nearest"), at, source)


def test_a_wrong_inverse_of_coarsen_is_caught() -> None:
    def case_of(field: Array) -> Case:
        def forward(given_: Plain) -> Any:
            return {v: _coarser(values, (1, 2, 2)) for v, values in given_["field"].items()}

        return Case(Coarsen(), {"field": field}, forward)

    caught(case_of, Registry({}, (), ()), past_the_edge)


def test_a_wrong_inverse_of_regrid_is_caught() -> None:
    box = Regrid(30.0, "bilinear")

    def case_of(field: Array) -> Case:
        weights = [weights_for(field, d, box) for d in ("lat", "lon")]

        def forward(given_: Plain) -> Any:
            return {v: mixed(values, *weights) for v, values in given_["field"].items()}

        return Case(box, {"field": field}, forward)

    caught(case_of, Registry({}, (), ()), only_nearest)


def test_new_grids_say_whether_they_still_go_round() -> None:
    field = plain_array((2, 4, 12), circular=True)
    said = {
        Coarsen(1, 1, 3): True,
        Coarsen(1, 1, 5): False,
        Regrid(60.0): True,
        Regrid(180.0): False,
        Select(lon=2): True,
        Select(lon=5): False,
        Subset(): True,
        Subset(west=0, east=200): False,
    }
    assert {box: bool(box.grid({"field": field}).circular) for box in said} == said


def test_a_conservative_mean_keeps_the_mean_of_the_globe() -> None:
    field = changed(plain_array((1, 18, 36), circular=True), {"lat": np.arange(85, -90, -10)})
    made = Regrid(22.5, "conservative")
    coarse = made.grid({"field": field}).coordinates
    whole = {d: (0, len(c)) for d, c in coarse.items()}
    values = made.block({"field": field}, whole)["a"][0].mean(axis=1)
    edges = np.linspace(90, -90, 9)
    bands = np.sin(np.deg2rad(edges[:-1])) - np.sin(np.deg2rad(edges[1:]))
    old = np.sin(np.deg2rad(np.arange(90, -90, -10))) - np.sin(np.deg2rad(np.arange(80, -91, -10)))
    rows = field.content.variables["a"][0].mean(axis=1)
    assert (values * bands).sum() == pytest.approx((rows * old).sum())


def test_times_of_other_calendars_are_compared_too() -> None:
    days = np.array([cftime.Datetime360Day(2000, 2, d) for d in (28, 29, 30)])
    assert between(days, "2000-02-29", "", "subset").tolist() == [1, 2]
    assert between(days, "", "2000-02-30T00", "subset").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("box", "params", "said"),
    [
        ("regrid", {"method": "cubic"}, 'no method "cubic"'),
        ("regrid", {"resolution": 0.0}, "at least 0.01"),
        ("coarsen", {"lat": 0}, "at least 1"),
        ("subset", {"south": 10, "north": -10}, "south is 10, above north"),
        ("subset", {"start": "today"}, "is no time; a time is written like"),
        ("select", {"variables": "a, c"}, 'no variable "c"'),
    ],
)
def test_what_cannot_be_made_is_refused_when_it_is_checked(
    box: str, params: dict[str, Any], said: str
) -> None:
    with pytest.raises(Refused, match=said):
        made = REGISTRY.boxes[box].from_params(params)
        made.attributes_of({"field": plain_array((1, 1, 1), ("a", "b")).attributes})
