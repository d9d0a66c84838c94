"""Exports: what was traced, in a file that others can read, whole or not at all."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import xarray as xr
from pyspark.sql import SparkSession

from explorer import export as exporting
from explorer.cli import main
from explorer.export import check_target, export, traced_rows
from inverses.answer import Answer
from inverses.trace import trace
from pipelines.datasets import Array
from pipelines.errors import Failed, Refused, WhenceError
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.files import AT_THE_SEAM, LAYOUTS, Layout, at, pipeline_over

SUFFIXES = (".csv", ".parquet", ".nc", ".zarr")


@dataclass(frozen=True)
class Traced:
    """A file, the workspace of a run over it, and where its seam's lowest cell came from."""

    layout: Layout
    path: Path
    workspace: Workspace
    answer: Answer


def traced(layout: Layout, folder: Path, spark: SparkSession) -> Traced:
    path = layout.at(folder)
    workspace = Workspace.create(folder / "workspace")
    pipeline = pipeline_over(path, only_minima=True, variables=dict(layout.variables))
    run(pipeline, workspace, spark)
    answer = trace(workspace, "minima", at(AT_THE_SEAM), ["all"], spark=spark)
    return Traced(layout, path, workspace, answer)


@pytest.fixture(scope="module")
def era5(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return traced(LAYOUTS["era5"], tmp_path_factory.mktemp("era5"), spark)


@pytest.fixture(
    scope="module",
    params=["era5", "cmip", "ncep", "odd", "with_level", "transposed", "rolled", "zarr_2"],
)
def world(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Traced:
    return traced(LAYOUTS[request.param], tmp_path_factory.mktemp(request.param), spark)


def plainly(path: Path) -> xr.Dataset:
    """A file as plain xarray has it."""
    with xr.open_zarr(path) if path.suffix == ".zarr" else xr.open_dataset(path) as data:
        return data.load()


def cells(answer: Answer, variable: str) -> set[tuple[Any, ...]]:
    rows = answer.cells("world").to_pylist()
    return {(str(r["time"]), r["lat"], r["lon"] % 360) for r in rows if r["variable"] == variable}


def marked(mask: xr.DataArray, dims: tuple[str, ...]) -> set[tuple[Any, ...]]:
    """The coordinates of the cells that a mask marks."""
    time, lat, lon = (mask[d].values for d in dims)
    t, y, x = np.nonzero(mask.transpose(*dims).values)
    stamps = time.astype("M8[us]").astype(object) if time.dtype.kind == "M" else time
    return {(str(stamps[i]), lat[j], lon[k] % 360) for i, j, k in zip(t, y, x, strict=True)}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_has_one_row_per_traced_cell(era5: Traced, suffix: str, tmp_path: Path) -> None:
    path = export(era5.answer, tmp_path / f"cells{suffix}")
    rows = pa.csv.read_csv(path) if suffix == ".csv" else pq.read_table(path)
    expected = era5.answer.cells("world")
    assert rows.column_names == ["dataset", *expected.column_names]
    assert set(rows.column_names) == {
        "dataset", "variable", "value",
        "time", "lat", "lon", "time_index", "lat_index", "lon_index",
    }  # fmt: skip
    assert rows.num_rows == expected.num_rows == 9 + 2
    assert set(rows["dataset"].to_pylist()) == {"world"}
    for name in ("variable", "time_index", "lat_index", "lon_index", "lat", "lon"):
        assert rows[name].to_pylist() == expected[name].to_pylist()
    assert rows["value"].to_pylist() == pytest.approx(expected["value"].to_pylist())


def test_a_parquet_file_says_what_was_asked(era5: Traced, tmp_path: Path) -> None:
    metadata = pq.read_schema(export(era5.answer, tmp_path / "cells.parquet")).metadata
    about = {k.decode(): json.loads(v) for k, v in metadata.items() if k.startswith(b"whence")}
    assert about["whence_guarantee"] == {"world": ["complete", "pure"]}


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_box_marks_the_traced_cells_of_every_variable_under_its_own_name(
    world: Traced, suffix: str, tmp_path: Path
) -> None:
    data = plainly(export(world.answer, tmp_path / f"cells{suffix}"))
    array = world.answer.lineage["world"].dataset
    assert isinstance(array, Array)
    for ours in ("slp", "u10", "v10"):
        theirs, mask = data[array.stored[ours]], data[f"{array.stored[ours]}_traced"]
        assert marked(mask, world.layout.dims) == cells(world.answer, ours)
        assert [d for d in theirs.dims if d in world.layout.dims] == list(mask.dims)
        assert theirs.attrs["ancillary_variables"] == mask.name


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_box_has_the_values_and_the_attributes_of_the_source(
    world: Traced, suffix: str, tmp_path: Path
) -> None:
    data, source = plainly(export(world.answer, tmp_path / f"cells{suffix}")), plainly(world.path)
    time, _, lon = world.layout.dims
    here, there = data[world.layout.pressure], source[world.layout.pressure]
    turned = here.assign_coords({lon: as_in(source[lon], here[lon])})
    same = there.sel({d: turned[d] for d in world.layout.dims})
    np.testing.assert_array_equal(here.values, same.values)
    assert here.attrs["units"] == there.attrs["units"]
    assert here[time].dtype == there[time].dtype
    assert source.attrs.items() <= data.attrs.items()


def as_in(there: xr.DataArray, here: xr.DataArray) -> list[float]:
    """Longitudes as a source has them, full turns aside."""
    known = {round(float(v) % 360, 6): float(v) for v in there.values}
    return [known[round(float(v) % 360, 6)] for v in here.values]


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_box_is_the_smallest_and_its_longitudes_rise_across_the_seam(
    world: Traced, suffix: str, tmp_path: Path
) -> None:
    data = plainly(export(world.answer, tmp_path / f"cells{suffix}"))
    time, lat, lon = world.layout.dims
    assert (data.sizes[time], data.sizes[lat], data.sizes[lon]) == (1, 3, 3)
    assert (np.diff(data[lon].values) == 22.5).all()


def test_a_box_that_does_not_wrap_stays_within_its_region(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = traced(LAYOUTS["regional"], tmp_path, spark)
    data = plainly(export(found.answer, tmp_path / "cells.nc"))
    assert data["lon"].values.tolist() == [-30.0, -24.375]


def test_a_mask_is_described_as_cf_describes_flags(era5: Traced, tmp_path: Path) -> None:
    with xr.open_dataset(export(era5.answer, tmp_path / "cells.nc"), decode_cf=False) as data:
        mask = data["msl_traced"]
        assert mask.dtype == np.int8 and mask.attrs["flag_values"].dtype == np.int8
        assert mask.attrs["flag_values"].tolist() == [0, 1]
        assert mask.attrs["flag_meanings"] == "not_traced traced"
        assert "msl" in mask.attrs["long_name"] and "_FillValue" not in mask.attrs
        assert all("_FillValue" not in data[c].attrs for c in ("latitude", "longitude"))
        assert "scale_factor" not in data["msl"].attrs


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_box_says_what_was_asked_and_what_is_promised(
    era5: Traced, suffix: str, tmp_path: Path
) -> None:
    attrs = plainly(export(era5.answer, tmp_path / f"cells{suffix}")).attrs
    about = {k: json.loads(v) for k, v in attrs.items() if k.startswith("whence_")}
    assert about["whence_selection"]["dataset"] == "minima"
    assert about["whence_selection"]["where"] == at(AT_THE_SEAM)
    assert {hop["box"] for hop in about["whence_plan"]} == {"extract_minima"}
    assert about["whence_guarantee"] == {"world": ["complete", "pure"]}
    assert attrs["title"] == "a small world"


def test_a_calendar_and_its_unit_are_kept_and_no_attribute_points_nowhere(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = traced(LAYOUTS["cmip"], tmp_path, spark)
    path = export(found.answer, tmp_path / "cells.nc")
    with xr.open_dataset(path, decode_cf=False) as data:
        assert data["time"].attrs["calendar"] == "noleap"
        assert data["time"].attrs["units"].startswith("days since 1850-01-01")
        assert data["lat"].attrs["standard_name"] == "latitude"
        assert "bounds" not in data["lat"].attrs


def test_what_is_behind_a_track_is_exported_from_the_source_alone(
    spark: SparkSession, workspace: Workspace, tmp_path: Path
) -> None:
    run(pipeline_over(LAYOUTS["windless"].at(tmp_path)), workspace, spark)
    answer = trace(workspace, "tracks", "time_index = 2", spark=spark)
    assert set(answer.lineage) == {"minima", "world"}
    assert set(traced_rows(answer)["dataset"].to_pylist()) == {"world"}
    data = plainly(export(answer, tmp_path / "cells.nc"))
    assert int(data["slp_traced"].sum()) == answer.cells("world").num_rows


def refusal(kind: type[WhenceError], answer: Answer, path: Path) -> str:
    with pytest.raises(kind) as caught:
        export(answer, path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@contextmanager
def disk_full_after(size: int) -> Iterator[None]:
    """No file may grow beyond this many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_export_that_finds_the_disk_full_leaves_nothing(
    era5: Traced, suffix: str, tmp_path: Path
) -> None:
    with disk_full_after(200):
        said = refusal(Failed, era5.answer, tmp_path / f"cells{suffix}")
    assert f"cells{suffix}" in said and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_export_that_stops_halfway_keeps_the_earlier_file(
    era5: Traced,
    suffix: str,
    error: BaseException,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def halfway(answer: Answer, path: Path) -> None:
        written = path
        if suffix == ".zarr":
            path.mkdir()
            written = path / "zarr.json"
        written.write_text("half of it")
        raise error

    target = tmp_path / f"cells{suffix}"
    if suffix != ".zarr":
        target.write_text("an earlier one")
    monkeypatch.setitem(exporting.WRITERS, suffix, halfway)  # type: ignore[arg-type]
    with pytest.raises((Failed, KeyboardInterrupt)):
        export(era5.answer, target)
    left = {p.name: p.read_text() for p in tmp_path.iterdir()}
    assert left == ({} if suffix == ".zarr" else {target.name: "an earlier one"})


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".nc"])
def test_an_export_takes_the_place_of_an_earlier_file(
    era5: Traced, suffix: str, tmp_path: Path
) -> None:
    target = tmp_path / f"cells{suffix}"
    target.write_text("an earlier one")
    export(era5.answer, target)
    assert [p.name for p in tmp_path.iterdir()] == [target.name]
    assert not target.read_bytes().startswith(b"an earlier one")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cells.xlsx", "its name may end in .csv, .parquet, .nc, .zarr"),
        ("cells", "its name may end in"),
        ("nowhere/cells.nc", "there is no directory"),
        ("taken.zarr", "exists, and is not replaced"),
        ("taken.csv", "exists, and is not replaced"),
        ("file.zarr", "exists, and is not replaced"),
    ],
)
def test_a_target_that_cannot_be_is_refused_before_anything_is_traced(
    name: str,
    said: str,
    era5: Traced,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "taken.zarr").mkdir()
    (tmp_path / "taken.csv").mkdir()
    (tmp_path / "file.zarr").touch()
    with pytest.raises(Refused, match=said):
        check_target(tmp_path / name)
    monkeypatch.setattr("explorer.commands.carry_out", lambda *_, **__: pytest.fail("traced"))
    where = ["-w", str(era5.workspace.path), "--where", at(AT_THE_SEAM)]
    assert main(["trace", "minima", *where, "--export", str(tmp_path / name)]) == 2
    assert said in capsys.readouterr().err


def test_a_source_is_never_overwritten_by_what_was_traced_in_it(era5: Traced) -> None:
    before = era5.path.read_bytes()
    assert "is the source that was traced" in refusal(Refused, era5.answer, era5.path)
    assert era5.path.read_bytes() == before


def test_the_command_line_exports_what_it_traced(
    era5: Traced, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "cells.zarr"
    where = ["-w", str(era5.workspace.path), "--where", at(AT_THE_SEAM)]
    assert main(["trace", "minima", *where, "--export", str(target)]) == 0
    assert f"wrote {target}" in capsys.readouterr().out
    assert int(plainly(target)["msl_traced"].sum()) == 9
