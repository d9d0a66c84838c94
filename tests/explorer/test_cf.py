"""Exports keep the CF conventions, says a checker that may not ask the internet."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from zipfile import ZipFile

import pytest
import xarray as xr
from compliance_checker.cf.cf_1_11 import CF1_11Check
from compliance_checker.runner import CheckSuite
from pyspark.sql import SparkSession

from explorer.cf import CONVENTIONS, file_attributes
from explorer.export import export
from inverses.trace import trace
from pipelines.workspace import Workspace
from tests.explorer.traced import BOXES, Traced, plainly

SUITE = CONVENTIONS.lower().replace("-", ":")


@contextmanager
def alone() -> Iterator[None]:
    """Nothing outside this process can be reached."""

    def refused(self: socket.socket, address: Any) -> NoReturn:
        raise AssertionError(f"asked {address}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refused)
        yield


def issues(path: Path) -> list[str]:
    """All that the checker finds, strictly, whatever its weight."""
    suite = CheckSuite()
    suite.checkers = {SUITE: CF1_11Check}
    with alone(), suite.load_dataset(str(path)) as data:
        groups, errors = suite.run_all(data, [SUITE])[SUITE]
    assert errors == {}
    found = []
    while groups:
        group = groups.pop()
        groups += group.children
        full = group.value if isinstance(group.value, bool) else group.value[0] == group.value[1]
        found += [] if full else group.msgs or []
    return found


def as_netcdf(path: Path) -> Path:
    """An export as the checker wants it: as a NetCDF file, of what xarray finds in a Zarr store."""
    if path.suffix == ".nc":
        return path
    if path.name.endswith(".whence.zip"):
        with ZipFile(path) as file:
            return Path(file.extract("cells/agcm.nc", path.parent))
    data = plainly(path)
    for name in data.coords:
        data[name].encoding.setdefault("_FillValue", None)
    data.to_netcdf(path.with_suffix(".nc"))
    return path.with_suffix(".nc")


def test_the_checker_finds_what_is_wrong(tmp_path: Path) -> None:
    xr.Dataset({"t": ("lat", [1.0, 2.0], {"units": "bananas"})}).to_netcdf(tmp_path / "wrong.nc")
    assert any("bananas" in issue for issue in issues(tmp_path / "wrong.nc"))


@pytest.mark.parametrize("suffix", [*BOXES, ".whence.zip"])
def test_what_is_behind_a_track_is_exported_without_any_issue(
    demo: Workspace, spark: SparkSession, suffix: str, tmp_path: Path
) -> None:
    where = "track = 600001800129 and time = '2000-01-16'"
    answer = trace(demo, "tracks", where, spark=spark)
    assert issues(as_netcdf(export(answer, tmp_path / f"cells{suffix}"))) == []


@pytest.mark.parametrize("world", ["era5", "cmip", "odd"], indirect=True)
def test_files_of_others_are_exported_without_any_issue(world: Traced, tmp_path: Path) -> None:
    assert issues(export(world.answer, tmp_path / "cells.nc")) == []


def test_conventions_and_history_of_a_source_are_kept_beside_ours() -> None:
    given = {"Conventions": "CF-1.6, ACDD-1.3", "history": "made by hand"}
    told = file_attributes(given, "some cells")
    assert told["Conventions"] == f"{CONVENTIONS}, ACDD-1.3"
    assert told["history"].endswith("Z whence: some cells\nmade by hand")
