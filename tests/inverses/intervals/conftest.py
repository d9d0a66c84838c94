"""An empty catalog of nodes and edges, in SQLite and in a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from tests.inverses.intervals.catalog import Catalog
from tests.postgres import postgresql

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a PostgreSQL of our own."""
    with postgresql() as url:
        yield url


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An empty database of either kind."""
    if request.param == "sqlite":
        made = create_engine(f"sqlite:///{tmp_path / 'catalog.db'}")
    else:
        made = create_engine(request.getfixturevalue("server"))
        with made.begin() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
    yield made
    made.dispose()


@pytest.fixture
def catalog(engine: Engine) -> Catalog:
    """A catalog without nodes."""
    return Catalog.create(engine)
