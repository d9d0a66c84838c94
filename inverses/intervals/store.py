"""Labels as rows: written and read back within one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from sqlalchemy import Connection, Engine, Select, Table, and_, delete, func, select

from inverses.intervals.blocks import packed
from inverses.intervals.encode import Labels, Past
from inverses.intervals.queries import Queries
from inverses.intervals.ranges import NONE, Ranges, ranges, united
from inverses.intervals.tables import (
    blocks,
    edges,
    nested,
    nodes,
    parts,
    pending,
    places,
    spans,
    state,
)
from inverses.intervals.tally import NOTHING, Tally
from inverses.intervals.views import POSTGRESQL
from pipelines.run_graph import TASK

AT_ONCE = 500
"""A question about many nodes is asked for so many at a time."""

FEW = 10_000
"""So many rows, and twice as many, are not worth packing."""

ROWS = select(func.coalesce(func.sum(parts.c.rows + parts.c.across), 0)).scalar_subquery()
Edge = tuple[int, int]


class Store:
    """The labels in a database, for as long as a transaction lasts."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.queries = Queries(connection.dialect.name)
        self.written = 0

    def wait(self) -> int:
        """Be the only one who writes labels, until the transaction ends; whose turn it is."""
        mine = state.update().values(turn=state.c.turn + 1).returning(state.c.turn)
        return int(self.connection.execute(mine).scalar_one())

    def turn(self) -> int:
        """Whose turn it was last."""
        return self.connection.scalar(select(state.c.turn)) or 0

    def pack(self) -> None:
        """Note how many rows labels take now that they are packed, or are about to be."""
        self.connection.execute(state.update().values(packed=ROWS))

    def sprawls(self) -> bool:
        """Whether labels take more than twice the rows they took when they were last packed."""
        rows, packed = self.connection.execute(select(ROWS, state.c.packed)).one()
        return bool(rows > 2 * max(packed, FEW))

    def taken(self) -> list[Edge]:
        """The edges that are not encoded yet, which from now on are held to be."""
        noted = delete(pending).returning(pending.c.source, pending.c.target)
        return [(source, target) for source, target in self.connection.execute(noted)]

    def edges(self) -> list[Edge]:
        """All edges of the graph."""
        every = select(edges.c.source, edges.c.target)
        return [(source, target) for source, target in self.connection.execute(every)]

    def past(self) -> Past:
        """What new labels are put beside."""
        place = select(func.coalesce(func.max(places.c.maker), -1) + 1).scalar_subquery()
        part = select(func.coalesce(func.max(parts.c.number), -1) + 1).scalar_subquery()
        first = self.connection.execute(select(place, part)).one()
        return Past(first[0], first[1], self.above, self.passed)

    def placed(self, some: Iterable[int]) -> set[int]:
        """Those of the nodes that have labels."""
        found = select(places.c.node)
        return {node for row in self._about(found, places.c.node, some) for node in row}

    def tasks(self, some: Iterable[int]) -> set[int]:
        """Those of the nodes that are tasks."""
        found = select(nodes.c.id).where(nodes.c.kind == TASK)
        return {node for row in self._about(found, nodes.c.id, some) for node in row}

    def implies(self, edge: Edge) -> bool:
        """Whether an edge joins what is joined already."""
        return bool(self.connection.scalar(self.queries.is_ancestor(*edge)))

    def passed(self, some: Iterable[int]) -> Mapping[int, int]:
        """How many tasks there are among makers up to each of some places."""
        found = self._about(select(places.c.maker, places.c.passed), places.c.maker, some)
        return {**NOTHING, **{row[0]: row[1] for row in found}}

    def above(self, some: Iterable[int]) -> Mapping[int, Ranges]:
        """The places of each node and of all its ancestors."""
        asked = list(some)
        found: dict[int, list[tuple[int, int]]] = {node: [] for node in asked}
        for query, of in (_itself(), _across(), _inside()):
            for node, first, last in self._about(query, of, asked):
                found[node].append((first, last))
        return {node: united([NONE, ranges(each)]) for node, each in found.items()}

    def _about(self, query: Select[Any], of: Any, some: Iterable[int]) -> Iterator[Sequence[Any]]:
        asked = list(some)
        for first in range(0, len(asked), AT_ONCE):
            yield from self.connection.execute(query.where(of.in_(asked[first : first + AT_ONCE])))

    def clear(self) -> None:
        """Forget all labels."""
        for each in (places, blocks, nested, spans, parts):
            self.connection.execute(delete(each))

    def add(self, labels: Labels) -> None:
        """Store labels beside those that are there."""
        self._fill(places, [each.row() for each in labels.places])
        self._fill(blocks, list(packed(labels.places)) if labels.places else [])
        self._fill(nested, labels.nested)
        self._fill(spans, list(_span_rows(labels)))
        self._fill(parts, [astuple(each) for each in labels.parts])

    def _fill(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        self.written += len(rows)
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        if self.connection.dialect.name == POSTGRESQL:
            cursor: Any = self.connection.connection.cursor()
            with cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            marks = ", ".join("?" * len(table.columns))
            filling = f"INSERT INTO {table.name} ({columns}) VALUES ({marks})"
            self.connection.exec_driver_sql(filling, list(rows))


def _span_rows(labels: Labels) -> Iterator[tuple[int, ...]]:
    """Spans with the part that they lead to, and how many tasks there are in what they made."""
    made = sorted(labels.places, key=lambda place: place.made)
    known = {made[0].made - 1: 0} if made else NOTHING
    tally = Tally.of([place.node in labels.tasks for place in made], known)
    part = {place.made: place.part for place in made}
    tasks = tally.counts(ranges(span[2:] for span in labels.spans))
    for span, count in zip(labels.spans, tasks.tolist(), strict=True):
        yield part[span[2]], *span, count


def _itself() -> tuple[Select[Any], Any]:
    return select(places.c.node, places.c.maker, places.c.maker), places.c.node


def _across() -> tuple[Select[Any], Any]:
    above = select(places.c.node, spans.c.maker_from, spans.c.maker_to).where(
        spans.c.part == places.c.part,
        spans.c.made_from <= places.c.made,
        spans.c.made_to >= places.c.made,
    )
    return above, places.c.node


def _inside() -> tuple[Select[Any], Any]:
    itself, other = nested.alias("itself"), nested.alias("other")
    enclosing = and_(
        other.c.part == itself.c.part,
        other.c.left < itself.c.left,
        other.c.right > itself.c.right,
        places.c.node == other.c.node,
    )
    return select(itself.c.node, places.c.maker, places.c.maker).where(enclosing), itself.c.node


def tidy(engine: Engine) -> None:
    """Let PostgreSQL clear away rows that are gone, and look at what is there to plan well."""
    if engine.dialect.name == POSTGRESQL:
        names = ", ".join(each.name for each in (pending, places, blocks, nested, spans))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(f"VACUUM (ANALYZE) {names}")


def explained(connection: Connection) -> dict[str, Any]:
    """What parts there are, by the way they are encoded, and the largest of them."""
    totals = (func.count(), func.sum(parts.c.nodes), func.sum(parts.c.rows))
    by_way = connection.execute(select(parts.c.way, *totals).group_by(parts.c.way))
    ways = {w: {"parts": p, "nodes": int(n), "rows": int(r)} for w, p, n, r in by_way}
    across = connection.scalar(select(func.coalesce(func.sum(parts.c.across), 0)))
    size = parts.c.rows + parts.c.across
    largest = connection.execute(select(parts).order_by(size.desc(), parts.c.number).limit(5))
    return {
        "nodes": sum(way["nodes"] for way in ways.values()),
        "rows": sum(way["rows"] for way in ways.values()) + int(across or 0),
        "across": int(across or 0),
        "ways": ways,
        "largest": [dict(row._mapping) for row in largest],
    }
