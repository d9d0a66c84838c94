"""A workspace opens what it can read whole, and says in one line what it cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import Failed, Refused
from pipelines.workspace import FORMAT, Workspace
from tests.faults.publisher import is_whole, publish


def test_a_workspace_is_made_once_and_opened_again(tmp_path: Path) -> None:
    made = Workspace.create(tmp_path / "deep" / "down")
    assert Workspace(made.path).names() == Workspace.create(made.path).names() == []


def test_versions_are_numbered_and_the_last_is_current(workspace: Workspace) -> None:
    assert [publish(workspace, t) for t in ("one", "two", "three")] == ["v1", "v2", "v3"]
    assert workspace.dataset("d").notes["token"] == "three"
    assert workspace.dataset("d", "v2").notes["token"] == "two"
    assert is_whole(workspace, "v1")


def test_after_nine_comes_ten(workspace: Workspace) -> None:
    assert [publish(workspace, "t") for _ in range(11)][-1] == "v11"


def test_a_stage_that_is_not_published_is_gone(workspace: Workspace) -> None:
    with pytest.raises(ZeroDivisionError), workspace.staged("d") as stage:
        (stage / "part").write_text("half")
        _ = 1 // 0
    assert [p.name for p in (workspace.path / "staging").iterdir()] == [".lock"]
    assert workspace.names() == []


def test_nothing_can_be_opened_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r'no workspace at ".*gone"; name one with -w DIR'):
        Workspace(tmp_path / "gone")
    assert not (tmp_path / "gone").exists()


def test_a_file_is_no_workspace(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(Refused, match="it is a file"):
        Workspace(file)
    with pytest.raises(Refused, match="exists and is not a workspace; name another with -w DIR"):
        Workspace.create(file)
    assert file.read_text() == "mine"


def test_a_directory_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(Refused, match="it is a directory, but not one"):
        Workspace(tmp_path)
    with pytest.raises(Refused, match="exists and is not a workspace"):
        Workspace.create(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_workspace_whose_making_was_killed_is_finished(tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    (tmp_path / ".whence.json-0a1b2c3d").write_text('{"for')
    assert Workspace.create(tmp_path).names() == []


@pytest.mark.parametrize("found", [FORMAT + 1, 0, "new", [1], None])
def test_another_format_is_refused(tmp_path: Path, found: Any) -> None:
    workspace = Workspace.create(tmp_path / "w")
    (workspace.path / "whence.json").write_text(json.dumps({"format": found}))
    for opening in (Workspace, Workspace.create, Workspace.check_place):
        with pytest.raises(Refused, match=r"has format|is not a workspace|no workspace"):
            opening(workspace.path)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Failed, match=r"cannot make a workspace at .*: Not a directory"):
        Workspace.create(tmp_path / "file" / "w")


def test_an_unknown_dataset_is_refused_with_the_nearest_one(workspace: Workspace) -> None:
    publish(workspace, "t")
    with pytest.raises(Refused, match=r'no dataset "e" in this workspace .*datasets: d'):
        workspace.dataset("e")


@pytest.mark.parametrize("name", ["..", "../datasets/d", ".", "", "/etc", "d/v1", "*"])
def test_a_name_is_never_a_path(workspace: Workspace, name: str) -> None:
    publish(workspace, "t")
    with pytest.raises(Refused, match="no dataset"):
        workspace.dataset(name)


@pytest.mark.parametrize("version", ["v2", "..", "current", "v01", "v1/table", "../../x"])
def test_an_unknown_version_is_refused(workspace: Workspace, version: str) -> None:
    publish(workspace, "t")
    with pytest.raises(Refused, match=r'no version ".*" of "d".*versions: v1'):
        workspace.dataset("d", version)


DAMAGE: dict[str, Any] = {
    "empty": "",
    "cut": '{"kind": "table", "na',
    "not JSON": "\x00\x01",
    "deep": "[" * 100_000,
    "a list": "[]",
    "null": "null",
    "no attributes": {"attributes": None},
    "odd attributes": {"attributes": [1]},
    "odd groups": {"groups": [{"file": "x"}]},
    "another name": {"name": "e"},
    "another version": {"version": "v7"},
    "a path outside": {"path": "../../../../etc"},
    "more keys": {"surprise": 1},
    "no kind": {"kind": None, "types": None, "dims": None},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_version_is_said_to_be(workspace: Workspace, damage: Any) -> None:
    publish(workspace, "t")
    file = workspace.path / "datasets" / "d" / "v1" / "dataset.json"
    whole = json.loads(file.read_text())
    file.write_text(damage if isinstance(damage, str) else json.dumps({**whole, **damage}))
    with pytest.raises(Failed, match='version "v1" of "d" is damaged; run again'):
        workspace.dataset("d")
    assert publish(workspace, "t") == "v2"
    assert is_whole(workspace)


@pytest.mark.parametrize("pointer", ["", "v9", "..", "/etc", "v1\x00"])
def test_a_damaged_pointer_is_said_to_be_and_mended_by_a_run(
    workspace: Workspace, pointer: str
) -> None:
    publish(workspace, "t")
    (workspace.path / "datasets" / "d" / "current").write_text(pointer)
    with pytest.raises(Failed, match='"d" does not say which version is current; run again'):
        workspace.dataset("d")
    assert publish(workspace, "t") == "v2"
    assert is_whole(workspace)


def test_a_workspace_keeps_the_namespace_it_was_given(workspace: Workspace) -> None:
    assert workspace.namespace == ""
    first = workspace.settled()
    assert first.startswith("whence:")
    assert workspace.settled() == Workspace(workspace.path).namespace == first
