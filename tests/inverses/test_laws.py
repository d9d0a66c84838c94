"""Every registered inverse holds every law, over every world; a wrong one is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses.guarantees import COMPLETE, EXACT, PURE
from inverses.registry import Registry, Verification, WeakInverse
from pipelines.boxes.cyclones import ExtractMinima, IdentifyTracks
from pipelines.datasets import ELEMENT, TUPLE, Array
from pipelines.filters import Filter, where
from pipelines.linking import linked, points_of
from pipelines.minima import REACH, is_minimum
from pipelines.tables import held
from tests import laws, oracles, strategies
from tests.laws import Items
from tests.strategies import World

REGISTRY = Registry.of()
PLACES = ("lat_index", "lon_index")
A_THIRD = settings().max_examples // 3


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("worlds")


def truth(world: World, image: str, level: str, row: int) -> Items:
    """What is behind one attribute of one row, by brute force."""
    return TRUTHS[type(world.box), image, level](world, row)


def _cells_of_criterion(world: World, row: int) -> Items:
    key = laws.indices(world.made)[row]
    wraps = bool(world.source.circular)
    behind = oracles.cells_behind(world.field, *key, world.box.margin, wraps)
    return {("slp", *cell) for cell in behind}


def _linked_predecessors(world: World, row: int) -> Items:
    key = laws.indices(world.made)[row]
    return oracles.linked_predecessors(world.points, key, world.box.near_km, world.box.far_km)


def _same(world: World, row: int, *columns: str) -> Items:
    names = ("time_index", "lat_index", "lon_index")
    key = dict(zip(names, laws.indices(world.made)[row], strict=True))
    return {p.key for p in world.points if all(getattr(p, c) == key[c] for c in columns)}


def _own(world: World, row: int, *variables: str) -> Items:
    return {(v, *laws.indices(world.made)[row]) for v in variables}


TRUTHS: dict[tuple[type, str, str], Callable[[World, int], Items]] = {
    (ExtractMinima, "Time", TUPLE): lambda w, i: {laws.indices(w.made)[i][:1]},
    (ExtractMinima, "Pressure", TUPLE): lambda w, i: {laws.indices(w.made)[i][:1]},
    (ExtractMinima, "WindSpeed", TUPLE): lambda w, i: {laws.indices(w.made)[i][:1]},
    (ExtractMinima, "WindDirection", TUPLE): lambda w, i: {laws.indices(w.made)[i][:1]},
    (ExtractMinima, "Location", TUPLE): lambda w, i: {(t,) for t in range(len(w.field))},
    (ExtractMinima, "Location", ELEMENT): _cells_of_criterion,
    (ExtractMinima, "Pressure", ELEMENT): lambda w, i: _own(w, i, "slp"),
    (ExtractMinima, "WindSpeed", ELEMENT): lambda w, i: _own(w, i, "u10", "v10"),
    (ExtractMinima, "WindDirection", ELEMENT): lambda w, i: _own(w, i, "u10", "v10"),
    (IdentifyTracks, "Time", TUPLE): lambda w, i: _same(w, i, "time_index"),
    (IdentifyTracks, "Location", TUPLE): lambda w, i: _same(w, i, *PLACES),
    (IdentifyTracks, "TrackId", TUPLE): _linked_predecessors,
}


def check(world: World, registry: Registry) -> None:
    """Every law, for every inverse registered for a world's box and every row it made."""
    at = laws.selection_of(world.made)
    if not len(at):
        return
    for stated, inversion in laws.inversions_of(registry, world.box):
        where_to = (world.box, world.source, at, stated.level)
        found = laws.found_by(*where_to, inversion)
        for row, items in enumerate(found):
            expected = truth(world, stated.image.name, stated.level, row)
            laws.promised(stated.promises, items, expected)
        if inversion.verify:
            weak = laws.found_by(*where_to, replace(inversion, verify=()))
            for items, candidates in zip(found, weak, strict=True):
                laws.narrowing(items, candidates)
        first = at[np.array([0])]
        alone = laws.found_by(world.box, world.source, first, stated.level, inversion)
        laws.monotony(alone[0], found[0])


@given(data=st.data())
def test_every_inverse_of_extract_minima_holds_every_law(data: st.DataObject, home: Path) -> None:
    check(data.draw(strategies.minima_worlds(home)), REGISTRY)


@given(data=st.data())
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
def test_answers_do_not_depend_on_the_chunk_grid(data: st.DataObject, home: Path) -> None:
    slp, circular = data.draw(strategies.fields())
    box = ExtractMinima(margin=100.0)
    worlds = []
    for _ in range(3):
        grid = data.draw(strategies.chunk_grids(slp.shape))
        array = strategies.stored_field(slp, grid, circular, home)
        worlds.append(World(box, array, strategies.minima_of(box, array), field=slp))
    laws.chunking(sorted(laws.indices(w.made)) for w in worlds)
    laws.chunking(_traced_all(w) for w in worlds)


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


def _traced_all(world: World) -> dict[object, Items]:
    keys = laws.indices(world.made)
    return {key: _traced(world, row) for row, key in enumerate(keys)}


def _is_minimum(world: World, t: int, y: int, x: int, field: np.ndarray) -> bool:
    """Whether the box's own rule calls a cell of another field a minimum."""
    assert isinstance(world.source, Array)
    circular = bool(world.source.circular)
    columns = "wrap" if circular else "constant"
    ends = {} if circular else {"constant_values": np.inf}
    wide = field[t : t + 1]
    while circular and wide.shape[2] < REACH:
        wide = np.concatenate([wide, wide], axis=2)
    wide = np.pad(wide, ((0, 0), (0, 0), (REACH, REACH)), columns, **ends)  # type: ignore[call-overload]
    wide = np.pad(wide, ((0, 0), (REACH, REACH), (0, 0)), constant_values=np.inf)
    distinct = min(5, field.shape[2]) if circular else 5
    return bool(is_minimum(wide, world.box.margin, distinct)[0, y, x])


def _registry_with(name: str, **changed: object) -> Registry:
    """The shipped registry with one registration made wrong."""
    weak = tuple(replace(w, **changed) if w.name == name else w for w in REGISTRY.weak)  # type: ignore[arg-type]
    verify = tuple(
        replace(v, **changed) if v.name == name else v  # type: ignore[arg-type]
        for v in REGISTRY.verifications
    )
    return Registry(REGISTRY.boxes, weak, verify)


def too_near(box: ExtractMinima, at: Filter, source: Array) -> Filter:
    """A wrong inverse: it forgets the outer ring."""
    lat, lon = at.spans["lat_index"], at.spans["lon_index"]
    return at.to(lat=lat.grown(1), lon=lon.grown(1))


def never_wraps(box: ExtractMinima, at: Filter, source: Array) -> Filter:
    """A wrong inverse: it forgets that the earth is round."""
    lat, lon = at.spans["lat_index"], at.spans["lon_index"]
    return at.to(lat=lat.grown(2), lon=lon.grown(2))


def only_the_point(box: IdentifyTracks, at: Filter, source: object) -> Filter:
    """A wrong inverse: it takes a track for one point."""
    return at.to(**{n: at.spans[n] for n in ("time_index", *PLACES)})


def first_row(box: object, at: object, seen: dict[str, np.ndarray], source: object) -> np.ndarray:
    """A wrong verification: it keeps only what lies in the first row it sees."""
    return np.asarray(seen["lat"] == seen["lat"].min())


def everything_passes(
    box: object, at: object, seen: dict[str, np.ndarray], source: object
) -> np.ndarray:
    """A wrong verification: it checks nothing and promises purity."""
    return np.ones(len(seen["owner"]), bool)


WRONG = {
    "forgets the outer ring": ("neighbourhood", {"function": too_near}),
    "forgets the seam": ("neighbourhood", {"function": never_wraps}),
    "promises too much": ("neighbourhood", {"promises": EXACT}),
    "verifies too little": ("criterion", {"function": everything_passes}),
    "verifies too much": ("criterion", {"function": first_row}),
    "takes the cone for pure": ("cone", {"promises": EXACT}),
    "takes a track for a point": ("cone", {"function": only_the_point}),
    "takes the chain for everything": ("chain", {"function": everything_passes}),
    "takes any time for this time": ("same_step", {"function": lambda box, at, source: at.to()}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_inverse_is_caught(case: str, home: Path) -> None:
    name, changed = WRONG[case]
    registry = _registry_with(name, **changed)
    worlds = strategies.tracks_worlds if name in ("cone", "chain") else strategies.minima_worlds

    @given(data=st.data())
    @settings(database=None, phases=list(settings().phases)[:3], max_examples=300)
    def lawful(data: st.DataObject) -> None:
        check(data.draw(worlds(home)), registry)

    with pytest.raises(AssertionError):
        lawful()


def test_every_registration_has_a_truth_to_be_held_against() -> None:
    stated: list[WeakInverse | Verification] = [*REGISTRY.weak, *REGISTRY.verifications]
    assert {(r.box, r.image.name, r.level) for r in stated} <= set(TRUTHS)
    assert {PURE, COMPLETE} == {p for r in stated for p in r.promises}
