"""A catalog as small as the index asks for: numbered nodes of two kinds, and edges between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text

from pipelines.run_graph import DATASET, TASK
from tests.graphs import Graph

TABLES = (
    "CREATE TABLE nodes (id BIGINT PRIMARY KEY, kind TEXT NOT NULL, namespace TEXT,"
    " name TEXT, version TEXT, run TEXT, step TEXT)",
    "CREATE TABLE edges (source BIGINT NOT NULL, target BIGINT NOT NULL,"
    " PRIMARY KEY (source, target))",
    "CREATE INDEX edges_by_target ON edges (target, source)",
)


def kind_of(node: int) -> str:
    """The kind of a node, without rhyme or reason, but always the same."""
    return TASK if (node * 2_654_435_761 >> 16) % 5 < 2 else DATASET


def of_kind(nodes: Iterable[int], kind: str) -> list[int]:
    """Those of the nodes that are of a kind."""
    return [node for node in nodes if kind_of(node) == kind]


@dataclass(frozen=True)
class Catalog:
    """Nodes and edges in a database."""

    engine: Engine

    @classmethod
    def create(cls, engine: Engine) -> Catalog:
        with engine.begin() as connection:
            for statement in TABLES:
                connection.execute(text(statement))
        return cls(engine)

    def add(self, graph: Graph) -> None:
        """Add nodes with the edges into them, all or none."""
        with self.engine.begin() as connection:
            self.put(connection, graph, ((p, n) for n, above in graph.items() for p in above))

    def join(self, *edges: tuple[int, int]) -> None:
        """Add edges between nodes that are there."""
        with self.engine.begin() as connection:
            self.put(connection, (), edges)

    @staticmethod
    def put(connection: Connection, nodes: Iterable[int], edges: Iterable[tuple[int, int]]) -> None:
        """Add nodes and edges within a transaction."""
        every = [{"id": node, "kind": kind_of(node)} for node in nodes]
        if every:
            connection.execute(text("INSERT INTO nodes (id, kind) VALUES (:id, :kind)"), every)
        pairs = [{"source": source, "target": target} for source, target in edges]
        if pairs:
            connection.execute(text("INSERT INTO edges VALUES (:source, :target)"), pairs)
