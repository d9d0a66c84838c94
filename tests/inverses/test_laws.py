"""Every registered inverse holds every law, over every world; a wrong one is caught."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from inverses.guarantees import COMPLETE, EXACT, FAITHFUL, PURE
from inverses.registry import Registry, Verification, WeakInverse
from pipelines.boxes.box import Box
from pipelines.boxes.cyclones import ExtractMinima
from pipelines.contents import held_table
from pipelines.datasets import ELEMENT, TUPLE
from pipelines.filters import where
from pipelines.linking import linked, points_of
from pipelines.tables import held
from tests import laws, oracles, strategies
from tests.inverses import wrong
from tests.inverses.cases import Case
from tests.inverses.changes import changed, fields_of
from tests.inverses.families import MANY, PATIENCE
from tests.inverses.truths import TRUTHS, boxes_of, said, truth
from tests.inverses.wrong import REGISTRY
from tests.laws import Items
from tests.strategies import World

pytestmark = PATIENCE


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("worlds")


def check(world: World, registry: Registry, *only: str) -> None:
    """Every law, or only some, for every inverse registered for a world's box and every row."""
    at = laws.selection_of(world.made)
    if not len(at):
        return
    spread = set(np.linspace(0, len(at) - 1, 3).astype(int).tolist())
    for stated, inversion in laws.inversions_of(registry, world.box):
        found = laws.found_by(world.box, world.source, at, stated.level, inversion)
        first = at[np.array([0])]
        alone = laws.found_by(world.box, world.source, first, stated.level, inversion)
        for row, items in enumerate(found):
            if "promised" in (only or LAWS):
                expected = truth(world, stated.image.name, stated.level, row)
                laws.promised(stated.promises, items, expected)
            if "changed" in (only or LAWS) and row in spread:
                can_change, does = changed(world, stated, row)
                laws.promised(stated.promises - {PURE}, items, can_change)
                laws.promised(stated.promises - {COMPLETE}, items, does)
            if "narrowing" in (only or LAWS) and row in (0, len(found) - 1):
                laws.narrowing(items, said(world, stated, inversion, at[np.array([row])]))
        if "monotony" in (only or LAWS):
            laws.monotony(alone[0], found[0])


LAWS = ("promised", "changed", "narrowing", "monotony")


@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_extract_minima_holds_every_law(data: st.DataObject, home: Path) -> None:
    world = data.draw(strategies.minima_worlds(home))
    assert_minima_are_those_of_the_rule(world)
    check(world, REGISTRY)


def assert_minima_are_those_of_the_rule(world: World) -> None:
    """Plain loops find the same minima, and say the same of each."""
    margin, wraps = world.box.margin, bool(world.source.circular)
    fields, rows = fields_of(world), world.made.to_pylist()
    assert set(laws.indices(world.made)) == oracles.minima(world.field, margin, wraps)
    for key, row in zip(laws.indices(world.made), rows, strict=True):
        expected = oracles.minimum(fields, key, margin, wraps)
        assert expected and row["hours"] == 6 * key[0]
        for name in ("pressure", "wind_speed", "wind_direction"):
            assert row[name] == pytest.approx(expected[name], nan_ok=True)


@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_identify_tracks_holds_every_law(data: st.DataObject, home: Path) -> None:
    world = data.draw(strategies.tracks_worlds(home))
    assert_tracks_are_those_of_the_rule(world)
    check(world, REGISTRY)


def assert_tracks_are_those_of_the_rule(world: World) -> None:
    """Plain loops link the same minima, and number the same tracks."""
    box = world.box
    found = dict(zip(laws.indices(world.made), world.made["track"].to_pylist(), strict=True))
    assert found == oracles.tracks(world.points, box.near_km, box.far_km, box.min_points)
    before, _ = linked(points_of(held(world.source, where())), box.near_km, box.far_km)
    assert len(before) == len(oracles.links(world.points, box.near_km, box.far_km))


@given(data=st.data())
@settings(max_examples=MANY)
def test_a_minimum_that_comes_to_where_no_cone_is_changes_no_track(data: st.DataObject) -> None:
    points, box = data.draw(strategies.point_sets()), data.draw(strategies.identifying())
    newcomers = data.draw(strategies.newcomers(points))
    rows = strategies.rows_of(points)
    made, source = strategies.tracks_of(box, rows), held_table("minima", ExtractMinima.makes, rows)
    (cone,) = (w for w in REGISTRY.weak if w.name == "cone")
    for row, number in list(enumerate(made["track"].to_pylist()))[:3]:
        at = laws.selection_of(made.slice(row, 1))
        inner = oracles.held(boxes_of(cone(box, at, source)), {p: vars(p) for p in newcomers})
        for each in set(newcomers) - inner:
            key, every = laws.indices(made)[row], [*points, each]
            tracks = oracles.tracks(every, box.near_km, box.far_km, box.min_points)
            assert tracks.get(key) == number, f"{each.key} changes the track of {key}"


@given(data=st.data())
@settings(max_examples=MANY)
def test_the_cells_of_an_answer_alone_give_the_minimum_back(
    data: st.DataObject, home: Path
) -> None:
    world = data.draw(strategies.minima_worlds(home))
    for (t, y, x), cells in list(zip(laws.indices(world.made), _traced(world), strict=True))[:3]:
        alone = np.full(world.field.shape, np.nan)
        for cell in cells:
            alone[cell] = world.field[cell]
        margin, wraps = world.box.margin, bool(world.source.circular)
        laws.sufficient(True, oracles.is_minimum(alone[t].tolist(), y, x, margin, wraps))


@given(data=st.data())
@settings(max_examples=MANY)
def test_the_cone_of_a_track_point_alone_gives_its_track_back(
    data: st.DataObject, home: Path
) -> None:
    world = data.draw(strategies.tracks_worlds(home))
    at = laws.selection_of(world.made)
    cones = [i for r, i in laws.inversions_of(REGISTRY, world.box) if r.name == "cone"]
    found = laws.found_by(world.box, world.source, at, TUPLE, *cones) if len(at) else []
    made = dict(zip(laws.indices(world.made), world.made["track"].to_pylist(), strict=True))
    for key, items in zip(made, found, strict=True):
        alone = strategies.rows_of(tuple(p for p in world.points if p.key in items))
        replayed = strategies.tracks_of(world.box, alone)
        again = dict(zip(laws.indices(replayed), replayed["track"].to_pylist(), strict=True))
        laws.sufficient(made[key], again.get(key))


def _traced(world: World) -> list[Items]:
    """The indices of the cells behind each row's location, found through the registry."""
    at = laws.selection_of(world.made)
    wanted = [i for r, i in laws.inversions_of(REGISTRY, world.box) if r.name == "criterion"]
    found = laws.found_by(world.box, world.source, at, ELEMENT, *wanted) if len(at) else []
    return [{cell[1:] for cell in cells} for cells in found]


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


SAYING = {"narrowing": "answered but never said"}
CAUGHT_BY = [(case, law) for case, (*_, law) in WRONG.items()] + [
    (case, "changed") for case, (*_, law) in WRONG.items() if law == "promised"
]


@pytest.mark.parametrize(("case", "law"), CAUGHT_BY)
def test_a_wrong_inverse_is_caught(case: str, law: str, home: Path) -> None:
    name, made_wrong, _ = WRONG[case]
    registry = wrong.registry_with(name, **made_wrong)
    of_tracks = name in ("cone", "chain", "same_place")
    worlds = strategies.tracks_worlds if of_tracks else strategies.minima_worlds
    saying = SAYING.get(law, "missing|not behind it")
    wrong.assert_caught(lambda data: check(data.draw(worlds(home)), registry, law), saying)


def test_every_registration_has_a_truth_to_be_held_against() -> None:
    stated: list[WeakInverse | Verification] = [*REGISTRY.weak, *REGISTRY.verifications]
    mine = [r for r in stated if r.box in {box for box, _, _ in TRUTHS}]
    assert {(r.box, r.image.name, r.level) for r in mine} == set(TRUTHS)
    assert {PURE, COMPLETE, FAITHFUL} == {p for r in stated for p in r.promises}


def page_of(box: type[Box]) -> dict[Any, st.SearchStrategy[Case]]:
    """The worlds of the page that tries the family of a box, if there is one."""
    name = f"test_{box.__module__.rpartition('.')[2]}"
    if not (Path(__file__).parent / f"{name}.py").exists():
        return {}
    worlds: dict[Any, Any] = import_module(f"tests.inverses.{name}").WORLDS
    return worlds


OTHERS = [b for b in REGISTRY.boxes.values() if b.takes and b not in {b for b, _, _ in TRUTHS}]


@pytest.mark.parametrize("box", OTHERS)
def test_every_other_box_has_worlds_that_are_held_against_plain_loops(box: type[Box]) -> None:
    worlds = page_of(box)
    assert box in worlds, f"no page of the tests has worlds of {box.__name__}"
    once = settings(max_examples=1, database=None, phases=[Phase.generate])
    assert type(find(worlds[box], lambda case: True, settings=once).box) is box
