"""What is killed, starved or crowded leaves every version whole and loses none it promised."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.workspace import Workspace
from tests.faults.publisher import is_whole, publish

SCRIPT = [sys.executable, "-m", "tests.faults.publisher"]
ROOT = Path(__file__).parents[2]
KILLS = 45


def started(path: Path, most: int) -> subprocess.Popen[str]:
    command = [*SCRIPT, str(path), str(most)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def killed_while_publishing(path: Path, after: float) -> list[str]:
    """The versions that a publisher said before it was killed."""
    process = started(path, most=10_000)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(after)
    process.kill()
    said, _ = process.communicate()
    return [line for line in said.split("\n")[:-1] if line]


def leftovers(workspace: Workspace) -> list[str]:
    staging = workspace.path / "staging"
    home = workspace.path / "datasets" / "d"
    return [p.name for p in (*staging.iterdir(), *home.glob(".current-*")) if p.name != ".lock"]


def number(version: str) -> int:
    return int(version.removeprefix("v"))


def test_a_killed_publisher_leaves_whole_versions_and_loses_none(tmp_path: Path) -> None:
    chance = random.Random(1997)
    promised: list[str] = []
    for kill in range(KILLS):
        promised += killed_while_publishing(tmp_path, chance.uniform(0, 0.15))
        workspace = Workspace(tmp_path)
        if promised:
            assert is_whole(workspace)
            assert number(workspace.dataset("d").version) >= max(map(number, promised))
        if kill % 5 == 4:
            promised.append(publish(workspace, "sweeper"))
            assert leftovers(workspace) == []
    assert len(set(promised)) == len(promised) > KILLS // 2
    assert all(is_whole(workspace, version) for version in promised)


def test_publishers_at_once_never_collide(tmp_path: Path) -> None:
    crowd = [started(tmp_path, most=15) for _ in range(4)]
    said = [process.communicate()[0].split() for process in crowd]
    assert [process.returncode for process in crowd] == [0] * 4
    versions = [line for lines in said for line in lines if line != "ready"]
    assert sorted(map(number, versions)) == list(range(1, 61))
    workspace = Workspace(tmp_path)
    assert workspace.dataset("d").version == "v60"
    assert all(is_whole(workspace, version) for version in versions)
    assert leftovers(workspace) == []


@pytest.mark.parametrize("when", ["staging", "publishing"])
def test_a_full_disk_leaves_the_old_version_current(tmp_path: Path, when: str) -> None:
    workspace = Workspace.create(tmp_path)
    before = publish(workspace, "before")
    failed = subprocess.run(
        [*SCRIPT, str(tmp_path), "1", when], capture_output=True, text=True, cwd=ROOT
    )
    assert failed.returncode == 1
    assert failed.stdout == "ready\n"
    assert workspace.dataset("d").version == before
    assert is_whole(workspace)
    assert leftovers(workspace) == []
    assert publish(workspace, "after") == "v2"


def test_another_runs_stage_is_left_alone(workspace: Workspace) -> None:
    with workspace.staged("slow") as slow:
        (slow / "part").write_text("half")
        publish(workspace, "quick")
        assert (slow / "part").read_text() == "half"
