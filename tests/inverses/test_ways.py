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
from inverses.selection import select
from inverses.trace import trace
from pipelines.datasets import Table
from pipelines.errors import Refused
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
    kept = parsed(where).of(table).expression(schema_of(table)) if where else None
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


DATES = [
    "time > '2001-02-28'",
    "time <= '2001-02-28T06'",
    "time < '2001-02-28T12:00:00' and lat > 0",
    "time between '2001-02-28 06:00' and '2001-02-28T12:00'",
    "not time in ('2001-02-28T06:00', '2001-02-28T18:00:00')",
]


def on_calendar(field: Path, calendar: str) -> Path:
    """The same field on dates that any calendar has."""
    path = field.with_name(f"{calendar}.nc")
    times = xr.date_range("2001-02-28", periods=4, freq="6h", calendar=calendar, use_cftime=True)
    with xr.open_dataset(field) as data:
        data.load().assign_coords(time=times).to_netcdf(path)
    return path


@pytest.mark.parametrize("where", DATES)
def test_dates_of_other_calendars_are_asked_about_like_those_of_ours(
    where: str, field: Path, tmp_path: Path
) -> None:
    told = []
    for calendar in ("standard", "noleap"):
        source = on_calendar(field, calendar)
        whole = made(tmp_path / f"{calendar}-whole", FOUND.format("threshold: 0"), field=source)
        part = made(
            tmp_path / f"{calendar}-part", FOUND.format("threshold: 0"), f"found: {where}",
            field=source,
        )  # fmt: skip
        assert rows(part, "found") == rows(whole, "found", where) != []
        cells = trace(whole, "found", where, spark=HERE).cells("field").to_pylist()
        told.append([[c[f"{d}_index"] for d in ("time", "lat", "lon")] for c in cells])
        if "not" not in where:
            around = select(whole, "field", where).at.spans["time"].low
            assert {step for step, _, _ in told[-1]} == {*around.tolist()}
    assert told[0] == told[1]


def test_what_is_no_date_of_another_calendar_is_refused(field: Path, tmp_path: Path) -> None:
    source = on_calendar(field, "noleap")
    whole = made(tmp_path / "w", FOUND.format("threshold: 0"), field=source)
    for name in ("found", "field"):
        with pytest.raises(Refused, match="'2001-02' is no date like"):
            select(whole, name, "time > '2001-02'")
    late = (
        "  late: {{box: filter_rows, inputs: {{rows: found}},"
        " params: {{where: \"time > '2001-02-28{}'\"}}}}\n"
    )
    boxes = FOUND.format("threshold: 0")
    with pytest.raises(Refused, match="write them in full"):
        made(tmp_path / "short", boxes + late.format("T12:00"), field=source)
    kept = made(tmp_path / "full", boxes + late.format(" 12:00:00"), field=source)
    assert rows(kept, "late") == rows(whole, "found", "time > '2001-02-28T12:00'") != []


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
