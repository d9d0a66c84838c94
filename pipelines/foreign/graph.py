"""A run graph from elsewhere: what is in it, in which order, and how it comes into the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import sqlalchemy as sa

from pipelines.catalog import Catalog, edges, nodes
from pipelines.errors import Refused
from pipelines.run_graph import DATASET, TASK, Growth, Identity, Node

LONGEST_NAME = 2000
NO_LETTER = re.compile("[\0\ud800-\udfff]")
SHOWN = 8  # names of a circle that are told


@dataclass(slots=True)
class Graph:
    """Nodes by what they are, and arrows between them, as a file tells them.

    >>> graph = Graph()
    >>> graph.arrow(graph.put(Node("dataset", "a")), graph.put(Node("dataset", "b")))
    >>> [name for _, _, name, *_ in graph.in_order()]
    ['a', 'b']
    """

    nodes: dict[Identity, Node] = field(default_factory=dict)
    arrows: dict[tuple[Identity, Identity], None] = field(default_factory=dict)
    _order: list[Identity] = field(default_factory=list)

    def put(self, node: Node) -> Identity:
        """Add a node, unless it is there; what was said of it first is kept."""
        identity = node.identity
        if identity not in self.nodes:
            self.nodes[identity], self._order = node, []
        return identity

    def arrow(self, source: Identity, target: Identity) -> None:
        """Add an arrow from what was used to what was made."""
        self.arrows[source, target] = None
        self._order = []

    def in_order(self) -> list[Identity]:
        """The nodes, each after those it was made from; refused if they run in a circle."""
        self._order = self._order or self._sorted()
        return self._order

    def _sorted(self) -> list[Identity]:
        sorter: TopologicalSorter[Identity] = TopologicalSorter(dict.fromkeys(self.nodes, ()))
        for source, target in self.arrows:
            sorter.add(target, source)
        try:
            return list(sorter.static_order())
        except CycleError as error:
            raise circle([name for _, _, name, *_ in error.args[1]]) from None


@dataclass(frozen=True, slots=True)
class Added:
    """How much an import has added to the catalog; what was there already does not count."""

    datasets: int
    tasks: int
    arrows: int


def circle(names: Iterable[str]) -> Refused:
    """The error for a graph in which something was made from itself."""
    listed = list(names)
    shown = " -> ".join(listed[:SHOWN]) + (" -> ..." if len(listed) > SHOWN else "")
    return Refused(
        f"the arrows run in a circle: {shown}; nothing is made from itself, so say which version "
        "was used and which was made"
    )


def add(catalog: Catalog, graph: Graph) -> Added:
    """Put a graph into the catalog, all of it or nothing; what is there already stays as it is."""
    ordered = graph.in_order()
    with catalog.writing() as connection:
        growth = Growth(connection)
        growth.learn({namespace for _, namespace, *_ in ordered})
        growth.forget_rest()
        numbers = {identity: growth.put(graph.nodes[identity]) for identity in ordered}
        before = _arrows(connection)
        for source, target in graph.arrows:
            growth.arrow(numbers[source], numbers[target])
        _check_acyclic(connection, growth, {n: i[2] for i, n in numbers.items()})
        growth.write()
        new = [i[0] for i, n in numbers.items() if n >= growth.first]
        return Added(new.count(DATASET), new.count(TASK), _arrows(connection) - before)


def _arrows(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.select(sa.func.count()).select_from(edges)) or 0)


def _check_acyclic(connection: sa.Connection, growth: Growth, names: Mapping[int, str]) -> None:
    """Refuse arrows that close a circle with those that are there.

    Only an arrow to a node that was there before can do that.
    """
    if all(target >= growth.first for _, target in growth.arrows):
        return
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for source, target in (*connection.execute(sa.select(edges)), *growth.arrows):
        sorter.add(target, source)
    try:
        sorter.prepare()
    except CycleError as error:
        row = sa.select(nodes.c.id, nodes.c.name).where(nodes.c.id.in_(error.args[1]))
        known = {n: name for n, name in connection.execute(row)}  # noqa: C416
        raise circle([known.get(n) or names[n] for n in error.args[1]]) from None


def text(value: Any, what: str) -> str:
    """A name from a file if it may be one."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_NAME:
        raise Refused(f"{what} is a text of up to {LONGEST_NAME:,} characters; found {value!r:.60}")
    if NO_LETTER.search(value):
        raise Refused(f"{what} has a character that no name has: {value!r:.60}")
    return value


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """A JSON object from a file if it is one."""
    if not isinstance(value, dict):
        raise Refused(f"{what} is an object; found {value!r:.60}")
    return value


def listing(value: Any, what: str) -> list[Any]:
    """A JSON array from a file if it is one; what is left out is empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise Refused(f"{what} is an array; found {value!r:.60}")
    return value
