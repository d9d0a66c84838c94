"""A history of a hundred thousand datasets: the index beside its database's recursive query."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from sqlalchemy import Engine, text

from inverses.intervals.index import Index
from pipelines.run_graph import DATASET
from tests.graphs import Graph
from tests.inverses.intervals.catalog import Catalog
from tests.speed.approaches import spelled
from tests.speed.rows import Aim, Row
from tests.speed.sides import Measured, side_by_side
from tests.workflows import history

RECURSIVE = (
    "WITH RECURSIVE above(id) AS (SELECT source FROM edges WHERE target = {node}"
    " UNION SELECT source FROM edges JOIN above ON target = id) SELECT id FROM above"
)
BELOW = (
    "WITH RECURSIVE below(id) AS (SELECT target FROM edges WHERE source = {node}"
    " UNION SELECT target FROM edges JOIN below ON source = id) SELECT id FROM below"
)
OF_DATASETS = (
    "SELECT nodes.id FROM ({query}) AS reached JOIN nodes ON nodes.id = reached.id"
    " WHERE kind = 'dataset'"
)
AT_ONCE = {
    "sqlite": "SELECT group_concat(id) FROM ({query}) AS found",
    "postgresql": "SELECT array_agg(id) FROM ({query}) AS found",
}
SIZE = 100
LISTED, COUNTED = Aim(">=", 5), Aim(">=", 20)
APPENDED, SEARCHED = Aim("<=", 0.02), Aim("<=", 3)


@dataclass(frozen=True)
class Large:
    """How large, and how often each side is timed."""

    runs: int
    turns: int
    rebuilds: int
    warm: int = 2


FULL, QUICK = Large(1000, 15, 3), Large(60, 3, 1)


@dataclass(frozen=True)
class Asked:
    """A catalog with an index, and nodes to ask about in turn."""

    engine: Engine
    index: Index
    graph: Graph
    asked: list[int]
    cursor: Any
    large: Large
    folder: Path

    @property
    def name(self) -> str:
        return self.engine.dialect.name

    def compared(self, ours: Callable[[int], Any], peer: Callable[[int], Any]) -> Measured:
        """Both sides in turns, each turn about every node; they must agree."""
        for node in self.asked:
            assert ours(node) == peer(node), node
        took = side_by_side(
            lambda _: [ours(node) for node in self.asked],
            lambda _: [peer(node) for node in self.asked],
            self.large.turns,
            self.large.warm,
            self.folder,
        )
        return took.of_each(len(self.asked))

    def recursive(self, node: int) -> list[int]:
        """The ancestors by a recursive query, handed over in one value, which is faster."""
        words = AT_ONCE[self.name].format(query=RECURSIVE.format(node=node))
        found = self.cursor.execute(words).fetchone()[0]
        return sorted(json.loads(f"[{found}]") if isinstance(found, str) else found)

    def rows(self, words: str) -> int:
        """How many rows a query hands over, one by one."""
        return len(self.cursor.execute(words).fetchall())

    def counted(self, words: str) -> int:
        """How many rows a query finds, counted in the database."""
        return int(self.cursor.execute(f"SELECT count(*) FROM ({words}) AS found").fetchone()[0])

    def recursive_count(self, node: int) -> int:
        return self.counted(RECURSIVE.format(node=node))


def late_nodes(graph: Graph, count: int = 5) -> list[int]:
    """Nodes of the later half, each with many ancestors."""
    last = [n for n in graph if n % SIZE == SIZE - 1]
    return Random(5).sample(last[len(last) // 2 :], count)


def early_nodes(index: Index, late: list[int], count: int = 5) -> list[int]:
    """Nodes of the earlier half, each with many descendants, of which one is asked about, too."""
    above = index.ancestors(max(late))
    return Random(5).sample(above[: len(above) // 2], count)


@contextmanager
def indexed(engine: Engine, graph: Graph, large: Large, folder: Path) -> Iterator[Asked]:
    """The graph in a catalog, indexed, with a cursor to ask by hand."""
    Catalog.create(engine).add(graph)
    index = Index(engine)
    index.catch_up()
    with engine.connect() as connection:
        connection.execute(text("ANALYZE"))
        connection.commit()
        cursor = connection.connection.cursor()
        yield Asked(engine, index, graph, late_nodes(graph), cursor, large, folder)


def engine_rows(asked: Asked) -> Iterator[Row]:
    """One engine: lists, queries within it and counts, each beside its own recursive query."""
    name, index = asked.name, asked.index
    sizes = sorted(index.count_ancestors(n) for n in asked.asked)
    note = f"{len(asked.graph):,} nodes, {_edges(asked.graph):,} edges; ancestors: {sizes}"
    listed = asked.compared(index.ancestors, asked.recursive)
    yield Row(f"ancestors, {name}", LISTED, listed, notes=(note,))
    yield _query_row(asked)
    counted = asked.compared(index.count_ancestors, asked.recursive_count)
    said = index.explain()
    ways = ", ".join(f"{way['nodes']:,} nodes {kind}" for kind, way in said["ways"].items())
    note = f"{said['rows']:,} rows beside a place for each node; {ways}"
    yield Row(f"count of ancestors, {name}", COUNTED, counted, notes=(note,))
    yield from _dataset_rows(asked)


def _dataset_rows(asked: Asked) -> Iterator[Row]:
    """Counts of datasets alone, beside recursive queries that are joined with kinds."""
    above = asked.compared(
        lambda n: asked.index.count_ancestors(n, DATASET),
        lambda n: asked.counted(OF_DATASETS.format(query=RECURSIVE.format(node=n))),
    )
    yield Row(f"count of datasets among ancestors, {asked.name}", COUNTED, above)
    early = replace(asked, asked=early_nodes(asked.index, asked.asked))
    below = early.compared(
        lambda n: asked.index.count_descendants(n, DATASET),
        lambda n: asked.counted(OF_DATASETS.format(query=BELOW.format(node=n))),
    )
    sizes = sorted(asked.index.count_descendants(n) for n in early.asked)
    note = f"descendants: {sizes}"
    yield Row(f"count of datasets among descendants, {asked.name}", COUNTED, below, notes=(note,))


def _query_row(asked: Asked) -> Row:
    """The query for a node's ancestors as part of another; and handed over row by row."""
    by_index = {n: spelled(asked.index.ancestors_of(n), asked.engine) for n in asked.asked}
    within = asked.compared(lambda n: asked.counted(by_index[n]), asked.recursive_count)
    handed = asked.compared(
        lambda n: asked.rows(by_index[n]), lambda n: asked.rows(RECURSIVE.format(node=n))
    )
    plain = {
        n: f"SELECT node FROM lineage_places LIMIT {asked.rows(by_index[n])}" for n in by_index
    }
    least = asked.compared(lambda n: asked.rows(plain[n]), lambda n: asked.rows(by_index[n]))
    note = (
        f"row by row {ms(handed.ours)} to {ms(handed.peer)} ({handed.swapped().ratio:.2g}x), of "
        f"which {ms(least.ours)} are the handing over of as many rows of any table"
    )
    return Row(f"ancestors within a query, {asked.name}", LISTED, within, notes=(note,))


def append_row(asked: Asked, more: Graph) -> Row:
    """Runs appended one by one, each beside a rebuild of everything."""
    catalog = Catalog(asked.engine)
    runs = iter([list(more)[n : n + SIZE] for n in range(0, len(more), SIZE)])

    def append(_: Path) -> None:
        catalog.add({node: more[node] for node in next(runs)})
        asked.index.catch_up()

    turns = asked.large.rebuilds
    took = side_by_side(append, lambda _: asked.index.rebuild(), turns, 0, asked.folder)
    return Row(f"append of {SIZE} datasets to a rebuild, {asked.name}", APPENDED, took)


def ms(seconds: tuple[float, ...]) -> str:
    return f"{1000 * median(seconds):.3g} ms"


def _edges(graph: Graph) -> int:
    return sum(map(len, graph.values()))


def grown(large: Large) -> tuple[Graph, Graph]:
    """A history, and the runs that are appended to it later."""
    later = large.rebuilds
    whole = history(Random(1), large.runs + later, SIZE)
    at = large.runs * SIZE
    before = {n: above for n, above in whole.items() if n < at}
    return before, {n: above for n, above in whole.items() if n >= at}
