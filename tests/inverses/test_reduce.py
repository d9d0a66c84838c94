"""Reductions make what plain loops make, and their inverses find the cells that count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.boxes.reduce import attains
from inverses.guarantees import EXACT
from pipelines.boxes.reduce import Reduce, ReduceExtreme
from pipelines.contents import held_array
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.filters import Filter
from tests.files import pressures
from tests.inverses import wrong
from tests.inverses.cases import Case, Plain, check, small_arrays
from tests.inverses.families import (
    DIMS,
    MANY,
    PATIENCE,
    cells,
    in_parts,
    params_of,
    proves_itself,
    traced,
)
from tests.inverses.wrong import REGISTRY

pytestmark = PATIENCE
RULES: dict[str, Callable[[list[float]], float]] = {
    "mean": lambda cells: sum(cells) / len(cells),
    "sum": sum,
    "max": max,
    "min": min,
}


def groups(shape: tuple[int, ...], over: set[str]) -> Iterator[tuple[tuple[int, ...], list[Any]]]:
    """Each place of what is made, with the places of its group in order."""
    found: dict[tuple[int, ...], list[Any]] = {}
    for place in np.ndindex(shape):
        kept = tuple(0 if d in over else i for d, i in zip(DIMS, place, strict=True))
        found.setdefault(kept, []).append(place)
    yield from found.items()


def reduced(cells: list[float], how: str) -> float:
    there = [c for c in cells if c == c]
    if not there:
        return np.nan
    if how.startswith("arg"):
        return float(cells.index(RULES[how[3:]](there)))
    return RULES[how](there)


def forward(box: Any) -> Callable[[Plain], Any]:
    over = {word.strip() for word in box.over.split(",")}

    def make(given: Plain) -> Any:
        made = {}
        for name, values in given["field"].items():
            shape = [1 if d in over else n for d, n in zip(DIMS, values.shape, strict=True)]
            made[name] = np.empty(shape)
            for place, members in groups(values.shape, over):
                made[name][place] = reduced([float(values[m]) for m in members], box.how)
        return made

    return make


@st.composite
def reductions(draw: st.DrawFn, kind: Any) -> Case:
    box = draw(params_of(kind))
    names = draw(st.sampled_from([("a",)] * 4 + [("a", "b")]))
    array = draw(small_arrays(names, most=(2, 2, 3)))
    return Case(box, {"field": array}, forward(box), regular=kind is Reduce)


WORLDS = {kind: reductions(kind) for kind in (Reduce, ReduceExtreme)}


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_a_reduction_holds_what_it_promises(
    kind: Any, data: st.DataObject
) -> None:
    check(data.draw(WORLDS[kind]), REGISTRY)


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_reductions_are_made_and_inverted_in_parts_of_any_shape(
    kind: Any, data: st.DataObject
) -> None:
    in_parts(data.draw(WORLDS[kind]), REGISTRY, data)


def first_place(box: Reduce, at: Filter, source: Array) -> Filter:
    """It forgets that dimensions were drawn together."""
    return at.only(*source.dims)


def whole_steps(box: Reduce, at: Filter, source: Array) -> Filter:
    """It takes all dimensions for drawn together but time."""
    return at.to(time=at.span("time") if "time" not in box.dims else None)


def above_the_mean(box: object, at: object, seen: wrong.Seen, source: object) -> np.ndarray:
    """It keeps what is high, not what is highest."""
    return np.asarray(seen["value"] >= np.nan_to_num(seen["value"]).mean())


def first_of_all(box: object, at: object, seen: wrong.Seen, source: object) -> np.ndarray:
    """It keeps one of those that attain the extreme."""
    found = attains(box, at, seen, source)
    _, first = np.unique(seen["owner"][found], return_index=True)
    return np.isin(np.arange(len(found)), np.flatnonzero(found)[first])


WRONG: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "forgets what was drawn together": (Reduce, "whole_group", {"function": first_place}),
    "takes too much": (Reduce, "whole_group", {"function": whole_steps}),
    "takes the group for pure": (ReduceExtreme, "whole_group", {"promises": EXACT}),
    "verifies nothing": (ReduceExtreme, "attains", {"function": wrong.everything_passes}),
    "verifies roughly": (ReduceExtreme, "attains", {"function": above_the_mean}),
    "drops equals": (ReduceExtreme, "attains", {"function": first_of_all}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_inverse_of_a_reduction_is_caught(case: str) -> None:
    kind, name, changed = WRONG[case]
    registry = wrong.registry_with(name, **changed)
    law = "missing|not behind it"
    wrong.assert_caught(lambda data: check(data.draw(WORLDS[kind]), registry), law)


def test_the_least_in_time_is_averaged_and_traced_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    field = pressures()
    field[:2, 2, 5] = 90_000
    boxes = """
  least: {box: reduce_extreme, inputs: {field: world}, params: {how: min}}
  mean: {box: reduce, inputs: {field: least}, params: {over: lon}}
"""
    answer = traced({"world": field}, boxes, "mean", "lat = 45", spark, tmp_path)
    row = field[:, 2].tolist()
    lowest = [min(step[x] for step in row) for x in range(field.shape[2])]
    expected = {(t, 2, x) for x, low in enumerate(lowest) for t in range(4) if row[t][x] == low}
    assert cells(answer, "world") == expected
    assert {(0, 2, 5), (1, 2, 5)} < expected
    assert answer.guarantee("world") == EXACT
    assert proves_itself(answer)


def test_a_reduced_dimension_keeps_one_place_in_the_middle() -> None:
    array = held_array("field", (), {"time": DAYS, "lat": LATS, "lon": LONS}, {}, None, ("lon",))
    grid = Reduce("time, lon").grid({"field": array})
    assert grid.coordinates["time"] == np.datetime64("2001-03-02")
    assert grid.coordinates["lon"] == 135
    assert (grid.shape, grid.circular) == ((1, 3, 1), ())
    assert Reduce("lat").grid({"field": array}).circular == ("lon",)


@pytest.mark.parametrize(
    ("lons", "middle"),
    [
        ([350.0, 355, 0, 5], 357.5),
        ([5.0, 0, 355, 350], -2.5),
        ([-180.0, -90, 0, 90], -45),
        ([0.0, 180], 90),
        ([180.0, 0], 90),
    ],
)
@pytest.mark.parametrize("kind", [Reduce, ReduceExtreme])
def test_the_middle_of_longitudes_is_among_them_even_across_the_seam(
    kind: Any, lons: list[float], middle: float
) -> None:
    places = {"time": DAYS, "lat": LATS, "lon": np.array(lons)}
    grid = kind("lon").grid({"field": held_array("field", (), places, {})})
    assert grid.coordinates["lon"].tolist() == [middle]


DAYS = np.array(["2001-03-01", "2001-03-02", "2001-03-03"], "datetime64[ns]")
LATS, LONS = np.array([45.0, 0.0, -45.0]), np.arange(4) * 90.0


@pytest.mark.parametrize(
    ("kind", "given", "saying"),
    [
        (Reduce, {"over": "tme"}, 'no dimension "tme" for box "reduce"; did you mean "time"'),
        (Reduce, {"over": " , "}, '"reduce" needs a dimension; name some of time, lat, lon'),
        (Reduce, {"how": "mode"}, 'no way "mode" for box "reduce"'),
        (Reduce, {"how": "max"}, 'for max take the box "reduce_extreme"'),
        (ReduceExtreme, {"how": "median"}, 'no way "median"'),
    ],
)
def test_what_cannot_be_reduced_is_refused(kind: Any, given: Any, saying: str) -> None:
    with pytest.raises(Refused, match=saying):
        kind.from_params(given)
