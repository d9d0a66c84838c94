"""Sources and workspaces that are damaged, gone or not ours are named, and left as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from pyspark.sql import SparkSession

from inverses.ancestry import Ancestry
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.stories.asked import LITTLE, Ask, assert_refused, contents


def field(path: Path, name: str = "slp", unit: str = "Pa") -> Path:
    """A small NetCDF file."""
    times = np.datetime64("2000-01-01", "ns") + np.arange(4) * np.timedelta64(6, "h")
    lat, lon = np.linspace(90, -90, 9), np.arange(16) * 22.5
    values = np.random.default_rng(0).uniform(98e3, 102e3, (4, 9, 16)).astype("f4")
    dims = ("time", "lat", "lon")
    data = xr.Dataset(
        {name: (dims, values, {"units": unit})}, {"time": times, "lat": lat, "lon": lon}
    )
    data.to_netcdf(path, engine="netcdf4")
    return path


def write_source(path: Path, kind: str) -> None:
    """Something at a path that is not a field that can be read."""
    if kind == "garbage":
        path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(range(256)) * 40)
    elif kind == "text":
        path.write_text("time,lat,lon\n")
    elif kind == "cut":
        whole = field(path.with_suffix(".whole")).read_bytes()
        path.write_bytes(whole[: len(whole) // 3])
    elif kind == "empty":
        path.touch()
    elif kind == "zarr":
        (path / "slp").mkdir(parents=True)
        (path / "zarr.json").write_text('{"zarr_format": 3, "node_ty')


@pytest.mark.parametrize("kind", ["missing", "garbage", "text", "cut", "empty", "zarr"])
def test_a_source_that_cannot_be_read_is_said_before_anything_starts(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("explorer.commands.session", lambda *_: pytest.fail("Spark was started"))
    write_source(tmp_path / "field.nc", kind)
    (tmp_path / "p.yaml").write_text(
        "name: p\nsources: {era: {path: field.nc}}\n"
        "boxes: {minima: {box: extract_minima, inputs: {field: era}}}\n"
    )
    before = contents(tmp_path)
    said = ask("run", tmp_path / "p.yaml", "-w", tmp_path / "new")
    assert_refused(said, 2 if kind == "missing" else 1, str(tmp_path / "field.nc"))
    assert contents(tmp_path) == before


def test_a_source_without_what_a_box_needs_is_refused_before_anything_starts(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.commands.session", lambda *_: pytest.fail("Spark was started"))
    field(tmp_path / "field.nc", "t2m", "K")
    (tmp_path / "p.yaml").write_text(
        "name: p\nsources: {era: {path: field.nc}}\n"
        "boxes: {minima: {box: extract_minima, inputs: {field: era}}}\n"
    )
    said = ask("run", tmp_path / "p.yaml", "-w", tmp_path / "new")
    assert_refused(said, 2, 'needs a Pressure, "era" has none (it has: time, t2m)')
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("place", ["file", "other", "format"])
@pytest.mark.parametrize(
    "command", [["run", "p.yaml"], ["demo"], ["trace", "tracks"], ["datasets"], ["show", "tracks"]]
)
def test_what_is_no_workspace_is_left_alone(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("explorer.commands.session", lambda *_: pytest.fail("Spark was started"))
    Path("p.yaml").write_text(LITTLE)
    Path("file").write_text("mine")
    Path("other").mkdir()
    Path("other/thesis.tex").write_text("mine")
    Path("format").mkdir()
    Path("format/whence.json").write_text('{"format": 99}')
    before = contents(tmp_path)
    reason = "has format 99, this Whence reads format 1" if place == "format" else "workspace"
    assert_refused(ask(*command, "-w", place), 2, f'"{place}"', reason)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("damage", ["", '{"kind": "tab', "[]", '{"kind": "table"}'])
@pytest.mark.parametrize("name", ["tracks", "minima", "agcm"])
def test_a_damaged_version_is_said_and_left_as_it_is(
    ask: Ask, copied: Workspace, damage: str, name: str
) -> None:
    (copied.path / "datasets" / name / "v1" / "dataset.json").write_text(damage)
    before = contents(copied.path)
    for command in (["trace", "tracks"], ["plan", "tracks"], ["datasets"], ["show", name]):
        said = ask(*command, "-w", copied.path)
        assert_refused(said, 1, f'version "v1" of "{name}" is damaged; run again')
    assert contents(copied.path) == before


def test_rows_that_are_gone_or_garbled_are_said(ask: Ask, copied: Workspace) -> None:
    part = next((copied.path / "datasets" / "tracks" / "v1" / "table").iterdir())
    part.write_bytes(part.read_bytes()[:100])
    for command in (["trace", "tracks"], ["show", "tracks", "--where", "lat > 0"]):
        assert_refused(ask(*command, "-w", copied.path), 1, 'cannot read "tracks"')
    part.unlink()
    assert_refused(ask("trace", "tracks", "-w", copied.path), 1, 'cannot read "tracks"')


def test_minima_that_are_gone_are_said_in_one_line(
    ask: Ask, copied: Workspace, spark: SparkSession
) -> None:
    for part in (copied.path / "datasets" / "minima" / "v1" / "table").iterdir():
        part.unlink()
    said = ask("trace", "tracks", "--where", "time_index < 3", "-w", copied.path)
    assert_refused(said, 1, "tracks to minima", "cannot read", "part-")


def test_a_source_that_changed_or_went_is_said(
    ask: Ask, tmp_path: Path, spark: SparkSession
) -> None:
    file = field(tmp_path / "field.nc")
    text = (
        f"name: p\nsources: {{era: {{path: {file}}}}}\n"
        "boxes: {minima: {box: extract_minima, inputs: {field: era}}}\n"
    )
    workspace = Workspace.create(tmp_path / "w")
    run(Pipeline.from_text(text), workspace, spark)
    Ancestry.of(workspace).ancestors("minima")
    before = contents(workspace.path)
    data = file.read_bytes()
    file.write_bytes(data.replace(data[-64:], bytes(64)))
    asked = ["trace", "minima", "--where", "time_index = 1", "-w", str(workspace.path)]
    assert_refused(ask(*asked), 1, 'source "era"', "has changed since the run", "run again")
    file.unlink()
    assert_refused(ask(*asked), 1, 'source "era"', "no file at")
    assert contents(workspace.path) == before


def test_a_damaged_source_is_mended_by_running_again(tmp_path: Path, spark: SparkSession) -> None:
    file = field(tmp_path / "field.nc")
    text = (
        f"name: p\nsources: {{era: {{path: {file}}}}}\n"
        "boxes: {minima: {box: extract_minima, inputs: {field: era}}}\n"
    )
    workspace = Workspace.create(tmp_path / "w")
    run(Pipeline.from_text(text), workspace, spark)
    (workspace.path / "datasets" / "era" / "v1" / "dataset.json").write_text("")
    run(Pipeline.from_text(text), workspace, spark)
    assert [d.version for d in workspace.datasets()] == ["v2", "v2"]
