"""The catalog: one database of runs, of what they used and of what they made."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool, StaticPool

from pipelines.errors import Failed, Refused

DRIVERS = ("sqlite", "sqlite+pysqlite", "postgresql+psycopg")
MEMORY = "sqlite://"
WRITERS = 0x57484E43  # the one lock that writers of a catalog in PostgreSQL take turns by
PATIENCE = 30  # seconds to wait for another writer, or for a server to answer
Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")

tables = sa.MetaData()
catalog = sa.Table("whence_catalog", tables, sa.Column("version", sa.Integer, primary_key=True))
spaces = sa.Table(
    "spaces",
    tables,
    sa.Column("namespace", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
)
texts = sa.Table(
    "texts",
    tables,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
)
runs = sa.Table(
    "runs",
    tables,
    sa.Column("id", Id, primary_key=True, autoincrement=False),
    sa.Column("run", sa.Text, nullable=False, unique=True),
    sa.Column("namespace", sa.Text, nullable=False),
    sa.Column("pipeline", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("master", sa.Text, nullable=False),
    sa.Column("spark", sa.Text, nullable=False),
    sa.Column("whence", sa.Text, nullable=False),
    sa.Column("part", sa.Text, nullable=False, server_default=""),
)
ends = sa.Table(
    "ends",
    tables,
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("how", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("seconds", sa.Float),
)
nodes = sa.Table(
    "nodes",
    tables,
    sa.Column("id", Id, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("namespace", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("run", sa.Text, nullable=False),
    sa.Column("step", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("seconds", sa.Float),
    sa.Index("nodes_by_name", "name", "version", "id"),
    sa.Index("nodes_by_run", "run"),
    sa.Index("nodes_by_namespace", "namespace", "kind", "name", "version"),
)
edges = sa.Table(
    "edges",
    tables,
    sa.Column("source", Id, primary_key=True),
    sa.Column("target", Id, primary_key=True),
    sa.Index("edges_by_target", "target", "source"),
)
params = sa.Table(
    "params",
    tables,
    sa.Column("node", Id, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    sa.Index("params_by_value", "name", "value"),
)

VIEWS = {
    "history": """
        SELECT runs.*, ends.how, ends.why, ends.at AS ended, ends.seconds
        FROM runs LEFT JOIN ends ON ends.run = runs.run""",
    "made_with": """
        SELECT made.id, made.namespace, made.name, made.version, task.id AS task,
               task.name AS box, task.version AS box_version, task.run, task.step, task.seconds
        FROM edges
        JOIN nodes AS task ON task.id = edges.source AND task.kind = 'task'
        JOIN nodes AS made ON made.id = edges.target AND made.kind = 'dataset'""",
    "made_from": """
        SELECT made.id, made.name, made.version, made.box,
               used.id AS used_id, used.name AS used_name, used.version AS used_version
        FROM made_with AS made
        JOIN edges ON edges.target = made.task
        JOIN nodes AS used ON used.id = edges.source AND used.kind = 'dataset'""",
}


def _with_tables(connection: sa.Connection) -> None:
    for statement in _creations(connection.dialect.name):
        connection.exec_driver_sql(statement)


@cache
def _creations(database: str) -> tuple[str, ...]:
    """What creates all tables and indexes, in the words of a database."""
    told: list[str] = []

    def noted(ddl: Any, *_: Any) -> None:
        told.append(str(ddl.compile(dialect=mock.dialect)))

    mock = sa.create_mock_engine(f"{database}{'+psycopg' * (database != 'sqlite')}://", noted)
    tables.create_all(mock, checkfirst=False)
    return tuple(told)


def _with_views(connection: sa.Connection) -> None:
    for name, query in VIEWS.items():
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {query}")


def _with_parts(connection: sa.Connection) -> None:
    """Runs say what part of a pipeline was asked for; a view keeps the columns it was made with."""
    if runs.c.part.name not in {c["name"] for c in sa.inspect(connection).get_columns(runs.name)}:
        added = f"ADD COLUMN {runs.c.part.name} TEXT DEFAULT '' NOT NULL"
        connection.exec_driver_sql(f"ALTER TABLE {runs.name} {added}")
    connection.exec_driver_sql("DROP VIEW history")
    connection.exec_driver_sql(f"CREATE VIEW history AS {VIEWS['history']}")


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (_with_tables, _with_views, _with_parts)
VERSION = len(MIGRATIONS)


class Catalog:
    """A catalog in SQLite or PostgreSQL, with the tables that this version of Whence knows.

    >>> with Catalog(MEMORY).reading() as connection:
    ...     list(connection.execute(sa.select(nodes)))
    []
    """

    def __init__(self, url: str, keep_open: bool = False) -> None:
        self.engine = engine_at(url, keep_open)
        self.place = str(self.engine.url.render_as_string(hide_password=True))
        self._migrate()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection that sees the catalog as it is now."""
        with self.spoken(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that is whole or absent, while nobody else writes."""
        with self.spoken(), self.engine.connect() as connection:
            connection = connection.execution_options(writes=True)
            with connection.begin():
                if connection.dialect.name == "postgresql":
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(WRITERS)))
                yield connection

    def close(self) -> None:
        """Let go of connections that were kept open."""
        self.engine.dispose()

    @contextmanager
    def spoken(self) -> Iterator[None]:
        """Say in one line what a database has to complain of."""
        try:
            yield
        except (SQLAlchemyError, self.engine.dialect.loaded_dbapi.Error) as error:
            raise Failed(
                f'the catalog at "{self.place}" does not answer: {_reason(error)}'
            ) from None

    def _migrate(self) -> None:
        with self.reading() as connection:
            found = self._checked_version(connection)
        if found < VERSION:
            with self.writing() as connection:
                for step in MIGRATIONS[self._checked_version(connection) :]:
                    step(connection)
                connection.exec_driver_sql(f"DELETE FROM {catalog.name}")
                connection.exec_driver_sql(f"INSERT INTO {catalog.name} VALUES ({VERSION})")

    def _checked_version(self, connection: sa.Connection) -> int:
        """The version of the tables; 0 if there are none yet."""
        if not sa.inspect(connection).has_table(catalog.name):
            return 0
        newest = connection.exec_driver_sql(f"SELECT max(version) FROM {catalog.name}")
        found = int(newest.scalar() or 0)
        if found > VERSION:
            raise Refused(
                f'the catalog at "{self.place}" has version {found}, this Whence knows versions '
                f"up to {VERSION}; ask with the one that made it"
            )
        return found


def engine_at(url: str, keep_open: bool = False) -> sa.Engine:
    """The engine for a catalog, which closes every connection after its use unless told to keep it.

    When the last connection is closed SQLite clears its log away, which takes longer than most
    of what we ask; who asks more than once keeps it open, and lets go in the end.
    """
    parsed = _parsed(url)
    pool: type[sa.Pool] = QueuePool if keep_open else NullPool
    waits: dict[str, Any] = {"connect_timeout": PATIENCE}
    if parsed.drivername != "postgresql+psycopg":
        pool = pool if parsed.database else StaticPool
        waits = {"timeout": PATIENCE, "check_same_thread": False}
    # A connection that was kept through a long run may have died meanwhile: it is tried first.
    tried = keep_open and parsed.drivername == "postgresql+psycopg"
    engine = sa.create_engine(parsed, poolclass=pool, connect_args=waits, pool_pre_ping=tried)
    # What a driver has to say of a connection that was lost, we say ourselves, and once.
    logging.getLogger(engine.dialect.driver).setLevel(logging.ERROR)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _durable)
        sa.event.listen(engine, "begin", _begin)
    return engine


def _parsed(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.drivername not in DRIVERS:
        shown = parsed.render_as_string(hide_password=True) if parsed else url
        raise Refused(
            f'"{shown:.200}" is no catalog; give one like postgresql+psycopg://USER@HOST/DATABASE '
            "or sqlite:///FILE"
        )
    return parsed


def _durable(connection: Any, _: Any) -> None:
    """A commit in SQLite is on the disk before it is acknowledged; readers wait for nobody."""
    connection.isolation_level = None  # transactions begin where `_begin` says
    _with_log(connection)
    connection.execute("PRAGMA synchronous = FULL")


def _with_log(connection: Any) -> None:
    """Keep a write-ahead log; for that SQLite does not wait while others do the same, so we do."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _reason(error: Exception) -> str:
    """The first line of what a database said."""
    said = str(getattr(error, "orig", None) or error).strip()
    return said.splitlines()[0] if said else type(error).__name__


@cache
def insertion(table: sa.Table) -> sa.TextClause:
    """What adds rows to a table; of texts, spaces and arrows those that are there already stay.

    It is text, since that is ready at once: a run should not wait for its journal.
    """
    names = [column.name for column in table.columns]
    values = ", ".join(f":{name}" for name in names)
    again = " ON CONFLICT DO NOTHING" if table in (texts, spaces, edges) else ""
    return sa.text(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values}){again}")


def next_id(connection: sa.Connection, table: sa.Table) -> int:
    """The least id that is greater than every id given; writers take turns, so it is ours."""
    return int(connection.scalar(sa.text(f"SELECT max(id) FROM {table.name}")) or 0) + 1
