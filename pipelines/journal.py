"""The rows of the journal: added one by one, and never changed."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

import sqlalchemy as sa

from pipelines.catalog import add, ends, next_id, runs, spaces, texts

FINISHED, FAILED, INTERRUPTED, RUNNING = "finished", "failed", "interrupted", "running"
HERE = "whence:here"  # the namespace of a workspace that has none of its own yet


def about_now(pipeline: str, spark: Mapping[str, str], part: str = "") -> dict[str, str]:
    """What is said of a run that starts now."""
    on = {"master": spark["master"], "spark": spark["version"], "whence": _version()}
    what = {"pipeline": pipeline, "part": part}
    return {**what, "at": now(), "who": _user(), "host": _host(), **on}


def add_run(
    connection: sa.Connection, namespace: str, run: str, text: str, about: Mapping[str, str]
) -> None:
    """A run that has started."""
    hashed = hashlib.sha256(text.encode()).hexdigest()
    add(connection, texts, {"hash": hashed, "text": text})
    row = {"id": next_id(connection, runs), "run": run, "namespace": namespace, "hash": hashed}
    add(connection, runs, {**row, **about})


def add_end(
    connection: sa.Connection,
    run: str,
    how: str,
    why: str = "",
    seconds: float | None = None,
    at: str | None = None,
) -> None:
    """How a run ended."""
    end = {"run": run, "how": how, "why": why, "at": now() if at is None else at}
    add(connection, ends, {**end, "seconds": seconds})


def add_space(connection: sa.Connection, namespace: str, path: Path) -> None:
    """Where a workspace lies whose datasets have this namespace, unless that is known."""
    row = {"namespace": namespace, "host": _host(), "path": _shown(path)}
    add(connection, spaces, row)


def now() -> str:
    """This moment, in letters that sort by time."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def lock_of(workspace: Path, run: str) -> Path:
    """The file that is locked while a run is under way."""
    return workspace / "running" / f"{run}.lock"


def _shown(path: Path) -> str:
    """A path as text, whatever bytes it is made of."""
    return os.fsencode(path).decode("utf-8", "replace")


@cache
def _version() -> str:
    return version("whence")


def _host() -> str:
    return socket.gethostname()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
