"""An answer proves itself by replay, and a wrong one does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.proof import prove
from inverses.trace import trace
from pipelines.datasets import Table
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import matching
from pipelines.workspace import Workspace
from tests.files import grid

HERE = cast(SparkSession, Here(2))
COUNTED = """
name: counted
sources: {{field: {{path: {}}}}}
boxes:
  smooth: {{box: window_mean, inputs: {{field: field}}, params: {{lat: 3, lon: 3}}}}
  high: {{box: extract_above, inputs: {{field: smooth}},
         params: {{variable: slp, threshold: {}}}}}
  steps: {{box: aggregate, inputs: {{rows: high}},
          params: {{keys: time_index, what: "{}:count"}}}}
"""


def point(demo: Workspace, number: int) -> str:
    row = matching(cast(Table, demo.dataset("tracks")), None).slice(number, 1).to_pylist()[0]
    return f"track = {row['track']} and time = '{row['time']}'"


@pytest.mark.parametrize("number", [0, 1234, 5000])
def test_the_cells_behind_a_track_point_give_it_back(demo: Workspace, number: int) -> None:
    proof = prove(trace(demo, "tracks", point(demo, number), spark=HERE), HERE)
    assert proof.holds, proof.text()


def test_the_cone_behind_a_track_number_gives_it_back(demo: Workspace) -> None:
    answer = trace(demo, "tracks", point(demo, 99), ["track"], "complete", spark=HERE)
    assert prove(answer, HERE).holds


def lacking(answer: Answer, name: str) -> Iterator[Answer]:
    """An answer without each of the cells or rows of a dataset."""
    (key,) = [k for k in answer.found if k[0] == name]
    found = answer.found[key]
    for gone in range(found.rows.num_rows):
        rows = found.rows.take(np.delete(np.arange(found.rows.num_rows), gone))
        yield replace(answer, found={**answer.found, key: replace(found, rows=rows)})


def test_an_answer_that_lacks_a_cell_does_not_prove_itself(demo: Workspace) -> None:
    answer = trace(demo, "tracks", point(demo, 1234), spark=HERE)
    assert answer.cells("agcm").num_rows <= 9, "of more, one could be spared"
    assert not any(prove(each, HERE).holds for each in lacking(answer, "agcm"))


def counted(home: Path, scale: float, of: str = "value") -> Workspace:
    """How many means of three by three are high, step by step of a field."""
    values = np.random.default_rng(1).normal(0, 1, (3, 12, 24)) * scale
    grid(values, wind=()).to_netcdf(home / "field.nc")
    workspace = Workspace.create(home / "w")
    run(Pipeline.from_text(COUNTED.format(home / "field.nc", 0.7 * scale, of)), workspace, HERE)
    return workspace


@pytest.mark.parametrize("scale, of", [(1.0, "value"), (1e-12, "value"), (1.0, "time_index")])
def test_what_newly_comes_up_for_want_of_all_else_is_left_out_step_by_step(
    scale: float, of: str, tmp_path: Path
) -> None:
    answer = trace(counted(tmp_path, scale, of), "steps", "time_index = 1", spark=HERE)
    proof = prove(answer, HERE)
    assert answer.plan.open_to_newcomers and proof.holds and proof.by_steps
    assert "step by step" in proof.text() and proof.to_json()["by_steps"]
    for name in ("high", "smooth", "field"):
        assert not any(prove(each, HERE).holds for each in lacking(answer, name))


@pytest.mark.parametrize("scale", [1.0, 1e-12])
def test_however_small_values_are_others_do_not_prove_them(scale: float, tmp_path: Path) -> None:
    answer = trace(counted(tmp_path, scale), "smooth", "lat > 80 and lon = 45", spark=HERE)
    assert prove(answer, HERE).holds
    for each in lacking(answer, "field"):
        assert not prove(each, HERE).holds


UNKEPT = """
name: unkept
sources: {{field: {{path: {}}}}}
boxes:
  half: {{box: calculate, inputs: {{field: field}}, params: {{formula: slp / 2}}, keep: false}}
  smooth: {{box: window_mean, inputs: {{field: half}}, keep: false}}
"""


def test_cells_that_were_not_kept_come_back_too(tmp_path: Path) -> None:
    grid(np.random.default_rng(1).normal(0, 1, (3, 6, 8)), wind=()).to_netcdf(tmp_path / "f.nc")
    workspace = Workspace.create(tmp_path / "w")
    run(Pipeline.from_text(UNKEPT.format(tmp_path / "f.nc")), workspace, HERE)
    answer = trace(workspace, "smooth", "lat > 80 and lon = 45", spark=HERE)
    assert prove(answer, HERE).holds
    assert not any(prove(each, HERE).holds for each in lacking(answer, "field"))


def test_coordinates_alone_cannot_come_back(tmp_path: Path) -> None:
    answer = trace(counted(tmp_path, 1.0), "smooth", "lat > 80", ["time"], spark=HERE)
    assert "not proved" in prove(answer, HERE).text()


MINIMA = """
name: minima
boxes:
  agcm: {box: simulate_agcm, params: {days: 3.0, resolution: 10.0}}
  minima: {box: extract_minima, inputs: {field: agcm}}
  some: {box: filter_rows, inputs: {rows: minima}, params: {where: lat > 0}}
  steps: {box: aggregate, inputs: {rows: some},
          params: {keys: time_index, what: "time_index:count"}}
  tracks: {box: identify_tracks, inputs: {minima: minima},
           params: {near_km: 900, far_km: 1500, min_points: 3}}
  long: {box: aggregate, inputs: {rows: tracks}, params: {keys: track, what: "time_index:count"}}
"""


def test_behind_a_count_is_all_that_makes_what_was_counted(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "w")
    run(Pipeline.from_text(MINIMA), workspace, HERE)
    answer = trace(workspace, "steps", "time_index = 4", spark=HERE)
    minima = trace(workspace, "minima", "time_index = 4 and lat > 0", ["location"], spark=HERE)
    assert answer.cells("agcm").equals(minima.cells("agcm"))
    assert prove(answer, HERE).holds
    first = matching(cast(Table, workspace.dataset("long")), None).to_pylist()[0]["track"]
    assert prove(trace(workspace, "long", f"track = {first}", spark=HERE), HERE).holds
