"""Columns that Spark would not find by their names are made, traced and followed on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from inverses import work
from inverses.impact import impact
from inverses.partial import run_only
from inverses.trace import trace
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import matching
from pipelines.workspace import Workspace

ODD = ["a", "A", "d.e", "b`t", "b t", "Owner", "ü", ""]
BOXES = """
name: odd
sources: {s: {path: s.parquet}}
boxes:
  kept: {box: filter_rows, inputs: {rows: s}, params: {where: "`d.e` > 1"}}
  once: {box: distinct, inputs: {rows: kept}, keep: false}
  first: {box: top_n, inputs: {rows: once}, params: {by: A, n: 2, keys: k}}
  groups: {box: aggregate, inputs: {rows: first}, params: {keys: "a, d.e", what: "b t:mean"}}
"""


@pytest.fixture
def odd(tmp_path: Path) -> Pipeline:
    rows: dict[str, Any] = {name: [1, 2, 3, 4, 5] for name in ODD}
    pq.write_table(pa.table({**rows, "k": [1, 1, 2, 2, 2]}), tmp_path / "s.parquet", 2)
    return Pipeline.from_text(BOXES, base=tmp_path)


def test_columns_of_odd_names_are_made_and_traced_on_spark(
    odd: Pipeline, workspace: Workspace, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "HERE", 0)  # Nothing is little enough to be done without a job.
    made = run(odd, workspace, spark)
    assert matching(made["groups"], None).num_rows == 3
    behind = trace(workspace, "groups", "`d.e` = 4", spark=spark).cells("s").to_pylist()
    assert behind == [{**dict.fromkeys(ODD, 4), "k": 2}]
    (derived,) = impact(
        workspace, "s", "A = 2", attributes=["b t_mean"], spark=spark
    ).reached.values()
    assert derived.rows.to_pylist() == [{"a": 2, "d.e": 2, "b t_mean": 2.0}]


def test_columns_of_odd_names_are_made_in_part_on_spark(
    odd: Pipeline, workspace: Workspace, spark: SparkSession
) -> None:
    made = run_only(odd, workspace, spark, "first: `d.e` < 4")
    assert sorted(matching(made["first"], None)["d.e"].to_pylist()) == [2]
