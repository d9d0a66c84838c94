"""Pipelines of several boxes with columns made anew, missing values, keys and other calendars."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
from pyspark.sql import SparkSession

from inverses.guarantees import COMPLETE, EXACT
from inverses.impact import impact
from inverses.partial import run_only
from inverses.trace import trace
from pipelines.datasets import Table
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.predicates import parsed
from pipelines.run import run
from pipelines.tables import matching, schema_of
from pipelines.workspace import Workspace
from tests.files import grid

HERE = cast(SparkSession, Here(2))
MIXED = {"k": [2, 0, 5, 9], "x": [1.0, 1.0, np.nan, 3.0]}


def made(home: Path, boxes: str, only: str = "", **sources: Path) -> Workspace:
    """A workspace in which boxes have run over files, maybe in part."""
    kinds = {n: "table" if p.suffix == ".parquet" else "array" for n, p in sources.items()}
    told = "\n".join(f"  {n}: {{path: {p}, kind: {kinds[n]}}}" for n, p in sources.items())
    pipeline = Pipeline.from_text(f"name: ways\nsources:\n{told}\nboxes:\n{boxes}")
    workspace = Workspace.create(home)
    if only:
        run_only(pipeline, workspace, HERE, only)
    else:
        run(pipeline, workspace, HERE)
    return workspace


def rows(workspace: Workspace, name: str, where: str | None = None) -> list[dict[str, Any]]:
    table = cast(Table, workspace.dataset(name))
    kept = parsed(where).expression(schema_of(table)) if where else None
    return sorted(matching(table, kept).to_pylist(), key=str)


@pytest.fixture
def field(tmp_path: Path) -> Path:
    """A small field of pressures about nothing."""
    values = np.random.default_rng(0).normal(0, 1, (4, 3, 6))
    grid(values, wind=()).to_netcdf(tmp_path / "field.nc")
    return tmp_path / "field.nc"


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A few rows, one of which has no value."""
    pq.write_table(pa.table(MIXED), tmp_path / "mixed.parquet")
    return tmp_path / "mixed.parquet"


FOUND = "  found: {{box: extract_above, inputs: {{field: field}}, params: {{variable: slp,{}}}}}\n"
ANEW = {
    "longitudes to both sides": (
        "  cut: {box: project, inputs: {rows: found}, params: {columns: 'time_index, lon_index'},"
        " keep: false}\n"
        "  out: {box: map_rows, inputs: {rows: cut},"
        " params: {column: lon, formula: 'lon_index * 60 - 180'}}\n",
        "lon < 0",
    ),
    "a rank called like an index": (
        "  cut: {box: project, inputs: {rows: found}, params: {columns: 'time, value'},"
        " keep: false}\n"
        "  ranked: {box: rank, inputs: {rows: cut}, params: {by: value, called: time_index},"
        " keep: false}\n"
        "  out: {box: filter_rows, inputs: {rows: ranked}, params: {where: value > 0}}\n",
        "time <= '2001-03-01T06:00'",
    ),
}


@pytest.mark.parametrize("name", ANEW)
def test_a_column_made_anew_tells_no_place_in_the_array(
    name: str, field: Path, tmp_path: Path
) -> None:
    boxes, where = ANEW[name]
    boxes = FOUND.format("threshold: 0").replace("}}\n", "}, keep: false}\n") + boxes
    whole = made(tmp_path / "whole", boxes, field=field)
    part = made(tmp_path / "part", boxes, f"out: {where}", field=field)
    expected = rows(whole, "out", where)
    assert expected and rows(part, "out") == expected
    kept = made(tmp_path / "kept", boxes.replace(", keep: false", ""), field=field)
    there, here = (trace(w, "out", where, spark=HERE) for w in (kept, whole))
    assert here.cells("field").to_pylist() == there.cells("field").to_pylist() != []
    assert here.guarantee("field") == there.guarantee("field")


def test_times_of_other_calendars_bound_rows_that_were_not_kept(
    field: Path, tmp_path: Path
) -> None:
    times = xr.date_range("2000-02-27", periods=4, freq="D", calendar="noleap", use_cftime=True)
    with xr.open_dataset(field) as data:
        data.load().assign_coords(time=times).to_netcdf(tmp_path / "noleap.nc")
    boxes = FOUND.format("threshold: 0")
    whole = made(tmp_path / "whole", boxes, field=tmp_path / "noleap.nc")
    where = "time > '2000-02-28'"
    part = made(tmp_path / "part", boxes, f"found: {where}", field=tmp_path / "noleap.nc")
    assert rows(part, "found") == rows(whole, "found", where) != []


PASSED_ON = {
    "project": "{columns: 'k, x'}",
    "filter_rows": "{where: k > 0}",
    "map_rows": "{column: z, formula: 2 * k}",
    "distinct": "{}",
    "aggregate": "{keys: x, what: 'k:max'}",
}


@pytest.mark.parametrize("box", PASSED_ON)
def test_rows_of_missing_values_have_an_impact(box: str, mixed: Path, tmp_path: Path) -> None:
    boxes = f"  out: {{box: {box}, inputs: {{rows: mixed}}, params: {PASSED_ON[box]}}}\n"
    workspace = made(tmp_path / "w", boxes, mixed=mixed)
    (reached,) = impact(workspace, "mixed", "k = 5", spark=HERE).reached.values()
    assert [row["x"] for row in reached.rows.to_pylist()] == [pytest.approx(np.nan, nan_ok=True)]


@pytest.mark.parametrize(
    "named, asked", [(["all"], ["x", "k_min"]), (["x", "k_min"], ["x", "k_min"]), (["x"], ["x"])]
)
def test_a_key_that_is_named_is_asked_about_beside_others(
    named: list[str], asked: list[str], mixed: Path, tmp_path: Path
) -> None:
    boxes = "  out: {box: aggregate, inputs: {rows: mixed}, params: {keys: x, what: 'k:min'}}\n"
    workspace = made(tmp_path / "w", boxes, mixed=mixed)
    answer = trace(workspace, "out", "x = 1", named, spark=HERE)
    assert sorted(row["k"] for row in answer.cells("mixed").to_pylist()) == [0, 2]
    assert answer.plan.attributes == asked and COMPLETE in answer.guarantee("mixed")
    least = trace(workspace, "out", "x = 1", spark=HERE)
    assert [row["k"] for row in least.cells("mixed").to_pylist()] == [0]
    assert least.guarantee("mixed") == EXACT
