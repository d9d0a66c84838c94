"""What a visitor sees when a trace is cancelled, or Spark dies under it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from pipelines.workspace import Workspace
from tests.browser import visiting

ROOT = Path(__file__).parents[2]


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """While this file is there, traces take their time."""
    (tmp_path / "slow").touch()
    return tmp_path / "slow"


@pytest.fixture
def served(demo: Workspace, mark: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server with a Spark of its own, and its address."""
    command = [sys.executable, "-m", "tests.faults.served", str(demo.path), str(mark)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def java_of(process: subprocess.Popen[str]) -> list[int]:
    """The Java processes in the session of a process."""
    found = subprocess.run(
        ["pgrep", "-s", str(process.pid), "java"], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in found.stdout.split()]


def works(process: int) -> bool:
    """Whether a process is still there and not merely waiting to be buried."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def tracing(page: Page, worker: Path) -> None:
    """Ask about the wrong point, and wait until Spark is at it."""
    page.get_by_role("button", name="871 hPa").click()
    page.get_by_role("button", name="Trace back").first.click()
    page.get_by_text("minima to agcm").wait_for(timeout=90_000)
    while not worker.exists():
        page.wait_for_timeout(50)


def test_cancel_frees_the_cores_and_a_spark_that_dies_is_told_and_started_anew(
    served: tuple[subprocess.Popen[str], str], mark: Path, chromium: Browser
) -> None:
    process, url = served
    with visiting(chromium, url) as page:
        page.get_by_text("Spark is ready").wait_for(timeout=90_000)
        tracing(page, mark.with_name("worker"))
        worker = int(mark.with_name("worker").read_text())
        page.get_by_role("button", name="Cancel").last.click()
        began = time.monotonic()
        page.get_by_text("cancelled").first.wait_for(timeout=5_000)
        while works(worker) and time.monotonic() - began < 10:
            page.wait_for_timeout(50)
        assert not works(worker)

        tracing(page, mark)
        (java,) = java_of(process)
        os.kill(java, signal.SIGKILL)
        began = time.monotonic()
        page.get_by_text("Spark has ended").first.wait_for(timeout=5_000)
        assert time.monotonic() - began < 5
        mark.unlink()
        page.get_by_role("button", name="Trace back").first.click()
        page.get_by_text("Look here first").wait_for(timeout=90_000)
