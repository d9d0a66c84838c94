"""Files from outside that cannot be read, or could do harm, end in one line."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from pyspark.sql import SparkSession

from pipelines.arrays import block
from pipelines.errors import Failed, Refused
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.files import (
    LAYOUTS,
    STEPS,
    grid,
    pipeline_over,
    pressures,
    refusal,
    source_at,
    written,
)


def no_file(folder: Path) -> Path:
    return folder / "nowhere.nc"


def text(folder: Path) -> Path:
    (folder / "world.nc").write_text("pressure was low\n" * 100)
    return folder / "world.nc"


def empty(folder: Path) -> Path:
    (folder / "world.nc").touch()
    return folder / "world.nc"


def plain_directory(folder: Path) -> Path:
    (folder / "world.zarr").mkdir()
    return folder / "world.zarr"


def broken_store(folder: Path) -> Path:
    path = LAYOUTS["zarr_3"].at(folder)
    (path / "slp" / "zarr.json").write_text("{")
    return path


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (text, "as NetCDF"),
        (empty, "as NetCDF"),
        (plain_directory, "without a Zarr group"),
        (broken_store, "as Zarr"),
    ],
)
def test_what_cannot_be_read_fails_in_one_line(
    made: Callable[[Path], Path], said: str, tmp_path: Path
) -> None:
    path = made(tmp_path)
    line = refusal(Failed, source_at, path)
    assert said in line and str(path) in line


def test_a_path_at_which_nothing_is_was_asked_wrongly(tmp_path: Path) -> None:
    path = no_file(tmp_path)
    line = refusal(Refused, source_at, path)
    assert "no file at" in line and str(path) in line


@pytest.mark.parametrize("name", ["chunked", "era5", "ncep"])
@pytest.mark.parametrize("kept", [0.01, 0.1, 0.5, 0.99])
def test_a_file_cut_short_is_never_read_as_if_it_were_whole(
    name: str, kept: float, tmp_path: Path
) -> None:
    path = LAYOUTS[name].at(tmp_path)
    os.truncate(path, int(path.stat().st_size * kept))
    assert str(path) in refusal(Failed, source_at, path)


@pytest.mark.parametrize("version", ["NETCDF3_CLASSIC", "NETCDF3_64BIT", "NETCDF3_64BIT_DATA"])
@pytest.mark.parametrize("unlimited", [[], ["time"]])
@pytest.mark.parametrize("wind", [(), ("u10", "v10")])
def test_a_classic_file_is_whole_to_its_last_byte(
    version: Any, unlimited: list[str], wind: tuple[str, ...], tmp_path: Path
) -> None:
    values = (pressures() / 4 - 25_000).astype(np.int16)[:, :, :15]
    packed = grid(values, wind=wind)
    path = tmp_path / "world.nc"
    packed.to_netcdf(path, format=version, unlimited_dims=unlimited, engine="netcdf4")
    source_at(path)
    os.truncate(path, path.stat().st_size - 4)
    assert "cut short" in refusal(Failed, source_at, path)


def test_a_corrupt_chunk_fails_in_one_line(tmp_path: Path) -> None:
    path = LAYOUTS["zarr_2"].at(tmp_path)
    (path / "msl" / "1.1.1").write_bytes(b"nonsense")
    said = refusal(Failed, block, source_at(path), "slp", {})
    assert "cannot read" in said and str(path) in said


def in_no_unit() -> xr.Dataset:
    return grid(pressures(), units=None)


def in_inches() -> xr.Dataset:
    return grid(pressures(), units="inHg")


def without_pressure() -> xr.Dataset:
    return grid(pressures(), "t2m", units="K")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (in_no_unit, "no stated unit; set its units attribute to Pa or hPa"),
        (in_inches, "is in inHg"),
        (without_pressure, "variables: {slp: NAME}"),
    ],
)
def test_minima_need_a_pressure_in_a_known_unit(
    data: Callable[[], xr.Dataset],
    said: str,
    workspace: Workspace,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    path = written(data(), tmp_path)
    assert said in refusal(Refused, run, pipeline_over(path), workspace, spark)


def changed(**coordinates: Any) -> xr.Dataset:
    return grid(pressures()).assign_coords(coordinates)


def in_radians() -> xr.Dataset:
    places = {"units": "radians", "standard_name": "longitude"}
    return changed(lon=("lon", np.linspace(0, 6, 16), places))


def in_knots() -> xr.Dataset:
    data = grid(pressures())
    data["u10"].attrs["units"] = "knots"
    return data


def two_clocks() -> xr.Dataset:
    data = grid(pressures())
    other = data["slp"].rename(time="forecast_time").rename("slp2")
    return data.assign(slp2=other)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (lambda: grid(pressures()).drop_vars("lat"), "is known for a latitude"),
        (lambda: grid(pressures()).isel(time=0), "is known for a time and has a dim"),
        (lambda: grid(pressures()).isel(time=slice(0)), "it has no time"),
        (lambda: changed(time=np.arange(STEPS)), "hours since 1900-01-01"),
        (lambda: changed(lat=np.arange(9) * 1e5), "latitudes are not all degrees"),
        (lambda: changed(lon=np.linspace(0, 360, 16)), "first longitude again at the end"),
        (in_radians, "longitudes are not all degrees"),
        (in_knots, "in knots, not in m s-1"),
        (two_clocks, "time may be forecast_time or time"),
    ],
)
def test_a_grid_that_cannot_be_placed_is_refused_with_what_would_do(
    data: Callable[[], xr.Dataset], said: str, tmp_path: Path
) -> None:
    assert said in refusal(Refused, source_at, written(data(), tmp_path))


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"slp": "pmsl"}, 'no variable "pmsl" for slp (it has: '),
        ({"slp": "time"}, 'slp cannot be "time"'),
        ({"the wind": "u10"}, "is not a name"),
        ({"slp": "u10", "v10": "u10"}, "given for two names"),
        ({"lat": "slp"}, '"slp", given for lat, is slp(time, lat, lon)'),
    ],
)
def test_a_mapping_to_what_is_not_there_is_refused(
    variables: dict[str, str], said: str, tmp_path: Path
) -> None:
    path = written(grid(pressures()), tmp_path)
    assert said in refusal(Refused, source_at, path, **variables)


class Trap:
    """An object that, when it is unpickled, makes a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def trapped(folder: Path, trap: Path, **metadata: Any) -> Path:
    """A Zarr store whose pressure, if read, springs the trap."""
    path = LAYOUTS["zarr_2"].at(folder)
    about = json.loads((path / "msl" / ".zarray").read_text())
    about |= {"compressor": None, "filters": None, "chunks": about["shape"], **metadata}
    (path / "msl" / ".zarray").write_text(json.dumps(about))
    shutil.copy(path / "msl" / ".zarray", path / "latitude" / ".zarray")
    for each in (path / "msl" / "0.0.0", path / "latitude" / "0"):
        each.write_bytes(pickle.dumps(Trap(trap)))
    return path


@pytest.mark.parametrize("consolidated", [True, False])
@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"dtype": "|O", "filters": [{"id": "pickle", "protocol": 5}]}, "coded with pickle"),
        ({"dtype": "<f4", "filters": [{"id": "pickle", "protocol": 5}]}, "coded with pickle"),
        ({"dtype": "|O"}, "holds Python objects"),
        ({"dtype": [["a", "|O"], ["b", "<f4"]]}, "holds Python objects"),
    ],
)
def test_a_store_that_could_run_code_is_refused_unread(
    metadata: dict[str, Any], said: str, consolidated: bool, tmp_path: Path
) -> None:
    trap = tmp_path / "sprung"
    path = trapped(tmp_path, trap, **metadata)
    if not consolidated:
        (path / ".zmetadata").unlink()
    assert said in refusal(Refused, source_at, path)
    assert not trap.exists()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("variable", ["slp", "lat"])
@pytest.mark.parametrize("chunk", [2**29, 2**63, 2**64])
def test_chunks_that_claim_more_than_a_gibibyte_are_refused(
    version: Any, variable: str, chunk: int, tmp_path: Path
) -> None:
    path = tmp_path / "world.zarr"
    grid(pressures()).to_zarr(path, zarr_format=version, consolidated=False)
    file = path / variable / (".zarray" if version == 2 else "zarr.json")
    about = json.loads(file.read_text())
    claimed = [chunk, *([1] * (len(about["shape"]) - 1))]
    if version == 2:
        about["chunks"] = claimed
    else:
        about["chunk_grid"]["configuration"]["chunk_shape"] = claimed
    file.write_text(json.dumps(about))
    assert "chunks of over 1,024 MiB" in refusal(Refused, source_at, path)
