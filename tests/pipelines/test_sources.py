"""Files from outside: whatever they call things, they are read in place and traced exactly."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xarray as xr
import zarr
from pyspark.sql import SparkSession

from explorer.cli import main
from explorer.shown import first_rows
from inverses.answer import Answer
from inverses.guarantees import EXACT
from inverses.trace import trace
from pipelines.arrays import block
from pipelines.datasets import Array, Table
from pipelines.errors import Failed, Refused, SourceChanged, WhenceError
from pipelines.pipeline import Source
from pipelines.run import run
from pipelines.sources import as_array, check_unchanged, circles
from pipelines.tables import matching
from pipelines.workspace import Workspace
from tests import oracles
from tests.files import (
    AT_THE_POLE,
    AT_THE_SEAM,
    FAR_KM,
    LAYOUTS,
    MARGIN,
    NEAR_KM,
    STEPS,
    Layout,
    at,
    grid,
    pipeline_over,
    pressures,
)


def source_at(path: Path, **variables: str) -> Array:
    return as_array("world", Source(str(path), variables=variables))


def written(data: xr.Dataset, folder: Path, name: str = "world.nc") -> Path:
    data.to_netcdf(folder / name)
    return folder / name


def refusal(kind: type[WhenceError], act: Callable[..., Any], *given: Any, **named: Any) -> str:
    """What an act is refused with: an error of this kind, in one line."""
    with pytest.raises(kind) as caught:
        act(*given, **named)
    said = str(caught.value)
    assert said and "\n" not in said and len(said) < 400
    return said


def table_of(workspace: Workspace, name: str) -> list[dict[str, Any]]:
    table = workspace.dataset(name)
    assert isinstance(table, Table)
    return list(matching(table, None).to_pylist())


def key(row: dict[str, Any]) -> oracles.Cell:
    return row["time_index"], row["lat_index"], row["lon_index"]


def cells_of(rows: list[dict[str, Any]]) -> set[oracles.Cell]:
    return {key(r) for r in rows if r["variable"] == "slp"}


def behind_each(answer: Answer) -> dict[oracles.Cell, list[dict[str, Any]]]:
    """The cells behind each minimum that was selected."""
    spans = answer.plan.selection.at.spans
    keys = zip(*(spans[n].low for n in ("time_index", "lat_index", "lon_index")), strict=True)
    cells = answer.cells("world")
    return {
        (int(t), int(y), int(x)): cells.take(answer.behind(row)["world"]).to_pylist()
        for row, (t, y, x) in enumerate(keys)
    }


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_minima_tracks_and_traced_cells_are_those_of_brute_force(
    layout: Layout, workspace: Workspace, spark: SparkSession, tmp_path: Path
) -> None:
    path = layout.at(tmp_path)
    truth = layout.truth(path)
    run(pipeline_over(path, variables=dict(layout.variables)), workspace, spark)

    minima = {key(row): row for row in table_of(workspace, "minima")}
    assert minima.keys() == oracles.minima(truth, MARGIN, layout.wraps)
    assert [r["pressure"] for r in minima.values()] == pytest.approx([truth[c] for c in minima])

    names = oracles.Point.__dataclass_fields__
    unknown = {"wind_speed": np.nan, "wind_direction": np.nan}
    rows = [{**unknown, **row} for row in minima.values()]
    points = [oracles.Point(**{n: row[n] for n in names}) for row in rows]
    assert {p.has_wind for p in points} == {layout is not LAYOUTS["windless"]}
    tracks = {key(row): row["track"] for row in table_of(workspace, "tracks")}
    assert tracks and tracks == oracles.tracks(points, NEAR_KM, FAR_KM, 2)

    answer = trace(workspace, "minima", at(AT_THE_SEAM, AT_THE_POLE), spark=spark)
    found = behind_each(answer)
    assert answer.guarantee("world") == EXACT
    assert found.keys() == {AT_THE_SEAM, AT_THE_POLE}
    for cell, rows in found.items():
        assert cells_of(rows) == oracles.cells_behind(truth, *cell, MARGIN, layout.wraps)
        values = [r["value"] * layout.pascals for r in rows]
        assert values == pytest.approx([truth[key(r)] for r in rows], nan_ok=True)


@pytest.mark.parametrize("name", ["chunked", "ncep", "zarr_2", "zarr_3"])
def test_a_source_is_read_where_it_lies(
    name: str, workspace: Workspace, spark: SparkSession, tmp_path: Path
) -> None:
    path = LAYOUTS[name].at(tmp_path)
    run(pipeline_over(path, only_minima=True), workspace, spark)
    assert workspace.dataset("world").path == str(path)
    copies = [f.name for f in workspace.path.glob("datasets/world/*/*")]
    assert copies == ["dataset.json"]


@pytest.mark.parametrize(
    ("name", "chunks"),
    [("chunked", (3, 4, 5)), ("zarr_2", (3, 4, 5)), ("zarr_3", (2, 3, 4)), ("ncep", (4, 9, 16))],
)
def test_the_chunks_of_a_source_are_those_on_disk(
    name: str, chunks: tuple[int, ...], tmp_path: Path
) -> None:
    assert source_at(LAYOUTS[name].at(tmp_path)).chunks == chunks


def test_every_variable_of_the_grid_is_part_of_the_source(tmp_path: Path) -> None:
    data = grid(pressures()).assign(
        t2m=(("time", "lat", "lon"), pressures()), station=("time", [0.0] * STEPS)
    )
    assert source_at(written(data, tmp_path)).variables == ["slp", "u10", "v10", "t2m"]


def test_a_lone_variable_in_a_unit_of_pressure_is_taken_for_it(tmp_path: Path) -> None:
    path = written(grid(pressures(), "mean_pressure"), tmp_path)
    assert source_at(path).stored["slp"] == "mean_pressure"


def test_a_standard_name_is_enough(tmp_path: Path) -> None:
    data = grid(pressures(), "var151", units="hPa")
    data["var151"].attrs["standard_name"] = "air_pressure_at_sea_level"
    assert source_at(written(data, tmp_path)).stored["slp"] == "var151"


@pytest.mark.parametrize("standard", [None, "surface_air_pressure"])
def test_pressure_at_the_ground_is_not_taken_for_that_at_sea_level(
    standard: str | None, tmp_path: Path
) -> None:
    data = grid(pressures(), "sp" if standard is None else "pressure")
    if standard:
        data["pressure"].attrs["standard_name"] = standard
    assert "slp" not in source_at(written(data, tmp_path)).stored


def test_wind_on_many_levels_is_not_taken_for_wind_at_the_ground(tmp_path: Path) -> None:
    data = grid(pressures(), wind=("uas", "vas"))
    for name in ("eastward_wind", "northward_wind"):
        data[name[0]] = (("time", "lev", "lat", "lon"), np.zeros((STEPS, 2, 9, 16)))
        data[name[0]].attrs["standard_name"] = name
    found = source_at(written(data, tmp_path))
    assert (found.stored["u10"], found.stored["v10"]) == ("uas", "vas")


def test_one_component_alone_is_no_wind(tmp_path: Path) -> None:
    found = source_at(written(grid(pressures(), wind=("u10",)), tmp_path))
    assert {a.name: a.type.name for a in found.attributes}["u10"] == "Quantity"


def test_a_clock_that_no_variable_of_the_grid_follows_confuses_nobody(tmp_path: Path) -> None:
    data = grid(pressures()).assign(normal=("month", np.zeros(12)))
    data = data.assign_coords(month=np.arange(12))
    assert source_at(written(data, tmp_path)).stored["time"] == "time"


def test_a_mapping_settles_what_is_ambiguous(tmp_path: Path) -> None:
    data = grid(pressures()).assign(msl=(("time", "lat", "lon"), pressures(1), {"units": "Pa"}))
    path = written(data, tmp_path)
    said = refusal(Refused, source_at, path)
    assert "slp may be slp or msl" in said and "variables: {slp: slp}" in said
    array = source_at(path, slp="msl")
    assert array.variables == ["slp", "u10", "v10"]
    assert (block(array, "slp", {}) == pressures(1)).all()


@pytest.mark.parametrize("cut", [0, 5])
def test_longitudes_close_the_circle_wherever_it_is_cut(cut: int) -> None:
    lon = np.roll((np.arange(144) * 2.5 + 180) % 360 - 180, cut)
    assert circles(lon) and circles(lon[::-1]) and circles(lon.astype(np.float32))
    assert not circles(np.delete(lon, 70))
    assert not circles(np.delete(lon, -1))


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
        (no_file, "no file at"),
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


def rewritten(path: Path) -> None:
    """Put other pressures into a file, which stays as long as it was."""
    with xr.open_dataset(path) as data:
        other = data.load().assign(slp=data["slp"] + 1)
    other.to_netcdf(path)


def test_a_source_that_changed_since_the_run_is_noticed(
    workspace: Workspace, spark: SparkSession, tmp_path: Path
) -> None:
    path = LAYOUTS["windless"].at(tmp_path)
    run(pipeline_over(path, only_minima=True), workspace, spark)
    os.utime(path, ns=(1, 1))
    kept = path.read_bytes()
    assert len(trace(workspace, "minima", at(AT_THE_SEAM), spark=spark).cells("world")) == 9
    rewritten(path)
    for dataset, where in [("minima", at(AT_THE_SEAM)), ("world", "time = '2001-03-01'")]:
        said = refusal(SourceChanged, trace, workspace, dataset, where, spark=spark)
        assert str(path) in said and "run again" in said
    refusal(SourceChanged, first_rows, workspace.dataset("world"), None, 5)
    path.write_bytes(kept)
    trace(workspace, "minima", at(AT_THE_SEAM), spark=spark)
    path.unlink()
    said = refusal(Failed, trace, workspace, "minima", at(AT_THE_SEAM), spark=spark)
    assert "no file at" in said and str(path) in said


@pytest.mark.parametrize("in_place", [True, False])
def test_what_took_the_place_of_a_source_is_read_by_the_next_run(
    in_place: bool, tmp_path: Path, spark: SparkSession
) -> None:
    path = LAYOUTS["windless"].at(tmp_path)
    for number in range(2):
        workspace = Workspace.create(tmp_path / f"workspace-{number}")
        run(pipeline_over(path, only_minima=True), workspace, spark)
        truth = LAYOUTS["windless"].truth(path)
        pressure = {key(r): r["pressure"] for r in table_of(workspace, "minima")}
        assert pressure == {c: truth[c] for c in oracles.minima(truth, MARGIN, True)}
        first_rows(workspace.dataset("world"), None, 3)
        if not in_place:
            path.rename(path.with_suffix(".old"))
        grid(pressures(7), wind=()).to_netcdf(path)


def test_a_chunk_that_moved_is_a_change(tmp_path: Path) -> None:
    path = LAYOUTS["zarr_2"].at(tmp_path)
    known = source_at(path)
    shutil.copytree(path, tmp_path / "copy")
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "copy", path, copy_function=shutil.copyfile)
    check_unchanged(known)
    (path / "msl" / "1.2.3").rename(path / "msl" / "1.2.4")
    assert str(path) in refusal(SourceChanged, check_unchanged, known)


def test_a_change_behind_a_link_is_a_change(tmp_path: Path) -> None:
    path = LAYOUTS["zarr_3"].at(tmp_path)
    (path / "slp").rename(tmp_path / "elsewhere")
    (path / "slp").symlink_to(tmp_path / "elsewhere")
    known = source_at(path)
    check_unchanged(known)
    group = zarr.open_group(path, mode="r+")
    group["slp"][0, 0, 0] = 1.0
    refusal(SourceChanged, check_unchanged, known)


def test_the_content_of_a_source_is_not_read_again_while_its_times_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = source_at(LAYOUTS["zarr_3"].at(tmp_path))
    monkeypatch.setattr("pipelines.fingerprints._checksum", lambda path: pytest.fail("read"))
    check_unchanged(known)


def test_an_unchanged_source_keeps_its_version(
    workspace: Workspace, spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = pipeline_over(LAYOUTS["windless"].at(tmp_path), only_minima=True)
    versions = [run(pipeline, workspace, spark)["world"].version for _ in range(2)]
    assert versions == ["v1", "v1"]


def test_the_first_cells_of_a_large_source_are_shown_without_listing_all(tmp_path: Path) -> None:
    dims = ("time", "lat", "lon")
    field: npt.NDArray[Any] = np.broadcast_to(np.float32(101_325), (6000, 50, 40))
    data = grid(field, wind=())
    path = tmp_path / "world.zarr"
    data.to_zarr(path, zarr_format=2, encoding={"slp": {"chunks": (600, 50, 40)}})
    rows, total = first_rows(source_at(path), None, 3)
    assert total == 6000 * 50 * 40 and [r["value"] for r in rows.to_pylist()] == [101_325] * 3
    rows, total = first_rows(source_at(path), "lat > 100", 3)
    assert (rows.num_rows, total) == (0, 0)
    assert set(dims) < set(rows.column_names)


def test_the_command_line_says_in_one_line_what_is_wrong_with_a_source(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline_over(tmp_path / "nowhere.nc")
    code = main(["run", str(tmp_path / "mine.yaml"), "-w", str(tmp_path / "new")])
    said = capsys.readouterr().err.strip().splitlines()
    assert code == 1 and len(said) == 1 and "no file at" in said[0]
