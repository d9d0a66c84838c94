"""What was done: an append-only journal of runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipelines.workspace import alone, sync


def append(path: Path, entry: dict[str, Any]) -> None:
    """Add one entry; once this returns it survives a crash."""
    line = json.dumps({"at": datetime.now(UTC).isoformat(), **entry}, default=str) + "\n"
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        alone(handle)
        _write(handle, _after_torn(handle) + line.encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    sync(path.parent)


def _after_torn(handle: int) -> bytes:
    """What ends a line that a crash left without an end, so that it tears no other."""
    size = os.fstat(handle).st_size
    return b"" if size == 0 or os.pread(handle, 1, size - 1) == b"\n" else b"\n"


def _write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole entry, oldest first; a line torn by a crash was never acknowledged."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry


def text_of(path: Path, run: str) -> str | None:
    """The text of the pipeline that a run carried out, if the journal has it."""
    for entry in entries(path):
        if entry.get("event") == "started" and entry.get("run") == run:
            return str(entry["text"]) if entry.get("text") else None
    return None
