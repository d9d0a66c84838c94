"""What was not kept is made again where a trace needs it, and nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from pyspark.sql import SparkSession

from inverses.making import made_by
from inverses.recipes import Recipe
from inverses.replay import available
from inverses.trace import trace
from pipelines.arrays import Ranges, block
from pipelines.boxes.box import ArrayBox, Grid, Port
from pipelines.datasets import Array, Attribute
from pipelines.errors import Refused
from pipelines.filters import where
from pipelines.grids import grid_like
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import matching
from pipelines.workspace import Workspace
from tests.files import grid, source_at

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


@dataclass(frozen=True)
class Thirds(ArrayBox):
    """A third of every pressure, written as floats of 32 bits."""

    name: ClassVar = "thirds"
    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = "The cell."

    def attributes_of(self, given: Mapping[str, tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
        return given["field"]

    def grid(self, inputs: Mapping[str, Any]) -> Grid:
        return replace(grid_like(inputs["field"], inputs["field"].attributes), dtype=np.float32)

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, Any]:
        return {"slp": block(inputs["field"], "slp", ranges) / 3}


def test_what_is_made_again_is_as_a_run_would_have_written_it(tmp_path: Path) -> None:
    grid(np.arange(24.0).reshape(2, 3, 4), wind=()).to_zarr(tmp_path / "f", consolidated=False)
    field, box = source_at(tmp_path / "f"), Thirds()
    thirds = np.float32(block(field, "slp", {}) / 3)
    assert (made_by(box, {"field": field}).content.variables["slp"] == thirds).all()
    image = replace(field, name="thirds", kept=False)
    recipe = Recipe(box, {"field": field}, {"field": ()})
    again = available(image, where(), {image.key: recipe}, cast(SparkSession, Here(1)))
    assert (block(cast(Array, again), "slp", {}) == thirds).all()
