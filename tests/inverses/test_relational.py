"""Rows kept, cut, joined and put together hold every promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from inverses.registry import Registry
from pipelines.boxes.relational import Distinct, FilterRows, Join, Project, Union
from tests.inverses.cases import Case, check, small_tables
from tests.laws import Items

REGISTRY = Registry.of()
MANY = settings(max_examples=max(300, settings().max_examples))
Rows = list[dict[str, Any]]
Given = Mapping[str, Rows]

KEEPS = {
    "x > 0": lambda r: r["x"] > 0,
    "not (k = 1 or x < 0.5)": lambda r: not (r["k"] == 1 or r["x"] < 0.5),
    "s in ('a', 'b') and y <> 0": lambda r: r["s"] in "ab" and r["y"] != 0,
    "s = 'p'": lambda r: r["s"] == "p",
}


@MANY
@given(rows=small_tables(), where=st.sampled_from(sorted(KEEPS)))
def test_filter_rows_holds_every_promise(rows: Any, where: str) -> None:
    def forward(given: Given) -> Rows:
        return [r for r in given["rows"] if KEEPS[where](r)]

    check(Case(FilterRows(where), {"rows": rows}, forward), REGISTRY)


@MANY
@given(rows=small_tables(), names=st.sampled_from(["k", "x, s", "y, x, k, s"]))
def test_project_holds_every_promise(rows: Any, names: str) -> None:
    def forward(given: Given) -> Rows:
        return [{n: r[n] for n in names.split(", ")} for r in given["rows"]]

    check(Case(Project(names), {"rows": rows}, forward), REGISTRY)


def same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


@MANY
@given(
    left=small_tables(("k", "s", "x"), most=5),
    right=small_tables(("k", "s", "y"), most=5) | small_tables(("k", "x", "s"), most=5),
    on=st.sampled_from(["k", "s, k"]),
)
def test_join_holds_every_promise(left: Any, right: Any, on: str) -> None:
    keys = on.split(", ")
    shared = {*left.columns} & {*right.columns} - {*keys}

    def forward(given: Given) -> Rows:
        return [
            {f"{n}_left" if n in shared else n: v for n, v in a.items()}
            | {f"{n}_right" if n in shared else n: v for n, v in b.items() if n not in keys}
            for a in given["left"]
            for b in given["right"]
            if all(same(a[k], b[k]) for k in keys)
        ]

    check(Case(Join(on), {"left": left, "right": right}, forward), REGISTRY)


@MANY
@given(left=small_tables(("x", "k"), most=5), right=small_tables(("y", "x"), most=5))
def test_a_join_on_numbers_pairs_missing_ones(left: Any, right: Any) -> None:
    def forward(given: Given) -> Rows:
        return [
            {**a, "y": b["y"]}
            for a in given["left"]
            for b in given["right"]
            if same(a["x"], b["x"])
        ]

    check(Case(Join("x"), {"left": left, "right": right}, forward), REGISTRY)


def equal_rows(given: Given, port: str, datum: Mapping[str, Any]) -> Items:
    rows = enumerate(given[port])
    return {(n,) for n, r in rows if all(same(v, r[c]) for c, v in datum.items())}


@MANY
@given(rows=small_tables(("k", "x")))
def test_distinct_holds_every_promise(rows: Any) -> None:
    def forward(given: Given) -> Rows:
        found: Rows = []
        for row in given["rows"]:
            if not any(all(same(v, f[c]) for c, v in row.items()) for f in found):
                found.append(row)
        return found

    check(Case(Distinct(), {"rows": rows}, forward, truth=equal_rows), REGISTRY)


@MANY
@given(first=small_tables(("k", "x")), second=small_tables(("x", "k")))
def test_union_holds_every_promise(first: Any, second: Any) -> None:
    def forward(given: Given) -> Rows:
        return [*given["first"], *given["second"]]

    check(Case(Union(), {"first": first, "second": second}, forward), REGISTRY)
