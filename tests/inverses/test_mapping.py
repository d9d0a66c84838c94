"""Mapped rows hold every promise, and ranges are pushed through formulas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import hypot, inf, nan
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses.boxes.mapping import unmapped
from inverses.guarantees import EXACT
from inverses.making import made_by
from inverses.outline import prices
from inverses.planner import plan
from inverses.recipes import recipes
from inverses.registry import Registry
from inverses.selection import Selection
from inverses.trials import data_of
from inverses.words import restrictions
from pipelines.boxes.box import Box
from pipelines.boxes.groups import RankRows
from pipelines.boxes.mapping import MapRows
from pipelines.boxes.relational import FilterRows
from pipelines.contents import held_table
from pipelines.datasets import Attribute, Location, Made, Quantity, Table
from pipelines.errors import Refused
from pipelines.filters import Filter, where
from pipelines.spans import Span, span
from pipelines.tables import touched
from tests.inverses.cases import Case, check, small_tables
from tests.inverses.families import MANY, PATIENCE
from tests.inverses.wrong import assert_caught, registry_with

REGISTRY = Registry.of()
pytestmark = PATIENCE
Rows = list[dict[str, Any]]

FORMULAS = {
    "2 * x - 1": lambda r: 2 * r["x"] - 1,
    "x * y + k": lambda r: r["x"] * r["y"] + r["k"],
    "sqrt(x ** 2 + y ** 2)": lambda r: hypot(r["x"], r["y"]),
    "max(x, 0) / (k + 1)": lambda r: (nan if r["x"] != r["x"] else max(r["x"], 0)) / (r["k"] + 1),
    "7": lambda r: 7.0,
}


@st.composite
def mapped(draw: st.DrawFn) -> Case:
    formula = draw(st.sampled_from(sorted(FORMULAS)))

    def forward(given: Mapping[str, Rows]) -> Rows:
        return [{**r, "z": FORMULAS[formula](r)} for r in given["rows"]]

    rows = draw(small_tables(("k", "x", "y"), most=5))
    return Case(MapRows("z", formula), {"rows": rows}, forward)


WORLDS = {MapRows: mapped()}


@settings(max_examples=MANY)
@given(case=WORLDS[MapRows])
def test_map_rows_holds_every_promise(case: Case) -> None:
    check(case, REGISTRY)


def as_if_twice(box: MapRows, at: Filter, source: Table) -> Filter:
    """It pushes every range through the same formula, whatever the box's is."""
    wanted = at.span("z")
    x = wanted and Span(wanted.low / 2, wanted.high / 2)
    return at.only("k", "y") & at.to(x=x)


def test_a_range_pushed_through_another_formula_is_caught() -> None:
    registry = registry_with("unmapped", function=as_if_twice)
    saying = "missing|not behind it|unfaithful"
    assert_caught(lambda data: check(data.draw(mapped()), registry), saying)


@settings(max_examples=MANY)
@given(
    rows=small_tables(("k", "x", "y"), least=1),
    formula=st.sampled_from(sorted(FORMULAS)),
    ends=st.tuples(*[st.sampled_from([-inf, -4.0, -1.0, 0.0, 1.5, 6.0, inf])] * 2),
    besides=st.sampled_from(["", "x", "y", "k"]),
)
def test_a_pushed_range_loses_no_row(
    rows: Table, formula: str, ends: tuple[float, float], besides: str
) -> None:
    low, high = sorted(ends)
    region = {"z": span(low, high), **({besides: span(-1.0, 2.0)} if besides else {})}
    found = unmapped(MapRows("z", formula), where(**region), rows)
    for number, row in enumerate(rows.content.rows.to_pylist()):
        value = FORMULAS[formula](row)
        mapped = low <= value <= high and (not besides or -1.0 <= row[besides] <= 2.0)
        assert not mapped or _held(found, row), f"row {number} maps to {value}"


def _held(found: Any, row: Mapping[str, Any]) -> bool:
    boxes = range(len(found))
    return any(all(s.low[n] <= row[c] <= s.high[n] or s.open[n] for c, s in found.spans.items())
               for n in boxes)  # fmt: skip


def employees(count: int) -> Table:
    salaries = pa.table({"salary": np.arange(count) * 100.0, "age": np.arange(count) % 40 + 20})
    attributes = tuple(Attribute(c, Quantity, (c,)) for c in salaries.column_names)
    return held_table("employees", attributes, salaries, in_group=100)


def test_a_bound_on_a_mapped_column_prunes_row_groups_before_the_formula_is_worked_out() -> None:
    table = employees(2000)
    taxed = MapRows("tax", "max(0.42 * salary - 8000, 0)")
    pushed = unmapped(taxed, where(tax=span(30_000.0, inf)), table)
    assert pushed.text().startswith("salary 90476.2..")
    groups = [number for number, _ in touched(table, pushed)]
    assert groups == list(range(9, 20)), "the salaries of the first nine groups are all below"


def test_a_predicate_on_a_mapped_column_is_pushed_through_both_boxes() -> None:
    """The paper's query: `select .. where tax(salary) > 30000`, with `salary` restricted too."""
    table = employees(2000)
    taxed = made("taxed", MapRows("tax", "max(0.42 * salary - 8000, 0)"), table)
    rich = made("rich", FilterRows("tax > 30000 and age < 60"), taxed)
    known = recipes([table, taxed, rich], REGISTRY)
    on_taxed = known[rich.key].region("rows", where())
    on_salaries = known[taxed.key].region("rows", on_taxed)
    assert on_taxed.text() == "tax 30000..inf and age -9223372036854775808..60"
    assert on_salaries.text().startswith("age -9223372036854775808..60 and salary 90476.2")
    assert len(touched(table, on_salaries)) == 11, "of 20 row groups"


def test_a_plan_shows_a_restriction_and_what_it_becomes_before_the_formula() -> None:
    table = employees(2000)
    taxed = made("taxed", MapRows("tax", "max(0.42 * salary - 8000, 0)"), table)
    there = SimpleNamespace(dataset=lambda name, version: {"employees": table}[name])
    rich = data_of(taxed)[np.arange(1990, 2000)]
    asked = Selection(taxed, "tax > 75500", (), rich)
    planned = plan(cast(Any, there), asked, EXACT, REGISTRY)
    priced = prices(planned)
    assert [p.chunks for p in priced] == [1], "of 20 row groups"
    first, second = restrictions(planned, priced)
    assert first.startswith("taxed where tax > 75500")
    assert "taxed → employees: 10 boxes within" in second
    assert "salary 199000..199900" in second


def made(name: str, box: Box, rows: Table) -> Table:
    found = replace(made_by(box, {"rows": rows}), name=name)
    return cast(
        Table, replace(found, made=Made(box.name, name, box.params(), {"rows": rows.key}, "r"))
    )


def test_a_bound_that_nothing_can_reach_keeps_nothing() -> None:
    taxed = MapRows("tax", "max(0.42 * salary - 8000, 0)")
    assert not len(unmapped(taxed, where(tax=span(-5.0, -1.0)), employees(10)))


def test_formulas_are_checked_when_a_pipeline_is() -> None:
    attributes = {"rows": employees(1).attributes}
    with pytest.raises(Refused, match=r'no column "salry" .*did you mean "salary"'):
        MapRows("tax", "salry * 2").attributes_of(attributes)
    with pytest.raises(Refused, match='there is a column "age" already'):
        MapRows("age", "salary * 2").attributes_of(attributes)
    with pytest.raises(Refused, match="cannot use"):
        MapRows("tax", "salary.__class__").attributes_of(attributes)


def test_a_new_column_is_not_called_like_several_columns_together() -> None:
    rows = (Attribute("location", Location, ("lat", "lon")),)
    for box in (MapRows("location", "lat"), RankRows("lat", called="location")):
        with pytest.raises(Refused, match='an attribute "location" already, which has lat, lon;'):
            box.attributes_of({"rows": rows})


def test_texts_are_no_numbers_to_a_formula() -> None:
    names = held_table("n", (Attribute("s", Quantity, ("s",)),), pa.table({"s": ["a"]}))
    with pytest.raises(Refused, match='"s" is string; a formula takes numbers'):
        MapRows("z", "s + 1").schema({"rows": names})
