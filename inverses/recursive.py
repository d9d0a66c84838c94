"""Ancestors and descendants by a recursive query: slow on large graphs, ready at once."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from pipelines.catalog import edges


class Recursive:
    """Walks the arrows of the run graph anew for every question."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    def catch_up(self) -> None:
        """There is nothing to prepare."""

    def ancestors_of(self, node: int) -> sa.Select[Any]:
        """The ids of all that a node was made from, to be joined and filtered with."""
        return _reached(node, edges.c.target, edges.c.source)

    def descendants_of(self, node: int) -> sa.Select[Any]:
        """The ids of all that was made from a node."""
        return _reached(node, edges.c.source, edges.c.target)

    def ancestors(self, node: int) -> list[int]:
        return self._all(self.ancestors_of(node))

    def descendants(self, node: int) -> list[int]:
        return self._all(self.descendants_of(node))

    def is_ancestor(self, first: int, last: int) -> bool:
        """Whether one was used, at whatever remove, to make the other."""
        return first in self.ancestors(last)

    def count_ancestors(self, node: int) -> int:
        return len(self.ancestors(node))

    def count_descendants(self, node: int) -> int:
        return len(self.descendants(node))

    def _all(self, ids: sa.Select[Any]) -> list[int]:
        with self.engine.connect() as connection:
            return sorted(connection.scalars(ids))


def _reached(node: int, at: sa.Column[Any], to: sa.Column[Any]) -> sa.Select[Any]:
    first = sa.select(to.label("id")).where(at == node)
    reached = first.cte(recursive=True)
    # A union without doubles, so that a node with many paths to it is gone on from once.
    reached = reached.union(sa.select(to).where(at == reached.c.id))
    return sa.select(reached.c.id)
