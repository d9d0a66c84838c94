"""Fingerprints: what a file or a directory of files was, to notice when it is no longer that."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

WHOLE_CHECKSUM = 256 * 2**20


def fingerprint(path: Path) -> dict[str, Any]:
    """What is at a path: its size, its times and, unless it is very large, its checksum."""
    size, times = _outside(path)
    checksum = _checksum(path) if size <= WHOLE_CHECKSUM else None
    return {"size": size, "times": times, "checksum": checksum}


def unchanged(path: Path, known: Mapping[str, Any]) -> bool:
    """Whether a path still holds what it held; its content is read only if its times differ."""
    size, times = _outside(path)
    if times == known["times"]:
        return True
    same_size = known["checksum"] is not None and size == known["size"]
    return same_size and _checksum(path) == known["checksum"]


def _outside(path: Path) -> tuple[int, str]:
    """The size of all files, and their names, sizes and times in one sum."""
    stats = [(name, file.stat()) for name, file in _files(path)]
    listed = json.dumps([(name, s.st_size, s.st_mtime_ns) for name, s in stats])
    return sum(s.st_size for _, s in stats), hashlib.sha256(listed.encode()).hexdigest()


def _checksum(path: Path) -> str:
    """The names and contents of all files in one sum."""
    total = hashlib.sha256()
    for name, file in _files(path):
        with file.open("rb") as handle:
            content = hashlib.file_digest(handle, "sha256").hexdigest()
        total.update(json.dumps([name, content]).encode())
    return total.hexdigest()


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    """Every file below a path, through links too, with its name there and in a fixed order."""
    if not path.is_dir():
        yield "", path
        return
    for folder, folders, files in os.walk(path, followlinks=True):
        folders.sort()
        for file in sorted(files):
            whole = os.path.join(folder, file)
            yield whole.removeprefix(str(path)), Path(whole)
