"""No answer depends on how arrays are cut into chunks, or tables into files and row groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses import work
from inverses.registry import Registry
from tests import laws, skies, strategies
from tests.inverses import wrong
from tests.inverses.wrong import REGISTRY
from tests.laws import Items
from tests.strategies import World

CUTS = 3
CUT = "other chunks or row groups, another answer"
FEW = settings().max_examples // 25
ALL = ("time", "location", "track")
QUESTIONS = (((), "exact"), (ALL, "complete"), (("track",), "pure"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuts")


def fields_cut(data: st.DataObject, home: Path) -> Iterator[World]:
    """`extract_minima` over one field, which is cut into chunks in several ways."""
    slp, circular = data.draw(strategies.fields())
    box = data.draw(strategies.extracting())
    for _ in range(CUTS):
        array = strategies.stored_field(
            slp, data.draw(strategies.chunk_grids(slp.shape)), circular, home
        )
        yield World(box, array, strategies.minima_of(box, array), field=slp)


def points_cut(data: st.DataObject, home: Path) -> Iterator[World]:
    """`identify_tracks` over the same minima, which lie in files and row groups in several ways."""
    points = data.draw(strategies.point_sets().filter(len))
    box = data.draw(strategies.identifying())
    for _ in range(CUTS):
        cuts = data.draw(strategies.table_cuts(len(points)))
        table = strategies.stored_points(points, home, cuts)
        yield World(box, table, strategies.tracks_of(box, laws.rows_of(table)), points=points)


def found(world: World, registry: Registry) -> dict[object, dict[object, Items]]:
    """What every inverse registered for a world's box finds behind every datum."""
    at, keys = laws.selection_of(world.made), laws.indices(world.made)
    everything: dict[object, dict[object, Items]] = {}
    for stated, inversion in laws.inversions_of(registry, world.box) if keys else ():
        behind = laws.found_by(world.box, world.source, at, stated.level, inversion)
        name = (stated.name, stated.image.name, stated.level)
        everything[name] = dict(zip(keys, behind, strict=True))
    return everything


@given(data=st.data())
@settings(max_examples=FEW)
def test_no_inverse_of_extract_minima_sees_how_chunks_are_cut(
    data: st.DataObject, home: Path
) -> None:
    worlds = list(fields_cut(data, home))
    laws.chunking(sorted(laws.indices(world.made)) for world in worlds)
    laws.chunking(found(world, REGISTRY) for world in worlds)


@given(data=st.data())
@settings(max_examples=FEW)
def test_no_inverse_of_identify_tracks_sees_how_row_groups_are_cut(
    data: st.DataObject, home: Path
) -> None:
    laws.chunking(found(world, REGISTRY) for world in points_cut(data, home))


def check_traces(data: st.DataObject, home: Path, registry: Registry = REGISTRY) -> None:
    """Whole traces through both boxes, each asked of one sky that is cut in several ways."""
    sky = data.draw(skies.skies())
    stories = [data.draw(skies.stories(sky, home)) for _ in range(2)]
    laws.chunking(story.keys for story in stories)
    for asked in QUESTIONS if stories[0].keys else ():
        laws.chunking(skies.every(story.answer(*asked, registry)) for story in stories)


@given(data=st.data())
@settings(max_examples=FEW)
def test_no_trace_sees_how_its_datasets_are_cut(data: st.DataObject, home: Path) -> None:
    check_traces(data, home)


def test_an_inverse_that_sees_how_chunks_are_cut_is_caught(home: Path) -> None:
    registry = wrong.registry_with("neighbourhood", function=wrong.whole_chunk)
    wrong.assert_caught(
        lambda d: laws.chunking(found(w, registry) for w in fields_cut(d, home)), CUT
    )


def test_an_inverse_that_sees_how_row_groups_are_cut_is_caught(home: Path) -> None:
    registry = wrong.registry_with("cone", function=wrong.whole_groups)
    wrong.assert_caught(
        lambda d: laws.chunking(found(w, registry) for w in points_cut(d, home)), CUT
    )


@pytest.mark.night
def test_a_verification_that_mixes_what_it_sees_together_is_caught(home: Path) -> None:
    registry = wrong.registry_with("criterion", function=wrong.first_half)
    wrong.assert_caught(lambda data: check_traces(data, home, registry), CUT)


def test_a_trace_that_settles_each_piece_for_itself_is_caught(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "straddles", lambda pieces, parts: False)
    wrong.assert_caught(lambda data: check_traces(data, home), CUT)
