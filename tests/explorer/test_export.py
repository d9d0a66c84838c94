"""Exports: what was traced, in a file that others can read, whole or not at all."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import xarray as xr
from pyspark.sql import SparkSession

from explorer.bundle import bundle
from explorer.cells import traced_rows
from explorer.evidence import opened
from explorer.export import export
from explorer.suspects import suspects
from inverses.answer import Answer
from inverses.proof import prove
from inverses.trace import trace
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.explorer.traced import BOXES, Traced, plainly, traced
from tests.files import AT_THE_SEAM, LAYOUTS, at, pipeline_over


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


@pytest.mark.parametrize("suffix", BOXES)
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


@pytest.mark.parametrize("suffix", BOXES)
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


@pytest.mark.parametrize("suffix", BOXES)
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


@pytest.mark.parametrize("suffix", BOXES)
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


LOW = """
    name: low
    sources: {{world: {{path: {file}, kind: array}}}}
    boxes:
      low: {{box: threshold, inputs: {{field: world}}, params: {{high: 100000}}, keep: {keep}}}
      cells: {{box: extract_above, inputs: {{field: low}}, params: {{variable: inside}}}}
"""


def low(keep: str, folder: Path) -> Pipeline:
    """Where pressure is low, as an array and as rows."""
    return Pipeline.from_text(LOW.format(file=LAYOUTS["windless"].at(folder), keep=keep))


def test_of_several_arrays_a_box_is_of_the_one_that_is_a_source(
    spark: SparkSession, workspace: Workspace, tmp_path: Path
) -> None:
    run(low("true", tmp_path), workspace, spark)
    answer = trace(workspace, "cells", "time_index = 2", spark=spark)
    assert set(answer.lineage) == {"low", "world"}
    data = plainly(export(answer, tmp_path / "cells.nc"))
    assert int(data["slp_traced"].sum()) == answer.cells("world").num_rows > 0


def test_of_an_array_that_was_not_kept_there_are_rows_and_no_box(
    spark: SparkSession, workspace: Workspace, tmp_path: Path
) -> None:
    run(low("false", tmp_path), workspace, spark)
    answer = trace(workspace, "cells", "time_index = 2", spark=spark)
    proof = prove(answer, spark)
    assert all(each.dataset == "world" for each in suspects(answer))
    path = bundle(replace(answer, proof=proof), tmp_path / "cells.whence.zip")
    with ZipFile(path) as file:
        parts = {Path(n).name for n in file.namelist() if n.startswith("cells/")}
    assert parts == {"low.parquet", "world.parquet", "world.nc"}
    assert opened(path).answer["proof"]["holds"] and proof.holds
    only_low = replace(answer, found={k: f for k, f in answer.found.items() if k[0] != "world"})
    with pytest.raises(Refused, match='"low" was not kept'):
        export(only_low, tmp_path / "cells.nc")
