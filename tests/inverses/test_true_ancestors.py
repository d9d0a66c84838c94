"""A plan goes back through true ancestors alone, as the history knows them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inverses.planner import behind
from inverses.true_ancestors import TrueAncestors
from pipelines.errors import SourceChanged
from pipelines.workspace import Workspace
from tests.runs import publish, ran


@pytest.fixture
def here(tmp_path: Path, catalog_url: str) -> Workspace:
    workspace = Workspace.create(tmp_path / "w", catalog_url)
    publish(workspace, "field", None, "one")
    for _ in range(2):
        ran(workspace, {"a": ["field"], "b": ["a"], "other": ["field"], "c": ["a", "b"]})
    return workspace


def test_only_true_ancestors_are_looked_at(
    here: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, seen = here.dataset("c", "v1"), []
    found = Workspace.dataset
    ancestors = TrueAncestors.by(here, end)
    assert ancestors.known is not None
    assert set(ancestors.known) == {("field", "v1"), ("a", "v1"), ("b", "v1")}
    monkeypatch.setattr(Workspace, "dataset", lambda *at: seen.append(at[1:]) or found(*at))
    assert set(behind(here, end)) == {end.key, *ancestors.known} == {end.key, *seen}


def test_a_version_made_again_under_its_old_number_is_no_ancestor(here: Workspace) -> None:
    shutil.rmtree(here.path / "datasets" / "b")
    ran(here, {"b": []})
    with pytest.raises(SourceChanged, match='"b" v1 is not what "c" v1 was made from'):
        behind(here, here.dataset("c", "v1"))
    assert ("a", "v1") in behind(here, here.dataset("a", "v1"))


def test_a_source_that_is_another_now_is_no_ancestor(here: Workspace) -> None:
    shutil.rmtree(here.path / "datasets" / "field")
    publish(here, "field", None, "two")
    with pytest.raises(SourceChanged, match='"field" v1 is not what "c" v2 was made from'):
        behind(here, here.dataset("c"))


def test_without_a_history_the_datasets_themselves_are_asked(here: Workspace) -> None:
    end = here.dataset("c", "v1")
    for elsewhere in (None, "postgresql+psycopg://nobody@127.0.0.1:1/nowhere"):
        mute = Workspace(here.path, elsewhere)
        assert TrueAncestors.by(mute, end).known is None
        assert len(behind(mute, end)) == 4
