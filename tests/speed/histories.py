"""A hundred thousand datasets: the index beside recursive queries, a search, and a tree cover."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from sqlalchemy import Engine, create_engine, select, text

from inverses.intervals.index import Index
from inverses.intervals.tables import nested, places, spans
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
RANGED = (
    "SELECT by_maker.node FROM lineage_places AS here, lineage_spans AS s,"
    " lineage_places AS by_maker WHERE here.node = {node} AND s.part = here.part"
    " AND here.made BETWEEN s.made_from AND s.made_to"
    " AND by_maker.maker BETWEEN s.maker_from AND s.maker_to"
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
        """Both sides in turns, each turn about another node; they must agree."""
        for node in self.asked:
            assert ours(node) == peer(node), node
        mine, theirs = cycle(self.asked), cycle(self.asked)
        return side_by_side(
            lambda _: ours(next(mine)),
            lambda _: peer(next(theirs)),
            self.large.turns,
            self.large.warm,
            self.folder,
        )

    def recursive(self, node: int) -> list[int]:
        """The ancestors by a recursive query, handed over in one value, which is faster."""
        words = AT_ONCE[self.name].format(query=RECURSIVE.format(node=node))
        found = self.cursor.execute(words).fetchone()[0]
        return sorted(json.loads(f"[{found}]") if isinstance(found, str) else found)

    def rows(self, words: str) -> list[int]:
        """What a query finds, row by row."""
        return sorted(row[0] for row in self.cursor.execute(words).fetchall())

    def recursive_count(self, node: int) -> int:
        words = f"SELECT count(*) FROM ({RECURSIVE.format(node=node)}) AS found"
        return int(self.cursor.execute(words).fetchone()[0])


def late_nodes(graph: Graph, count: int = 5) -> list[int]:
    """Nodes of the later half, each with many ancestors."""
    last = [n for n in graph if n % SIZE == SIZE - 1]
    return Random(5).sample(last[len(last) // 2 :], count)


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
    """One engine: lists, plain queries and counts, each beside its own recursive query."""
    by_index = {n: spelled(asked.index.ancestors_of(n), asked.engine) for n in asked.asked}
    name, index = asked.name, asked.index
    listed = asked.compared(index.ancestors, asked.recursive)
    sizes = sorted(index.count_ancestors(n) for n in asked.asked)
    note = f"{len(asked.graph):,} nodes, {_edges(asked.graph):,} edges; ancestors: {sizes}"
    yield Row(f"ancestors, {name}", LISTED, listed, notes=(note,))
    plain = asked.compared(
        lambda n: asked.rows(by_index[n]), lambda n: asked.rows(RECURSIVE.format(node=n))
    )
    yield Row(f"ancestors as rows of a query, {name}", LISTED, plain)
    counted = asked.compared(index.count_ancestors, asked.recursive_count)
    said = index.explain()
    ways = ", ".join(f"{way['nodes']:,} nodes {kind}" for kind, way in said["ways"].items())
    note = f"{said['rows']:,} rows beside a place for each node; {ways}"
    yield Row(f"count of ancestors, {name}", COUNTED, counted, notes=(note,))


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


def duckdb_rows(asked: Asked) -> Iterator[Row]:
    """DuckDB: the same labels and the same query, beside its own recursive query."""
    if not find_spec("duckdb"):
        yield Row("ancestors, DuckDB", LISTED, None, missing="not installed")
        return
    import duckdb

    with duckdb.connect() as base:
        base.execute("SET threads = 2")
        _copy(asked, base)
        query = (
            "SELECT node FROM lineage_spans AS s, lineage_places AS p WHERE s.made_from <= ({m})"
        )
        query += " AND s.made_to >= ({m}) AND p.maker BETWEEN s.maker_from AND s.maker_to"
        made = "SELECT made FROM lineage_places WHERE node = {node}"

        def ranged(node: int) -> list[int]:
            found = base.execute(query.format(m=made.format(node=node))).fetchnumpy()["node"]
            return sorted(found.tolist())

        def recursive(node: int) -> list[int]:
            found = base.execute(RECURSIVE.format(node=node)).fetchnumpy()["id"]
            return sorted(found.tolist())

        yield Row("ancestors, DuckDB with our labels", LISTED, asked.compared(ranged, recursive))
        outside = asked.compared(asked.index.ancestors, recursive)
        yield Row(f"ancestors, {asked.name} beside DuckDB", LISTED, outside)
        counted = asked.compared(
            asked.index.count_ancestors,
            lambda n: base.execute(f"SELECT count(*) FROM ({RECURSIVE.format(node=n)})").fetchone()[
                0
            ],
        )
        yield Row(f"count of ancestors, {asked.name} beside DuckDB", COUNTED, counted)


def _copy(asked: Asked, base: Any) -> None:
    """Edges and labels, sorted as DuckDB likes them."""
    import pandas as pd

    with asked.engine.connect() as connection:
        assert connection.execute(select(nested)).first() is None, "only spans are copied"
        for name, query in (
            ("lineage_places", select(places).order_by(places.c.maker)),
            ("lineage_spans", select(spans).order_by(spans.c.made_from)),
            ("edges", text("SELECT source, target FROM edges ORDER BY target, source")),
        ):
            frame = pd.DataFrame(connection.execute(query).mappings())
            base.register("frame", frame)
            base.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
            base.unregister("frame")
    base.execute("CREATE INDEX by_target ON edges (target)")


def search_row(asked: Asked) -> Row:
    """In memory: a breadth-first search by scipy, and a tree cover asked for every node."""
    name = f"ancestors, {asked.name} to scipy's search in memory"
    if not find_spec("scipy"):
        return Row(name, SEARCHED, None, missing="not installed")
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    arrows = np.array([(n, p) for n, above in asked.graph.items() for p in above])
    size = len(asked.graph)
    upward = csr_array((np.ones(len(arrows), np.int8), (arrows[:, 0], arrows[:, 1])), (size, size))

    def searched(node: int) -> list[int]:
        found = breadth_first_order(upward, node, return_predecessors=False)
        return sorted(found[1:].tolist())

    measured = asked.compared(asked.index.ancestors, searched)
    return Row(name, SEARCHED, measured, notes=tuple(_beside_a_cover(asked, arrows[:, ::-1])))


def _beside_a_cover(asked: Asked, arrows: Any) -> Iterator[str]:
    """What a tree cover in memory takes for the same list, and for a single pair."""
    if not find_spec("pyreachability"):
        yield "pyreachability is not installed"
        return
    import numpy as np
    from pyreachability import Graph as Drawn
    from pyreachability.static import TreeCover

    cover = TreeCover()
    cover.build(Drawn.from_edges(arrows[:, 0], arrows[:, 1], len(asked.graph)))
    every = np.arange(len(asked.graph), dtype=np.int32)

    def covered(node: int) -> list[int]:
        pairs = np.stack([every, np.full_like(every, node)], axis=1)
        return [n for n in every[cover.query_batch(pairs)].tolist() if n != node]

    first = min(asked.graph)
    listed = asked.compared(asked.index.ancestors, covered)
    pair = asked.compared(
        lambda n: asked.index.is_ancestor(first, n), lambda n: bool(cover.query(first, n))
    )
    yield f"a tree cover takes {cover.index_size_bytes / 1e6:.1f} MB of memory"
    yield f"the same list by it: {_ms(listed.peer)}, {asked.name} {_ms(listed.ours)}"
    yield f"one pair by it: {_ms(pair.peer)}, {asked.name} {_ms(pair.ours)}"


def _ms(seconds: tuple[float, ...]) -> str:
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


def on_sqlite(large: Large, folder: Path) -> Iterator[Row]:
    """All that is measured with the catalog in SQLite."""
    before, later = grown(large)
    engine = create_engine(f"sqlite:///{folder / 'catalog.db'}")
    with indexed(engine, before, large, folder) as asked:
        yield from engine_rows(asked)
        yield from duckdb_rows(asked)
        yield search_row(asked)
    yield append_row(asked, later)
    engine.dispose()


def on_postgresql(url: str, large: Large, folder: Path) -> Iterator[Row]:
    """All that is measured with the catalog in PostgreSQL."""
    before, later = grown(large)
    engine = create_engine(url)
    with indexed(engine, before, large, folder) as asked:
        yield from engine_rows(asked)
    yield append_row(asked, later)
    engine.dispose()
