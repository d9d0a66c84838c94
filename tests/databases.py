"""Real databases for tests: a file of SQLite, and a PostgreSQL that is started when asked for."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.postgres import postgresql

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL of our own."""
    with postgresql() as url:
        yield url


def own_schema(postgres: str) -> str:
    """The address of a database in which nobody else's tables are seen."""
    schema = f"t{uuid.uuid4().hex[:12]}"
    engine = sa.create_engine(postgres)
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE SCHEMA {schema}"))
    engine.dispose()
    return f"{postgres}&options=-csearch_path%3D{schema}"


@pytest.fixture(params=DATABASES)
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shared.sqlite'}"
    return own_schema(request.getfixturevalue("postgres"))
