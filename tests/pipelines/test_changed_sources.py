"""A source that is not what the run read is noticed before it answers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import xarray as xr
import xxhash
import zarr
from pyspark.sql import SparkSession

from explorer.shown import first_rows
from inverses.trace import trace
from pipelines.arrays import chunks_of
from pipelines.datasets import Array
from pipelines.errors import Failed, SourceChanged
from pipelines.fingerprints import fingerprint
from pipelines.pipeline import Source
from pipelines.run import run
from pipelines.sources import as_array, check_unchanged, fingerprinted
from pipelines.tables import matching
from pipelines.workspace import Workspace
from tests import oracles
from tests.files import (
    AT_THE_SEAM,
    LAYOUTS,
    MARGIN,
    at,
    grid,
    pipeline_over,
    pressures,
    refusal,
    source_at,
)


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
        rows = matching(workspace.dataset("minima"), None).to_pylist()  # type: ignore[arg-type]
        pressure = {
            tuple(r[f"{d}_index"] for d in ("time", "lat", "lon")): r["pressure"] for r in rows
        }
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


def test_a_source_that_changes_while_boxes_read_it_fails_the_run(tmp_path: Path) -> None:
    path = LAYOUTS["zarr_3"].at(tmp_path)
    seen = as_array("world", Source(str(path)))
    fingerprinted(seen)
    group = zarr.open_group(path, mode="r+")
    group["slp"][0, 0, 0] = 1.0
    assert "changed while it was read" in refusal(SourceChanged, fingerprinted, seen)


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
    monkeypatch.setattr("pipelines.fingerprints.sum_at", lambda path: pytest.fail("read"))
    check_unchanged(known)


def test_an_unchanged_source_keeps_its_version(
    workspace: Workspace, spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = pipeline_over(LAYOUTS["windless"].at(tmp_path), only_minima=True)
    versions = [run(pipeline, workspace, spark)["world"].version for _ in range(2)]
    assert versions == ["v1", "v1"]


def zarr_turned(path: Path) -> Path:
    """A store whose dimensions are in another order than ours."""
    data = grid(pressures(), wind=()).transpose("lon", "time", "lat")
    data.to_zarr(path, consolidated=False, encoding={"slp": {"chunks": (5, 3, 4)}})
    return path


def zarr_nested(path: Path) -> Path:
    """A store whose chunks lie in a directory for each index."""
    key = {"name": "v2", "separator": "/"}
    sizes = {"chunks": (3, 4, 5), "chunk_key_encoding": key}
    grid(pressures(), wind=()).to_zarr(path, zarr_format=2, encoding={"slp": sizes})
    return path


STORES: dict[str, Callable[[Path], Path]] = {
    "zarr 2": lambda folder: LAYOUTS["zarr_2"].at(folder),
    "shards": lambda folder: LAYOUTS["zarr_3"].at(folder),
    "turned": lambda folder: zarr_turned(folder / "world.zarr"),
    "nested": lambda folder: zarr_nested(folder / "world.zarr"),
}


def overwritten(known: Array, value: float, **cell: int) -> None:
    """Change one cell in place, through another program's eyes."""
    stored = zarr.open_group(known.path, mode="r+")[known.stored["slp"]]
    with xr.open_zarr(known.path, consolidated=False) as data:
        dims = data[known.stored["slp"]].dims
    ours = {theirs: name for name, theirs in known.stored.items()}
    stored[tuple(cell[ours[str(d)]] for d in dims)] = value


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_a_chunk_that_is_read_has_to_be_as_it_was(
    store: Callable[[Path], Path], tmp_path: Path
) -> None:
    known = source_at(store(tmp_path))
    first, *_, last = chunks_of(known, "slp")
    check_unchanged(known, [first, last])
    overwritten(known, 1.0, time=0, lat=0, lon=0)
    refusal(SourceChanged, check_unchanged, known, [first])
    refusal(SourceChanged, check_unchanged, known)


def test_a_chunk_of_a_variable_that_is_cut_finer_than_the_first_has_to_be_as_it_was(
    tmp_path: Path,
) -> None:
    data = grid(pressures(), wind=("u10", "v10"))
    sizes = {"slp": {"chunks": (4, 9, 16)}, "u10": {"chunks": (1, 3, 4)}}
    data.to_zarr(tmp_path / "world.zarr", consolidated=False, encoding=sizes)
    known = source_at(tmp_path / "world.zarr")
    zarr.open_group(known.path, mode="r+")["u10"][2, 4, 7] = 1.0
    check_unchanged(known, chunks_of(known, "slp"))
    refusal(SourceChanged, check_unchanged, known, chunks_of(known, "u10"))


@pytest.mark.parametrize("store", [STORES["turned"], STORES["nested"]], ids=["turned", "nested"])
def test_a_change_far_from_the_chunks_that_are_read_does_not_matter(
    store: Callable[[Path], Path], tmp_path: Path
) -> None:
    known = source_at(store(tmp_path))
    overwritten(known, 1.0, time=0, lat=0, lon=0)
    check_unchanged(known, chunks_of(known, "slp")[-1:])


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_a_chunk_that_is_gone_is_a_change(store: Callable[[Path], Path], tmp_path: Path) -> None:
    known = source_at(store(tmp_path))
    file = max(Path(known.path, known.stored["slp"]).rglob("*[0-9]"), key=lambda p: p.is_file())
    file.unlink()
    refusal(SourceChanged, check_unchanged, known, chunks_of(known, "slp"))


def test_a_chunk_with_its_old_times_is_still_a_change(tmp_path: Path) -> None:
    known = source_at(LAYOUTS["zarr_3"].at(tmp_path))
    file = next(p for p in Path(known.path, "slp").rglob("c/0/0/*") if p.is_file())
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_bytes(bytes(len(file.read_bytes())))
    os.utime(file, ns=times)
    refusal(SourceChanged, check_unchanged, known, chunks_of(known, "slp"))


def test_a_trace_looks_at_no_more_files_for_a_longer_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = source_at(STORES["turned"](tmp_path))
    monkeypatch.setattr("pipelines.fingerprints._below", lambda path: pytest.fail("all of them"))
    check_unchanged(known, chunks_of(known, "slp")[:1])


def test_a_sum_is_of_files_in_an_order_that_never_changes(tmp_path: Path) -> None:
    for name in ("b/2", "b/10", "a/z/1", "c", "B", "a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"in {name}")
    total = xxhash.xxh3_128()
    for name in ("/B", "/a.txt", "/c", "/a/z/1", "/b/10", "/b/2"):
        text = f"in {name[1:]}"
        total.update(f'["{name}", {len(text)}]{text}'.encode())
    assert fingerprint(tmp_path)["checksum"] == total.hexdigest()
