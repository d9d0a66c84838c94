"""Who asks in SQL is told what a search through the graph finds, even before labels are."""

from __future__ import annotations

from random import Random

import networkx as nx
import pytest
from sqlalchemy import Engine, text

from inverses.intervals.index import Index
from tests.graphs import KINDS, drawn, shuffled
from tests.inverses.intervals.catalog import Catalog
from tests.inverses.intervals.test_index import pieces


def seen(engine: Engine, view: str, node: int) -> list[int]:
    """What a view says of a node, each as often as it says it."""
    with engine.connect() as connection:
        asked = text(f"SELECT id FROM {view} WHERE of_id = :node ORDER BY id")
        return list(connection.scalars(asked, {"node": node}))


def assert_seen(engine: Engine, picture: nx.DiGraph[int], asked: list[int]) -> None:
    for node in asked:
        assert seen(engine, "ancestors", node) == sorted(nx.ancestors(picture, node))
        assert seen(engine, "descendants", node) == sorted(nx.descendants(picture, node))


@pytest.mark.parametrize("kind", KINDS)
def test_views_are_right_before_and_after_labels_are(kind: str, catalog: Catalog) -> None:
    rng = Random(7)
    graph = shuffled(rng, KINDS[kind](rng, rng.randint(30, 60)))
    index = Index(catalog.engine)
    known: dict[int, list[int]] = {}
    for piece in pieces(rng, graph):
        catalog.add(piece)
        known |= piece
        some = rng.sample(list(known), min(4, len(known)))
        assert_seen(catalog.engine, drawn(known), some)
        if rng.random() < 0.7:
            index.catch_up()
            assert_seen(catalog.engine, drawn(known), some)


def test_an_arrow_that_came_late_is_seen_at_once(catalog: Catalog) -> None:
    catalog.add({1: [], 2: [1], 3: [], 4: [3]})
    Index(catalog.engine).catch_up()
    catalog.join((2, 3))
    assert seen(catalog.engine, "ancestors", 4) == [1, 2, 3]
    assert seen(catalog.engine, "descendants", 1) == [2, 3, 4]
    assert seen(catalog.engine, "ancestors", 2) == [1]


def test_an_index_from_before_there_were_views_gets_them(catalog: Catalog) -> None:
    catalog.add({1: [], 2: [1]})
    Index(catalog.engine).catch_up()
    with catalog.engine.begin() as connection:
        for view in ("descendants", "ancestors", "lineage_late", "lineage_stale"):
            connection.execute(text(f"DROP VIEW {view}"))
    Index(catalog.engine)
    assert seen(catalog.engine, "ancestors", 2) == [1]
    with catalog.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM lineage_pending")) == 0
