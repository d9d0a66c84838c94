"""The tables that labels are stored in, beside the catalog's own nodes and edges."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    column,
    func,
    inspect,
    select,
    table,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from inverses.intervals.views import POSTGRESQL, creations
from pipelines.errors import Refused

FORMAT = 2
"""Labels of format 1 had no counts of tasks: they are forgotten, and everything encoded anew."""

LOCK = 5_148_520_713
"""Whoever makes the tables in PostgreSQL holds this lock meanwhile."""

NUMBER = BigInteger().with_variant(Integer, "sqlite")

nodes = table("nodes", column("id", NUMBER), column("kind", Text))
edges = table("edges", column("source", NUMBER), column("target", NUMBER))

labels = MetaData()

state = Table(
    "lineage_state",
    labels,
    Column("format", Integer, primary_key=True, autoincrement=False),
    Column("turn", NUMBER, nullable=False),
    Column("packed", NUMBER, nullable=False),
)
pending = Table(
    "lineage_pending",
    labels,
    Column("source", NUMBER, primary_key=True),
    Column("target", NUMBER, primary_key=True),
)
places = Table(
    "lineage_places",
    labels,
    Column("node", NUMBER, primary_key=True, autoincrement=False),
    Column("maker", Integer, nullable=False),
    Column("made", Integer, nullable=False),
    Column("part", Integer, nullable=False),
    Column("ancestors", Integer, nullable=False),
    Column("tasks", Integer, nullable=False),
    Column("passed", Integer, nullable=False),
    Index("lineage_makers", "maker", unique=True, postgresql_include=["node"]),
    Index("lineage_made", "made", unique=True, postgresql_include=["node"]),
)
nested = Table(
    "lineage_nested",
    labels,
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("left", Integer, primary_key=True),
    Column("right", Integer, nullable=False),
    Column("node", NUMBER, nullable=False, index=True),
)
parts = Table(
    "lineage_parts",
    labels,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("way", Text, nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("across", Integer, nullable=False),
    Column("why", Text, nullable=False),
)
blocks = Table(
    "lineage_blocks",
    labels,
    Column("first", Integer, primary_key=True, autoincrement=False),
    Column("makers", LargeBinary, nullable=False),
    Column("made", LargeBinary, nullable=False),
)
spans = Table(
    "lineage_spans",
    MetaData(),
    Column("part", Integer, nullable=False),
    Column("maker_from", Integer, nullable=False),
    Column("maker_to", Integer, nullable=False),
    Column("made_from", Integer, nullable=False),
    Column("made_to", Integer, nullable=False),
    Column("tasks", Integer, nullable=False),
)

ON_SQLITE = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS lineage_spans"
    " USING rtree_i32(id, maker_from, maker_to, made_from, made_to, +part, +tasks)",
    "CREATE TRIGGER IF NOT EXISTS lineage_noted AFTER INSERT ON edges BEGIN"
    " INSERT OR IGNORE INTO lineage_pending VALUES (new.source, new.target); END",
)
ON_POSTGRESQL = (
    "CREATE TABLE IF NOT EXISTS lineage_spans (part integer NOT NULL, maker_from integer NOT NULL,"
    " maker_to integer NOT NULL, made_from integer NOT NULL, made_to integer NOT NULL,"
    " tasks integer NOT NULL)",
    "CREATE INDEX IF NOT EXISTS lineage_spans_makers ON lineage_spans"
    " USING gist (int4range(maker_from, maker_to, '[]'))",
    "CREATE INDEX IF NOT EXISTS lineage_spans_made ON lineage_spans (part, made_from)",
    "CREATE OR REPLACE FUNCTION lineage_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " INSERT INTO lineage_pending SELECT source, target FROM added ON CONFLICT DO NOTHING;"
    " RETURN NULL; END $$",
    "CREATE OR REPLACE TRIGGER lineage_noted AFTER INSERT ON edges"
    " REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION lineage_note()",
)


OF_1 = ("places", "nested", "parts", "blocks", "spans", "state")
FROM_1 = {
    "sqlite": (
        "DROP TABLE lineage_places",
        "DROP TABLE lineage_spans",
        "DROP TABLE lineage_state",
    ),
    # Views that somebody has made of ours stand in the way of dropping tables.
    POSTGRESQL: (
        "ALTER TABLE lineage_places ADD tasks integer NOT NULL, ADD passed integer NOT NULL",
        "ALTER TABLE lineage_spans ADD tasks integer NOT NULL",
        "ALTER TABLE lineage_state ADD packed bigint NOT NULL",
    ),
}


def prepare(engine: Engine) -> None:
    """Make the tables if they are not there; from then on every new edge is noted as pending."""
    if _is_ready(engine):
        return
    if not inspect(engine).has_table("edges"):
        raise Refused("this database has no table of edges to index; open it as a catalog first")
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        if engine.dialect.name == POSTGRESQL:
            connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
            # Before anything else is held: whoever writes edges now is waited for, not entangled.
            connection.exec_driver_sql("LOCK TABLE edges IN SHARE ROW EXCLUSIVE MODE")
        if _format(connection) == 1:
            _forget(connection)
        for each in labels.sorted_tables:
            connection.execute(CreateTable(each, if_not_exists=True))
            for index in each.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))
        for statement in ON_POSTGRESQL if engine.dialect.name == POSTGRESQL else ON_SQLITE:
            connection.exec_driver_sql(statement)
        _begin(connection)
        for statement in creations(engine.dialect.name):
            connection.exec_driver_sql(statement)


def _is_ready(engine: Engine) -> bool:
    """Whether all is there up to the last of the views, which are made last."""
    with engine.connect() as connection:
        found = _format(connection)
        whole = inspect(connection).has_table("descendants")
    if found is not None and found > FORMAT:
        raise Refused(
            f"the lineage index has format {found}, this Whence knows format {FORMAT}; "
            "ask with the version that made it"
        )
    return found == FORMAT and whole


def _format(connection: Connection) -> int | None:
    """The format of the labels that are there; None before there are any."""
    if not inspect(connection).has_table(state.name):
        return None
    return connection.scalar(select(state.c.format))


def _forget(connection: Connection) -> None:
    """Forget labels of format 1, in the transaction that notes every edge to be encoded anew."""
    for name in OF_1:
        connection.exec_driver_sql(f"DELETE FROM lineage_{name}")
    for statement in FROM_1[connection.dialect.name]:
        connection.exec_driver_sql(statement)


def _begin(connection: Connection) -> None:
    """Note every edge that was there before, if that has not been done; then say that it is."""
    if connection.scalar(select(state.c.format)) is not None:
        return
    noting = postgresql.insert if connection.dialect.name == POSTGRESQL else sqlite.insert
    before = select(edges.c.source, edges.c.target).where(true())
    connection.execute(
        noting(pending).from_select(["source", "target"], before).on_conflict_do_nothing()
    )
    connection.execute(
        noting(state).values(format=FORMAT, turn=0, packed=0).on_conflict_do_nothing()
    )
