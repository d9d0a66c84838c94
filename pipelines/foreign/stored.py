"""The run graph as the catalog holds it, ready to be told to other programs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from pipelines.catalog import Catalog, edges, nodes, params


@dataclass(frozen=True, slots=True)
class Stored:
    """Nodes by number, in the order they were added, with their arrows and parameters."""

    nodes: dict[int, Any]
    used: dict[int, list[int]]
    made: dict[int, list[int]]
    params: dict[int, dict[str, str]]

    @classmethod
    def by(cls, catalog: Catalog) -> Stored:
        """All that a catalog holds."""
        used: dict[int, list[int]] = defaultdict(list)
        made: dict[int, list[int]] = defaultdict(list)
        given: dict[int, dict[str, str]] = defaultdict(dict)
        with catalog.reading() as connection:
            rows = connection.execute(sa.select(nodes).order_by(nodes.c.id)).all()
            for source, target in connection.execute(sa.select(edges).order_by(*edges.c)):
                used[target].append(source)
                made[source].append(target)
            for node, name, value in connection.execute(sa.select(params)):
                given[node][name] = value
        return cls({row.id: row for row in rows}, used, made, given)

    def of_kind(self, kind: str) -> Iterator[Any]:
        """The nodes of one kind, in their order."""
        return (row for row in self.nodes.values() if row.kind == kind)

    def behind(self, node: int, kind: str) -> list[Any]:
        """What a node was made from directly, as far as it is of one kind."""
        found = (self.nodes[n] for n in self.used.get(node, ()))
        return [row for row in found if row.kind == kind]

    def after(self, node: int, kind: str) -> list[Any]:
        """What was directly made of a node, as far as it is of one kind."""
        found = (self.nodes[n] for n in self.made.get(node, ()))
        return [row for row in found if row.kind == kind]


def value_of(text: str) -> Any:
    """A parameter's value from its text: what JSON says it is, or else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
