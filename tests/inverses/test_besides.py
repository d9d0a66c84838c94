"""A box may make several datasets, and a trace goes through each of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from pyspark.sql import SparkSession

from explorer.draft import Draft
from explorer.drawing import Drawing
from explorer.nodes import edges_of, node_types
from explorer.statuses import Held
from inverses.guarantees import names
from inverses.partial import run_only
from inverses.proof import prove
from inverses.registry import Registry
from inverses.trace import trace
from pipelines.boxes.box import Besides, Port, RowBox
from pipelines.boxes.relational import Distinct
from pipelines.datasets import Table
from pipelines.errors import Refused
from pipelines.here import Here
from pipelines.history import History
from pipelines.journal import FINISHED
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import matching, schema_of
from pipelines.workspace import Workspace
from tests.files import grid

HERE = cast(SparkSession, Here(2))
SHAPE = (3, 7, 9)
TEXT = """
name: storms
sources: {{field: {{path: {path}}}}}
boxes:
  storms: {{box: find_regions, inputs: {{field: field}}, params: {{threshold: 0.9}}, keep: {keep}}}
  sized: {{box: split_rows, inputs: {{rows: storms.regions}}, params: {{where: value_count > 2}}}}
  few: {{box: aggregate, inputs: {{rows: sized.rest}}, params: {{what: "value:count"}}}}
"""
MADE = ["storms", "storms.cells", "storms.regions", "sized", "sized.rest", "few"]


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    return np.random.default_rng(3).normal(0, 1, SHAPE)


@pytest.fixture(scope="module")
def path(values: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("field") / "field.zarr"
    chunks = {"slp": {"chunks": (1, *SHAPE[1:])}}
    grid(values, wind=()).to_zarr(home, encoding=chunks, consolidated=False)
    return home


def pipeline(path: Path, keep: str = "true") -> Pipeline:
    return Pipeline.from_text(TEXT.format(path=path, keep=keep))


def rows(workspace: Workspace, name: str) -> list[dict[str, Any]]:
    return matching(cast(Table, workspace.dataset(name)), None).to_pylist()


def region(values: np.ndarray, step: int, number: int, wraps: bool) -> set[tuple[int, int]]:
    """The cells of the region with a number, and those around it, by a flood from its first."""
    high, wide = values.shape[1:]
    found, rim = set(), set()
    waiting = deque([divmod(number - 1, wide)])
    while waiting:
        y, x = waiting.popleft()
        if (y, x) in found:
            continue
        if not values[step, y, x] > 0.9:
            rim.add((y, x))
            continue
        found.add((y, x))
        for dy, dx in np.ndindex(3, 3):
            row, column = y + dy - 1, x + dx - 1
            column = column % wide if wraps else column
            if 0 <= row < high and 0 <= column < wide:
                waiting.append((row, column))
    return found | rim


def test_each_dataset_is_made_and_written_down_under_its_own_name(
    path: Path, tmp_path: Path
) -> None:
    workspace = Workspace.create(tmp_path)
    made = run(pipeline(path), workspace, HERE)
    assert sorted(made) == sorted(["field", *MADE])
    assert [n for n, _ in pipeline(path).in_order()] == MADE
    whole, parts = rows(workspace, "storms.regions"), ("sized", "sized.rest")
    assert sorted(map(str, whole)) == sorted(
        str(row) for part in parts for row in rows(workspace, part)
    )
    assert {len(rows(workspace, part)) > 0 for part in parts} == {True}
    (one,), _ = History.asked_of(workspace).runs()
    assert one.how == FINISHED and {n for n, _ in one.made} == set(MADE)


@pytest.mark.parametrize("keep", ["true", "false"])
def test_a_trace_goes_through_what_a_box_makes_besides(
    values: np.ndarray, path: Path, tmp_path: Path, keep: str
) -> None:
    workspace = Workspace.create(tmp_path)
    made = run(pipeline(path, keep), workspace, HERE)
    wraps = bool(cast(Any, made["field"]).circular)
    for row in rows(workspace, "sized"):
        where = f"time_index = {row['time_index']} and value = {row['value']}"
        answer = trace(workspace, "sized", where, ["value_count"], spark=HERE)
        found = {(r["lat_index"], r["lon_index"]) for r in answer.cells("field").to_pylist()}
        assert found == region(values, row["time_index"], int(row["value"]), wraps)
        assert prove(answer, HERE).holds
        assert "complete" in names(answer.guarantee("field"))


def test_the_rest_is_traced_as_well_and_can_be_made_alone(path: Path, tmp_path: Path) -> None:
    whole, part = Workspace.create(tmp_path / "whole"), Workspace.create(tmp_path / "part")
    run(pipeline(path), whole, HERE)
    run_only(pipeline(path), part, HERE, "sized.rest: time_index = 1")
    wanted = [row for row in rows(whole, "sized.rest") if row["time_index"] == 1]
    assert wanted and sorted(map(str, rows(part, "sized.rest"))) == sorted(map(str, wanted))
    answers = [trace(w, "sized.rest", "time_index = 1", spark=HERE) for w in (whole, part)]
    one, other = (sorted(map(str, a.cells("field").to_pylist())) for a in answers)
    assert one == other


def test_a_box_is_made_once_all_its_datasets_are(path: Path, tmp_path: Path) -> None:
    workspace, steps = Workspace.create(tmp_path), pipeline(path).steps
    run(pipeline(path), workspace, HERE)
    whole = Held.by(workspace)
    assert whole.status("storms", steps["storms"]).state == "done"
    some = {n: d for n, d in whole.datasets.items() if n != "storms.regions"}
    assert Held(some).status("storms", steps["storms"]).state == "idle"


def test_a_column_that_what_is_made_besides_lacks_is_refused_by_a_run(
    path: Path, tmp_path: Path
) -> None:
    text = TEXT.format(path=path, keep="true")
    wrong = "  both: {box: join, inputs: {left: storms.cells, right: sized}, params: {keys: lat}}\n"
    with pytest.raises(Refused, match='no column "lat" for box "join"'):
        run(Pipeline.from_text(text + wrong), Workspace.create(tmp_path), HERE)


WRONG = {
    "an unknown one": ("few: {box: distinct, inputs: {rows: sized.rset}}", "sized.rest"),
    "its name taken": ("sized.rest: {box: distinct, inputs: {rows: rows}}", "makes besides"),
    "another kind": ("few: {box: label, inputs: {field: sized.rest}}", "is a table"),
    "a circle": ("sized: {box: split_rows, inputs: {rows: sized.rest}}", "circle: sized.rest"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arrows_to_several_datasets_are_refused(wrong: str) -> None:
    line, said = WRONG[wrong]
    sized = "" if line.startswith("sized:") else "sized: {box: split_rows, inputs: {rows: rows}}"
    text = f"name: wrong\nsources: {{rows: {{path: a.parquet}}}}\nboxes:\n  {sized}\n  {line}\n"
    with pytest.raises(Refused, match=said):
        Pipeline.from_text(text)


@dataclass(frozen=True)
class Parted(RowBox):
    """The rows of one table; besides, those of the other, however they were called."""

    name: ClassVar = "parted"
    takes: ClassVar = (Port("first", "table"), Port("second", "table"))
    contributed: ClassVar = "The row."
    called: ClassVar = "odd"
    wired: ClassVar = "second"

    def attributes_of(self, given: Any) -> Any:
        return given["first"]

    def schema(self, inputs: Any) -> Any:
        return schema_of(inputs["first"])

    def rows(self, inputs: Any) -> Any:
        return inputs["first"]

    def besides(self) -> dict[str, Besides]:
        return {self.called: Besides(Distinct(), {"rows": self.wired})}


PARTED = """
name: parted
sources: {a: {path: a.parquet}, b: {path: b.parquet}}
boxes:
  u: {box: parted, inputs: {first: a, second: b}}
"""


def test_the_part_that_makes_one_dataset_has_all_that_its_box_takes() -> None:
    whole = Pipeline.from_text(PARTED, {"parted": Parted, "distinct": Distinct})
    assert set(whole.up_to("u.odd").sources) == set(whole.up_to("u").sources) == {"a", "b"}


@pytest.mark.parametrize("called, wired", [("odd", "secnd"), ("out", "second"), ("first", "first")])
def test_what_an_author_wires_wrongly_is_refused_when_it_is_read(called: str, wired: str) -> None:
    kind = type("Wrong", (Parted,), {"called": called, "wired": wired})
    with pytest.raises(Refused, match=r"means another thing|nothing at its port"):
        Pipeline.from_text(PARTED, {"parted": kind})


def draft() -> Draft:
    boxes = Registry.of().boxes
    text = "name: d\nboxes:\n  agcm: {box: simulate_agcm}\n  minima: {box: extract_minima, inputs: "
    drawn = Draft.from_text(text + "{field: agcm}, keep: false}\n", boxes)
    split = drawn.added(boxes["split_rows"].from_params({"where": "lat > 0"}), "split").wired(
        "split", "rows", "minima"
    )
    tops = split.added(boxes["top_n"].from_params({"by": "pressure"}), "tops")
    return tops.wired("tops", "rows", "split.rest")


def test_arrows_from_what_is_made_besides_follow_their_box() -> None:
    renamed = draft().renamed("split", "parted")
    assert renamed.steps["tops"].inputs == {"rows": "parted.rest"}
    assert renamed.without(["parted"]).steps["tops"].inputs == {}
    assert list(renamed.graph().edges) == [
        ("agcm", "minima"),
        ("minima", "parted"),
        ("parted", "tops"),
    ]
    assert set(renamed.upto("tops").names) == set(renamed.names)
    assert Draft.from_text(renamed.to_text()).steps == renamed.steps
    with pytest.raises(Refused, match="circle: split -> split"):
        draft().unwired("split", "rows").wired("split", "rows", "split.rest")
    with pytest.raises(Refused, match="there already"):
        draft().renamed("tops", "split.rest")
    with pytest.raises(Refused, match=r'"parted\.rest" is there already'):
        draft().renamed("tops", "parted.rest").renamed("split", "parted")


def test_whether_a_box_is_kept_survives_every_change() -> None:
    changed = draft().renamed("agcm", "sky").tuned("minima", {"margin": 500.0})
    assert not changed.steps["minima"].keep
    assert not changed.unwired("minima", "field").steps["minima"].keep


def test_the_canvas_has_a_port_for_each_dataset_and_arrows_from_it(workspace: Workspace) -> None:
    drawing = Drawing(workspace, Registry.of())
    drawing.mode = "edit"
    drawing.change(lambda _: draft())
    outputs = node_types(Registry.of())["box:split_rows"]["outputs"]
    assert [(o["id"], o["label"], o["type"]) for o in outputs] == [
        ("out", "makes", "table"),
        ("rest", "rest", "table"),
    ]
    assert drawing.status("split").state == "idle"
    edge, end = edges_of(drawing)["split.rest>tops:rows"]
    assert (edge["source"], edge["sourceHandle"], end) == ("split", "rest", ("tops", "rows"))
