"""What was done: an append-only journal of runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def append(path: Path, entry: dict[str, Any]) -> None:
    """Add one entry; once this returns it survives a crash."""
    line = json.dumps({"at": datetime.now(UTC).isoformat(), **entry}, default=str) + "\n"
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, line.encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole entry, oldest first; a line torn by a crash was never acknowledged."""
    if not path.exists():
        return
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue
