"""Where exports go: to what cannot be a target never, to what can whole or not at all."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from explorer import export as exporting
from explorer.cli import main
from explorer.export import check_target, export
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
