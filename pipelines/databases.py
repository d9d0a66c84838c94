"""The databases that a catalog may be in: how each is reached, and how it is spoken to."""

from __future__ import annotations

import logging
import re
import sqlite3
import time
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool, QueuePool, StaticPool

from pipelines.errors import Refused

DRIVERS = ("sqlite", "sqlite+pysqlite", "postgresql+psycopg")
PATIENCE = 30  # seconds to wait for another writer, or for a server to answer


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


def say(
    connection: sa.Connection, statement: str, values: Any = None
) -> sa.CursorResult[*tuple[Any, ...]]:
    """Ask a database in SQL, in which the names of values stand after a colon.

    It is handed on as it is: to compile what every run asks would keep the run waiting.
    """
    return connection.exec_driver_sql(_worded(statement, connection.dialect.name), values)


@cache
def _worded(statement: str, database: str) -> str:
    """A statement with the names of values as the driver of a database marks them.

    >>> _worded("SELECT id FROM runs WHERE run = :run", "postgresql")
    'SELECT id FROM runs WHERE run = %(run)s'
    """
    return re.sub(r":(\w+)", r"%(\1)s", statement) if database == "postgresql" else statement
