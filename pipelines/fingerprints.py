"""Fingerprints: what a file or a directory of files was, to notice when it is no longer that."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import xxhash

from pipelines.datasets import Dataset

WHOLE_CHECKSUM = 256 * 2**20
PIECE = 2**18


def fingerprint(path: Path) -> dict[str, Any]:
    """What is at a path: its size, its times and, unless it is very large, its checksum."""
    size, times = _outside(path)
    checksum = _checksum(path) if size <= WHOLE_CHECKSUM else None
    return {"size": size, "times": times, "checksum": checksum, "newest": _newest(path)}


def content(dataset: Dataset) -> str:
    """What a dataset holds, in one sum: of its content, or of names and times if it is large."""
    known = dataset.origin or fingerprint(Path(dataset.path))
    return str(known["checksum"] or known["times"])


def unchanged(path: Path, known: Mapping[str, Any], parts: Iterable[Path] = ()) -> bool:
    """Whether a path still holds what it held; its content is read only if something happened.

    Where only some files below it matter, nothing else is looked at while those rest.
    """
    if all(_rests(path, p, known["newest"]) for p in parts or (path,)):
        return True
    size, times = _outside(path)
    if known["checksum"] is None:
        return bool(times == known["times"])
    return bool(size == known["size"] and _checksum(path) == known["checksum"])


def _newest(path: Path) -> int:
    """When something last happened to any file or directory: a time that nobody can set back."""
    files = [str(file) for _, file in _files(path)]
    folders = [folder for folder, _, _ in os.walk(path, followlinks=True)]
    return max(os.stat(p).st_ctime_ns for p in (*files, *folders))


def _rests(root: Path, part: Path, since: int) -> bool:
    """Whether nothing happened to a file, absent or not, nor to the directories down to it."""
    if part == root:
        return _newest(root) <= since
    down = (part, *part.parents[: len(part.relative_to(root).parts)])
    return all(p.stat().st_ctime_ns <= since for p in down if p.exists())


def _outside(path: Path) -> tuple[int, str]:
    """The size of all files, and their names, sizes and times in one sum."""
    stats = [(name, file.stat()) for name, file in _files(path)]
    listed = json.dumps([(name, s.st_size, s.st_mtime_ns) for name, s in stats])
    return sum(s.st_size for _, s in stats), xxhash.xxh3_128_hexdigest(listed.encode())


def _checksum(path: Path) -> str:
    """The names and contents of all files in one sum, made to notice change at little cost."""
    total, piece = xxhash.xxh3_128(), memoryview(bytearray(PIECE))
    for name, file in _files(path):
        total.update(json.dumps([name, file.stat().st_size]).encode())
        with file.open("rb", buffering=0) as handle:
            while read := handle.readinto(piece):
                total.update(piece[:read])
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
