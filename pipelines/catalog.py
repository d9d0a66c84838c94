"""The catalog: one database of runs, of what they used and of what they made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from pipelines.databases import engine_at, say
from pipelines.errors import Failed, Refused

MEMORY = "sqlite://"
WRITERS = 0x57484E43  # the one lock that writers of a catalog in PostgreSQL take turns by
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
HAS_TABLES = {
    "sqlite": f"SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{catalog.name}'",
    "postgresql": f"SELECT 1 WHERE to_regclass('{catalog.name}') IS NOT NULL",
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
        if say(connection, HAS_TABLES[connection.dialect.name]).first() is None:
            return 0
        newest = connection.exec_driver_sql(f"SELECT max(version) FROM {catalog.name}")
        found = int(newest.scalar() or 0)
        if found > VERSION:
            raise Refused(
                f'the catalog at "{self.place}" has version {found}, this Whence knows versions '
                f"up to {VERSION}; ask with the one that made it"
            )
        return found


def _reason(error: Exception) -> str:
    """The first line of what a database said."""
    said = str(getattr(error, "orig", None) or error).strip()
    return said.splitlines()[0] if said else type(error).__name__


def add(connection: sa.Connection, table: sa.Table, rows: Any) -> None:
    """Add one row or several; of texts, spaces and arrows those that are there already stay."""
    say(connection, _insertion(table), rows)


@cache
def _insertion(table: sa.Table) -> str:
    names = [column.name for column in table.columns]
    values = ", ".join(f":{name}" for name in names)
    again = " ON CONFLICT DO NOTHING" if table in (texts, spaces, edges) else ""
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values}){again}"


def next_id(connection: sa.Connection, table: sa.Table) -> int:
    """The least id that is greater than every id given; writers take turns, so it is ours."""
    return int(say(connection, f"SELECT max(id) FROM {table.name}").scalar() or 0) + 1
