"""Functions of authors are named in formulas, and what is stated of them pushes ranges back."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf, nan, nextafter
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.boxes.box import boxes_in
from pipelines.boxes.mapping import MapRows
from pipelines.boxes.pointwise import Calculate
from pipelines.errors import Failed, Refused
from pipelines.expressions import Expression, expression
from pipelines.functions import function, functions_in
from pipelines.modules import modules
from tests.inverses import taxes

FUNCTIONS = functions_in([taxes])
NUMBERS = (
    st.sampled_from([-inf, -1e300, -40.0, -1.0, -0.0, 0.0, 5e-324, 0.5, 19_047.6, 1e5, 1e308, inf])
    | st.floats(-100, 100)
    | st.floats(-1e6, 1e6)
)


def read(text: str) -> Expression:
    return expression(text, {n: f.operation for n, f in FUNCTIONS.items()})


def _rippled(x: float) -> float:
    return (nan if abs(x) == inf else math.sin(x)) + (0 if x < 50 else x)


PLAIN: dict[str, Callable[[float], float]] = {
    "tax": lambda x: max(0.42 * x - 8000, 0),
    "rate": lambda x: nan if x < 0 else inf if x == 0 else 100 / x,
    "squashed": lambda x: nan if abs(x) == inf else x / (1 + abs(x)),
    "stepped": lambda x: min(max(x if abs(x) == inf else math.floor(x / 100) * 100, 0), 1000),
    "rippled": _rippled,
    "fahrenheit": lambda x: x * 1.8 + 32,
    "bits": lambda x: nan if abs(x) == inf else math.fmod(abs(x), 7),
}


@pytest.mark.parametrize("name", PLAIN)
@given(numbers=st.lists(NUMBERS | st.just(nan), max_size=5))
def test_a_function_is_worth_what_it_is_number_by_number(name: str, numbers: list[float]) -> None:
    found = read(f"{name}(x)").values({"x": numbers})
    expected = [nan if x != x else PLAIN[name](x) for x in numbers]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", PLAIN)
@given(ends=st.tuples(NUMBERS, NUMBERS), numbers=st.lists(NUMBERS, min_size=1, max_size=8))
def test_a_range_that_is_pushed_back_loses_no_number(
    name: str, ends: tuple[float, float], numbers: list[float]
) -> None:
    """Plateaus, jumps, ends of the domain and infinite numbers among them."""
    formula, values = read(f"{name}(x)"), [PLAIN[name](x) for x in numbers]
    for low, high in [tuple(sorted(ends)), *((v, v) for v in values if v == v)]:
        first, last = formula.narrowed("x", low, high)
        for x, value in zip(numbers, values, strict=True):
            kept = first <= x <= last or (first, last) == (-inf, inf)
            assert kept or not low <= value <= high, f"{x} makes {value}"


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5), st.tuples(NUMBERS, NUMBERS))
def test_a_function_of_two_is_bounded_and_pushed_back_to_each(
    places: list[tuple[float, float]], ends: tuple[float, float]
) -> None:
    low, high = sorted(ends)
    columns = {"x": [x for x, _ in places], "y": [y for _, y in places]}
    given_ = {name: (min(each), max(each)) for name, each in columns.items()}
    bottom, top = read("away(x, y)").bounds(given_)
    for name, number in (("x", 0), ("y", 1)):
        first, last = read("away(x, y)").narrowed(name, low, high, given_)
        for place in places:
            value = abs(place[0]) + abs(place[1])
            assert bottom <= value <= top
            assert first <= place[number] <= last or not low <= value <= high


def test_pushing_back_says_something() -> None:
    """Ranges that always were unknown would lose nothing either."""
    said: dict[str, tuple[float, float, float, float]] = {
        "tax(x)": (30_000, 40_000, 90_476.19, 114_285.72),
        "2 * tax(x + 1000)": (60_000, 80_000, 89_476.19, 113_285.72),
        "rate(x)": (2, 5, 20, 50),
        "squashed(x)": (0.5, 0.75, 1, 3),
        "stepped(x)": (200, 250, 200, 300),
        "fahrenheit(x)": (32, 212, 0, 100),
        "rippled(x)": (70, 80, 68.5, 81.5),
    }
    for text, (low, high, first, last) in said.items():
        found = read(text).narrowed("x", low, high)
        assert found == pytest.approx((first, last), rel=1e-6, abs=1e-5)
    assert read("tax(x)").narrowed("x", -2, -1) == (inf, -inf)
    assert read("tax(x)").narrowed("x", 0, 0) == pytest.approx((-inf, 19_047.62))
    assert read("rate(x)").narrowed("x", -2, -1) == (inf, -inf)
    near = {"x": (0.0, 99.0), "y": (0.0, 4.0)}
    assert read("away(x, y)").narrowed("x", 9, inf, near) == pytest.approx((5, 99))
    assert read("away(x, y)").narrowed("x", 9, inf, {"x": (0, 4), "y": (0, 4)}) == (inf, -inf)
    assert read("bits(x)").narrowed("x", 9, 10) == (-inf, inf)
    assert read("tax(x)").bounds({"x": (50_000, 100_000)}) == pytest.approx((13_000, 34_000))


@pytest.mark.parametrize("wanted", [(200.0, 200.0), (150.0, 450.0), (1000.0, inf), (-inf, 0.0)])
def test_the_ends_that_bisection_finds_are_the_last_that_count(wanted: tuple[float, float]) -> None:
    first, last = read("stepped(x)").narrowed("x", *wanted)
    inside = [x for x in range(-50, 1200) if wanted[0] <= PLAIN["stepped"](x) <= wanted[1]]
    assert first == -inf or PLAIN["stepped"](nextafter(first, -inf)) < wanted[0]
    assert last == inf or PLAIN["stepped"](nextafter(last, inf)) > wanted[1]
    assert first <= inside[0] and inside[-1] <= last


def test_a_function_is_asked_about_numbers_of_its_domain_alone() -> None:
    asked: list[float] = []

    @function(rises=True, within=(0.0, 9.0))
    def seen(x: Any) -> Any:
        asked.extend(x.tolist())
        return x * 2

    (stated,) = functions_in([module(seen=seen)]).values()
    found = stated.values(np.array([-1.0, 3.0, nan, -0.0, 10.0, 9.0]))
    np.testing.assert_array_equal(found, [nan, 6, nan, 0, nan, 18])
    assert [str(x) for x in asked] == ["3.0", "0.0", "9.0"]
    assert expression("seen(x)", {"seen": stated.operation}).narrowed("x", 4, inf) == pytest.approx(
        (2, 9)
    )
    assert all(0 <= x <= 9 for x in asked)


def module(name: str = "authors", **held: Any) -> ModuleType:
    """A module that holds some functions."""
    made = ModuleType(name)
    vars(made).update(held)
    return made


def named(name: str, source: Callable[..., Any]) -> Any:
    def given_(x: Any) -> Any:
        return source(x)

    given_.__name__ = name
    return given_


@pytest.mark.parametrize("name", ["max", "nan", "where", "negative", "<lambda>", "a b", ""])
def test_a_name_that_formulas_have_already_or_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="a name of its own"):
        function(rises=True)(named(name, np.sqrt))


@pytest.mark.parametrize(
    "stated, given_, says",
    [
        ({"rises": True, "falls": True}, lambda x: x, "not both"),
        ({"rises": True}, lambda x, y: x, "has 2 operands; state its bounds alone"),
        ({"within": (0, 1)}, lambda x, y: x, "has 2 operands"),
        ({"within": (1, 0)}, lambda x: x, "not below it"),
        ({"within": (nan, 0)}, lambda x: x, "not below it"),
        ({}, lambda *x: x, "a fixed number of values"),
        ({}, lambda x, y=1: x, "a fixed number of values"),
        ({}, lambda: 1, "a fixed number of values"),
    ],
)
def test_statements_that_cannot_be_are_refused(stated: Any, given_: Any, says: str) -> None:
    given_.__name__ = "mine"
    with pytest.raises(Refused, match=says):
        function(**stated)(given_)


def test_two_functions_of_one_name_are_refused_and_one_in_two_modules_is_one() -> None:
    assert functions_in([taxes, module(tax=taxes.tax)]) == FUNCTIONS
    other = function(rises=True)(named("tax", np.sqrt))
    with pytest.raises(Refused, match=r'two functions are called "tax", in tests\.\S+ and tests'):
        functions_in([taxes, module(tax=other)])


def test_boxes_know_the_functions_of_the_modules_they_are_found_with() -> None:
    known, again = (boxes_in([*modules(), taxes]) for _ in range(2))
    taxed = known["map_rows"].from_params({"formula": "tax(x) + sqrt(x)"})
    assert isinstance(taxed, MapRows)
    assert taxed == again["map_rows"].from_params(taxed.params())
    assert (taxed.code, known["map_rows"]().code) == ("1+tax.1", "1")
    assert known["map_rows"].__doc__ == MapRows.__doc__
    assert issubclass(known["calculate"], Calculate)
    assert known["calculate"].from_params({"formula": "away(a, b)"}).params()["formula"]
    assert known["select"] is boxes_in(modules())["select"], "which has no formulas"


def test_a_function_that_is_not_known_is_told_with_those_that_are() -> None:
    with pytest.raises(Refused, match=r'no function "taxx".*did you mean "tax".*--boxes MODULE$'):
        read("taxx(x)")
    with pytest.raises(Refused, match=r'no function "tax" .*\(functions: abs, cos.*--boxes'):
        expression("tax(x)")
    with pytest.raises(Refused, match="tax takes 1 values, found 2"):
        read("tax(x, x)")


@pytest.mark.parametrize(
    "does, says",
    [
        (lambda x: x.mean(), r"of shape \(\) of 2 values; it has to make a number of each"),
        (lambda x: x[:1], r"of shape \(1,\) of 2 values"),
        (lambda x: x.astype(str), "made <U32 of shape"),
        (lambda x: [][1], 'function "mine" failed: IndexError: list index out of range'),
    ],
)
def test_a_function_that_fails_is_named_in_one_line(does: Any, says: str) -> None:
    (stated,) = functions_in([module(mine=function()(named("mine", does)))]).values()
    with pytest.raises(Failed, match=says) as failed:
        stated.values(np.array([1.0, 2.0]))
    assert "\n" not in str(failed.value)


def stating(**stated: Any) -> Expression:
    """The formula of a square, of which something is stated."""
    (square,) = functions_in([module(mine=function(**stated)(named("mine", np.square)))]).values()
    return expression("mine(x)", {"mine": square.operation})


@pytest.mark.parametrize("said", [3, None, (1, 2, 3), ("a", "b")])
def test_what_is_stated_of_ends_and_is_not_two_is_told_in_one_line(said: Any) -> None:
    for stated in ({"bounds": lambda x: said}, {"back": lambda y: said}):
        with pytest.raises(Failed, match=r'"mine": what is stated of \(\(.* not two ends$'):
            stating(**stated).narrowed("x", 4.0, 9.0)


def test_ends_are_floats_that_may_grow_to_infinity() -> None:
    squared = stating(bounds=lambda x: (0, max(x[0] ** 2, x[1] ** 2)))
    assert squared.narrowed("x", -1.0, inf) == (-inf, inf)
    assert squared.bounds({"x": (-1e200, 1.0)}) == pytest.approx((0, inf))


def test_a_formula_with_a_function_reads_as_the_same() -> None:
    for text in ("tax(salary) + 1", "away(a, -tax(b))", "where(tax(x) > 3, bits(x), nan)"):
        assert read(str(read(text))) == read(text)
