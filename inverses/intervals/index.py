"""The index: who came before whom, among all that any run ever made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, func, select
from sqlalchemy.exc import SQLAlchemyError

from inverses.intervals.blocks import unpacked
from inverses.intervals.encode import Labels, encode
from inverses.intervals.queries import EVERY, KINDS, Nodes, Queries
from inverses.intervals.store import AT_ONCE, Edge, Store, explained, tidy
from inverses.intervals.tables import NUMBER, nodes, pending, prepare
from pipelines.errors import Refused

NODE, ABOVE = bindparam("node", type_=NUMBER), bindparam("above", type_=NUMBER)
ASKED: Any = bindparam("asked", expanding=True)
BEHIND = select(
    select(pending.c.source).exists(),
    select(func.count()).where(nodes.c.id.in_(ASKED)).scalar_subquery(),
)
"""Whether something waits to be encoded, and how many of the nodes asked about there are."""

MANY = 10_000
"""After as many new rows the database is asked to tidy up."""

MOST_LATE = 1_000
"""Of more new edges between old nodes than that, none is asked whether it changes anything."""


class Index:
    """Ancestors and descendants of any node of a catalog, by range queries.

    The catalog's tables are `nodes(id, kind)` and `edges(source, target)`, an edge leading from
    what was used to what was made; a node is a dataset or a task. Every question first encodes
    what has come since the last one.
    """

    def __init__(self, engine: Engine) -> None:
        prepare(engine)
        self.engine = engine
        self._queries = Queries(engine.dialect.name)
        self._ancestors = self._queries.packed_ancestors(NODE)
        self._descendants = self._queries.packed_descendants(NODE)
        self._above = {kind: self._queries.count_ancestors(NODE, kind) for kind in KINDS}
        self._below = {kind: self._queries.count_descendants(NODE, kind) for kind in KINDS}
        self._joined = self._queries.is_ancestor(ABOVE, NODE)

    def ancestors(self, node: int) -> list[int]:
        """All that a node was made from, in order of number."""
        with self._asking(node) as connection:
            return unpacked(connection.execute(self._ancestors, {"node": node}))

    def descendants(self, node: int) -> list[int]:
        """All that was made from a node, in order of number."""
        with self._asking(node) as connection:
            return unpacked(connection.execute(self._descendants, {"node": node}))

    def ancestors_of(self, *nodes: int) -> Nodes:
        """The ancestors as a query, to be joined, filtered or counted without listing them."""
        with self._asking(*nodes):
            return self._queries.ancestors(nodes)

    def descendants_of(self, *nodes: int) -> Nodes:
        """The descendants as a query, to be joined, filtered or counted without listing them."""
        with self._asking(*nodes):
            return self._queries.descendants(nodes)

    def listed(self, *nodes: int) -> Nodes:
        """Some nodes as a query, however many they are."""
        return self._queries.listed(nodes)

    def is_ancestor(self, above: int, below: int) -> bool:
        """Whether the first node is an ancestor of the second."""
        with self._asking(above, below) as connection:
            return bool(connection.scalar(self._joined, {"node": below, "above": above}))

    def count_ancestors(self, node: int, kind: str = EVERY) -> int:
        """How many ancestors of a kind a node has, without listing them."""
        with self._asking(node) as connection:
            return connection.scalar(self._above[kind], {"node": node}) or 0

    def count_descendants(self, node: int, kind: str = EVERY) -> int:
        """How many descendants of a kind a node has, without listing them."""
        with self._asking(node) as connection:
            return connection.scalar(self._below[kind], {"node": node}) or 0

    def explain(self) -> dict[str, Any]:
        """How everything is encoded: rows by way, and for the largest parts why it was that way."""
        with self._asking() as connection:
            return explained(connection)

    def catch_up(self, connection: Connection | None = None) -> None:
        """Encode what is not encoded yet; labels that exist stay, unless an old node has changed.

        Given a connection it is done in that one's transaction, so that edges and their labels
        are there together or not at all; else in one of its own. One process does it at a time.
        Labels that came run by run are packed now and then, after that and on their own.
        """
        if connection is None and not self._is_behind():
            return
        with self._writing(connection) as store:
            store.wait()
            _append(store, store.taken())
            sprawls = connection is None and store.sprawls()
            if sprawls:
                store.pack()  # Noted before it is tried: in vain or not, it is not tried each time.
        if sprawls:
            with suppress(SQLAlchemyError, self.engine.dialect.loaded_dbapi.Error):
                self._pack()

    def _pack(self) -> None:
        """Encode everything anew while others write, unless they encode something meanwhile.

        It is tried each time that rows have doubled, so an append costs a small part of it. No
        question needs it, so none fails if the database does not let it be done.
        """
        with self.engine.connect() as connection:
            store = Store(connection)
            turn, labels = store.turn(), _encoded(store)
        with self._writing(None) as store:
            if store.wait() == turn + 1:
                _replace(store, labels)

    def _is_behind(self) -> bool:
        """Whether something waits to be encoded; asked first, so that nobody writes for nothing."""
        with self.engine.connect() as connection:
            return bool(connection.scalar(select(select(pending.c.source).exists())))

    def rebuild(self, connection: Connection | None = None) -> None:
        """Encode everything anew: no answer changes, but labels appended run by run get fewer."""
        with self._writing(connection) as store:
            store.wait()
            store.taken()
            _rebuild(store)

    @contextmanager
    def _asking(self, *asked: int) -> Iterator[Connection]:
        """A connection for a question, once everything is encoded and the nodes are known."""
        with self.engine.connect() as connection:
            if not _is_behind(connection, asked):
                yield connection
                return
        self.catch_up()
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self, connection: Connection | None) -> Iterator[Store]:
        if connection is not None:
            yield Store(connection)
        else:
            with self.engine.begin() as own:
                yield (store := Store(own))
            if store.written > MANY:
                tidy(self.engine)


def _is_behind(connection: Connection, asked: tuple[int, ...]) -> bool:
    """Whether there is something to encode; nodes that are not there are refused."""
    every = sorted(set(asked))
    behind = False
    for first in range(0, len(every) or 1, AT_ONCE):
        some = every[first : first + AT_ONCE]
        behind, found = connection.execute(BEHIND, {"asked": some}).one()
        if found < len(some):
            there = set(connection.scalars(select(nodes.c.id).where(nodes.c.id.in_(some))))
            raise Refused(f"no node {min(set(some) - there)} in this catalog")
    return bool(behind)


def _append(store: Store, added: list[Edge]) -> None:
    """Encode new edges: those into new nodes as they are, others by encoding everything anew."""
    if not added:
        return
    old = store.placed({node for edge in added for node in edge})
    late = [edge for edge in added if edge[1] in old]
    if late and not _known(store, late, old):
        _rebuild(store)
        return
    parents = _parents(edge for edge in added if edge[1] not in old)
    new = {node: above for node, above in parents.items() if node not in old}
    if new:
        past = store.past()
        store.add(encode(new, store.tasks(new), past))
        if not past.place:
            store.pack()


def _known(store: Store, late: list[Edge], old: set[int]) -> bool:
    """Whether edges into old nodes only join what is joined already."""
    return len(late) <= MOST_LATE and all(
        source in old and store.implies((source, target)) for source, target in late
    )


def _rebuild(store: Store) -> None:
    _replace(store, _encoded(store))


def _encoded(store: Store) -> Labels:
    """Labels for everything, as few as can be."""
    every = _parents(store.edges())
    return encode(every, store.tasks(every))


def _replace(store: Store, labels: Labels) -> None:
    store.clear()
    store.add(labels)
    store.pack()


def _parents(every: Iterable[Edge]) -> dict[int, list[int]]:
    """The parents of each node that an edge leads from or to."""
    found: dict[int, list[int]] = {}
    for source, target in every:
        found.setdefault(source, [])
        found.setdefault(target, []).append(source)
    return found
