"""Forks processes that run and journal without end, and kills each at some moment."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import timeit
from pathlib import Path

from pipelines.workspace import Workspace
from tests.runs import ran

STEPS: dict[str, list[str]] = {"a": [], "b": ["a"]}
PARAMS = {"b": {"margin": 1, "wraps": True}}
SOME = 1.5


def killed(path: Path, url: str, runs: int, after: float) -> list[str]:
    """The runs that a process was told are journalled, when killed a while after the first few."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _run_on(path, url, write)
    os.close(write)
    with os.fdopen(read, encoding="ascii") as said:
        told = [said.readline() for _ in range(runs + 1)]
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return [line.strip() for line in (*told, *said) if line[1:].endswith("\n")]


def _run_on(path: Path, url: str, write: int) -> None:
    try:
        os.write(write, b"\n")
        workspace = Workspace.create(path, url or None)
        while True:
            run = ran(workspace, STEPS, PARAMS)
            os.write(write, f"{run}\n".encode())
    finally:
        os._exit(1)


def as_long_as_a_run(path: Path, url: str) -> float:
    """The time in which a process here does a run or two, as fast as the machine is just now.

    What is only loaded when it is used is loaded by this, for all who are forked.
    """
    workspace = Workspace.create(path, url or None)
    return SOME * min(timeit.repeat(lambda: ran(workspace, STEPS, PARAMS), number=1, repeat=5))


def main(home: str, kills: int, places: int, url: str = "") -> None:
    chance = random.Random(2008)
    longest = as_long_as_a_run(Path(home) / "first", url)
    for kill in range(kills):
        path = Path(home) / f"w{kill % places}"
        for run in killed(path, url, kill % 2, chance.uniform(0, longest)):
            print(path.name, run, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
