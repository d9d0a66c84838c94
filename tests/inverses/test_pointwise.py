"""Formulas, choices, thresholds and masks do what they say, and so do their inverses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inverses.boxes import pointwise as shipped
from inverses.guarantees import COMPLETE, PURE
from inverses.registry import Registry, weakly_inverts
from inverses.trials import Items
from pipelines.boxes import pointwise
from pipelines.boxes.pointwise import Calculate, Choose, Combine, Mask, Threshold
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.filters import Filter
from tests.inverses.cases import Case, behind, check, small_arrays
from tests.inverses.grids import MANY, PATIENCE, beside, caught, holds, plain_array

pytestmark = PATIENCE
REGISTRY = Registry.from_modules([pointwise, shipped])
Plain = Mapping[str, Any]
SMALL = (2, 3, 3)


def nan_where(missing: Any, values: Any) -> Any:
    return np.where(missing, np.nan, values)


def greater(a: Any, b: Any) -> Any:
    return nan_where(np.isnan(a) | np.isnan(b), np.where(a > b, a, b))


FORMULAS = {
    "a + 2 * b": lambda a, b: a + b + b,
    "max(a, b) - abs(a)": lambda a, b: greater(a, b) - np.where(a < 0, -a, a),
    "(a > 1) * b": lambda a, b: np.where(a > 1, b, 0 * b),
    "sqrt(a ** 2 + b ** 2)": lambda a, b: np.hypot(a, b),
    "": lambda a, b: a,
}


@given(data=st.data())
@MANY
def test_calculate_holds_every_law(data: st.DataObject) -> None:
    formula, keep = data.draw(st.sampled_from(sorted(FORMULAS))), data.draw(st.booleans())
    field = data.draw(small_arrays(("a", "b"), most=SMALL))

    def forward(given_: Plain) -> Any:
        a, b = given_["field"]["a"], given_["field"]["b"]
        return {"a": a, "b": b, "c": FORMULAS[formula](a, b)}

    box = Calculate(formula, "c", keep=keep)
    holds(Case(box, {"field": field}, forward, regular=True), REGISTRY, data)


PAIRS = {
    "": lambda a, b, c: a - c,
    "(a + 1) * other_a": lambda a, b, c: a * c + c,
    "max(b, other_a) + a": lambda a, b, c: greater(b, c + 0 * b) + a,
}


@given(data=st.data())
@MANY
def test_combine_holds_every_law(data: st.DataObject) -> None:
    formula = data.draw(st.sampled_from(sorted(PAIRS)))
    field = data.draw(small_arrays(("a", "b"), most=SMALL))
    other = data.draw(beside(field))

    def forward(given_: Plain) -> Any:
        a, b = given_["field"]["a"], given_["field"]["b"]
        return {"result": PAIRS[formula](a, b, given_["other"]["a"])}

    inputs = {"field": field, "other": other}
    holds(Case(Combine(formula), inputs, forward, regular=True), REGISTRY, data)


CHOICES = {
    ("a > 1", "a", "b"): (lambda a, b: np.where(a > 1, a, b), ("a", "a", "b")),
    ("a", "b + 1", "2"): (
        lambda a, b: nan_where(np.isnan(a), np.where(a == 0, 2, b + 1)),
        ("a", "b", ""),
    ),
    ("b * a < 0", "nan", "a"): (lambda a, b: np.where(a * b < 0, np.nan, a), ("ab", "", "a")),
}


@given(data=st.data())
@MANY
def test_choose_holds_every_law(data: st.DataObject) -> None:
    texts = data.draw(st.sampled_from(sorted(CHOICES)))
    made, (named, then, otherwise) = CHOICES[texts]
    field = data.draw(small_arrays(("a", "b"), most=SMALL))

    def forward(given_: Plain) -> Any:
        return {"result": made(given_["field"]["a"], given_["field"]["b"])}

    def truth(given_: Plain, port: str, datum: Any) -> Items:
        _, *place = datum
        a, b = (given_["field"][v][tuple(place)] for v in "ab")
        holding = {"a > 1": a > 1, "a": a != 0, "b * a < 0": a * b < 0}[texts[0]]
        skipped = texts[0] == "a" and np.isnan(a)
        branch = "" if skipped else then if holding else otherwise
        return {(v, *place) for v in {*named, *branch}}

    stated = Case(Choose(*texts), {"field": field}, forward, truth=truth)
    holds(stated, REGISTRY, data)
    for number in {0, stated.made.cells - 1}:
        attribute = stated.made.attribute("result")
        datum = ("result", *np.unravel_index(number, field.shape))
        changing = _changing(field, forward, number)
        assert changing <= truth(stated.plain, "field", datum), attribute


def _changing(field: Array, forward: Any, number: int) -> Items:
    """The cells of which another value changes a datum, whatever was stated."""
    as_changed = Case(Calculate(result="result"), {"field": field}, forward)
    return behind(as_changed, "field", as_changed.made.attribute("result"), number)


@given(data=st.data())
@MANY
def test_threshold_holds_every_law(data: st.DataObject) -> None:
    low, high = data.draw(st.sampled_from([(1.0, 1e300), (-1.0, 2.0), (0.5, 0.5)]))
    variable = data.draw(st.sampled_from(["", "b"]))
    field = data.draw(small_arrays(("a", "b"), most=SMALL))

    def forward(given_: Plain) -> Any:
        values = given_["field"][variable or "a"]
        outside = (values < low) | (values > high)
        return {"inside": nan_where(np.isnan(values), np.where(outside, 0, 1))}

    box = Threshold(variable, low, high)
    holds(Case(box, {"field": field}, forward), REGISTRY, data)


@given(data=st.data())
@MANY
def test_mask_holds_every_law(data: st.DataObject) -> None:
    invert = data.draw(st.booleans())
    field = data.draw(small_arrays(("a", "b"), most=SMALL))
    mask = data.draw(beside(field, "mask"))

    def forward(given_: Plain) -> Any:
        said = given_["mask"]["a"] + np.zeros(field.shape)
        hidden = (said != 0) if invert else (said == 0) | np.isnan(said)
        return {v: nan_where(hidden, values) for v, values in given_["field"].items()}

    # With numbers everywhere an inverted mask hides everything, so only what is seen can tell.
    case = Case(Mask(invert=invert), {"field": field, "mask": mask}, forward, regular=not invert)
    if not invert:
        holds(case, REGISTRY, data)
    else:
        check(_stated(case), REGISTRY, 4)


def _stated(case: Case) -> Case:
    def truth(given_: Plain, port: str, datum: Any) -> Items:
        variable, *place = datum
        if port == "field":
            return {(variable, *place)}
        sizes = given_["mask"]["a"].shape
        return {("a", *(0 if n == 1 else i for i, n in zip(place, sizes, strict=True)))}

    return Case(case.box, case.inputs, case.forward, truth=truth)


@weakly_inverts(Calculate, promises=[COMPLETE, PURE], **shipped.CELLS)
def next_place(box: Calculate, at: Filter, source: Array) -> Filter:
    """Wrong: one place further."""
    lon = at.span("lon")
    return at.to(time=at.span("time"), lat=at.span("lat"), lon=lon and lon.moved(1))


@weakly_inverts(Calculate, promises=[COMPLETE, PURE], **shipped.CELLS)
def same_row(box: Calculate, at: Filter, source: Array) -> Filter:
    """Wrong: complete and not pure."""
    return at.only("time", "lat")


@pytest.mark.parametrize("wrong", [next_place, same_row])
def test_a_wrong_inverse_of_calculate_is_caught(wrong: Any) -> None:
    def forward(given_: Plain) -> Any:
        return {"result": given_["field"]["a"] + given_["field"]["b"]}

    def case_of(field: Array) -> Case:
        return Case(Calculate("a + b"), {"field": field}, forward, regular=True)

    caught(case_of, Registry({}, (), ()), wrong)


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
        ("combine", {"formula": "a * 2"}, "names none of the variables"),
        ("combine", {"formula": "a - other_c"}, 'no variable "c"'),
        ("choose", {"condition": "a > 1", "then": "d"}, 'no variable "d"'),
        ("threshold", {"variable": "z"}, 'no variable "z"'),
        ("mask", {"variable": "z"}, 'no variable "z"'),
    ],
)
def test_what_cannot_be_made_is_refused_when_it_is_checked(
    box: str, params: dict[str, Any], said: str
) -> None:
    field = plain_array((1, 1, 1), ("a", "b")).attributes
    with pytest.raises(Refused, match=said):
        made = REGISTRY.boxes[box].from_params(params)
        made.attributes_of({port.name: field for port in made.takes})


def test_arrays_on_other_grids_are_not_combined() -> None:
    one, other = plain_array((1, 2, 3)), plain_array((1, 2, 4))
    with pytest.raises(Refused, match="3 places along lon, and the 4"):
        Combine().grid({"field": one, "other": other})
