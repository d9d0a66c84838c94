"""Bundles cells of the demo's source again and again, in processes that it kills meanwhile."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from explorer.bundle import bundle
from inverses.answer import Answer, Found
from inverses.guarantees import EXACT
from inverses.planner import plan
from inverses.registry import Registry
from inverses.selection import select
from pipelines.workspace import Workspace


def untraced(path: Path) -> Answer:
    """Some cells of the demo's source as an answer, for which no Spark is needed."""
    workspace = Workspace(path)
    selection = select(workspace, "agcm", "time < '2000-01-02'", ["slp"])
    index = {d: s.low for d, s in selection.at.spans.items()}
    zero = np.zeros(len(selection), np.int64)
    rows = pa.table({"variable": zero, **index, "value": zero.astype(float)})
    found = Found(selection.dataset, rows, selection.at, {}, 0, 0, selection.at)
    planned = plan(workspace, selection, EXACT, Registry.of())
    return Answer(planned, {selection.dataset.key: found}, {}, {"jobs": 0})


def main(demo: str, folder: str, kills: int) -> None:
    answer, chance, home = untraced(Path(demo)), random.Random(1997), Path(folder)
    # What takes long only the first time is done before any process forks.
    bundle(answer, home / "first.whence.zip")
    for kill in range(kills):
        process = os.fork()
        if not process:
            for number in range(1000):
                bundle(answer, home / f"{kill}-{number}.whence.zip")
        wait_for(home / f"{kill}-0.whence.zip")
        time.sleep(chance.uniform(0, 0.3))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not come"
        time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
