"""Aggregates, ranks and the highest rows hold every promise."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum, nan
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from inverses.registry import Registry
from pipelines.boxes.groups import Aggregate, RankRows, TopN
from tests.inverses.cases import Case, Truth, check, small_tables
from tests.laws import Items

REGISTRY = Registry.of()
MANY = settings(max_examples=max(300, settings().max_examples))
Rows = list[dict[str, Any]]
Given = Mapping[str, Rows]
KEYS = st.sampled_from(["", "k", "s, k"])


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


@MANY
@given(
    rows=small_tables(),
    keys=KEYS,
    what=st.sampled_from(["x:mean", "x:sum, y:count", "x:max, y:max", "y:min, x:mean"]),
)
def test_aggregate_holds_every_promise(rows: Any, keys: str, what: str) -> None:
    def forward(given: Given) -> Rows:
        found = {tuple(r[k] for k in split(keys)): r for r in given["rows"]}
        return [_row(group(given["rows"], each, keys), each) for each in found.values()]

    def _row(members: Rows, like: Mapping[str, Any]) -> dict[str, Any]:
        made = {k: like[k] for k in split(keys)}
        for text in split(what):
            of, how = text.split(":")
            values = [m[of] for m in members if m[of] == m[of] or how == "count"]
            made[f"{of}_{how}"] = MADE[how](values)
        return made

    def of_nothing(name: str) -> Truth:
        """Where no row of a group has a value, all of them are behind its absence."""

        def stated(given: Given, port: str, datum: Mapping[str, Any]) -> Items:
            rows = given[port] if datum[name] != datum[name] else []
            members = group(rows, datum, keys)
            return {(n,) for n, row in enumerate(rows) if row in members}

        return stated

    names = [text.replace(":", "_") for text in split(what)]
    besides = {n: of_nothing(n) for n in names}
    case = Case(Aggregate(keys, what), {"rows": rows}, forward, tuple(split(keys)), besides=besides)
    check(case, REGISTRY)


def before(rows: Rows, row: Mapping[str, Any], by: str, least: bool) -> int:
    """How many rows come before one."""
    if row[by] != row[by]:
        return sum(r[by] == r[by] for r in rows)
    return sum(r[by] < row[by] if least else r[by] > row[by] for r in rows)


@MANY
@given(
    rows=small_tables(),
    keys=KEYS,
    by=st.sampled_from("xy"),
    n=st.integers(1, 3),
    least=st.booleans(),
)
def test_top_n_holds_every_promise(rows: Any, keys: str, by: str, n: int, least: bool) -> None:
    def forward(given: Given) -> Rows:
        there = [r for r in given["rows"] if r[by] == r[by]]
        return [r for r in there if before(group(there, r, keys), r, by, least) < n]

    check(Case(TopN(by, n, keys, least), {"rows": rows}, forward), REGISTRY)


@MANY
@given(rows=small_tables(), keys=KEYS, by=st.sampled_from("xy"), least=st.booleans())
def test_rank_holds_every_promise(rows: Any, keys: str, by: str, least: bool) -> None:
    def forward(given: Given) -> Rows:
        every = given["rows"]
        return [{**r, "rank": before(group(every, r, keys), r, by, least) + 1} for r in every]

    case = Case(RankRows(by, keys, least), {"rows": rows}, forward, identity=("k", "s", "x", "y"))
    check(case, REGISTRY)
