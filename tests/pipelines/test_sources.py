"""Files from outside: whatever they call things, they are read in place and traced exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from pyspark.sql import SparkSession

from explorer.cli import main
from explorer.shown import first_rows
from inverses.answer import Answer
from inverses.guarantees import EXACT
from inverses.trace import trace
from pipelines.arrays import block
from pipelines.datasets import Table
from pipelines.errors import Refused
from pipelines.run import run
from pipelines.sources import circles
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
    refusal,
    source_at,
    written,
)


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


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_first_variable_of_a_store_is_the_same_each_time(
    zarr_format: Literal[2, 3], tmp_path: Path
) -> None:
    data = grid(pressures(), "t2m", units=None, wind=())
    more = dict.fromkeys(("sst", "tcwv", "cape", "swvl1", "blh", "skt"), data["t2m"])
    path = tmp_path / "many.zarr"
    data.assign(more).to_zarr(path, zarr_format=zarr_format, consolidated=False)
    assert source_at(path).variables == sorted(["t2m", *more])


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
    assert code == 2 and len(said) == 1 and "no file at" in said[0]
