"""Traces through both boxes hold the laws of one, against brute force through both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses import candidates
from inverses.outline import outline
from inverses.registry import Registry
from pipelines.arrays import coordinate
from pipelines.datasets import Location, Table, Time
from tests import laws, oracles, skies
from tests.inverses import wrong
from tests.inverses.truths import boxes_of
from tests.inverses.wrong import REGISTRY
from tests.oracles import fused
from tests.skies import Story

FEW = settings().max_examples // 25
QUESTIONS = (((), "exact"), (("track",), "complete"), (("track",), "pure"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stories")


def narrows(story: Story, registry: Registry) -> None:
    """No trace of many answers what the outline of one of them alone does not hold."""
    for asked in QUESTIONS if story.keys else ():
        found = skies.every(story.answer(*asked, registry))
        for row, key in enumerate(story.keys):
            said = outline(story.planned(*asked, registry, only=row))
            for name in ("minima", "field"):
                dataset = story.datasets[name]
                boxes = boxes_of(said[dataset.key])
                answer = {item[-3:] for item in found[key][name]}
                laws.narrowing(answer, oracles.held(boxes, _items(dataset)))


def _items(dataset: Any) -> dict[Any, dict[str, Any]]:
    """All rows or cells of a dataset, by step, row and column."""
    if isinstance(dataset, Table):
        rows = laws.rows_of(dataset)
        return dict(zip(laws.indices(rows), rows.to_pylist(), strict=True))
    return {c: dict(zip(dataset.dims, c, strict=True)) for c in np.ndindex(dataset.shape)}


def composes(story: Story, registry: Registry) -> None:
    """Hop by hop finds every source cell that can take a point's place or number from it."""
    matter = fused.that_matter(_air(story), _rules(story))
    if not story.keys:
        return
    places = skies.every(story.answer((), "exact", registry))
    numbers = skies.every(story.answer(("track",), "complete", registry))
    for key in story.keys:
        laws.composition(places[key]["field"], matter["place"][key])
        laws.composition(numbers[key]["field"], matter["number"][key])


def _air(story: Story) -> fused.Air:
    field: Any = story.datasets["field"]
    times = coordinate(field, "time")
    hours = ((times - times[0]) / np.timedelta64(1, "h")).tolist()
    places = (coordinate(field, d).tolist() for d in ("lat", "lon"))
    return fused.Air(*story.sky.air.values(), hours, *places)


def _rules(story: Story) -> fused.Rules:
    identify, sky = story.sky.identify, story.sky
    linking = (identify.near_km, identify.far_km, identify.min_points)
    return fused.Rules(sky.extract.margin, sky.circular, *linking)


def told(data: st.DataObject, home: Path) -> Story:
    return data.draw(skies.stories(data.draw(skies.skies()), home))


@given(data=st.data())
@settings(max_examples=FEW)
def test_nothing_is_answered_outside_the_outline_drawn_at_once(
    data: st.DataObject, home: Path
) -> None:
    narrows(told(data, home), REGISTRY)


@given(data=st.data())
@settings(max_examples=2 * FEW)
def test_every_source_cell_that_can_change_a_track_point_is_found_hop_by_hop(
    data: st.DataObject, home: Path
) -> None:
    composes(told(data, home), REGISTRY)


@given(data=st.data())
@settings(max_examples=FEW)
def test_both_boxes_run_one_after_the_other_follow_their_rules(
    data: st.DataObject, home: Path
) -> None:
    story = told(data, home)
    air, rules = _air(story), _rules(story)
    expected = fused.numbers(air, oracles.minima(air.slp, rules.margin, rules.wraps), rules)
    assert story.numbers == expected


SAYING = {narrows: "answered but never said", composes: "lost between hops"}
WRONG: dict[str, tuple[Callable[[Story, Registry], None], str, dict[str, Any]]] = {
    "forgets the outer ring": (composes, "neighbourhood", {"function": wrong.too_near}),
    "forgets the wind": (composes, "cone", {"yields": (Time, Location)}),
    "takes a track for a point": (composes, "cone", {"function": wrong.only_the_point}),
}


# It takes most of a minute to find skies in which the wind, and nothing else, is missed.
SLOW = {"forgets the wind": pytest.mark.night}


@pytest.mark.parametrize("case", [pytest.param(c, marks=SLOW.get(c, ())) for c in WRONG])
def test_a_wrong_inverse_is_caught_at_the_end_of_a_trace(case: str, home: Path) -> None:
    law, name, changed = WRONG[case]
    registry = wrong.registry_with(name, **changed)
    wrong.assert_caught(lambda data: law(told(data, home), registry), SAYING[law])


def test_a_trace_that_gives_whole_row_groups_is_caught(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every_row = candidates.tables.rows_in
    monkeypatch.setattr(
        candidates.tables, "rows_in", lambda rows, filter_: every_row(rows, filter_.only())
    )
    wrong.assert_caught(lambda data: narrows(told(data, home), REGISTRY), SAYING[narrows])
