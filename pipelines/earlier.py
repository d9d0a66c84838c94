"""The journal as earlier versions kept it: a file of JSON lines, read and never written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole entry, oldest first; a line torn by a crash was never acknowledged."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(entry, dict):
                yield entry
