"""Ctrl-C ends a command within seconds, in one line, with nothing published or left running."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.workspace import Workspace

ROOT = Path(__file__).parents[2]
LONG = "name: p\nboxes: {agcm: {box: simulate_agcm, params: {resolution: 0.5, days: 900}}}\n"
SOON = 15.0


class Running:
    """A command in a session of its own, whose processes all bear its mark."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.mark = folder / "mark"
        self.said = folder / "stdout", folder / "stderr"
        out, err = (path.open("wb") for path in self.said)
        with out, err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "explorer", *arguments],
                stdout=out,
                stderr=err,
                cwd=ROOT,
                env={**os.environ, "WHENCE_TEST_MARK": str(self.mark)},
                start_new_session=True,
            )

    def processes(self) -> list[int]:
        """Every process that the command started, itself among them."""
        mark = f"WHENCE_TEST_MARK={self.mark}\0".encode()
        return [
            int(p.parent.name) for p in Path("/proc").glob("[0-9]*/environ") if mark in _read(p)
        ]

    def has_java(self) -> bool:
        return any(b"java" in _read(Path(f"/proc/{p}/cmdline")) for p in self.processes())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes() + b"\0"
    except OSError:
        return b""


def until(ready: Callable[[], object], seconds: float) -> bool:
    """Whether something comes to be true in time."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Running]:
    command = Running(folder, *arguments)
    try:
        yield command
    finally:
        for process in command.processes():
            os.kill(process, signal.SIGKILL)
        command.process.wait()


def assert_cancelled(command: Running, began: float, says: str) -> None:
    assert command.process.wait(60) == 1
    assert time.monotonic() - began < SOON
    out, err = (path.read_text() for path in command.said)
    assert (out, err) == ("", f"whence: {says}\n")
    assert until(lambda: not command.processes(), 10), "something is left running"


def interrupted(command: Running, *, everyone: bool = False) -> float:
    """Send what Ctrl-C sends: to the command, or as a terminal does to all it started."""
    began = time.monotonic()
    if everyone:
        os.killpg(command.process.pid, signal.SIGINT)
    else:
        command.process.send_signal(signal.SIGINT)
    return began


def test_a_run_is_cancelled_while_spark_works(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(LONG)
    with running(tmp_path, "run", str(tmp_path / "p.yaml"), "-w", str(tmp_path / "w")) as command:
        working = (tmp_path / "w").glob
        assert until(lambda: any(working("staging/*/array.zarr/slp/c/*")), 150)
        began = interrupted(command, everyone=True)
        assert_cancelled(command, began, "cancelled; nothing was published")
    assert Workspace(tmp_path / "w").names() == []


def test_a_trace_is_cancelled_while_spark_works(demo: Workspace, tmp_path: Path) -> None:
    workspace = with_slow_minima(demo, tmp_path / "w")
    before = sorted(workspace.path.rglob("*"))
    asked = ["trace", "slow", "--where", "time_index = 1", "--boxes", "tests.faults.slow"]
    with running(tmp_path, *asked, "-w", str(workspace.path)) as command:
        assert until(command.mark.exists, 150)
        assert_cancelled(command, interrupted(command), "cancelled")
    assert sorted(workspace.path.rglob("*")) == before


def with_slow_minima(demo: Workspace, path: Path) -> Workspace:
    """A copy of the demo in which minima were made by a box that is slow to trace."""
    workspace = Workspace(shutil.copytree(demo.path, path))
    minima = workspace.dataset("minima")
    assert minima.made is not None
    with workspace.staged("slow") as stage:
        shutil.copytree(minima.path, stage / "table")
        how = replace(minima.made, box="slow_minima")
        workspace.publish(stage, replace(minima, name="slow", path="table", made=how))
    return workspace


@pytest.mark.parametrize("moment", ["importing", "starting Java"])
def test_a_command_is_cancelled_before_spark_is_there(tmp_path: Path, moment: str) -> None:
    (tmp_path / "p.yaml").write_text(LONG)
    with running(tmp_path, "run", str(tmp_path / "p.yaml"), "-w", str(tmp_path / "w")) as command:
        if moment == "importing":
            time.sleep(0.7)
        else:
            assert until(command.has_java, 60)
        assert_cancelled(command, interrupted(command), "cancelled")
    assert not (tmp_path / "w").exists()
