"""The run graph as the catalog holds it, ready to be told to other programs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from pipelines.catalog import Catalog, edges, ends, nodes, params, runs

LONGEST = 1e12  # seconds that anything can have taken


@dataclass(frozen=True, slots=True)
class Stored:
    """Nodes by number, in the order they were added, with arrows and parameters; runs by name."""

    nodes: dict[int, Any]
    used: dict[int, list[int]]
    made: dict[int, list[int]]
    params: dict[int, dict[str, str]]
    runs: dict[str, Any]

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
            told = {row.run: row for row in connection.execute(_runs())}
        return cls({row.id: row for row in rows}, used, made, given, told)

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


def _runs() -> sa.Select[Any]:
    """The runs, and how and when they ended if they did."""
    row = sa.select(runs, ends.c.how, ends.c.why, ends.c.at.label("ended"))
    return row.join(ends, ends.c.run == runs.c.run, isouter=True).order_by(runs.c.id)


def moment(text: str | None) -> str | None:
    """A date and time as it was written down, if it is one.

    >>> moment("2026-01-01T00:00:00Z"), moment("soon")
    ('2026-01-01T00:00:00+00:00', None)
    """
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat()


def seconds_of(said: Any) -> float | None:
    """How long something took, if that is said."""
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    return float(said) if is_number and 0 <= said < LONGEST else None


def value_of(text: str) -> Any:
    """A parameter's value from its text: what JSON says it is, or else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
