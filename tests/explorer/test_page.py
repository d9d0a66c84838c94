"""A page without a browser: it opens on whatever a workspace has, and asks what it is told to."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from explorer.asking import Question
from explorer.gate import Gate
from explorer.page import Server, Visit
from explorer.work import Engine
from inverses.registry import Registry
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace


def visit(workspace: Workspace, author: bool = True) -> Visit:
    return Visit(Server(workspace, Registry.of(), Engine(), Gate(1), author))


@pytest.mark.parametrize("author", [True, False])
def test_an_empty_workspace_opens_and_every_view_of_it(workspace: Workspace, author: bool) -> None:
    page = visit(workspace, author)
    for view in range(5):
        page._viewed(view)
    page.map.trace()
    assert page.asking.trouble.startswith("nothing is selected yet")


def test_a_click_plans_at_once_and_a_step_keeps_the_question(demo: Workspace) -> None:
    page = visit(demo)
    page.state.time = 60
    page.map._tapped(322.5, 45.0, (3, 3), (300, 300))
    assert page.asking.planned.question.where.startswith("track = 600001800129 and time = ")
    assert page.map.picture.layers["outline"].data["left"].tolist() == [316.25]
    page.state.time = 61
    assert page.state.dataset == "tracks"
    assert not len(page.map.picture.layers["outline"].data["left"])


def test_a_box_on_the_map_selects_the_points_in_it(demo: Workspace) -> None:
    page = visit(demo)
    page.state.time = 60
    page.map._boxed([0.0, 360.0, 40.0, 60.0])
    spans = page.asking.planned.plan.selection.at.spans
    assert len(spans["lat"].low) > 3
    assert (spans["lat"].low >= 40).all() and (spans["lat"].low <= 60).all()
    assert (spans["time_index"].low == 60).all()


NAN, INF = float("nan"), float("inf")
COLUMNS = [
    {"k": [1, 1, 2**53, 2**53 + 1], "x": [0.5, 1.0, -INF, NAN]},
    {"max wind": [0.1, NAN, INF], "and": [True, True, False]},
    {"f": pa.array([0.1, 0.2, NAN], pa.float32()), "s": ["it's", "", '"'], 'a"`': [1, 1, 1]},
]


@pytest.mark.parametrize("columns", COLUMNS)
def test_a_click_on_a_row_of_a_table_asks_about_that_row_alone(
    columns: dict[str, Any], workspace: Workspace
) -> None:
    path = workspace.path / "s.parquet"
    pq.write_table(pa.table(columns), path)
    text = f"name: n\nsources: {{s: {{path: {path}}}}}\nboxes: {{d: {{box: distinct, inputs: "
    run(Pipeline.from_text(text + "{rows: s}}}"), workspace, cast(SparkSession, Here()))
    page = visit(workspace)
    page.state.table = "d"
    for position, row in enumerate(page.rows.table.value.itertuples(index=False)):
        page.rows._about(position)
        spans = page.asking.planned.plan.selection.at.spans.values()
        assert [str(s.low.tolist()) for s in spans] == [str([value]) for value in row]


def test_a_question_that_cannot_be_asked_is_refused_in_words(demo: Workspace) -> None:
    page = visit(demo)
    page.map.ask(Question("tracks", "nonsense = 1"))
    assert "nonsense" in page.asking.trouble
    assert "nonsense" in page.why.head.object
    page._cleared()
    assert page.asking.trouble == ""


def test_text_from_an_address_never_becomes_markup(demo: Workspace) -> None:
    page = visit(demo)
    page.map.ask(Question("tracks", "<script>alert(1)</script> = 1"))
    assert "<script" not in page.why.head.object
    assert "&lt;script" in page.why.head.object


def test_wishing_for_another_guarantee_plans_anew(demo: Workspace) -> None:
    page = visit(demo)
    page.map.ask(Question("tracks", "track = 600001800129 and time_index = 62", ("track",)))
    assert "pure" in page.why.head.object and page.why.tighten.visible
    page.why._tighten()
    assert page.state.want == "pure"
    assert page.asking.planned.question.want == "pure"


def test_a_pipeline_larger_than_any_is_refused_unread(workspace: Workspace) -> None:
    page = visit(workspace)
    page.canvas.mode = "edit"
    page.canvas.load("x" * 300_000)
    assert "at most 200,000 characters" in page.canvas.notice


def test_readers_can_neither_draw_nor_run(workspace: Workspace) -> None:
    page = visit(workspace, author=False)
    page.canvas.load("name: p\nboxes: {agcm: {box: simulate_agcm}}\n")
    page.canvas.run_all()
    assert not page.canvas.draft.names and not page.work.busy
    assert workspace.names() == []
