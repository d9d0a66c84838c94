"""Expressions are read as they are written, and their bounds never lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.errors import Refused
from pipelines.expressions import expression

pytestmark = pytest.mark.timeout(300 if settings().max_examples < 1000 else 7200)
Tree = Any  # a number, a name, or an operator with its operands
SIGNS = ("+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=")
EXACT = {"sqrt": 1, "abs": 1, "isnan": 1, "min": 2, "max": 3, "where": 3, "-": 1}
NUMBERS = st.sampled_from([0.0, 1.0, 2.0, 3.0, 0.5, 0.1, 1e-3, 7.0, 1e9])
LEAVES = NUMBERS | st.sampled_from(["x", "y"])
ENDS = st.sampled_from([-inf, -1e300, -8.0, -1.0, -0.1, 0.0, 1e-320, 0.3, 1.0, 2.5, 1e18, inf])


def trees(functions: Mapping[str, int], powers: bool = False) -> st.SearchStrategy[Tree]:
    def grown(below: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        calls = [st.tuples(st.just(n), *[below] * size) for n, size in functions.items()]
        signs = st.tuples(st.sampled_from(SIGNS), below, below)
        raised = st.tuples(st.just("**"), below, NUMBERS | below)
        return st.one_of(signs, *calls, *([raised] if powers else []))

    return st.recursive(LEAVES, grown, max_leaves=6)


PLAIN = trees(EXACT)
FULL = trees({**EXACT, "exp": 1, "log": 1, "sin": 1, "cos": 1}, powers=True)


def written(tree: Tree) -> str:
    """A tree as text, with all its brackets."""
    if not isinstance(tree, tuple):
        return tree if isinstance(tree, str) else repr(tree)
    name, *operands = tree
    words = [written(o) for o in operands]
    if name in SIGNS or name == "**":
        return f"(-{words[0]})" if len(words) == 1 else f"({words[0]} {name} {words[1]})"
    return f"{name}({', '.join(words)})"


def evaluated(tree: Tree, given: Mapping[str, float]) -> float:
    """What a tree is worth, by Python's own floats."""
    if not isinstance(tree, tuple):
        return given[tree] if isinstance(tree, str) else tree
    name, *operands = tree
    values = [evaluated(o, given) for o in operands]
    if len(values) == 1:
        return _of_one(name, values[0])
    if name == "where":
        return nan if math.isnan(values[0]) else values[1] if values[0] != 0 else values[2]
    if name in ("min", "max"):
        pick = min if name == "min" else max
        return nan if any(map(math.isnan, values)) else pick(values)
    return _of_two(name, *values)


def _of_one(name: str, value: float) -> float:
    if name == "sqrt":
        return math.sqrt(value) if value >= 0 else nan
    return {"-": -value, "abs": abs(value), "isnan": float(value != value)}[name]


def _of_two(name: str, a: float, b: float) -> float:
    if name == "/":
        if b == 0:
            return nan if a == 0 or a != a else math.copysign(inf, a) * math.copysign(1, b)
        return a / b
    compared = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}
    return float(compared[name]) if name in compared else {"+": a + b, "-": a - b, "*": a * b}[name]


@given(PLAIN, st.lists(st.tuples(ENDS | st.just(nan), ENDS | st.just(nan)), min_size=1, max_size=5))
def test_an_expression_is_worth_what_plain_floats_say(
    tree: Tree, places: list[tuple[float, float]]
) -> None:
    x, y = np.array(places).T
    found = expression(written(tree)).values({"x": x, "y": y})
    expected = [evaluated(tree, {"x": a, "y": b}) for a, b in places]
    np.testing.assert_array_equal(found, expected)


@st.composite
def bounded_places(draw: st.DrawFn) -> tuple[dict[str, tuple[float, float]], dict[str, Any]]:
    """Bounds for names, and values that lie within them."""
    ends = {n: tuple(sorted(draw(st.tuples(ENDS, ENDS)))) for n in ("x", "y")}
    places = {n: [draw(_within(low, high)) for _ in range(8)] for n, (low, high) in ends.items()}
    return ends, {n: np.array(v) for n, v in places.items()}


def _within(low: float, high: float) -> st.SearchStrategy[float]:
    if (low, high) == (-inf, inf):
        return ENDS | st.just(nan) | st.just(-0.0)
    inside = [e for e in (-8.0, -2.0, -1.0, -0.0, 1e-310, 0.1, 0.5, 1.0, 3.0) if low <= e <= high]
    return st.sampled_from([low, high, *inside]) | st.floats(low, high)


@given(FULL, bounded_places())
def test_no_value_lies_outside_of_the_bounds(tree: Tree, given_: Any) -> None:
    ends, places = given_
    read = expression(written(tree))
    low, high = read.bounds(ends)
    values = read.values(places)
    assert (low, high) == (-inf, inf) or ((values >= low) & (values <= high)).all()


@given(FULL, bounded_places(), st.tuples(ENDS, ENDS), st.booleans())
def test_no_value_that_is_wanted_comes_from_outside_of_the_narrowed_bounds(
    tree: Tree, given_: Any, wanted: tuple[float, float], known: bool
) -> None:
    ends, places = given_
    read = expression(written(tree))
    values = read.values(places)
    around = [(float(v), float(v)) for v in values[:3] if v == v]
    for low, high in [tuple(sorted(wanted)), *around]:
        hits = ((values >= low) & (values <= high)) | ((low, high) == (-inf, inf))
        for name in ("x", "y"):
            first, last = read.narrowed(name, low, high, ends if known else None)
            inside = (places[name] >= first) & (places[name] <= last)
            assert (first, last) == (-inf, inf) or inside[hits].all()


def test_narrowing_says_something() -> None:
    """Bounds that always were unknown would hold every law."""
    said = {
        "max(0.42 * x - 8000, 0)": (30_000, 40_000, 90_476.19, 114_285.72),
        "sqrt(x) + 1": (3, 4, 4, 9),
        "2 * exp(-x / 10)": (0.1, 0.2, 23.02585, 29.95733),
        "where(x > 3, x, 0)": (1, 9, 3, 9),
        "(x - 5) ** 2": (0, 9, 2, 8),
        "x ** 3": (-8, 27, -2, 3),
        "log(x)": (0, 1, 1, math.e),
        "10 / x": (2, 5, 2, 5),
        "x > 7": (1, 1, 7, inf),
        "abs(3 - x)": (0, 1, 2, 4),
        "min(x, 5)": (2, 3, 2, 3),
    }
    for text, (low, high, first, last) in said.items():
        assert expression(text).narrowed("x", low, high) == pytest.approx((first, last), rel=1e-6)
    assert expression("sin(x)").narrowed("x", 2, 3) == (inf, -inf)
    assert expression("where(x > 3, y, 0)").narrowed("y", 1, 2) == pytest.approx((1, 2))


def test_signs_bind_as_in_mathematics() -> None:
    worth = {
        "1 + 2 * 3 ** 2": 19,
        "-2 ** 2": -4,
        "2 ** -1": 0.5,
        "2 ** 3 ** 2": 512,
        "8 / 4 / 2": 1,
        "5 - 3 - 1": 1,
        "--2": 2,
        "1 + 1 = 2": 1,
        "1 <> 2": 1,
        "(1 < 2) + (2 < 1)": 1,
        "`sea level` * 2": 6,
    }
    for text, value in worth.items():
        assert expression(text).values({"sea level": 3}) == value


@pytest.mark.parametrize(
    "text",
    ["", "a +", "a b", "(a", "a)", "f(a)", "sqrt(a, b)", "where(a)", "max()", "a.b", "a[0]",
     "'a'", "1 < 2 < 3", "a; b", "lambda: 1", "1e999", "a = = b", "__import__('os')", "1_000",
     "a" * 5000, "(" * 100 + "a" + ")" * 100, "+".join("a" * 300), "2 ** " * 40 + "2",
     "sqrt(" * 40 + "a" + ")" * 40, "-" * 300 + "a"],
)  # fmt: skip
def test_what_is_no_expression_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(Refused) as refused:
        expression(text)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


def test_what_is_missing_can_be_written_and_is_unknown() -> None:
    shown = expression("where(x > 0, x, nan)")
    np.testing.assert_array_equal(shown.values({"x": [-1, 2, np.nan]}), [np.nan, 2, np.nan])
    assert shown.bounds({"x": (1, 2)}) == (1, 2)
    assert shown.bounds({"x": (-1, 2)}) == (-inf, inf)
    assert shown.chooses and not expression("max(x, nan)").chooses


def test_a_text_of_an_expression_reads_as_the_same() -> None:
    for text in (
        "-a ** 2 + where(a < 1, `b c`, -3) / max(a, 2, 3)",
        "1e-7 * x",
        "-(-x)",
        "max(nan, a)",
    ):
        once = expression(text)
        assert expression(str(once)) == once
