"""Choices, thresholds and masks do what they say, and the cells behind them are those they used."""

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

from inverses.boxes.masks import chosen
from inverses.guarantees import EXACT
from inverses.trials import Items
from pipelines.boxes.masks import Choose, Mask, Threshold
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.filters import Filter
from tests.inverses import wrong
from tests.inverses.cases import Case, Plain, all_is_stated, check, small_arrays
from tests.inverses.families import MANY, PATIENCE, cells, in_parts, traced
from tests.inverses.grids import beside, plain_array
from tests.inverses.wrong import REGISTRY

pytestmark = PATIENCE
SMALL = (2, 2, 3)


def nan_where(missing: Any, values: Any) -> Any:
    return np.where(missing, np.nan, values)


Choice = tuple[Callable[[Any, Any], Any], tuple[str, str, str]]
CHOICES: dict[tuple[str, str, str], Choice] = {
    ("a > 1", "a", "b"): (lambda a, b: np.where(a > 1, a, b), ("a", "a", "b")),
    ("a", "b + 1", "2"): (
        lambda a, b: nan_where(np.isnan(a), np.where(a == 0, 2, b + 1)),
        ("a", "b", ""),
    ),
    ("b * a < 0", "nan", "a"): (lambda a, b: np.where(a * b < 0, np.nan, a), ("ab", "", "a")),
}


@st.composite
def choices(draw: st.DrawFn) -> Case:
    texts = draw(st.sampled_from(sorted(CHOICES)))
    made, (named, then, otherwise) = CHOICES[texts]

    def forward(given_: Plain) -> Any:
        return {"result": made(given_["field"]["a"], given_["field"]["b"])}

    def truth(given_: Plain, port: str, datum: Any) -> Items:
        _, *place = datum
        a, b = (given_["field"][v][tuple(place)] for v in "ab")
        holding = {"a > 1": a > 1, "a": a != 0, "b * a < 0": a * b < 0}[texts[0]]
        neither = texts[0] == "a" and np.isnan(a)
        branch = "" if neither else then if holding else otherwise
        return {(v, *place) for v in {*named, *branch}}

    field = draw(small_arrays(("a", "b"), most=SMALL))
    return Case(Choose(*texts), {"field": field}, forward, truth=truth)


@st.composite
def thresholds(draw: st.DrawFn) -> Case:
    low, high = draw(st.sampled_from([(1.0, 1e300), (-1.0, 2.0), (0.5, 0.5)]))
    variable = draw(st.sampled_from(["", "b"]))

    def forward(given_: Plain) -> Any:
        values = given_["field"][variable or "a"]
        outside = (values < low) | (values > high)
        return {"inside": nan_where(np.isnan(values), np.where(outside, 0, 1))}

    field = draw(small_arrays(("a", "b"), most=SMALL))
    return Case(Threshold(variable, low, high), {"field": field}, forward)


@st.composite
def masked(draw: st.DrawFn) -> Case:
    invert = draw(st.booleans())
    field = draw(small_arrays(most=SMALL))

    def forward(given_: Plain) -> Any:
        said = given_["mask"]["a"] + np.zeros(field.shape)
        hidden = (said != 0) if invert else (said == 0) | np.isnan(said)
        return {v: nan_where(hidden, values) for v, values in given_["field"].items()}

    def truth(given_: Plain, port: str, datum: Any) -> Items:
        variable, *place = datum
        sizes = given_["mask"]["a"].shape
        there = (0 if n == 1 else i for i, n in zip(place, sizes, strict=True))
        return {(variable, *place)} if port == "field" else {("a", *there)}

    inputs = {"field": field, "mask": draw(beside(field, "mask"))}
    return Case(Mask(invert=invert), inputs, forward, truth=truth)


WORLDS: dict[Any, st.SearchStrategy[Case]] = {
    Choose: choices(),
    Threshold: thresholds(),
    Mask: masked(),
}


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_a_condition_finds_what_is_promised(
    kind: Any, data: st.DataObject
) -> None:
    check(data.draw(WORLDS[kind]), REGISTRY, 4)


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_a_condition_can_be_made_and_inverted_in_parts(kind: Any, data: st.DataObject) -> None:
    in_parts(data.draw(WORLDS[kind]), REGISTRY, data)


def test_a_statement_that_forgets_the_mask_is_caught() -> None:
    def narrow(data: st.DataObject) -> None:
        case = replace(data.draw(masked()), truth=lambda given_, port, datum: set())
        all_is_stated(case, "mask", [case.made.attribute("a")])

    wrong.assert_caught(narrow, "can change what is stated")


def next_place(box: Any, at: Filter, source: Array) -> Filter:
    lon = at.spans["lon"]
    return at.to(time=at.span("time"), lat=at.span("lat"), lon=lon.moved(1))


def other_branch(box: Choose, at: Any, seen: Any, source: Array) -> Any:
    turned = Choose(box.condition, box.otherwise, box.then)
    return chosen(turned, at, seen, source)


WRONG: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "takes the next place": (Threshold, "cell_there", {"function": next_place}),
    "takes the mask for the next place's": (Mask, "cell_there", {"function": next_place}),
    "takes both branches": (Choose, "cell_there", {"promises": EXACT}),
    "takes one branch for the other": (Choose, "chosen", {"function": other_branch}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_inverse_of_a_condition_is_caught(case: str) -> None:
    kind, name, made_wrong = WRONG[case]
    registry = wrong.registry_with(name, **made_wrong)
    law = "missing|not behind it"
    wrong.assert_caught(lambda data: check(data.draw(WORLDS[kind]), registry), law)


def test_what_a_mask_shows_is_traced_through_a_choice_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    field = np.arange(96, dtype=np.float32).reshape(2, 6, 8)
    boxes = """
  high: {box: threshold, inputs: {field: air}, params: {low: 50}, keep: false}
  shown: {box: mask, inputs: {field: air, mask: high}}
  chosen: {box: choose, inputs: {field: shown},
           params: {condition: slp > 70, then: slp, otherwise: "-slp"}}
"""
    where = "time > '2001-03-01T03:00' and lat = 18 and lon = 315"
    answer = traced({"air": field}, boxes, "chosen", where, spark, tmp_path)
    assert cells(answer, "air") == {(1, 2, 7)}
    assert answer.guarantee("air") == EXACT


@pytest.mark.parametrize(
    ("box", "params", "said"),
    [
        ("choose", {"condition": "a > 1", "then": "d"}, 'no variable "d"'),
        ("choose", {"condition": "where(a, 1, 0)"}, "a formula has no where"),
        ("threshold", {"variable": "z"}, 'no variable "z"'),
        ("mask", {"variable": "z"}, 'no variable "z"'),
    ],
)
def test_what_cannot_be_decided_is_refused(box: str, params: dict[str, Any], said: str) -> None:
    field = plain_array((1, 1, 1), ("a", "b")).attributes
    with pytest.raises(Refused, match=said):
        made = REGISTRY.boxes[box].from_params(params)
        made.attributes_of({port.name: field for port in made.takes})
