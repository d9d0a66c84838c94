"""Four ways to keep a graph's lineage in a database: arrows, all paths, intervals, labels."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from sqlalchemy import Engine, Select, text

from inverses.intervals.cut import by_number, children_of
from inverses.intervals.encode import encode, poset_of
from inverses.intervals.index import Index
from inverses.intervals.unfold import nest
from tests.graphs import Graph
from tests.inverses.intervals.catalog import Catalog

MOST_PATHS = 300_000
"""Beyond as many rows all paths are counted, but not stored."""

COPIES = 12
"""The paper's method may unfold into so many rows for each node, where ours takes a cover."""

TABLES = (
    "CREATE TABLE arrows (parent integer, child integer, PRIMARY KEY (child, parent))",
    "CREATE TABLE paths (path integer, node integer, at integer, PRIMARY KEY (node, path))",
    "CREATE INDEX paths_by_path ON paths (path, at, node)",
    "CREATE TABLE tc (node integer, lft integer, rgt integer)",
    "CREATE INDEX tc_by_node ON tc (node, lft, rgt)",
    "CREATE INDEX tc_by_interval ON tc (lft, rgt, node)",
)
QUESTIONS = {
    "recursive": "WITH RECURSIVE above(node) AS (SELECT parent FROM arrows WHERE child = {node}"
    " UNION SELECT parent FROM arrows JOIN above ON child = node) SELECT node FROM above",
    "all paths": "SELECT DISTINCT b.node FROM paths a JOIN paths b ON a.path = b.path"
    " AND a.at > b.at WHERE a.node = {node}",
    "paper": "SELECT DISTINCT b.node FROM tc a JOIN tc b ON b.lft < a.lft AND a.rgt < b.rgt"
    " WHERE a.node = {node}",
}
APPROACHES = (*QUESTIONS, "labels")


@dataclass
class Kept:
    """What one graph took, by approach: rows, seconds to prepare, milliseconds to ask."""

    name: str
    size: int
    nodes: int
    rows: dict[str, int | None] = field(default_factory=dict)
    prepared: dict[str, float] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)


def keep(engine: Engine, name: str, size: int, graph: Graph) -> Kept:
    """Store a graph in all four ways, ask each for the ancestors of a few leaves, and compare."""
    kept = Kept(name, size, len(graph))
    _empty(engine)
    index = _stored(engine, graph, kept)
    below = children_of(graph)
    leaves = [node for node in graph if node not in below][-3:]
    for leaf in leaves:
        _ask(engine, index, leaf, kept, len(leaves))
    return kept


def _empty(engine: Engine) -> None:
    with engine.begin() as connection:
        for statement in ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", *TABLES):
            connection.execute(text(statement))


def _stored(engine: Engine, graph: Graph, kept: Kept) -> Index:
    arrows = [(p, n) for n, above in graph.items() for p in above]
    _fill(engine, "arrows", arrows)
    kept.rows["recursive"], kept.prepared["recursive"] = len(arrows), 0.0
    kept.rows["all paths"] = path_rows(graph)
    if path_rows(graph) <= MOST_PATHS:
        _fill(engine, "paths", _timed(kept, "all paths", lambda: list(all_paths(graph))))
    _keep_nested(engine, graph, kept)
    labels = _timed(kept, "labels", lambda: encode(graph))
    kept.rows["labels"] = labels.tuples + len(labels.places)
    catalog = Catalog.create(engine)
    catalog.add(graph)
    index = Index(engine)
    index.catch_up()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
    return index


def _keep_nested(engine: Engine, graph: Graph, kept: Kept) -> None:
    order = by_number(graph)
    most = COPIES * len(graph)
    rows = _timed(kept, "paper", lambda: nest(poset_of(order, graph), most))
    kept.rows["paper"] = None if rows is None else len(rows)
    _fill(engine, "tc", [(order[n], left, right) for n, left, right in rows or ()])


def _timed(kept: Kept, approach: str, work: Callable[[], Any]) -> Any:
    began = time.perf_counter()
    done = work()
    kept.prepared[approach] = time.perf_counter() - began
    return done


def _fill(engine: Engine, table: str, rows: Sequence[tuple[int, ...]]) -> None:
    with engine.begin() as connection:
        cursor: Any = connection.connection.cursor()
        with cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


def path_rows(graph: Graph) -> int:
    """How many rows all paths from a source to a leaf take, without walking them."""
    order = by_number(graph)
    below = children_of(graph)
    down = dict.fromkeys(order, 0)
    up = dict(down)
    for node in order:
        up[node] = max(1, sum(up[p] for p in graph[node]))
    for node in reversed(order):
        down[node] = max(1, sum(down[c] for c in below.get(node, ())))
    return sum(up[node] * down[node] for node in order)


def all_paths(graph: Graph) -> Iterator[tuple[int, int, int]]:
    """Every path from a source to a leaf: (path, node, place on it)."""
    below = children_of(graph)
    waiting = [(node,) for node, above in graph.items() if not above]
    path = 0
    while waiting:
        walked = waiting.pop()
        further = below.get(walked[-1])
        if further:
            waiting += [(*walked, child) for child in further]
        else:
            yield from ((path, node, at) for at, node in enumerate(walked))
            path += 1


def _ask(engine: Engine, index: Index, leaf: int, kept: Kept, leaves: int) -> None:
    """Ask every approach for a leaf's ancestors; all that can answer must say the same."""
    words = {name: question.format(node=leaf) for name, question in QUESTIONS.items()}
    words["labels"] = spelled(index.ancestors_of(leaf), engine)
    answers = {}
    with engine.connect() as connection:
        cursor: Any = connection.connection.cursor()
        for name in APPROACHES:
            if _can_answer(kept, name):
                took, rows = _asked(cursor, words[name])
                answers[name] = sorted(node for (node,) in rows)
                kept.asked[name] = kept.asked.get(name, 0.0) + 1000 * took / leaves
    assert all(answer == answers["recursive"] for answer in answers.values()), (kept.name, leaf)


def _can_answer(kept: Kept, name: str) -> bool:
    rows = kept.rows[name]
    return rows is not None and (name != "all paths" or rows <= MOST_PATHS)


def _asked(cursor: Any, words: str) -> tuple[float, list[tuple[int]]]:
    """The median of five times, and the rows."""
    took = []
    for _ in range(5):
        began = time.perf_counter()
        rows = cursor.execute(words).fetchall()
        took.append(time.perf_counter() - began)
    return median(took), rows


def spelled(query: Select[Any], engine: Engine) -> str:
    """A query with its values in it, as another program would send it."""
    return str(query.compile(engine, compile_kwargs={"literal_binds": True}))
