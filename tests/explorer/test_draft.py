"""A draft is never wrong, only unfinished; what it is written as reads the same again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.demo import asset
from explorer.draft import Draft
from explorer.sheet import Sheet
from explorer.undo import Undo
from pipelines.boxes.cyclones import ExtractMinima, IdentifyTracks, SimulateAgcm
from pipelines.errors import Refused
from pipelines.pipeline import Pipeline

KINDS = (SimulateAgcm, ExtractMinima, IdentifyTracks)
BOXES = {kind.name: kind for kind in KINDS}
CYCLONES = (
    Draft("cyclones")
    .added(SimulateAgcm(), "agcm")
    .added(ExtractMinima(), "minima")
    .added(IdentifyTracks(), "tracks")
)
WIRED = CYCLONES.wired("minima", "field", "agcm").wired("tracks", "minima", "minima")

Change = Callable[[Draft], Draft]
NAMES = st.sampled_from(["agcm", "minima", "tracks", "simulate_agcm", "extract_minima", "é-1"])
PORTS = st.sampled_from(["field", "minima"])
NUMBERS = st.integers(-5, 2000) | st.floats(0, 1e6)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(lambda kind: lambda d: d.added(kind()), st.sampled_from(KINDS)),
    st.builds(lambda path: lambda d: d.sourced(path), st.text(min_size=1, max_size=9)),
    st.builds(lambda n, p, g: lambda d: d.wired(n, p, g), NAMES, PORTS, NAMES),
    st.builds(lambda n, p: lambda d: d.unwired(n, p), NAMES, PORTS),
    st.builds(lambda n: lambda d: d.without([n]), NAMES),
    st.builds(lambda a, b: lambda d: d.renamed(a, b), NAMES, NAMES),
    st.builds(lambda n, v: lambda d: d.tuned(n, {"margin": v}), NAMES, NUMBERS),
    st.builds(lambda n, v: lambda d: d.read_from(n, "a.nc", {"slp": v}), NAMES, st.text()),
    st.builds(lambda n, x: lambda d: d.drawn(d.sheet.moved({n: (x, x)})), NAMES, st.floats(0, 9)),
    st.builds(lambda a, b: lambda d: d.drawn(d.sheet.grouped("g", [a, b])), NAMES, NAMES),
    st.builds(lambda n: lambda d: d.pasted(d.copied([n, "agcm"])), NAMES),
)


def after(draft: Draft, change: Change) -> Draft:
    """The draft after a change, or as it was if the change is refused."""
    try:
        return change(draft)
    except Refused:
        return draft


def science(draft: Draft) -> tuple[object, ...]:
    return draft.name, dict(draft.sources), dict(draft.steps)


@settings(max_examples=150)
@given(st.lists(CHANGES, max_size=15))
def test_any_draft_reads_the_same_again(changes: list[Change]) -> None:
    draft = CYCLONES
    for change in changes:
        draft = after(draft, change)
        again = Draft.from_text(draft.to_text(), BOXES)
        assert science(again) == science(draft)
        assert Sheet.from_text(draft.sheet.to_text()).groups == draft.sheet.groups
        assert set(draft.sheet.places) <= set(draft.names)


@settings(max_examples=100)
@given(st.lists(CHANGES, max_size=12), st.data())
def test_undo_goes_back_to_the_beginning_and_redo_to_the_end(
    changes: list[Change], data: st.DataObject
) -> None:
    steps = Undo(CYCLONES)
    for change in changes:
        steps = steps.done(after(steps.present, change))
    end, long = steps.present, len(steps.past)
    some = data.draw(st.integers(0, long))
    for _ in range(some):
        steps = steps.undone()
    assert len(steps.past) == long - some and len(steps.future) == some
    for _ in range(some):
        steps = steps.redone()
    assert steps.present == end
    for _ in range(long + 1):
        steps = steps.undone()
    assert steps.present == CYCLONES and not steps.past


def test_a_change_after_an_undo_forgets_the_future() -> None:
    steps = Undo(Draft()).done(CYCLONES).done(WIRED).undone().done(CYCLONES.called("other"))
    assert steps.redone() is steps
    assert steps.undone().present == CYCLONES


def test_all_moves_of_a_drag_are_one_step_and_no_change_is_none() -> None:
    here, there = (WIRED.drawn(Sheet({"agcm": (x, 0)})) for x in (1.0, 2.0))
    steps = Undo(WIRED).done(here, "drag 1").done(there, "drag 1")
    assert steps.undone().present == WIRED
    assert len(steps.done(here, "drag 2").past) == 2
    assert steps.done(there) is steps


def test_moving_and_grouping_change_no_text() -> None:
    moved = WIRED.drawn(WIRED.sheet.moved({"agcm": (5, 5)}).grouped("g", ["agcm"]).turned("g"))
    assert moved != WIRED
    assert moved.to_text() == WIRED.to_text()


def test_what_is_drawn_by_hand_is_the_demo() -> None:
    demo, drawn = Pipeline.from_file(asset("cyclones.yaml")), WIRED.finished()
    assert (drawn.name, drawn.sources, drawn.steps) == (demo.name, demo.sources, demo.steps)


REFUSALS = {
    "wrong kind": (lambda d: d.wired("minima", "field", "tracks"), "takes an array.* is a table"),
    "missing type": (lambda d: d.wired("tracks", "minima", "agcm"), "takes a table"),
    "unknown port": (lambda d: d.wired("minima", "fields", "agcm"), 'did you mean "field"'),
    "unknown box": (lambda d: d.wired("minimum", "field", "agcm"), 'did you mean "minima"'),
    "unknown dataset": (lambda d: d.wired("minima", "field", "agmc"), 'did you mean "agcm"'),
    "port taken": (lambda d: d.wired("minima", "field", "agcm"), 'has "agcm" already'),
    "itself": (lambda d: d.unwired("tracks", "minima").wired("tracks", "minima", "tracks"), "circ"),
    "bad value": (lambda d: d.tuned("minima", {"margin": -1}), "at least 0"),
    "bad type": (lambda d: d.tuned("minima", {"margin": "x"}), "not a float"),
    "unknown parameter": (lambda d: d.tuned("minima", {"margn": 1}), 'did you mean "margin"'),
    "name taken": (lambda d: d.renamed("agcm", "minima"), "is there already"),
    "no name": (lambda d: d.renamed("agcm", "../agcm"), "is not a name"),
    "no pipeline name": (lambda d: d.called("a/b"), "is not a name"),
    "no path": (lambda d: d.sourced("a\0b"), "needs a path"),
    "paste of no box": (lambda d: d.pasted("name: p\nboxes: {a: {box: x}}", BOXES), "no box"),
    "paste that does not fit": (
        lambda d: d.pasted("name: p\nboxes: {a: {box: extract_minima, inputs: {field: tracks}}}"),
        "takes an array",
    ),
    "circle in a paste": (
        lambda d: d.pasted(
            "name: p\nboxes:\n"
            "  a: {box: identify_tracks, inputs: {minima: b}}\n"
            "  b: {box: identify_tracks, inputs: {minima: a}}"
        ),
        "in a circle",
    ),
}


@pytest.mark.parametrize(("change", "reason"), REFUSALS.values(), ids=REFUSALS.keys())
def test_what_is_wrong_is_refused_with_the_reason(change: Change, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        change(WIRED)


def test_a_longer_circle_is_named() -> None:
    more = WIRED.added(IdentifyTracks(), "again").wired("again", "minima", "tracks")
    open_ = more.unwired("tracks", "minima")
    assert open_.refusal("tracks", "minima", "again") == (
        "the arrows run in a circle: tracks -> again -> tracks"
    )


def test_what_is_missing_is_said_and_keeps_it_from_running() -> None:
    assert CYCLONES.problems() == {
        "minima": ['nothing at its port "field"'],
        "tracks": ['nothing at its port "minima"'],
    }
    with pytest.raises(Refused, match='nothing at its port "field"'):
        CYCLONES.finished()
    with pytest.raises(Refused, match="has no boxes"):
        Draft().finished()
    assert WIRED.problems() == {}


def test_arrows_follow_a_name_and_go_with_a_box() -> None:
    sheet = Sheet({"agcm": (1, 2)}).grouped("g", ["agcm", "minima"])
    renamed = WIRED.drawn(sheet).renamed("agcm", "era5")
    assert renamed.steps["minima"].inputs == {"field": "era5"}
    assert renamed.sheet == Sheet({"era5": (1, 2)}).grouped("g", ["era5", "minima"])
    gone = renamed.without(["era5"])
    assert gone.problems() == {"minima": ['nothing at its port "field"']}
    assert gone.sheet == Sheet().grouped("g", ["minima"])


def test_a_copy_is_pasted_under_new_names_and_stays_wired() -> None:
    pasted = WIRED.pasted(WIRED.copied(["minima", "tracks"]))
    assert pasted.steps["minima-2"].inputs == {"field": "agcm"}
    assert pasted.steps["tracks-2"].inputs == {"minima": "minima-2"}
    elsewhere = Draft().pasted(WIRED.copied(["minima", "tracks"]))
    assert elsewhere.problems() == {"minima": ['nothing at its port "field"']}


def test_what_leads_to_a_box_can_run_alone() -> None:
    both = WIRED.added(SimulateAgcm(seed=1), "other")
    assert both.upto("minima").names == ["agcm", "minima"]
    assert both.upto("minima").finished().name == "cyclones"


def test_names_are_made_free_and_stay_names() -> None:
    draft = Draft().added(SimulateAgcm()).added(SimulateAgcm())
    assert draft.names == ["simulate_agcm", "simulate_agcm-2"]
    long = Draft().added(SimulateAgcm(), "x" * 80)
    assert len(long.free("x" * 80)) <= 80
    assert Draft().sourced("/data/era 5.nc").names == ["era_5"]


def test_a_source_keeps_its_path_and_names(tmp_path: Path) -> None:
    draft = Draft("p").sourced("era5.nc").read_from("era5", "era5.nc", {"slp": "msl"})
    draft = draft.added(ExtractMinima(500.0), "minima").wired("minima", "field", "era5")
    (tmp_path / "p.yaml").write_text(draft.to_text())
    found = Pipeline.from_file(tmp_path / "p.yaml")
    assert found.sources["era5"].path == str(tmp_path / "era5.nc")
    assert found.sources["era5"].variables == {"slp": "msl"}


HOSTILE = [
    "",
    "[]",
    "{",
    '{"places": {"a": [1]}}',
    '{"places": {"a": [1e999, 0]}}',
    '{"groups": 1}',
]


@pytest.mark.parametrize("text", [*HOSTILE, '{"places": {"../a": [0, 0]}}', "[" * 100_000])
def test_a_layout_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        Sheet.from_text(text)
