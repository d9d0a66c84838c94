"""Ancestors and descendants as views, for whoever asks the catalog in SQL.

They ask the labels what the range queries ask. Nodes that something has come above of since labels
were last brought up to date are stale: for them alone arrows are followed one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

POSTGRESQL = "postgresql"

STALE = """
    WITH RECURSIVE stale(node) AS (
        SELECT target FROM lineage_pending
        UNION SELECT edges.target FROM stale JOIN edges ON edges.source = stale.node
    )
    SELECT node FROM stale"""
LATE = """
    WITH RECURSIVE late(ancestor, descendant) AS (
        SELECT edges.source, edges.target
        FROM lineage_stale JOIN edges ON edges.target = lineage_stale.node
        UNION SELECT edges.source, late.descendant
        FROM late JOIN edges ON edges.target = late.ancestor
    )
    SELECT ancestor, descendant FROM late"""
PAIRS = """
    SELECT {columns}
    FROM lineage_places AS below
    JOIN nodes AS made ON made.id = below.node
    JOIN lineage_spans AS span ON span.made_from <= below.made AND span.made_to >= below.made {part}
    JOIN lineage_places AS above
         ON above.maker >= span.maker_from AND above.maker <= span.maker_to {range}
    JOIN nodes AS used ON used.id = above.node
    WHERE below.node NOT IN (SELECT node FROM lineage_stale)
    UNION ALL
    SELECT DISTINCT {columns}
    FROM lineage_nested AS inside
    JOIN nodes AS made ON made.id = inside.node
    JOIN lineage_nested AS outside ON outside.part = inside.part
         AND outside."left" < inside."left" AND outside."right" > inside."right"
    JOIN nodes AS used ON used.id = outside.node
    WHERE inside.node NOT IN (SELECT node FROM lineage_stale)
    UNION ALL
    SELECT {columns}
    FROM lineage_late AS late
    JOIN nodes AS made ON made.id = late.descendant
    JOIN nodes AS used ON used.id = late.ancestor"""
INDEXED = {
    "part": "AND span.part = below.part",
    "range": "AND int4range(span.maker_from, span.maker_to, '[]') @> above.maker",
}
"""What is true anyway, put so that the indexes of PostgreSQL answer it from either side."""

OF = ("id", "kind", "namespace", "name", "version")
FOUND = (*OF, "run", "step")


def creations(database: str) -> Iterator[str]:
    """What creates the views, in the words of a database; those that are there stay."""
    on_server = database == POSTGRESQL
    create = "CREATE OR REPLACE VIEW" if on_server else "CREATE VIEW IF NOT EXISTS"
    also = INDEXED if on_server else dict.fromkeys(INDEXED, "")
    yield f"{create} lineage_stale AS {STALE}"
    yield f"{create} lineage_late AS {LATE}"
    for name, of, found in (("ancestors", "made", "used"), ("descendants", "used", "made")):
        named = [f"{of}.{column} AS of_{column}" for column in OF]
        columns = ", ".join([*named, *(f"{found}.{column}" for column in FOUND)])
        yield f"{create} {name} AS {PAIRS.format(columns=columns, **also)}"
