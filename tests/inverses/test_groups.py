"""Aggregates, ranks and the highest rows hold every promise; wrong inverses are caught."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import fsum, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses import words
from inverses.boxes.groups import none_below
from inverses.guarantees import EXACT
from inverses.registry import Registry
from pipelines.boxes.box import Box
from pipelines.boxes.groups import Aggregate, RankRows, TopN
from pipelines.datasets import Attribute, Measure, Quantity, Text
from pipelines.errors import Refused
from tests.inverses.cases import SLIGHT, Case, Truth, check, small_tables
from tests.inverses.families import MANY, PATIENCE
from tests.inverses.wrong import assert_caught, everything_passes, registry_with
from tests.laws import Items

REGISTRY = Registry.of()
CAUGHT = "missing|not behind it|unfaithful"
pytestmark = PATIENCE
Rows = list[dict[str, Any]]
Given = Mapping[str, Rows]


def split(text: str) -> list[str]:
    return [t for t in text.split(", ") if t]


def group(rows: Rows, like: Mapping[str, Any], keys: str) -> Rows:
    """The rows that have the keys of one."""
    return [r for r in rows if all(r[k] == like[k] for k in split(keys))]


MADE = {
    "count": len,
    "sum": lambda v: fsum(v) if v else nan,
    "mean": lambda v: fsum(v) / len(v) if v else nan,
    "min": lambda v: min(v, default=nan),
    "max": lambda v: max(v, default=nan),
}


def summed_up(members: Rows, keys: str, what: str) -> dict[str, Any]:
    """The one row that a group becomes."""
    made = {k: members[0][k] for k in split(keys)}
    for text in split(what):
        of, how = text.split(":")
        values = [m[of] for m in members if m[of] == m[of] or how == "count"]
        made[f"{of}_{how}"] = MADE[how](values)
    return made


def of_nothing(name: str, keys: str) -> Truth:
    """Where no row of a group has a value, all of them are behind its absence."""

    def stated(given: Given, port: str, datum: Mapping[str, Any]) -> Items:
        rows = given[port] if datum[name] != datum[name] else []
        members = group(rows, datum, keys)
        return {(n,) for n, row in enumerate(rows) if row in members}

    return stated


@st.composite
def aggregated(draw: st.DrawFn) -> Case:
    keys = draw(st.sampled_from(["", "k", "s, k"]))
    what = draw(st.sampled_from(["x:mean", "x:sum, y:count", "x:max, y:max", "y:min, x:mean"]))
    rows = draw(small_tables(("k", "s", "x", "y") if "s" in keys else ("k", "x", "y"), most=6))

    def forward(given: Given) -> Rows:
        found = {tuple(r[k] for k in split(keys)): r for r in given["rows"]}
        groups = [group(given["rows"], each, keys) for each in found.values()]
        return [summed_up(members, keys, what) for members in groups]

    besides = {n: of_nothing(n, keys) for n in split(what.replace(":", "_"))}
    box = Aggregate(keys, what)
    return Case(box, {"rows": rows}, forward, tuple(split(keys)), besides=besides)


def before(rows: Rows, row: Mapping[str, Any], by: str, least: bool) -> int:
    """How many rows come before one."""
    if row[by] != row[by]:
        return sum(r[by] == r[by] for r in rows)
    return sum(r[by] < row[by] if least else r[by] > row[by] for r in rows)


def rising_together(box: TopN, forward: Callable[[Given], Rows]) -> Truth:
    """The rows that tie with one, of which each alone may be too few to put it out."""

    def stated(given: Given, port: str, datum: Mapping[str, Any]) -> Items:
        rows, one = given[port], str(datum)
        members = [r for r in group(rows, datum, box.keys) if r["x"] == datum["x"]]
        by = -SLIGHT if box.least else SLIGHT
        others = {n for n, r in enumerate(rows) if r in members and str(r) != one}
        risen = [{**r, "x": r["x"] + by} if n in others else r for n, r in enumerate(rows)]
        left = [str(r) for r in forward({port: risen})]
        return set() if one in left else {(n,) for n in others}

    return stated


@st.composite
def highest(draw: st.DrawFn) -> Case:
    keys, n, least = draw(st.sampled_from(["", "k"])), draw(st.integers(1, 3)), draw(st.booleans())

    def forward(given: Given) -> Rows:
        there = [r for r in given["rows"] if r["x"] == r["x"]]
        return [r for r in there if before(group(there, r, keys), r, "x", least) < n]

    rows = draw(small_tables(("k", "x", "y"), most=6))
    box = TopN("x", n, keys, least)
    besides = dict.fromkeys("kxy", rising_together(box, forward))
    return Case(box, {"rows": rows}, forward, besides=besides)


@st.composite
def ranked(draw: st.DrawFn) -> Case:
    keys, least = draw(st.sampled_from(["", "k"])), draw(st.booleans())

    def forward(given: Given) -> Rows:
        every = given["rows"]
        return [{**r, "rank": before(group(every, r, keys), r, "x", least) + 1} for r in every]

    rows = draw(small_tables(("k", "x"), most=6))
    return Case(RankRows("x", keys, least), {"rows": rows}, forward, identity=("k", "x"))


WORLDS = {Aggregate: aggregated(), TopN: highest(), RankRows: ranked()}


@pytest.mark.parametrize("kind", WORLDS)
def test_every_promise_holds(kind: type[Box]) -> None:
    @settings(max_examples=MANY)
    @given(case=WORLDS[kind])
    def holds(case: Case) -> None:
        check(case, REGISTRY)

    holds()


def all_pass(box: Any, at: Any, seen: Any, source: Any, attribute: str) -> np.ndarray:
    """It takes the whole group for what attains the max."""
    return everything_passes(box, at, seen, source)


def the_row(box: Any, at: Any, source: Any, attribute: str) -> Any:
    """It takes a rank for the row's own."""
    return at.only(*source.columns)


def the_tied(box: Any, at: Any, source: Any) -> Any:
    """It forgets the rows above, without which nobody can tell how close it was."""
    return at.only(box.by)


def all_tied(box: Any, at: Any, seen: Any, source: Any) -> np.ndarray:
    """It takes every row that ties for one that could put it out."""
    return np.asarray(seen[box.by] == at[box.by])


def each_alone(box: Any, at: Any, seen: Any, source: Any) -> np.ndarray:
    """It forgets that rows which tie may rise together, being made of one."""
    above = seen[box.by] < at[box.by] if box.least else seen[box.by] > at[box.by]
    wanted = [box.by] if above.sum() + 1 >= box.n else source.columns
    return np.all([np.isclose(seen[c], at[c], 0, 0, equal_nan=True) for c in wanted], axis=0)


def any_below(box: TopN, at: Any, source: Any) -> Any:
    """Of a range of the least, it forgets the rows below, which may put others out."""
    wanted = at.span(box.by)
    of_many = box.least and wanted is not None and not wanted.single
    return at.only(*source.columns) if of_many else none_below(box, at, source)


WRONG = {
    "the rows below a range count": (highest, "none_below", {"function": any_below}),
    "ties that cannot put it out": (highest, "itself_or_tied", {"function": all_tied}),
    "ties rise together": (highest, "itself_or_tied", {"function": each_alone}),
    "the rows above count": (highest, "none_below", {"function": the_tied}),
    "a group is no max": (aggregated, "counted", {"function": all_pass}),
    "a group is not pure": (aggregated, "whole_group", {"promises": EXACT}),
    "a group is not the highest": (highest, "itself_or_tied", {"function": everything_passes}),
    "a rank is no row's own": (ranked, "compared", {"function": the_row}),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_inverse_is_caught(fault: str) -> None:
    cases, name, changed = WRONG[fault]
    registry = registry_with(name, **changed)
    assert_caught(lambda data: check(data.draw(cases()), registry), CAUGHT)


def test_a_group_that_is_not_whole_is_caught_as_unfaithful() -> None:
    registry = registry_with(
        "whole_group", function=lambda box, at, source: at.only(*source.columns)
    )
    assert_caught(lambda data: check(data.draw(ranked()), registry), CAUGHT)


def summed(values: Any, how: str = "sum") -> float:
    made = Aggregate("", f"x:{how}").rows({"rows": pa.table({"x": values})})
    return float(made[f"x_{how}"][0].as_py())


def test_sums_do_not_depend_on_the_order_of_rows_nor_overflow() -> None:
    values = [1e16, 1.0, -1e16, 0.1, 1e308, 1e308, -1e308]
    orders = [np.random.default_rng(n).permutation(values) for n in range(20)]
    assert {summed(order) for order in orders} == {1e308}
    assert np.isnan(summed([np.inf, 1.0, -np.inf]))


def test_sums_of_what_is_very_large_are_rounded_once() -> None:
    orders = [
        np.random.default_rng(n).permutation([-1e308, -1e308, 1e308, 1e308]) for n in range(9)
    ]
    assert {summed(order) for order in orders} == {0.0}
    assert summed([1e308, 1e308, -1e308, -1e308, 5e-324]) == 5e-324
    assert (summed([1e308] * 2), summed([-1e308] * 2)) == (np.inf, -np.inf)
    assert summed([1e308, 1e308, -np.inf]) == -np.inf
    assert summed([1e308, 1e308], "mean") == summed([1e308] * 2 + [np.nan], "mean") == 1e308
    assert summed([2**53 + 1] * 3) == float(3 * (2**53 + 1))
    assert summed([2**63 - 1, 2**63 - 1, -(2**63), 3]) == float(2**63)
    assert summed([2**62 + 2**8] * 2, "mean") == 2**62
    assert summed([True, True, False]) == 2


def test_what_cannot_be_is_refused_when_a_pipeline_is_checked() -> None:
    rows = {"rows": (Attribute("x", Quantity, ("x",)), Attribute("s", Text, ("s",)))}
    with pytest.raises(Refused, match=r'no aggregate "avg" for column "x"'):
        Aggregate("s", "x:avg").attributes_of(rows)
    with pytest.raises(Refused, match='"s" is text, which has no mean'):
        Aggregate("", "s:mean").attributes_of(rows)
    with pytest.raises(Refused, match='no column "k"'):
        Aggregate("k", "x:mean").attributes_of(rows)
    with pytest.raises(Refused, match='there is a column "s" already'):
        RankRows("x", called="s").attributes_of(rows)
    with pytest.raises(Refused, match='no column "y" for box "top_n"'):
        TopN("y").attributes_of(rows)


def test_an_inverse_that_is_told_its_attribute_keeps_its_authors_words() -> None:
    (stated,) = (w for w in REGISTRY.verifications if w.name == "counted")
    told = stated.about(Attribute("x_max", Measure, ("x_max",)))
    assert words.first_line(told) == words.first_line(stated) != ""
