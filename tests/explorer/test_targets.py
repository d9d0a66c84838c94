"""Where exports go: to what cannot be a target never, to what can whole or not at all."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from explorer import export as exporting
from explorer.cli import main
from explorer.export import check_target, export
from explorer.sizes import estimated_bytes
from explorer.whole import whole
from inverses.answer import Answer
from pipelines.errors import Failed, Refused, WhenceError
from tests.explorer.traced import SUFFIXES, Traced, plainly
from tests.files import AT_THE_SEAM, at


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


def test_a_file_without_a_name_is_written_where_there_can_be_one(tmp_path: Path) -> None:
    with whole(tmp_path / "a.csv", nameless=True) as partial:
        partial.write_text("half of it")
        assert list(tmp_path.iterdir()) == []
    assert [p.read_text() for p in tmp_path.iterdir()] == ["half of it"]


def test_where_every_file_has_a_name_a_hidden_one_takes_the_place_of_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    with whole(tmp_path / "a.csv", nameless=True) as partial:
        partial.write_text("all of it")
        assert partial.parent == tmp_path and partial.name.startswith(".")
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_size_of_an_export_is_known_about_before_it_is_made(
    era5: Traced, suffix: str, tmp_path: Path
) -> None:
    target = tmp_path / f"cells{suffix}"
    about = estimated_bytes(era5.answer, target)
    assert list(tmp_path.iterdir()) == []
    path = export(era5.answer, target)
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    size = sum(p.stat().st_size for p in files)
    assert size / 3 < about < size * 3


@pytest.mark.parametrize("suffix", [s for s in SUFFIXES if s != ".zarr"])
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
        ("cells.zip", "its name may end in"),
        (".zarr.zip", "its name may end in"),
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
    monkeypatch.setattr("explorer.commands.carry_out_each", lambda *_, **__: pytest.fail("traced"))
    where = ["-w", str(era5.workspace.path), "--where", at(AT_THE_SEAM)]
    assert main(["trace", "minima", *where, "--export", str(tmp_path / name)]) == 2
    assert said in capsys.readouterr().err


def test_a_source_is_never_overwritten_by_what_was_traced_in_it(era5: Traced) -> None:
    before = era5.path.read_bytes()
    assert "is the source that was traced" in refusal(Refused, era5.answer, era5.path)
    assert era5.path.read_bytes() == before


def test_what_a_workspace_has_published_is_never_overwritten(era5: Traced) -> None:
    (part,) = era5.workspace.path.glob("datasets/minima/v1/table/*-00000.parquet")
    assert "among the versions of a workspace" in refusal(Refused, era5.answer, part)


def test_the_command_line_exports_what_it_traced(
    era5: Traced, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "cells.zarr"
    where = ["-w", str(era5.workspace.path), "--where", at(AT_THE_SEAM)]
    assert main(["trace", "minima", *where, "--export", str(target)]) == 0
    assert f"wrote {target}" in capsys.readouterr().out
    assert int(plainly(target)["msl_traced"].sum()) == 9
