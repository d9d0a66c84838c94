"""Rows kept, cut, joined and put together hold every promise; wrong inverses are caught."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses.boxes.relational import left_part
from inverses.registry import Registry
from pipelines.boxes.relational import Distinct, FilterRows, Join, Project, SplitRows, Union
from pipelines.contents import held_table
from pipelines.datasets import Attribute, Quantity, Table
from pipelines.errors import Refused
from pipelines.filters import Filter, where
from pipelines.spans import span
from tests.inverses.cases import Case, check, small_tables
from tests.inverses.families import MANY, PATIENCE
from tests.inverses.wrong import assert_caught, registry_with
from tests.laws import Items

REGISTRY = Registry.of()
pytestmark = PATIENCE
Rows = list[dict[str, Any]]
Given = Mapping[str, Rows]

KEEPS = {
    "x > 0": lambda r: r["x"] > 0,
    "not (k = 1 or x < 0.5)": lambda r: not (r["k"] == 1 or r["x"] < 0.5),
    "s in ('a', 'q') and x <> 0": lambda r: r["s"] in "aq" and r["x"] != 0,
    "s = 'p' and x between -1 and 2": lambda r: r["s"] == "p" and -1 <= r["x"] <= 2,
}


@st.composite
def kept(draw: st.DrawFn, kind: type[FilterRows] = FilterRows) -> Case:
    where = draw(st.sampled_from(sorted(KEEPS)))
    rows = draw(small_tables(("k", "s", "x"), most=5))
    return Case(kind(where), {"rows": rows}, lambda g: [r for r in g["rows"] if KEEPS[where](r)])


@st.composite
def left_over(draw: st.DrawFn) -> Case:
    where = draw(st.sampled_from(sorted(KEEPS)))
    rest = SplitRows(where).besides()["rest"].box
    rows = draw(small_tables(("k", "s", "x"), most=5))
    return Case(rest, {"rows": rows}, lambda g: [r for r in g["rows"] if not KEEPS[where](r)])


def split() -> st.SearchStrategy[Case]:
    return kept(SplitRows)


@st.composite
def cut(draw: st.DrawFn) -> Case:
    names = draw(st.sampled_from(["k", "x, s", "y, x, s"]))
    rows = draw(small_tables(("s", "x", "y") if "y" in names else ("k", "s", "x"), most=5))
    return Case(
        Project(names),
        {"rows": rows},
        lambda g: [{n: r[n] for n in names.split(", ")} for r in g["rows"]],
    )


def same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


@st.composite
def joined(draw: st.DrawFn) -> Case:
    keys = draw(st.sampled_from(["k", "s, k", "x"]))
    left = draw(small_tables(("k", "s") if keys == "s, k" else ("k", "x"), most=4))
    right = draw(small_tables(("s", "k", "x") if keys == "s, k" else ("x", "k"), most=4))
    on = keys.split(", ")
    shared = {*left.columns} & {*right.columns} - {*on}

    def forward(given: Given) -> Rows:
        return [
            {f"{n}_left" if n in shared else n: v for n, v in a.items()}
            | {f"{n}_right" if n in shared else n: v for n, v in b.items() if n not in on}
            for a in given["left"]
            for b in given["right"]
            if all(same(a[k], b[k]) for k in on)
        ]

    return Case(Join(keys), {"left": left, "right": right}, forward)


def equal_rows(given: Given, port: str, datum: Mapping[str, Any]) -> Items:
    rows = enumerate(given[port])
    return {(n,) for n, r in rows if all(same(v, r[c]) for c, v in datum.items())}


def once_each(given: Given) -> Rows:
    found: Rows = []
    for row in given["rows"]:
        if not any(all(same(v, f[c]) for c, v in row.items()) for f in found):
            found.append(row)
    return found


@st.composite
def once(draw: st.DrawFn) -> Case:
    return Case(
        Distinct(), {"rows": draw(small_tables(("k", "x"), most=5))}, once_each, truth=equal_rows
    )


@st.composite
def united(draw: st.DrawFn) -> Case:
    inputs = {
        "first": draw(small_tables(("k", "x"), most=4)),
        "second": draw(small_tables(("x", "k"), most=4)),
    }
    return Case(Union(), inputs, lambda g: [*g["first"], *g["second"]])


WORLDS: dict[Any, st.SearchStrategy[Case]] = {
    FilterRows: kept(),
    SplitRows: split(),
    "the rest": left_over(),
    Project: cut(),
    Join: joined(),
    Distinct: once(),
    Union: united(),
}


@pytest.mark.parametrize("kind", WORLDS)
def test_every_promise_holds(kind: Any) -> None:
    @settings(max_examples=MANY)
    @given(case=WORLDS[kind])
    def holds(case: Case) -> None:
        check(case, REGISTRY)

    holds()


def first_column_only(box: object, at: Filter, source: Table) -> Filter:
    """It takes one equal column for an equal row."""
    return at.only(source.columns[0])


def by_keys_only(box: Join, at: Filter, source: Table) -> Filter:
    """It takes all partners for this one."""
    return at.only(*box.on)


def other_side(box: Join, at: Filter, source: Table) -> Filter:
    """It takes the left row's values for the right one's."""
    names = {c: at.span(c + box.left_suffix) for c in source.columns}
    return at.to(**names)


def of_right(box: Join, at: Filter, source: Table) -> Filter:
    """It takes the right row's values for the left one's."""
    return at.to(**{c: at.span(c + box.right_suffix) for c in source.columns})


WRONG: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "one column for all": (cut, "same_values", {"function": first_column_only}),
    "one column for all of a filter": (kept, "kept_values", {"function": first_column_only}),
    "one column for all of a split": (split, "kept_values", {"function": first_column_only}),
    "one column for all of the rest": (left_over, "kept_values", {"function": first_column_only}),
    "one column for all that are united": (
        united,
        "same_values",
        {"function": first_column_only, "kind": Union},
    ),
    "one column for all that are distinct": (
        once,
        "same_values",
        {"function": first_column_only, "kind": Distinct},
    ),
    "all partners for the left one": (joined, "left_part", {"function": by_keys_only}),
    "right for left": (joined, "left_part", {"function": of_right}),
    "all partners for one": (joined, "right_part", {"function": by_keys_only}),
    "left for right": (joined, "right_part", {"function": other_side}),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_inverse_is_caught(fault: str) -> None:
    cases, name, changed = WRONG[fault]
    registry = registry_with(name, **changed)
    assert_caught(lambda data: check(data.draw(cases()), registry), "missing|not behind it")


ATTRIBUTES = tuple(Attribute(c, Quantity, (c,)) for c in "kx")


def test_what_cannot_be_is_refused_when_a_pipeline_is_checked() -> None:
    rows = {"rows": ATTRIBUTES}
    with pytest.raises(Refused, match='no column "z" for box "filter_rows"'):
        FilterRows("z > 0").attributes_of(rows)
    with pytest.raises(Refused, match='no column "z" for box "project"'):
        Project("k, z").attributes_of(rows)
    with pytest.raises(Refused, match="name at least one"):
        Project("").attributes_of(rows)
    with pytest.raises(Refused, match='no column "s" for box "join"'):
        Join("k, s").attributes_of({"left": ATTRIBUTES, "right": ATTRIBUTES})
    with pytest.raises(Refused, match='only the first table has a column "x"'):
        Union().attributes_of({"first": ATTRIBUTES, "second": ATTRIBUTES[:1]})


def test_a_joined_name_that_is_taken_already_is_refused() -> None:
    taken = (*ATTRIBUTES, Attribute("x_right", Quantity, ("x_right",)))
    said = 'there is a column "x_right" already; choose another right_suffix'
    with pytest.raises(Refused, match=said):
        Join("k").attributes_of({"left": taken, "right": ATTRIBUTES})
    with pytest.raises(Refused, match='"x" already; choose another left_suffix'):
        Join("k", left_suffix="").attributes_of({"left": ATTRIBUTES, "right": ATTRIBUTES})


def test_names_that_joining_leaves_alone_may_be_like_suffixed_ones() -> None:
    left, right = (tuple(Attribute(c, Quantity, (c,)) for c in cs.split(", "))
                   for cs in ("k, x, x_left, k_left, max wind", "k, y"))  # fmt: skip
    for box in (Join("k"), Join("k", "", "")):
        names = [a.name for a in box.attributes_of({"left": left, "right": right})]
        assert names == ["k", "x", "x_left", "k_left", "max wind", "y"]
    both = Join("k").attributes_of({"left": left[::4], "right": left[::4]})
    assert [a.name for a in both] == ["k", "max wind_left", "max wind_right"]


def test_a_region_of_what_looks_suffixed_is_told_from_one_of_what_is_not() -> None:
    rows = pa.table({c: [1.0] for c in ("k", "x", "x_left")})
    attributes = tuple(Attribute(c, Quantity, (c,)) for c in rows.column_names)
    side = held_table("side", attributes, rows)
    assert str(left_part(Join("k"), where(x_left=span(3.0)), side)) == "x_left = 3"
    assert str(left_part(Join("k"), where(k_left=span(3.0)), side)) == "everything"
    assert str(left_part(Join("x"), where(k_left=span(3.0)), side)) == "k = 3"


def test_a_joined_attribute_that_both_sides_have_is_named_for_its_side() -> None:
    made = Join("k").attributes_of({"left": ATTRIBUTES, "right": ATTRIBUTES})
    assert [a.name for a in made] == ["k", "x_left", "x_right"]
