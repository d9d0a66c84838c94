"""Other grids are those that looking at every pair of cells makes, and so are the cells behind."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.boxes.regrid import covered, weighed
from inverses.guarantees import EXACT
from pipelines.boxes.regrid import Coarsen, Regrid
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.filters import Filter
from pipelines.spans import Span
from tests.inverses import wrong
from tests.inverses.cases import Case, Plain, check, small_arrays
from tests.inverses.families import MANY, PATIENCE, cells, in_parts, traced
from tests.inverses.grids import changed, plain_array
from tests.inverses.wrong import REGISTRY

pytestmark = PATIENCE
FIELDS = small_arrays(("a",), most=(2, 3, 4))


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


def regridded(field: Array, resolution: float, method: str) -> Case:
    box = Regrid(resolution, method)
    weights = [weights_for(field, d, box) for d in ("lat", "lon")]

    def forward(given_: Plain) -> Any:
        return {v: mixed(values, *weights) for v, values in given_["field"].items()}

    return Case(box, {"field": field}, forward)


def coarsened(field: Array, factors: tuple[int, int, int]) -> Case:
    def forward(given_: Plain) -> Any:
        return {v: _coarser(values, factors) for v, values in given_["field"].items()}

    return Case(Coarsen(*factors), {"field": field}, forward)


def _coarser(values: Any, factors: tuple[int, int, int]) -> Any:
    shape = [-(-n // f) for n, f in zip(values.shape, factors, strict=True)]
    made = np.full(shape, np.nan)
    for cell in np.ndindex(*shape):
        inside = [slice(n * f, (n + 1) * f) for n, f in zip(cell, factors, strict=True)]
        there = [v for v in values[tuple(inside)].ravel().tolist() if v == v]
        made[cell] = sum(there) / len(there) if there else np.nan
    return made


WORLDS: dict[Any, st.SearchStrategy[Case]] = {
    Regrid: st.builds(
        regridded,
        FIELDS,
        st.sampled_from([25.0, 45.0, 70.0, 180.0]),
        st.sampled_from(["nearest", "bilinear", "conservative"]),
    ),
    Coarsen: st.builds(coarsened, FIELDS, st.tuples(*[st.integers(1, 3)] * 3)),
}


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_a_grid_finds_what_is_promised(kind: Any, data: st.DataObject) -> None:
    check(data.draw(WORLDS[kind]), REGISTRY, 4)


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_a_grid_can_be_made_and_inverted_in_parts(kind: Any, data: st.DataObject) -> None:
    in_parts(data.draw(WORLDS[kind]), REGISTRY, data)


def from_the_end(box: Coarsen, at: Filter, source: Array) -> Filter:
    lon, last = at.spans["lon"], source.size["lon"] - 1
    back = Span(last - (lon.high + 1) * box.lon + 1, last - lon.low * box.lon)
    return covered(box, at.only("time", "lat"), source) & at.to(lon=back)


def only_nearest(box: Regrid, at: Filter, source: Array) -> Filter:
    return weighed(Regrid(box.resolution, "nearest"), at, source)


def one_more(box: Regrid, at: Filter, source: Array) -> Filter:
    found = weighed(box, at, source)
    wide = found.spans["lat"].grown(1, 0, source.size["lat"] - 1)
    return Filter(found.owner, {**found.spans, "lat": wide})


WRONG: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "counts from the end": (Coarsen, "covered", {"function": from_the_end}),
    "forgets all but the nearest": (Regrid, "weighed", {"function": only_nearest}),
    "takes a row more": (Regrid, "weighed", {"function": one_more}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_inverse_of_a_grid_is_caught(case: str) -> None:
    kind, name, made_wrong = WRONG[case]
    registry = wrong.registry_with(name, **made_wrong)
    law = "missing|not behind it"
    wrong.assert_caught(lambda data: check(data.draw(WORLDS[kind]), registry), law)


def test_a_coarse_cell_of_a_finer_grid_is_traced_over_the_seam_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    field = np.arange(96, dtype=np.float32).reshape(2, 6, 8)
    boxes = """
  fine: {box: regrid, inputs: {field: air}, params: {resolution: 22.5}, keep: false}
  coarse: {box: coarsen, inputs: {field: fine}, params: {lat: 1, lon: 2}}
"""
    where = "time > '2001-03-01T03:00' and lat > 70 and lon < 10"
    answer = traced({"air": field}, boxes, "coarse", where, spark, tmp_path)
    found = cells(answer, "air")
    # The first coarse column lies about the first old one, between its neighbours.
    assert {x for _, _, x in found} == {7, 0, 1}
    assert {(t, y) for t, y, _ in found} == {(1, 0), (1, 1)}
    assert answer.guarantee("air") == EXACT


def test_new_grids_say_whether_they_still_go_round() -> None:
    field = plain_array((2, 4, 12), circular=True)
    said = {
        Coarsen(1, 1, 3): True,
        Coarsen(1, 1, 5): False,
        Regrid(60.0): True,
        Regrid(180.0): False,
    }
    assert {box: bool(box.grid({"field": field}).circular) for box in said} == said


def test_no_new_cell_covers_more_than_there_is() -> None:
    field, long = plain_array((2, 3, 4), circular=True), 10**30
    box, whole = Coarsen(long, long, long), Coarsen(2, 3, 4)
    grid, once = box.grid({"field": field}), dict.fromkeys(field.dims, (0, 1))
    assert (grid.shape, grid.circular) == ((1, 1, 1), ())
    assert box.block({"field": field}, once) == whole.block({"field": field}, once)
    assert box.covered(field, "lon")[1].tolist() == [3]


def test_a_much_finer_grid_has_chunks_of_no_more_than_a_handy_size() -> None:
    grid = Regrid(0.1).grid({"field": plain_array((24, 72, 144), circular=True)})
    assert grid.shape == (24, 1217, 3600)
    assert np.prod(grid.chunks) <= 2**22


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


@pytest.mark.parametrize(
    ("box", "params", "said"),
    [
        ("regrid", {"method": "cubic"}, 'no method "cubic"'),
        ("regrid", {"resolution": 0.0}, "at least 0.05"),
        ("coarsen", {"lat": 0}, "at least 1"),
    ],
)
def test_grids_that_cannot_be_are_refused(box: str, params: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        REGISTRY.boxes[box].from_params(params)


def test_a_grid_whose_rows_are_in_no_order_is_refused() -> None:
    field = changed(plain_array((1, 3, 3)), {"lat": np.array([0.0, 20.0, 10.0])})
    with pytest.raises(Refused, match='the lat of "field" are not in order'):
        Regrid().grid({"field": field})
