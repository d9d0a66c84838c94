"""The run graph: datasets and tasks, and arrows from what was used to what was made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import sqlalchemy as sa

from pipelines.catalog import add, edges, next_id, nodes, params
from pipelines.databases import say
from pipelines.datasets import Dataset, Made

DATASET, TASK = "dataset", "task"
NEWEST = (
    "SELECT id, fingerprint, run FROM nodes WHERE kind = :kind AND namespace = :namespace "
    "AND name = :name AND version = :version ORDER BY id DESC LIMIT 1"
)
OF_RUN = "SELECT id, kind, name, step FROM nodes WHERE run = :run"
Identity = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Node:
    """A dataset version, or a task: a box as it was run once.

    The name and version of a task are those of its box; `step` is its place in the run.
    """

    kind: str
    name: str
    version: str = ""
    namespace: str = ""
    run: str = ""
    step: str = ""
    fingerprint: str = ""
    at: str = ""
    seconds: float | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        """What two records of one thing have in common: versions tell datasets, runs tell tasks."""
        if self.kind == DATASET:
            return self.kind, self.namespace, self.name, self.version, ""
        return self.kind, self.namespace, self.name, self.run, self.step

    def row(self, number: int) -> dict[str, Any]:
        """The row of the catalog that this node becomes."""
        rest = {c: getattr(self, c) for c in nodes.c.keys() if c != "id"}  # noqa: SIM118
        return {"id": number, **rest}


class Known(NamedTuple):
    """A node that is in the catalog, or will be: its number, its content, and what run made it."""

    id: int
    fingerprint: str
    run: str


class Growth:
    """What one transaction adds to the run graph; nothing is in the catalog before `write`."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.next = self.first = next_id(connection, nodes)
        self._nodes: list[tuple[int, Node]] = []
        self._edges: dict[tuple[int, int], None] = {}
        self._known: dict[Identity, Known | None] = {}
        self._runs: dict[str, dict[tuple[str, str, str], int]] = {}

    def find(self, node: Node) -> Known | None:
        """The newest record of the same dataset; None if there is none."""
        if node.identity not in self._known:
            told = {c: getattr(node, c) for c in ("kind", "namespace", "name", "version")}
            found = say(self.connection, NEWEST, told).first()
            self._known[node.identity] = Known(*found) if found else None
        return self._known[node.identity]

    def of_run(self, run: str) -> dict[tuple[str, str, str], int]:
        """What is recorded of a run already: mostly nothing, unless it was thought to be dead."""
        if run not in self._runs:
            rows = say(self.connection, OF_RUN, {"run": run})
            self._runs[run] = {(kind, name, step): number for number, kind, name, step in rows}
        return self._runs[run]

    def learn(self, namespaces: Iterable[str]) -> None:
        """Look up all that some namespaces hold at once, since each will be asked for."""
        kept = nodes.c.namespace.in_(list(namespaces))
        for row in self.connection.execute(sa.select(nodes).where(kept).order_by(nodes.c.id)):
            known = Node(**{k: v for k, v in row._mapping.items() if k != "id"})
            self._known[known.identity] = Known(row.id, row.fingerprint, row.run)

    def forget_rest(self) -> None:
        """Take what was not learned for new, without looking it up."""
        self._known = _Nothing(self._known)

    def add(self, node: Node) -> int:
        """A new record, whatever there is already."""
        number, self.next = self.next, self.next + 1
        self._nodes.append((number, node))
        self._known[node.identity] = Known(number, node.fingerprint, node.run)
        return number

    def put(self, node: Node) -> int:
        """The newest record of the same thing; a new one if there is none with this content."""
        found = self.find(node)
        if found and (node.fingerprint == found.fingerprint or not node.fingerprint):
            return found.id
        return self.add(node)

    def arrow(self, source: int, target: int) -> None:
        """Note that one was used to make the other."""
        self._edges[source, target] = None

    @property
    def arrows(self) -> list[tuple[int, int]]:
        return list(self._edges)

    def write(self) -> None:
        """Put everything into the catalog; an arrow that is there already stays as it is."""
        given = [
            {"node": n, "name": str(k), "value": plain(v)}
            for n, node in self._nodes
            for k, v in node.params.items()
        ]
        added = [{"source": s, "target": t} for s, t in self._edges]
        for table, rows in (
            (nodes, [node.row(number) for number, node in self._nodes]),
            (params, given),
            (edges, added),
        ):
            if rows:
                add(self.connection, table, rows)


class _Nothing(dict[Identity, "Known | None"]):
    """A dictionary that holds nothing more than is in it."""

    def __missing__(self, key: Identity) -> None:
        return None

    def __contains__(self, key: object) -> bool:
        return True


def plain(value: Any) -> str:
    """The value of a parameter as text that is the same however a number was written.

    >>> plain(1000), plain(1000.0), plain(0.5), plain(True), plain("a")
    ('1000', '1000', '0.5', 'true', '"a"')
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, default=str)


def record(
    growth: Growth, namespace: str, made: Iterable[tuple[Dataset, str]], at: str = ""
) -> None:
    """Add datasets with their fingerprints, each after those it was made from.

    What a run has made is recorded once, however often it is found.
    """
    for dataset, fingerprint in made:
        node = Node(DATASET, *dataset.key, namespace, fingerprint=fingerprint, at=at)
        if dataset.made is None:
            growth.put(node)
        else:
            _record_made(growth, dataset, node)


def _record_made(growth: Growth, dataset: Dataset, node: Node) -> None:
    how = dataset.made
    assert how is not None
    made = replace(node, run=how.run, step=how.step)
    task = replace(
        made, kind=TASK, name=how.box, version=how.box_version, fingerprint="",
        seconds=how.seconds, params=how.params,
    )  # fmt: skip
    before = growth.of_run(how.run)
    if (DATASET, dataset.name, how.step) not in before:
        number = before.get((TASK, how.box, how.step)) or _recorded(growth, task, how)
        growth.arrow(number, growth.add(made))


def _recorded(growth: Growth, task: Node, how: Made) -> int:
    """A task with arrows from what it used."""
    used = [growth.put(Node(DATASET, *key, task.namespace)) for key in how.inputs.values()]
    number = growth.add(task)
    for source in used:
        growth.arrow(source, number)
    return number
