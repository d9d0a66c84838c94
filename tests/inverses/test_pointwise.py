"""Formulas of one array or two are worth what they say, and so are the cells behind them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cftime
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.guarantees import EXACT
from inverses.making import made_by
from pipelines.boxes.landcover import Mosaic
from pipelines.boxes.masks import Mask
from pipelines.boxes.pointwise import Calculate, Combine
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.filters import Filter
from tests.inverses import wrong
from tests.inverses.cases import Case, Plain, check, small_arrays
from tests.inverses.families import MANY, PATIENCE, cells, in_parts, traced
from tests.inverses.grids import beside, changed, plain_array
from tests.inverses.wrong import REGISTRY

pytestmark = PATIENCE
SMALL = (2, 2, 3)


def greater(a: Any, b: Any) -> Any:
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(a > b, a, b))


FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "a + 2 * b": lambda a, b: a + b + b,
    "max(a, b) - abs(a)": lambda a, b: greater(a, b) - np.where(a < 0, -a, a),
    "(a > 1) * b": lambda a, b: np.where(a > 1, b, 0 * b),
    "sqrt(a ** 2 + b ** 2)": lambda a, b: np.hypot(a, b),
    "": lambda a, b: a,
}
PAIRS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "": lambda a, b, c: a - c,
    "(a + 1) * other_a": lambda a, b, c: a * c + c,
    "max(b, other_a) + a": lambda a, b, c: greater(b, c + 0 * b) + a,
}


@st.composite
def calculated(draw: st.DrawFn) -> Case:
    formula, keep = draw(st.sampled_from(sorted(FORMULAS))), draw(st.booleans())

    def forward(given_: Plain) -> Any:
        a, b = given_["field"]["a"], given_["field"]["b"]
        return {"a": a, "b": b, "c": FORMULAS[formula](a, b)}

    field = draw(small_arrays(("a", "b"), most=SMALL))
    return Case(Calculate(formula, "c", keep=keep), {"field": field}, forward, regular=True)


@st.composite
def combined(draw: st.DrawFn) -> Case:
    formula = draw(st.sampled_from(sorted(PAIRS)))

    def forward(given_: Plain) -> Any:
        a, b = given_["field"]["a"], given_["field"]["b"]
        return {"result": PAIRS[formula](a, b, given_["other"]["a"])}

    field = draw(small_arrays(("a", "b"), most=SMALL))
    inputs = {"field": field, "other": draw(beside(field))}
    return Case(Combine(formula), inputs, forward, regular=True)


WORLDS: dict[Any, st.SearchStrategy[Case]] = {Calculate: calculated(), Combine: combined()}


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_a_formula_finds_what_is_promised(kind: Any, data: st.DataObject) -> None:
    check(data.draw(WORLDS[kind]), REGISTRY, 4)


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_a_formula_can_be_made_and_inverted_in_parts(kind: Any, data: st.DataObject) -> None:
    in_parts(data.draw(WORLDS[kind]), REGISTRY, data)


def next_place(box: Any, at: Filter, source: Array) -> Filter:
    lon = at.spans["lon"]
    return at.to(time=at.span("time"), lat=at.span("lat"), lon=lon.moved(1))


def same_row(box: Any, at: Filter, source: Array) -> Filter:
    return at.only("time", "lat")


WRONG = {
    "takes the next place": (Calculate, {"function": next_place}),
    "takes the whole row": (Calculate, {"function": same_row}),
    "takes the next place of both": (Combine, {"function": next_place}),
    "takes the whole row of both": (Combine, {"function": same_row}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_inverse_of_a_formula_is_caught(case: str) -> None:
    kind, made_wrong = WRONG[case]
    registry = wrong.registry_with("same_place", **made_wrong)
    law = "missing|not behind it"
    wrong.assert_caught(lambda data: check(data.draw(WORLDS[kind]), registry), law)


def test_an_anomaly_is_traced_to_its_cell_and_to_the_mean_that_was_taken_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    field = np.arange(96, dtype=np.float32).reshape(2, 6, 8)
    boxes = """
  mean: {box: coarsen, inputs: {field: air}, params: {time: 2, lat: 1, lon: 1}}
  anomaly: {box: combine, inputs: {field: air, other: mean}, params: {result: slp}}
  squared: {box: calculate, inputs: {field: anomaly}, params: {formula: slp ** 2}}
"""
    where = "time > '2001-03-01T03:00' and lat = 18 and lon = 315"
    answer = traced({"air": field}, boxes, "squared", where, spark, tmp_path)
    assert cells(answer, "air") == {(0, 2, 7), (1, 2, 7)}
    assert cells(answer, "mean") == {(0, 2, 7)}
    assert answer.guarantee("air") == EXACT


@pytest.mark.parametrize(
    ("box", "params", "said"),
    [
        ("calculate", {"formula": "c + 1"}, 'no variable "c"'),
        ("calculate", {"formula": "1 + 1"}, "names none of the variables a, b"),
        ("calculate", {"formula": "where(a, b, 1)"}, 'use the box "choose"'),
        ("calculate", {"formula": "a +"}, "ends too early"),
        ("calculate", {"formula": "a", "result": "time"}, 'there is a "time" already'),
        ("calculate", {"formula": "a", "result": "a", "keep": True}, 'there is a "a" already'),
        ("calculate", {"result": "a b"}, "not a name for a variable"),
        ("calculate", {"result": ".."}, "not a name for a variable"),
        ("calculate", {"result": "zarr.json"}, "not a name for a variable"),
        ("combine", {"formula": "a * 2"}, "names none of the variables"),
        ("combine", {"formula": "a - other_c"}, 'no variable "c"'),
    ],
)
def test_what_cannot_be_calculated_is_refused(box: str, params: dict[str, Any], said: str) -> None:
    field = plain_array((1, 1, 1), ("a", "b")).attributes
    with pytest.raises(Refused, match=said):
        made = REGISTRY.boxes[box].from_params(params)
        made.attributes_of({port.name: field for port in made.takes})


@pytest.mark.parametrize("box", [Combine(), Mask(), Mosaic()])
def test_dates_of_two_calendars_are_never_the_same(box: Any) -> None:
    fields = [
        changed(plain_array((2, 1, 1)), {"time": np.array([date(2000, 1, d) for d in (1, 2)])})
        for date in (cftime.DatetimeNoLeap, cftime.Datetime360Day)
    ]
    inputs = {port.name: field for port, field in zip(box.takes, fields, strict=True)}
    with pytest.raises(Refused, match=r"along time.*are not the same|differ in time"):
        box.grid(inputs)
    assert box.grid(dict.fromkeys(inputs, fields[0])).shape == (2, 1, 1)


def test_first_variables_are_combined_whatever_they_are_called() -> None:
    field, other = plain_array((1, 2, 2), ("other_a", "b")), plain_array((1, 2, 2))
    made = made_by(Combine(), {"field": field, "other": other})
    assert isinstance(made, Array) and not made.content.variables["result"].any()
    for port, expected in (("field", "other_a"), ("other", "a")):
        array = {"field": field, "other": other}[port]
        assert Combine().used("result", port, array) == (expected,)


def test_arrays_on_other_grids_are_not_combined() -> None:
    one, other = plain_array((1, 2, 3)), plain_array((1, 2, 4))
    with pytest.raises(Refused, match="3 places along lon, and the 4"):
        Combine().grid({"field": one, "other": other})
