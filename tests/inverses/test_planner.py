"""The planner chooses the functions that give the wish, and says what it cannot have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from inverses import words
from inverses.guarantees import COMPLETE, EXACT, PURE, Guarantee, Property, goals, names
from inverses.outline import combined, outline, parts_of
from inverses.planner import plan
from inverses.plans import Plan
from inverses.registry import AGGREGATE, ANY, Registry, verifies, weakly_inverts
from inverses.selection import Selection
from pipelines.boxes.box import Port, TableBox
from pipelines.copied import Copied
from pipelines.datasets import Attribute, Made, Table, Type
from pipelines.errors import Refused
from pipelines.filters import Filter
from pipelines.spans import span

Key, Total = Type("Key"), Type("Total")
FRESH = Property("fresh", unites=True)


@dataclass(frozen=True)
class Summed(TableBox):
    """Totals by key."""

    name = "summed"
    takes = (Port("rows", "table"),)
    makes = (Attribute("key", Key, ("key",)), Attribute("total", Total, ("total",)))
    asks = ("key", "total")
    contributed = "All rows of the key."

    def run(self, inputs: Any, spark: Any) -> Any:
        raise AssertionError("plans run nothing")


@dataclass(frozen=True)
class Told(TableBox):
    """The same rows."""

    name = "told"
    takes = Summed.takes
    makes = Summed.makes
    asks = Summed.asks
    contributed = "The row."

    def run(self, inputs: Any, spark: Any) -> Any:
        raise AssertionError("plans run nothing")


def same_key(box: Summed, at: Filter, source: Table) -> Filter:
    return at.to(key=at.span("key"))


def table(name: str, made: Made | None = None) -> Table:
    types = {"key": "int64", "total": "int64"}
    attributes = Summed.makes
    return Table(name=name, version="v1", path="", attributes=attributes, types=types, made=made)


def planned(
    registry: Registry,
    wish: Guarantee,
    *asked: str,
    steps: int = 1,
    made_by: tuple[str, ...] = (),
) -> Plan:
    """The plan for one row of the last of a few sums of sums, or of what was made by others."""
    datasets = {"t0": table("t0")}
    made_by = made_by or ("summed",) * steps
    for n, box in enumerate(made_by, 1):
        made = Made(box, f"t{n}", {}, {"rows": (f"t{n - 1}", "v1")}, "run")
        datasets[f"t{n}"] = table(f"t{n}", made)
    workspace: Any = SimpleNamespace(dataset=lambda name, version=None: datasets[name])
    at = Filter(np.arange(1), {"key": span(3), "total": span(9)})
    return plan(workspace, Selection(datasets[f"t{len(made_by)}"], None, asked, at), wish, registry)


def registry(*functions: Any) -> Registry:
    """A registry of two boxes and some registered functions."""
    named = {f"f{n}": f for n, f in enumerate(functions)}
    module: Any = SimpleNamespace(Summed=Summed, Told=Told, **named)
    return Registry.from_modules([module])


def weak(promises: Guarantee, box: type[TableBox] = Summed, **stated: Any) -> Any:
    def function(box: TableBox, at: Filter, source: Table) -> Filter:
        return at.to(key=at.span("key"))

    stated = {"image": Key, "yields": [Key], "promises": promises, **stated}
    return weakly_inverts(box, **stated)(function)


def verification(promises: Guarantee, needs: Guarantee, **stated: Any) -> Any:
    def function(box: Summed, at: Any, seen: Any, source: Table) -> Any:
        return np.ones(len(seen["key"]), bool)

    stated = {"image": Key, "yields": [Key], "promises": promises, "needs": needs, **stated}
    return verifies(Summed, **stated)(function)


def test_without_inverses_the_answer_is_everything_and_complete() -> None:
    found = planned(registry(), EXACT)
    assert found.guarantee == {COMPLETE}
    assert found.unmet == {PURE}
    assert outline(found)["t0", "v1"].text() == "everything"


def test_a_verification_is_used_if_its_condition_can_be_met() -> None:
    known = registry(weak(frozenset({COMPLETE})), verification(EXACT, frozenset({COMPLETE})))
    (level,) = planned(known, EXACT).hops[0].levels
    assert [len(i.verify) for i in level.inversions] == [1]
    assert level.guarantee == EXACT


def test_a_verification_whose_condition_cannot_be_met_is_dropped() -> None:
    known = registry(weak(frozenset({COMPLETE})), verification(EXACT, frozenset({PURE})))
    found = planned(known, EXACT)
    assert found.hops[0].levels[0].inversions[0].verify == ()
    assert found.guarantee == {COMPLETE}


def test_a_default_weak_inverse_serves_a_verification_that_needs_completeness() -> None:
    found = planned(registry(verification(EXACT, frozenset({COMPLETE}))), EXACT)
    assert [w.name for w in found.hops[0].levels[0].inversions[0].weak] == ["everything"]
    assert found.guarantee == EXACT


def test_pure_is_wished_for_where_only_pure_can_be_had() -> None:
    known = registry(weak(frozenset({PURE})))
    assert planned(known, frozenset({PURE})).guarantee == {PURE}
    assert planned(known, EXACT).guarantee == {COMPLETE}


def test_a_property_is_lost_at_the_first_hop_that_lacks_it() -> None:
    only_there = registry(weak(EXACT, port="rows"))
    assert planned(only_there, EXACT, steps=3).guarantee == EXACT
    lacking = registry(weak(frozenset({COMPLETE})))
    assert planned(lacking, EXACT, steps=3).guarantee == {COMPLETE}


def test_a_box_that_is_not_deterministic_promises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Summed, "deterministic", False)
    assert planned(registry(weak(EXACT)), EXACT).guarantee == set()


def test_a_plan_tells_where_what_newly_came_up_could_change_what_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = registry(weak(EXACT))
    assert words.newcomers(planned(known, EXACT)) == []
    (said,) = words.newcomers(planned(known, EXACT, steps=3))
    assert said == (
        "complete for what was there: if something else were absent, what newly came up in t2 "
        "could change t3 and what newly came up in t1 could change t2"
    )
    monkeypatch.setattr(Summed, "monotone", True)
    assert words.newcomers(planned(known, EXACT, steps=3)) == []


def test_a_plan_of_an_incomplete_answer_tells_of_no_newcomers() -> None:
    known = registry(weak(frozenset({PURE})))
    assert words.newcomers(planned(known, frozenset({PURE}), steps=3)) == []


def told_of(found: Plan) -> list[str]:
    """From which datasets newcomers are told of."""
    return [hop.source.name for hop in found.open_to_newcomers]


def test_newcomers_are_told_of_as_far_back_as_the_answer_is_complete() -> None:
    found = planned(registry(weak(EXACT)), EXACT, steps=3)
    *nearer, last = found.hops
    (level,) = last.levels
    last = replace(last, levels=(replace(level, guarantee=frozenset({PURE})),))
    assert told_of(found) == ["t2", "t1"]
    assert told_of(replace(found, hops=(*nearer, last))) == ["t2"]


def test_what_newly_came_up_cannot_change_selected_attributes_that_are_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Summed, "alone", lambda box, asked: Copied(("key",)))
    assert told_of(planned(registry(weak(EXACT)), EXACT, steps=2)) == []
    # Whether the row behind them is there is another matter.
    assert told_of(planned(registry(weak(EXACT)), EXACT, steps=3)) == ["t1"]


def test_attributes_that_have_only_defaults_are_left_out_when_others_can_answer() -> None:
    found = planned(registry(weak(EXACT)), EXACT)
    assert found.attributes == ["key"]
    assert planned(registry(weak(EXACT)), EXACT, "total").attributes == ["total"]


def test_complete_sets_of_one_attribute_intersect_and_pure_sets_unite() -> None:
    def wide(box: Summed, at: Filter, source: Table) -> Filter:
        key = at.span("key")
        return at.to(key=key and key.grown(2))

    for promise, expected in (({COMPLETE}, "key = 3"), ({PURE}, "(key = 3) or (key 1..5)")):
        wider = weakly_inverts(Summed, image=Key, yields=[Key], promises=promise)(
            lambda box, at, source: wide(box, at, source)
        )
        known = registry(weak(frozenset(promise)), wider)
        found = planned(known, frozenset(promise))
        hop = found.hops[0]
        parts = parts_of(hop, hop.levels[0], found.selection.at)
        assert combined(parts).text() == expected


def test_scalar_attributes_intersect_and_aggregate_ones_unite() -> None:
    def total(box: Summed, at: Filter, source: Table) -> Filter:
        return at.to(total=at.span("total"))

    for nature, word in (("scalar", "intersect"), (AGGREGATE, "unite")):
        other = weakly_inverts(Summed, image=Total, yields=[Total], nature=nature, promises=EXACT)
        found = planned(registry(weak(EXACT), other(total)), EXACT)
        level = found.hops[0].levels[0]
        parts = parts_of(found.hops[0], level, found.selection.at)
        both = {"intersect": "key = 3 and total = 9", "unite": "(key = 3) or (total = 9)"}
        assert level.combination == word
        assert combined(parts).text() == both[word]


def test_a_users_own_property_is_planned_for_like_any_other() -> None:
    known = registry(weak(frozenset({PURE, FRESH})))
    found = planned(known, frozenset({PURE, FRESH}), steps=2)
    assert names(found.guarantee) == ["pure", "fresh"]
    assert planned(registry(weak(EXACT)), EXACT | {FRESH}).unmet == {FRESH}
    assert goals(frozenset({FRESH}))[-1] == {COMPLETE}


def test_a_name_settles_what_a_type_leaves_open() -> None:
    both = (*Summed.makes, Attribute("other", Key, ("other",)))
    twice = replace(table("t"), attributes=both)
    (stated,) = weak(EXACT, named="other").registrations
    assert stated.fits(both[2], "rows", twice, "tuple")
    assert not stated.fits(both[0], "rows", twice, "tuple")
    (named,) = weak(EXACT, yields=["other"]).registrations
    (nobody,) = weak(EXACT, yields=["nobody"]).registrations
    assert named.fits(both[0], "rows", twice, "tuple")
    assert not nobody.fits(both[0], "rows", twice, "tuple")


def test_a_box_that_nobody_named_is_asked_for() -> None:
    with pytest.raises(Refused, match="name its module with --boxes"):
        planned(Registry.from_modules([]), EXACT)


def test_what_a_default_found_is_asked_about_whole() -> None:
    """Everything was found, so everything behind everything is asked for."""
    found = planned(registry(weak(EXACT, named="key", image=Key)), EXACT, "total", steps=2)
    assert [i.attribute for i in found.hops[1].levels[0].inversions] == ["key", "total"]
    assert found.guarantee == {COMPLETE}


def test_an_attribute_that_a_hop_asks_for_is_not_left_out() -> None:
    """A person may be answered in part, and is told so; a hop has nobody to tell."""
    found = planned(registry(weak(EXACT, yields=[Key, Total])), EXACT, steps=2)
    last = found.hops[1].levels[0]
    assert [(i.attribute, i.by_default) for i in last.inversions] == [
        ("key", False),
        ("total", True),
    ]
    assert found.guarantee == {COMPLETE}


def test_attributes_that_only_some_rows_are_asked_about_cut_nobodys_answer() -> None:
    """Total leads to rows asked about their total alone: key may not be intersected with it."""
    of_total = {"image": Total, "yields": [Total], "nature": AGGREGATE}
    known = registry(weak(EXACT), weak(EXACT, **of_total), weak(EXACT, image=Total, yields=[Total]))
    found = planned(known, EXACT, steps=2)
    assert {i.nature for i in found.hops[1].levels[0].inversions} == {AGGREGATE}
    assert found.guarantee == {COMPLETE}


def test_which_attributes_rows_are_asked_about_does_not_matter_where_all_find_the_same() -> None:
    apart = [weak(EXACT, image=t, yields=[t], nature=AGGREGATE) for t in (Key, Total)]
    one = weak(EXACT, Told, image=ANY, nature=AGGREGATE)
    two = [weak(EXACT, Told, image=t, nature=AGGREGATE) for t in (Key, Total)]
    for told, guarantee in (([one], EXACT), (two, {COMPLETE})):
        found = planned(registry(*apart, *told), EXACT, made_by=("told", "summed"))
        assert found.guarantee == guarantee


def test_the_order_of_registration_does_not_matter() -> None:
    needs_fresh = verification(EXACT, frozenset({FRESH}))
    needs_complete = verification(EXACT, frozenset({COMPLETE}))
    for both in ((needs_fresh, needs_complete), (needs_complete, needs_fresh)):
        assert planned(registry(weak(frozenset({COMPLETE})), *both), EXACT).guarantee == EXACT


def test_a_weak_inverse_that_restricts_what_is_not_there_is_refused() -> None:
    def misspelt(box: Summed, at: Filter, source: Table) -> Filter:
        return at.to(kye=at.span("key"))

    stated = weakly_inverts(Summed, image=Key, yields=[Key], promises=EXACT)(misspelt)
    with pytest.raises(Refused, match='restricts "kye"'):
        outline(planned(registry(stated), EXACT))


def test_a_box_whose_rule_has_changed_since_the_run_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Summed, "version", "2")
    with pytest.raises(Refused, match="version 1 when it ran"):
        planned(registry(weak(EXACT)), EXACT)
