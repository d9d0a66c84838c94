"""What was not kept is made again where a trace needs it, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from inverses.trace import trace
from pipelines.errors import Refused
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import matching
from pipelines.workspace import Workspace

TEXT = """
name: cyclones
boxes:
  agcm: {{box: simulate_agcm, params: {{days: 10.0, resolution: 5.0}}, keep: {agcm}}}
  minima: {{box: extract_minima, inputs: {{field: agcm}}, keep: {minima}}}
  tracks: {{box: identify_tracks, inputs: {{minima: minima}}, params: {{min_points: 4}}}}
"""


def ran(spark: SparkSession, path: Path, agcm: str, minima: str) -> Workspace:
    workspace = Workspace.create(path)
    run(Pipeline.from_text(TEXT.format(agcm=agcm, minima=minima)), workspace, spark)
    return workspace


def told(workspace: Workspace, spark: SparkSession, *asked: Any) -> dict[str, Any]:
    answer = trace(workspace, "tracks", *asked, spark=spark)
    return {
        name: (sorted(map(str, found.table().to_pylist())), answer.guarantee(name))
        for name, found in answer.lineage.items()
    }


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return ran(spark, tmp_path_factory.mktemp("kept") / "w", "true", "true")


@pytest.mark.parametrize("agcm, minima", [("true", "false"), ("false", "true"), ("false", "false")])
def test_a_trace_through_what_was_not_kept_answers_as_if_it_had_been(
    spark: SparkSession, kept: Workspace, tmp_path: Path, agcm: str, minima: str
) -> None:
    workspace = ran(spark, tmp_path / "w", agcm, minima)
    rows = matching(workspace.dataset("tracks"), None).to_pylist()  # type: ignore[arg-type]
    point = rows[len(rows) // 2]
    where = f"track = {point['track']} and time = '{point['time']}'"
    for asked in ((where,), (where, ["track"], "complete"), (None,)):
        assert told(workspace, spark, *asked) == told(kept, spark, *asked)


def test_what_was_not_kept_has_no_files_and_says_so(spark: SparkSession, tmp_path: Path) -> None:
    workspace = ran(spark, tmp_path / "w", "false", "false")
    sizes = {p.name: p.stat().st_size for p in workspace.path.rglob("*") if p.is_file()}
    assert not any(name.endswith(".parquet") and "minima" in name for name in sizes)
    assert not list((workspace.path / "datasets/agcm/v1/array.zarr").glob("slp*"))
    assert workspace.dataset("agcm").shape == (40, 37, 72)  # type: ignore[union-attr]
    with pytest.raises(Refused, match="was not kept"):
        matching(workspace.dataset("minima"), None)  # type: ignore[arg-type]
