"""Arrays become rows and rows become arrays on Spark, and are traced back exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.guarantees import EXACT
from inverses.trace import trace
from pipelines.datasets import Array
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import column, matching
from pipelines.workspace import Workspace

HOT = """
name: hot
sources: {air: {path: air.nc}}
boxes:
  hot: {box: extract_above, inputs: {field: air}, params: {variable: t, threshold: 30.0}}
  peaks: {box: extract_extrema, inputs: {field: air}, params: {variable: t}}
  days:
    box: grid_rows
    inputs: {rows: hot}
    params: {how: max, of: value, resolution: 30.0, every: 12.0, steps: 2}
"""
TIMES = np.datetime64("2000-01-01", "ns") + np.arange(4) * np.timedelta64(6, "h")
LAT, LON = np.array([40.0, 10.0, -10.0]), np.arange(0.0, 360.0, 45.0)


def field() -> np.ndarray:
    values = np.random.default_rng(4).integers(0, 30, (4, 3, 8)).astype(float)
    values[1, 1, 0], values[0, 1, 0], values[3, 0, 5] = 35.0, 33.0, 31.0
    return values


def cells(answer: Answer, name: str = "air") -> set[tuple[int, ...]]:
    found = next(f for key, f in answer.found.items() if key[0] == name).rows
    return set(zip(*(column(found, d).tolist() for d in ("time", "lat", "lon")), strict=True))


def test_cells_become_rows_and_rows_cells_on_spark(
    tmp_path: Path, workspace: Workspace, spark: SparkSession
) -> None:
    dims = {"time": TIMES, "lat": LAT, "lon": LON}
    xr.Dataset({"t": (tuple(dims), field())}, dims).to_netcdf(tmp_path / "air.nc")
    made = run(Pipeline.from_text(HOT, base=tmp_path), workspace, spark)
    hot, days = matching(made["hot"], None), made["days"]
    assert isinstance(days, Array) and days.shape == (2, 6, 12)
    assert sorted(column(hot, "value").tolist()) == [31.0, 33.0, 35.0]

    day = trace(workspace, "days", "time = '2000-01-01' and lat = 15 and lon = 15", spark=spark)
    assert day.plan.guarantee >= EXACT
    assert cells(day) == {(1, 1, 0)}, "the hotter of the two rows in the cell"

    peak = trace(workspace, "peaks", "value = 35", spark=spark)
    around = {(1, y, x) for y in (0, 1, 2) for x in (7, 0, 1)}
    assert peak.plan.guarantee >= EXACT
    assert cells(peak) == around, "over the seam of the circle"
