"""Several processes grow and ask one catalog; one that dies leaves everything or nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import networkx as nx
import pytest
from sqlalchemy import Engine, create_engine, func, select
from sqlalchemy.pool import StaticPool

from inverses.intervals.index import Index
from inverses.intervals.tables import edges, nodes, places
from tests.graphs import drawn
from tests.inverses.intervals.catalog import Catalog

ROOT = Path(__file__).parents[3]
PROCESSES, RUNS = 2, 12


def started(engine: Engine, *order: str) -> subprocess.Popen[str]:
    """Another process at the same catalog."""
    url = engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "tests.inverses.intervals.grower", url, *order]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def assert_whole(engine: Engine) -> None:
    """What the index says now is what the catalog's edges say."""
    with engine.connect() as connection:
        every = list(connection.scalars(select(nodes.c.id)))
        arrows = [tuple(row) for row in connection.execute(select(edges.c.source, edges.c.target))]
    picture = nx.DiGraph(arrows)
    picture.add_nodes_from(every)
    index = Index(engine)
    for node in Random(1).sample(every, min(25, len(every))):
        assert index.ancestors(node) == sorted(nx.ancestors(picture, node))
        assert index.descendants(node) == sorted(nx.descendants(picture, node))
    with engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(places)) == len(
            {node for arrow in arrows for node in arrow}
        )


def test_processes_that_grow_and_ask_at_once_all_get_it_right(catalog: Catalog) -> None:
    catalog.add({0: []})
    growing = [started(catalog.engine, str(n), str(RUNS)) for n in range(1, PROCESSES + 1)]
    said = [process.communicate(timeout=120)[1] for process in growing]
    assert [p.returncode for p in growing] == [0] * PROCESSES, "\n".join(said)
    with catalog.engine.connect() as connection:
        count = connection.scalar(select(func.count()).select_from(nodes))
    assert count == 1 + 5 * PROCESSES * RUNS
    assert_whole(catalog.engine)


def kill_now_and_then(catalog: Catalog, times: int) -> None:
    """Kill a process some moments after its first run; labels are whole each time."""
    rng = Random(3)
    catalog.add({0: []})
    for turn in range(1, times + 1):
        process = started(catalog.engine, str(turn), "1000")
        assert process.stdout and process.stdout.readline() == "began\n"
        time.sleep(rng.uniform(0, 0.2))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert_whole(catalog.engine)


def test_a_killed_process_leaves_labels_whole(catalog: Catalog) -> None:
    kill_now_and_then(catalog, 2)


@pytest.mark.night
@pytest.mark.timeout(3600)
def test_many_killed_processes_leave_labels_whole(catalog: Catalog) -> None:
    kill_now_and_then(catalog, 100)


def test_an_index_over_a_database_in_memory_is_asked_like_any_other() -> None:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    catalog = Catalog.create(engine)
    catalog.add({1: [], 2: [1], 3: [2]})
    assert Index(engine).ancestors(3) == sorted(nx.ancestors(drawn({1: [], 2: [1], 3: [2]}), 3))
