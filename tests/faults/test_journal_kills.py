"""A kill at any moment loses no run that was acknowledged, and leaves none half written."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import sqlalchemy as sa

from pipelines.catalog import edges, nodes, params
from pipelines.history import History
from pipelines.workspace import Workspace
from tests.databases import own_schema

SCRIPT = [sys.executable, "-m", "tests.faults.journaller"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory if there is such a thing: a process is killed, the machine is not."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as home:
        yield Path(home)


def acknowledged(home: Path, kills: int, places: int, url: str = "") -> dict[str, list[str]]:
    """The runs that were acknowledged before kills, by the workspace they ran in."""
    command = [*SCRIPT, str(home), str(kills), str(places), *([url] if url else [])]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240)
    assert ended.returncode == 0, ended.stderr[-2000:]
    found: dict[str, list[str]] = defaultdict(list)
    for line in ended.stdout.splitlines():
        place, run = line.split()
        found[place].append(run)
    return found


def assert_kept(workspace: Workspace, promised: list[str]) -> int:
    """Every promised run is there; every other was interrupted, and is whole as far as it got."""
    history = History.asked_of(workspace)
    runs, total = history.runs()
    how = {r.run: r.how for r in runs}
    assert len(how) == total
    assert all(how[run] == "finished" for run in promised)
    assert set(how.values()) <= {"finished", "interrupted"}
    with history.catalog.reading() as connection:
        found, links, given = (
            connection.execute(sa.select(t)).all() for t in (nodes, edges, params)
        )
    assert {n.run for n in found} <= set(how)
    for run in how:
        assert_whole([n for n in found if n.run == run], set(links), given, how[run])
    return list(how.values()).count("interrupted")


def assert_whole(found: list[Any], links: set[Any], given: Sequence[Any], how: str) -> None:
    """A run has all its tasks, or as many as it got to; each with what it used and made."""
    tasks = {n.step: n for n in found if n.kind == "task"}
    made = {n.step: n for n in found if n.kind == "dataset"}
    assert len(tasks) + len(made) == len(found)
    assert tasks.keys() == made.keys()
    assert tasks.keys() == {"a", "b"} or (how == "interrupted" and tasks.keys() <= {"a"})
    assert all((tasks[step].id, made[step].id) in links for step in made)
    if "b" in tasks:
        assert (made["a"].id, tasks["b"].id) in links
        assert {p.name for p in given if p.node == tasks["b"].id} == {"margin", "wraps"}


def test_two_hundred_kills_lose_nothing_in_a_workspace(in_memory: Path) -> None:
    promised = acknowledged(in_memory, kills=200, places=20)
    assert sum(map(len, promised.values())) >= 100
    died = [assert_kept(Workspace(path), promised[path.name]) for path in in_memory.iterdir()]
    assert sum(died) > 0


def test_kills_lose_nothing_in_postgresql(in_memory: Path, postgres: str) -> None:
    url = own_schema(postgres)
    promised = acknowledged(in_memory, 12, 3, url)
    everything = [run for runs in promised.values() for run in runs]
    assert len(everything) >= 6
    for path in in_memory.iterdir():
        History.asked_of(Workspace(path, url))
    assert_kept(Workspace(in_memory / "w0", url), everything)
