"""Regions, composites and mosaics are those of plain loops, and so are the cells behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.boxes.landcover import region, taken
from inverses.guarantees import EXACT
from inverses.trials import Items
from pipelines.boxes.landcover import Composite, FindRegions, Label, Mosaic, MosaicOfThree
from pipelines.contents import held_array
from pipelines.datasets import Array, Attribute, Quantity
from pipelines.errors import Refused
from pipelines.filters import Filter
from pipelines.spans import Span
from tests.inverses import wrong
from tests.inverses.cases import Case, Plain, all_is_stated, check, small_arrays
from tests.inverses.families import (
    MANY,
    PATIENCE,
    cells,
    in_parts,
    params_of,
    proves_itself,
    traced,
)
from tests.inverses.wrong import REGISTRY
from tests.oracles.regions import numbers, with_edge

pytestmark = PATIENCE
PORTS = ("first", "second", "third")


def chosen_cells(box: Label, field: np.ndarray) -> np.ndarray:
    return field > box.threshold if box.side == "above" else field < box.threshold


def labels(box: Label, array: Array) -> Callable[[Plain], Any]:
    name, wraps = box.variable or array.variables[0], "lon" in array.circular

    def make(given: Plain) -> Any:
        within = chosen_cells(box, given["field"][name])
        return {"label": np.array([numbers(w, box.neighbours, wraps) for w in within])}

    return make


def region_behind(box: Label, array: Array) -> Callable[[Plain, str, Any], Items]:
    name, wraps = box.variable or array.variables[0], "lon" in array.circular

    def behind(given: Plain, port: str, datum: Any) -> Items:
        _, t, y, x = datum
        within = chosen_cells(box, given["field"][name])[t]
        found = with_edge(within, (y, x), box.neighbours, wraps)
        return {(name, t, *cell) for cell in found}

    return behind


@st.composite
def labelled(draw: st.DrawFn, kind: Any) -> Case:
    box = draw(params_of(kind))
    values = st.sampled_from([-1.0, 1.0, np.nan])
    array = draw(small_arrays(("a", "b"), values=values, most=(2, 3, 4)))
    truth = region_behind(box, array)
    return Case(box, {"field": array}, labels(box, array), truth=truth)


def composed(box: Composite) -> Callable[[Plain], Any]:
    def make(given: Plain) -> Any:
        made = {}
        for name, values in given["field"].items():
            made[name] = np.full((1, *values.shape[1:]), np.nan)
            for t in range(len(values)) if box.how == "latest" else reversed(range(len(values))):
                for y, x in np.ndindex(values.shape[1:]):
                    if values[t, y, x] == values[t, y, x]:
                        made[name][0, y, x] = values[t, y, x]
        return made

    return make


@st.composite
def composites(draw: st.DrawFn) -> Case:
    box = draw(params_of(Composite))
    names = draw(st.sampled_from([("a",)] * 4 + [("a", "b")]))
    return Case(box, {"field": draw(small_arrays(names, most=(4, 1, 2)))}, composed(box))


def laid_over(box: Mosaic) -> Callable[[Plain], Any]:
    rules: dict[str, Callable[[list[float]], float]] = {
        "first": lambda there: there[0],
        "latest": lambda there: there[-1],
        "max": max,
        "mean": lambda there: sum(there) / len(there),
    }

    def make(given: Plain) -> Any:
        rasters = [given[port] for port in PORTS if port in given]
        made = {}
        for name in set.intersection(*(set(r) for r in rasters)):
            made[name] = np.full(rasters[0][name].shape, np.nan)
            for place in np.ndindex(made[name].shape):
                there = [float(r[name][place]) for r in rasters if not np.isnan(r[name][place])]
                if there:
                    made[name][place] = rules[box.how](there)
        return made

    return make


@st.composite
def mosaics(draw: st.DrawFn, kind: Any) -> Case:
    box = draw(params_of(kind))
    shape = draw(st.tuples(*[st.integers(1, n) for n in (1, 2, 2)]))
    round_ = draw(st.booleans())
    several = st.permutations([("a",), ("a", "b"), ("b", "a")])
    names = draw(st.one_of(*[st.just([("a",)] * 3)] * 3, several))
    given = {
        port.name: draw(small_arrays(which, shape, circular=round_))
        for port, which in zip(box.takes, names, strict=False)
    }
    return Case(box, given, laid_over(box))


WORLDS: dict[Any, st.SearchStrategy[Case]] = {
    Label: labelled(Label),
    FindRegions: labelled(FindRegions),
    Composite: composites(),
    Mosaic: mosaics(Mosaic),
    MosaicOfThree: mosaics(MosaicOfThree),
}


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_land_cover_holds_what_it_promises(kind: Any, data: st.DataObject) -> None:
    check(data.draw(WORLDS[kind]), REGISTRY)


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_land_cover_is_made_and_inverted_in_parts_of_any_shape(
    kind: Any, data: st.DataObject
) -> None:
    in_parts(data.draw(WORLDS[kind]), REGISTRY, data)


def own_row(box: Label, at: Filter, source: Array) -> Filter:
    """It takes regions for rows."""
    return at.only("time", "lat")


def not_around(box: Label, at: Any, seen: wrong.Seen, source: Array) -> np.ndarray:
    """It forgets that the earth is round."""
    return region(box, at, seen, replace(source, circular=()))


def all_within(box: Label, at: Any, seen: wrong.Seen, source: Array) -> np.ndarray:
    """It takes all regions for one."""
    own = (seen["lat"] == at["lat"]) & (seen["lon"] == at["lon"])
    return np.asarray(box.within(seen["value"]) | own)


def last_step(box: Composite, at: Filter, source: Array) -> Filter:
    """It takes the latest for the last."""
    end = np.full(len(at), source.shape[0] - 1)
    return at.to(time=Span(end, end), lat=at.span("lat"), lon=at.span("lon"))


def all_there(box: object, at: Any, seen: wrong.Seen, *around: object) -> np.ndarray:
    """It takes all that have a value for taken."""
    return ~np.isnan(seen["value"])


def of_others(box: Any, at: Any, seen: wrong.Seen, port: str, inputs: Any) -> np.ndarray:
    """It takes one raster for another."""
    return taken(box, at, seen, "first", {**inputs, "first": inputs[port]})


def no_edge(box: Label, at: Any, seen: wrong.Seen, source: Array) -> np.ndarray:
    """It forgets what ends a region."""
    return region(box, at, seen, source) & box.within(seen["value"])


def test_a_statement_that_forgets_what_ends_a_region_is_caught() -> None:
    def narrow(data: st.DataObject) -> None:
        case = data.draw(labelled(Label))
        made = case.made_plain["label"]

        def behind(given: Plain, port: str, datum: Any) -> Items:
            mine = made[datum[1:]]
            name, alone = case.box.of(case.inputs["field"]), [datum[1:]]
            region = [c for c in np.argwhere(made == mine).tolist() if c[0] == datum[1]]
            return {(name, *cell) for cell in (region if mine else alone)}

        all_is_stated(replace(case, truth=behind), "field", [case.made.attribute("label")])

    wrong.assert_caught(narrow, "can change what is stated")


WRONG: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "takes regions for rows": (Label, "whole_step", {"function": own_row}),
    "takes the step for pure": (Label, "whole_step", {"promises": EXACT}),
    "forgets the seam": (Label, "region", {"function": not_around}),
    "forgets what ends a region": (Label, "region", {"function": no_edge}),
    "takes all regions for one": (Label, "region", {"function": all_within}),
    "takes regions for rows, and tells of them": (FindRegions, "whole_step", {"function": own_row}),
    "forgets what ends a region it tells of": (FindRegions, "region", {"function": no_edge}),
    "takes all regions it tells of for one": (FindRegions, "region", {"function": all_within}),
    "takes the latest for the last": (Composite, "all_steps", {"function": last_step}),
    "takes all steps": (Composite, "on_top", {"function": all_there}),
    "takes both rasters": (Mosaic, "taken", {"function": all_there}),
    "takes one raster for another": (MosaicOfThree, "taken", {"function": of_others}),
    "takes the place for pure": (Mosaic, "its_place", {"promises": EXACT}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_inverse_of_land_cover_is_caught(case: str) -> None:
    kind, name, changed = WRONG[case]
    registry = wrong.registry_with(name, **changed)
    law = "missing|not behind it"
    wrong.assert_caught(lambda data: check(data.draw(WORLDS[kind]), registry), law)


def test_a_region_of_a_mosaic_is_traced_to_the_rasters_it_was_laid_of_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    over, under = np.full((2, 6, 8), np.nan, np.float32), np.zeros((2, 6, 8), np.float32)
    over[1, 2, 7], under[1, 2, 0], under[1, 3, 1], under[0, 2, 7] = 5, 6, 7, 8
    boxes = """
  both: {box: mosaic, inputs: {first: over, second: under}, keep: false}
  regions: {box: label, inputs: {field: both}, params: {threshold: 1}}
"""
    where = "time > '2001-03-01T03:00' and lat = 18 and lon = 315"
    fields = {"over": over, "under": under}
    answer = traced(fields, boxes, "regions", where, spark, tmp_path)
    # The region of (1, 2, 7), (1, 2, 0) and (1, 3, 1), with the cells that touch these.
    region = {(1, y, x % 8) for y in (1, 2, 3) for x in (6, 7, 8, 9)}
    region |= {(1, y, x) for y in (2, 3, 4) for x in (0, 1, 2)}
    assert cells(answer, "over") == {(1, 2, 7)}
    assert cells(answer, "under") == region - {(1, 2, 7)}
    assert answer.guarantee("over") == answer.guarantee("under") == EXACT
    assert proves_itself(answer)


@pytest.mark.parametrize(
    ("kind", "given", "saying"),
    [
        (Label, {"neighbours": 6}, "neighbours is 6; it may be 4 or 8"),
        (Label, {"side": "abvoe"}, 'did you mean "above"'),
        (Composite, {"how": "last"}, 'no way "last" for box "composite"'),
        (Mosaic, {"how": "median"}, 'no way "median" for box "mosaic"'),
    ],
)
def test_what_cannot_be_composed_is_refused(kind: Any, given: Any, saying: str) -> None:
    with pytest.raises(Refused, match=saying):
        kind.from_params(given)


def described(*names: str) -> tuple[Attribute, ...]:
    return tuple(Attribute(n, Quantity, (n,), None, ("lat", "lon")) for n in names)


def test_rasters_need_a_variable_in_common_and_labels_one_that_is_there() -> None:
    with pytest.raises(Refused, match=r"have no variable in common \(a; b\)"):
        Mosaic().attributes_of({"first": described("a"), "second": described("b")})
    with pytest.raises(Refused, match='no variable "c" for box "label"'):
        Label("c").attributes_of({"field": described("a", "b")})


def raster(size: int) -> Array:
    places = {"time": np.arange(1), "lat": np.arange(2), "lon": np.arange(size)}
    return held_array("raster", described("a"), places, {"a": np.zeros((1, 2, size))})


def test_rasters_of_different_grids_are_refused() -> None:
    with pytest.raises(
        Refused, match=r"takes rasters of one grid.*differ in lon; regrid or select"
    ):
        Mosaic().grid({"first": raster(3), "second": raster(4)})
