"""A kill at any moment loses no run that was acknowledged, and leaves none half written."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from pipelines.catalog import edges, nodes, params
from pipelines.history import History
from pipelines.workspace import Workspace
from tests.databases import own_schema

SCRIPT = [sys.executable, "-m", "tests.faults.journaller"]
ROOT = Path(__file__).parents[2]


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
    ours = [r for r in runs if history.text_of(r.run)]
    assert len({r.run for r in runs}) == total == len(ours)
    how = {r.run: r.how for r in runs}
    assert all(how[run] == "finished" for run in promised)
    assert set(how.values()) <= {"finished", "interrupted"}
    for run in runs:
        assert_whole(history, run.run, run.how)
    return list(how.values()).count("interrupted")


def assert_whole(history: History, run: str, how: str) -> None:
    with history.catalog.reading() as connection:
        found = connection.execute(sa.select(nodes).where(nodes.c.run == run)).all()
        tasks = {n.step: n for n in found if n.kind == "task"}
        made = {n.step: n for n in found if n.kind == "dataset"}
        assert tasks.keys() == made.keys()
        if how == "finished":
            assert tasks.keys() == {"a", "b"}
        links = set(connection.execute(sa.select(edges)).tuples())
        assert all((tasks[step].id, made[step].id) in links for step in made)
        if "b" in tasks:
            assert (made["a"].id, tasks["b"].id) in links
            given = sa.select(params.c.name).where(params.c.node == tasks["b"].id)
            assert set(connection.scalars(given)) == {"margin", "wraps"}


def test_two_hundred_kills_lose_nothing_in_a_workspace(tmp_path: Path) -> None:
    promised = acknowledged(tmp_path, kills=200, places=20)
    assert sum(map(len, promised.values())) > 50
    died = [assert_kept(Workspace(path), promised[path.name]) for path in tmp_path.iterdir()]
    assert sum(died) > 20


def test_kills_lose_nothing_in_postgresql(tmp_path: Path, postgres: Any) -> None:
    url = own_schema(postgres)
    promised = acknowledged(tmp_path, 40, 4, url)
    everything = [run for runs in promised.values() for run in runs]
    assert len(everything) > 10
    for path in tmp_path.iterdir():
        History.asked_of(Workspace(path, url))
    assert assert_kept(Workspace(tmp_path / "w0", url), everything) > 4
