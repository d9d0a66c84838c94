"""What the journal missed: the ends of runs that died, what they published, and what was before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import sqlalchemy as sa

from pipelines import earlier
from pipelines.catalog import Catalog, ends, nodes, runs
from pipelines.databases import say
from pipelines.datasets import Dataset, Key
from pipelines.disk import is_free
from pipelines.errors import Failed
from pipelines.fingerprints import content
from pipelines.journal import FAILED, FINISHED, INTERRUPTED, add_end, add_run, add_space, lock_of
from pipelines.run_graph import DATASET, Growth, record
from pipelines.workspace import Workspace

DIED = "its process ended before it did"
SPACE = "SELECT path FROM spaces WHERE namespace = :namespace"
WITHOUT_END = (
    "SELECT run FROM runs WHERE namespace = :namespace AND run NOT IN (SELECT run FROM ends)"
)
Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Missed:
    """What a workspace holds and its journal does not."""

    workspace: Workspace
    dead: frozenset[str]
    versions: tuple[Dataset, ...]
    lines: tuple[Line, ...]

    @classmethod
    def by(cls, catalog: Catalog, namespace: str, workspace: Workspace) -> Missed:
        """Look for what is missing; nothing is changed."""
        with catalog.reading() as connection:
            living, dead = _open_runs(connection, namespace, workspace.path)
            versions = _lacking(connection, namespace, workspace, living, dead)
            lines = () if _is_known(connection, namespace) else _lines(workspace)
        return cls(workspace, frozenset(dead), versions, tuple(lines))

    def __bool__(self) -> bool:
        return bool(self.dead or self.versions or self.lines)

    def write(self, connection: sa.Connection, namespace: str) -> None:
        """Add it all; what somebody else added meanwhile is not added again."""
        _add_lines(connection, namespace, self.lines)
        ended = set(connection.scalars(sa.select(ends.c.run).where(ends.c.run.in_(self.dead))))
        for run in self.dead - ended:
            add_end(connection, run, INTERRUPTED, DIED)
        growth = Growth(connection)
        record(growth, namespace, ((d, _fingerprint(d)) for d in self.versions))
        growth.write()
        add_space(connection, namespace, self.workspace.path)

    def clear(self) -> None:
        """Remove the locks that runs left behind."""
        for run in self.dead:
            lock_of(self.workspace.path, run).unlink(missing_ok=True)


def is_known(catalog: Catalog, namespace: str) -> bool:
    """Whether the journal has seen a workspace before."""
    with catalog.reading() as connection:
        return _is_known(connection, namespace)


def _is_known(connection: sa.Connection, namespace: str) -> bool:
    return say(connection, SPACE, {"namespace": namespace}).first() is not None


def _open_runs(
    connection: sa.Connection, namespace: str, workspace: Path
) -> tuple[set[str], set[str]]:
    """The runs without an end that are still under way, and those whose process is gone."""
    first = _without_end(connection, namespace)
    gone = {run for run in first if _is_gone(lock_of(workspace, run))}
    # One may have ended as it should, after we looked for its end and before we saw its lock.
    connection.rollback()
    dead = gone & _without_end(connection, namespace) if gone else set()
    return first - gone, dead


def _is_gone(lock: Path) -> bool:
    return not lock.exists() or is_free(lock)


def _without_end(connection: sa.Connection, namespace: str) -> set[str]:
    return set(say(connection, WITHOUT_END, {"namespace": namespace}).scalars())


def _lacking(
    connection: sa.Connection,
    namespace: str,
    workspace: Workspace,
    living: set[str],
    dead: set[str],
) -> tuple[Dataset, ...]:
    """The versions that the journal lacks, each after those it was made from."""
    here = {(n, v) for n in workspace.names() for v in workspace.versions(n)}
    known = _keys(connection, namespace) if here else set()
    found: dict[Key, Dataset] = {}
    for dataset in _datasets(workspace, here if dead else here - known):
        run = dataset.made.run if dataset.made else ""
        if (dataset.key not in known or run in dead) and run not in living:
            found[dataset.key] = dataset
    return tuple(found[key] for key in _in_order(found))


def _datasets(workspace: Workspace, keys: set[Key]) -> Iterator[Dataset]:
    for key in sorted(keys):
        with suppress(Failed):
            yield workspace.dataset(*key)


def _keys(connection: sa.Connection, namespace: str) -> set[Key]:
    ours = (nodes.c.namespace == namespace) & (nodes.c.kind == DATASET)
    rows = connection.execute(sa.select(nodes.c.name, nodes.c.version).where(ours))
    return {(name, version) for name, version in rows}


def _in_order(found: Mapping[Key, Dataset]) -> list[Key]:
    """The keys of datasets, each after those it was made from."""
    graph: nx.DiGraph[Key] = nx.DiGraph()
    graph.add_nodes_from(found)
    for key, dataset in found.items():
        used = dataset.made.inputs.values() if dataset.made else ()
        graph.add_edges_from((u, key) for u in used if u in found)
    return list(nx.lexicographical_topological_sort(graph))


def _fingerprint(dataset: Dataset) -> str:
    """The one that is known: what was made is not read again to find out what it was."""
    return content(dataset) if dataset.origin or dataset.checksum else ""


def _lines(workspace: Workspace) -> list[Line]:
    """What an earlier version wrote."""
    return list(earlier.entries(workspace.path / "history.jsonl"))


def _add_lines(connection: sa.Connection, namespace: str, lines: tuple[Line, ...]) -> None:
    """Take over what an earlier version wrote; a run without an end was interrupted."""
    known = set(connection.scalars(sa.select(runs.c.run))) if lines else set()
    ended = {str(e.get("run")): e for e in lines if e.get("event") in (FINISHED, FAILED)}
    for line in lines:
        run = str(line.get("run"))
        if line.get("event") == "started" and run not in known:
            _add_started(connection, namespace, run, line)
            _add_ended(connection, run, ended.get(run, {"event": INTERRUPTED, "why": DIED}))
            known.add(run)


def _add_started(connection: sa.Connection, namespace: str, run: str, line: Line) -> None:
    said = {k: str(line.get(k) or "") for k in ("pipeline", "at", "master")}
    unsaid = {"who": "", "host": "", "whence": "", "part": ""}
    spark = {"spark": str(line.get("version") or "")}
    add_run(connection, namespace, run, str(line.get("text") or ""), said | unsaid | spark)


def _add_ended(connection: sa.Connection, run: str, line: Mapping[str, Any]) -> None:
    seconds = line.get("seconds")
    took = float(seconds) if isinstance(seconds, int | float) else None
    why, at = str(line.get("why") or ""), str(line.get("at") or "")
    add_end(connection, run, str(line["event"]), why, took, at)
