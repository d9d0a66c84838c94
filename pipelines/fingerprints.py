"""Fingerprints: what a file or a directory of files was, to notice when it is no longer that."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from pipelines.datasets import Dataset

WHOLE_CHECKSUM = 64 * 2**20  # to sum more would take a run more than a hundredth longer
PIECE = 2**18


def fingerprint(path: Path) -> dict[str, Any]:
    """What is at a path: its size, its times and, unless it is very large, its checksum."""
    return summed(path, seen(path))


def seen(path: Path) -> dict[str, Any]:
    """What is at a path as far as its size and its times tell."""
    return {**_outside(path)._asdict(), "checksum": None}


def summed(path: Path, known: Mapping[str, Any]) -> dict[str, Any]:
    """What was seen at a path, with its checksum unless it is very large."""
    return {**known, "checksum": sum_at(path) if known["size"] <= WHOLE_CHECKSUM else None}


def rests(path: Path, known: Mapping[str, Any]) -> bool:
    """Whether nothing has happened to what is at a path since it was seen."""
    return _rests(path, path, known["newest"])


def content(dataset: Dataset) -> str:
    """What a dataset holds, in one sum.

    What a run has made was summed while it was written, a table file by file; of a source it is
    its content, or names and times if it is large.
    """
    if dataset.checksum:
        return dataset.checksum
    known = dataset.origin or fingerprint(Path(dataset.path))
    return str(known["checksum"] or known["times"])


def sum_of(parts: Any) -> str:
    """One sum of some plain data.

    >>> sum_of({"a": np.arange(9999)}) == sum_of({"a": np.arange(9999) // 5000 * 5000})
    False
    """
    told = json.dumps(parts, default=_plain, sort_keys=True)
    return xxhash.xxh3_128_hexdigest(told.encode())


def _plain(value: Any) -> Any:
    """An attribute of a file as JSON can hold it, whole."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def sum_of_values(named: Mapping[str, NDArray[Any]]) -> str:
    """One sum of some arrays with their names, shapes and kinds of values.

    >>> one, other = np.zeros(3), np.array([0.0, 0.0, -0.0])
    >>> sum_of_values({"a": one}) == sum_of_values({"a": one.copy()}) != sum_of_values({"a": other})
    True
    """
    total = xxhash.xxh3_128()
    for name, values in sorted(named.items()):
        total.update(json.dumps([name, values.shape, values.dtype.str]).encode())
        # Dates of unusual calendars are objects, whose bytes say only where they lie.
        plain = values.astype(str) if values.dtype.kind == "O" else values
        total.update(np.ascontiguousarray(plain).view(np.uint8).data)
    return total.hexdigest()


def unchanged(path: Path, known: Mapping[str, Any], parts: Iterable[Path] = ()) -> bool:
    """Whether a path still holds what it held; its content is read only if something happened.

    Where only some files below it matter, nothing else is looked at while those rest.
    """
    if all(_rests(path, p, known["newest"]) for p in parts or (path,)):
        return True
    found = _outside(path)
    if known["checksum"] is None:
        return bool(found.times == known["times"])
    return bool(found.size == known["size"] and sum_at(path) == known["checksum"])


def _rests(root: Path, part: Path, since: int) -> bool:
    """Whether nothing happened to a file, absent or not, nor to the directories down to it."""
    if part == root:
        return _outside(root).newest <= since
    down = (part, *part.parents[: len(part.relative_to(root).parts)])
    return all(p.stat().st_ctime_ns <= since for p in down if p.exists())


class Outside(NamedTuple):
    """The size of all files; their names, sizes and times in one sum; and when something last
    happened to any file or directory, a time that nobody can set back.
    """

    size: int
    times: str
    newest: int


def _outside(path: Path) -> Outside:
    files, folders = _below(path)
    listed = json.dumps([(f.name, f.size, f.modified) for f in files])
    times = xxhash.xxh3_128_hexdigest(listed.encode())
    return Outside(sum(f.size for f in files), times, max(f.happened for f in files + folders))


def sum_at(path: Path) -> str:
    """The names and contents of all files in one sum, made to notice change at little cost."""
    total, piece = xxhash.xxh3_128(), memoryview(bytearray(PIECE))
    for file in _below(path)[0]:
        total.update(json.dumps([file.name, file.size]).encode())
        with open(f"{path}{file.name}", "rb", buffering=0) as handle:
            while read := handle.readinto(piece):
                total.update(piece[:read])
    return total.hexdigest()


class Entry(NamedTuple):
    """A file or a folder below a path: its name there, its size, when it was modified, and when
    anything happened to it.
    """

    name: str
    size: int
    modified: int
    happened: int


def _entry(name: str, stat: os.stat_result) -> Entry:
    return Entry(name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


def _below(path: Path) -> tuple[list[Entry], list[Entry]]:
    """All files and all folders from a path down, through links too, in a fixed order."""
    first = _entry("", os.stat(path))
    if not path.is_dir():
        return [first], []
    files: list[Entry] = []
    folders: list[Entry] = []
    waiting = [first]
    while waiting:
        folders.append(folder := waiting.pop())
        inside: dict[bool, list[Entry]] = {True: [], False: []}
        with os.scandir(f"{path}{folder.name}") as found:
            for each in found:
                inside[each.is_dir()].append(_entry(f"{folder.name}/{each.name}", each.stat()))
        files += sorted(inside[False])
        waiting += sorted(inside[True], reverse=True)
    return files, folders
