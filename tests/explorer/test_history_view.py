"""The history view without a browser: runs are listed and compared, kin are opened by levels."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from explorer.history import HistoryView, Relatives
from explorer.kin import MOST, Kin, drawn
from explorer.work import Engine, Work
from inverses.ancestry import Ancestry
from pipelines.foreign.graph import Graph, add
from pipelines.history import History
from pipelines.run_graph import DATASET, TASK, Node
from pipelines.workspace import Workspace
from tests.runs import publish, ran

STEPS: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["b"], "d": ["c", "a"]}


def comes(true: Callable[[], Any]) -> None:
    """Wait for what a thread brings."""
    until = time.monotonic() + 10
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def opened(workspace: Workspace) -> HistoryView:
    view = HistoryView(workspace, Work(Engine(), lambda act: act()))
    comes(lambda: view.runs.count.object)
    return view


def item(view: Relatives, labelled: str) -> dict[str, Any]:
    """What a click on a label hands over."""
    return next(each for each in view.more.items if each["label"] == labelled)


def test_an_empty_workspace_says_how_to_begin(workspace: Workspace) -> None:
    view = opened(workspace)
    assert "Run a pipeline, or import" in view.runs.count.object
    assert view.runs.go.disabled
    assert "Name a dataset" in view.relatives.told.object


def test_runs_are_listed_searched_and_compared(workspace: Workspace) -> None:
    first = ran(workspace, STEPS, params={"b": {"margin": 1}}, name="storms")
    second = ran(workspace, STEPS, params={"b": {"margin": 2}}, name="floods")
    view = opened(workspace).runs
    assert "2 shown of 2 runs" in view.count.object
    comes(lambda: first in view.table.object and second in view.table.object)
    comes(lambda: (view.first.value, view.second.value) == (first, second))
    view._compare()
    comes(lambda: view.differences.object)
    assert "parameter, b.margin: 1 → 2" in view.differences.object
    view.search.value = "FLOOD"
    comes(lambda: first not in view.table.object and second in view.table.object)
    view.search.value = "nothing like it"
    comes(lambda: "No run mentions" in view.count.object)


def test_kin_are_opened_a_level_at_a_time(workspace: Workspace) -> None:
    ran(workspace, STEPS)
    view = opened(workspace).relatives
    view.show("d")
    comes(lambda: view.more.items)
    assert "Made from 3 datasets by 4 tasks" in view.told.object
    assert view.kin is not None
    assert {r.name for r in view.kin.shown.values()} == {"d", "make_d", "c", "a"}
    assert [i["label"] for i in view.more.items] == ["Open c v1", "Open a v1"]
    view._clicked(item(view, "Open c v1"))
    comes(lambda: len(view.kin.shown) == 5)
    view._clicked(item(view, "Open make_c 1"))
    comes(lambda: len(view.kin.shown) == 6)
    assert view.picture.object.count("<rect") == 6
    view.show("a")
    comes(lambda: "Affected by a: 3 dataset versions" in view.affected.object)
    view.show("nothing")
    comes(lambda: "no dataset" in view.told.object)
    assert view.picture.object == ""


def test_a_dataset_of_another_namespace_has_its_own_counts(workspace: Workspace) -> None:
    ran(workspace, {"report": []})
    graph = Graph()
    theirs = graph.put(Node(DATASET, "report", "v1", "lab"))
    for number in range(5):
        graph.arrow(graph.put(Node(DATASET, f"s{number}", "", "lab")), theirs)
    add(History.of(workspace).catalog, graph)
    view = opened(workspace).relatives
    view.show("lab/report")
    comes(lambda: "Made from 5 datasets by 0 tasks" in view.told.object)


def test_each_of_two_tasks_of_one_box_opens(workspace: Workspace) -> None:
    graph = Graph()
    middle = graph.put(Node(DATASET, "middle"))
    graph.arrow(middle, graph.put(Node(DATASET, "end")))
    for run in ("early", "late"):
        task = graph.put(Node(TASK, "merge", "1", run=run))
        graph.arrow(task, middle)
        for number in range(2):
            graph.arrow(graph.put(Node(DATASET, f"{run}{number}")), task)
    add(History.of(workspace).catalog, graph)
    view = opened(workspace).relatives
    view.show("end")
    comes(lambda: view.more.items)
    view._clicked(item(view, "Open middle"))
    comes(lambda: len(view.more.items) == 2)
    both = {each["secondary"]: each for each in view.more.items}
    view._clicked(both["2 more behind, run late"])
    comes(lambda: "late1" in view.picture.object)
    assert "early1" not in view.picture.object
    view._clicked(both["2 more behind, run early"])
    comes(lambda: "early1" in view.picture.object)


def test_a_hairball_is_never_drawn_whole(workspace: Workspace) -> None:
    graph = Graph()
    end = graph.put(Node(DATASET, "end"))
    for number in range(500):
        graph.arrow(graph.put(Node(DATASET, f"s{number}")), end)
    history = History.of(workspace)
    add(history.catalog, graph)
    ancestry = Ancestry(history)
    kin = Kin.of_dataset(ancestry, "end")
    assert len(kin.shown) == MOST
    assert kin.hidden(kin.of.id) == 501 - MOST
    assert f"{501 - MOST} more behind" in drawn(kin)


def test_foreign_names_never_become_markup(workspace: Workspace) -> None:
    graph = Graph()
    wild = graph.put(Node(DATASET, "<script>alert(1)</script>"))
    graph.arrow(wild, graph.put(Node(DATASET, "<img src=x>")))
    add(History.of(workspace).catalog, graph)
    view = opened(workspace).relatives
    view.show("<img src=x>")
    comes(lambda: view.picture.object)
    for text in (view.told.object, view.picture.object, view.affected.object):
        assert "<script" not in text and "<img" not in text
    assert "&lt;script" in view.picture.object


def test_a_catalog_that_does_not_answer_is_said_on_the_page(
    tmp_path: Path, workspace: Workspace
) -> None:
    publish(workspace, "a", None)
    mute = Workspace(workspace.path, "postgresql+psycopg://nobody@127.0.0.1:1/nowhere")
    view = opened(mute)
    comes(lambda: "does not answer" in view.runs.count.object)
    view.relatives.show("a")
    comes(lambda: "does not answer" in view.relatives.told.object)


@pytest.mark.parametrize("named", ["", "   "])
def test_nothing_named_asks_nothing(workspace: Workspace, named: str) -> None:
    view = opened(workspace).relatives
    view.show(named)
    assert view.kin is None
