"""Seeing things onto the disk whole, and locks that end with the process that holds them."""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Do something while no other process does it."""
    handle = opened(path)
    try:
        alone(handle)
        yield
    finally:
        os.close(handle)


def opened(path: Path) -> int:
    """A file to lock, made if it is not there."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)


def alone(handle: int) -> None:
    """Wait until nobody else holds this file; where files cannot be locked, go on."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)


def is_free(lock: Path) -> bool:
    """Whether the process that held a lock is gone."""
    handle = opened(lock)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def write_whole(path: Path, text: str) -> None:
    """Replace a small file so that readers see the old text or the new, never less."""
    partial = path.with_name(f".{path.name}-{uuid.uuid4().hex[:8]}")
    try:
        partial.write_text(text, encoding="utf-8")
        sync(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    sync(path.parent)


def sync_tree(root: Path) -> None:
    """See everything below a directory onto the disk."""
    for folder, _, files in os.walk(root):
        for file in files:
            sync(Path(folder) / file)
        sync(Path(folder))


def sync(path: Path) -> None:
    """See a file, or the names in a directory, onto the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
