"""Every registered inverse holds every law, over every world; a wrong one is caught."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses.guarantees import COMPLETE, EXACT, FAITHFUL, PURE
from inverses.registry import Registry, Verification, WeakInverse
from pipelines.datasets import ELEMENT, TUPLE
from pipelines.filters import where
from pipelines.linking import linked, points_of
from pipelines.tables import held
from tests import laws, oracles, strategies
from tests.inverses import wrong
from tests.inverses.families import PATIENCE
from tests.inverses.truths import TRUTHS, said, truth
from tests.inverses.wrong import REGISTRY
from tests.laws import Items
from tests.strategies import World

pytestmark = PATIENCE
MANY = max(300, settings().max_examples)
A_THIRD = MANY // 3


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("worlds")


def check(world: World, registry: Registry, *only: str) -> None:
    """Every law, or only some, for every inverse registered for a world's box and every row."""
    at = laws.selection_of(world.made)
    if not len(at):
        return
    for stated, inversion in laws.inversions_of(registry, world.box):
        found = laws.found_by(world.box, world.source, at, stated.level, inversion)
        first = at[np.array([0])]
        alone = laws.found_by(world.box, world.source, first, stated.level, inversion)
        for row, items in enumerate(found):
            if "promised" in (only or LAWS):
                expected = truth(world, stated.image.name, stated.level, row)
                laws.promised(stated.promises, items, expected)
            if "narrowing" in (only or LAWS) and row in (0, len(found) - 1):
                laws.narrowing(items, said(world, stated, inversion, at[np.array([row])]))
        if "monotony" in (only or LAWS):
            laws.monotony(alone[0], found[0])


LAWS = ("promised", "narrowing", "monotony")


@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_extract_minima_holds_every_law(data: st.DataObject, home: Path) -> None:
    check(data.draw(strategies.minima_worlds(home)), REGISTRY)


@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_identify_tracks_holds_every_law(data: st.DataObject, home: Path) -> None:
    check(data.draw(strategies.tracks_worlds(home)), REGISTRY)


@given(data=st.data())
@settings(max_examples=A_THIRD)
def test_a_complete_answer_holds_every_minimum_whose_removal_matters(
    data: st.DataObject, home: Path
) -> None:
    world = data.draw(strategies.tracks_worlds(home))
    at = laws.selection_of(world.made)
    box = world.box
    for stated, inversion in laws.inversions_of(REGISTRY, box) if len(at) else []:
        if stated.image.name == "TrackId" and COMPLETE in stated.promises:
            found = laws.found_by(box, world.source, at, TUPLE, inversion)
            for row, key in enumerate(laws.indices(world.made)):
                matter = oracles.removals_that_matter(
                    world.points, key, box.near_km, box.far_km, box.min_points
                )
                laws.complete(found[row], matter)


@given(data=st.data())
@settings(max_examples=A_THIRD)
def test_no_cell_outside_a_complete_answer_can_change_the_datum(
    data: st.DataObject, home: Path
) -> None:
    world = data.draw(strategies.minima_worlds(home))
    for row, (t, y, x) in enumerate(laws.indices(world.made)[:3]):
        behind = {cell[1:] for cell in truth(world, "Location", ELEMENT, row)}
        answer = _traced(world, row)
        laws.promised(EXACT, answer, behind)
        outside = [c for c in np.ndindex(world.field.shape) if c not in answer]
        field = world.field.copy()
        still = partial(_is_minimum, world, t, y, x)
        assert not oracles.perturbed_answers(still, field, outside, [-1e6, 1e6, np.nan])


@given(data=st.data())
@settings(max_examples=A_THIRD)
def test_the_cells_of_an_answer_alone_give_the_minimum_back(
    data: st.DataObject, home: Path
) -> None:
    world = data.draw(strategies.minima_worlds(home))
    for row, (t, y, x) in enumerate(laws.indices(world.made)[:3]):
        alone = np.full(world.field.shape, np.nan)
        for cell in _traced(world, row):
            alone[cell] = world.field[cell]
        laws.sufficient(True, _is_minimum(world, t, y, x, alone))


@given(data=st.data())
@settings(max_examples=A_THIRD)
def test_the_cone_of_a_track_point_alone_gives_its_track_back(
    data: st.DataObject, home: Path
) -> None:
    world = data.draw(strategies.tracks_worlds(home))
    at = laws.selection_of(world.made)
    cones = [i for r, i in laws.inversions_of(REGISTRY, world.box) if r.name == "cone"]
    found = laws.found_by(world.box, world.source, at, TUPLE, *cones) if len(at) else []
    made = dict(zip(laws.indices(world.made), world.made["track"].to_pylist(), strict=True))
    for key, items in zip(made, found, strict=True):
        alone = strategies.stored_points(tuple(p for p in world.points if p.key in items), home)
        replayed = strategies.tracks_of(world.box, held(alone, where()))
        again = dict(zip(laws.indices(replayed), replayed["track"].to_pylist(), strict=True))
        laws.sufficient(made[key], again.get(key))


@given(data=st.data())
@settings(max_examples=A_THIRD)
def test_the_boxes_themselves_follow_their_rules(data: st.DataObject, home: Path) -> None:
    world = data.draw(strategies.minima_worlds(home))
    expected = oracles.minima(world.field, world.box.margin, bool(world.source.circular))
    assert set(laws.indices(world.made)) == expected


@given(data=st.data())
def test_tracks_are_those_of_the_rule(data: st.DataObject, home: Path) -> None:
    world = data.draw(strategies.tracks_worlds(home))
    box = world.box
    found = dict(zip(laws.indices(world.made), world.made["track"].to_pylist(), strict=True))
    assert found == oracles.tracks(world.points, box.near_km, box.far_km, box.min_points)
    rows = held(world.source, where())
    before, _ = linked(points_of(rows), box.near_km, box.far_km)
    assert len(before) == len(oracles.links(world.points, box.near_km, box.far_km))


def _traced(world: World, row: int) -> Items:
    """The indices of the cells behind one row's location, found through the registry."""
    at = laws.selection_of(world.made)
    wanted = [i for r, i in laws.inversions_of(REGISTRY, world.box) if r.name == "criterion"]
    found = laws.found_by(world.box, world.source, at, ELEMENT, *wanted)
    return {cell[1:] for cell in found[row]}


def _is_minimum(world: World, t: int, y: int, x: int, field: np.ndarray) -> bool:
    """Whether a plain loop calls a cell of another field a minimum."""
    return oracles.is_minimum(field[t], y, x, world.box.margin, bool(world.source.circular))


WRONG = {
    "forgets the outer ring": ("neighbourhood", {"function": wrong.too_near}, "promised"),
    "forgets the seam": ("neighbourhood", {"function": wrong.never_wraps}, "promised"),
    "promises too much": ("neighbourhood", {"promises": EXACT}, "promised"),
    "verifies too little": ("criterion", {"function": wrong.everything_passes}, "promised"),
    "verifies too much": ("criterion", {"function": wrong.first_row}, "promised"),
    "takes the cone for pure": ("cone", {"promises": EXACT}, "promised"),
    "takes a track for a point": ("cone", {"function": wrong.only_the_point}, "promised"),
    "takes the chain for everything": ("chain", {"function": wrong.everything_passes}, "promised"),
    "takes any time for this time": ("same_step", {"function": wrong.any_time}, "promised"),
    "looks around all at once": ("neighbourhood", {"function": wrong.around_all}, "narrowing"),
    "looks between all places": ("same_place", {"function": wrong.between_all}, "narrowing"),
}


SAYING = {"promised": "missing|not behind it", "narrowing": "answered but never said"}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_inverse_is_caught(case: str, home: Path) -> None:
    name, changed, law = WRONG[case]
    registry = wrong.registry_with(name, **changed)
    of_tracks = name in ("cone", "chain", "same_place")
    worlds = strategies.tracks_worlds if of_tracks else strategies.minima_worlds
    wrong.assert_caught(lambda data: check(data.draw(worlds(home)), registry, law), SAYING[law])


def test_every_registration_has_a_truth_to_be_held_against() -> None:
    stated: list[WeakInverse | Verification] = [*REGISTRY.weak, *REGISTRY.verifications]
    mine = [r for r in stated if r.box in {box for box, _, _ in TRUTHS}]
    assert {(r.box, r.image.name, r.level) for r in mine} == set(TRUTHS)
    assert {PURE, COMPLETE, FAITHFUL} == {p for r in stated for p in r.promises}


def test_every_other_box_is_held_against_plain_loops() -> None:
    written = "".join(p.read_text() for p in Path(__file__).parent.glob("test_*.py"))
    known = {box for box, _, _ in TRUTHS}
    others = [b for b in REGISTRY.boxes.values() if b.takes and b not in known]
    assert others
    assert [b.__name__ for b in others if b.__name__ not in written] == []
