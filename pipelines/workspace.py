"""A workspace: a directory of dataset versions, each published whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from pipelines.datasets import Array, Dataset, Table, from_json, to_json
from pipelines.errors import Failed, Refused, unknown

FORMAT = 1


class Workspace:
    """The datasets that runs have published, and the journal of those runs.

    `Workspace(path)` opens one that exists; `Workspace.create(path)` makes it if need be.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).resolve()
        found = _format(self.path)
        if found is None:
            raise Refused(f'no workspace at "{path}"; make one with: whence run')
        if found != FORMAT:
            raise Refused(
                f'the workspace at "{path}" has format {found}, this Whence reads format {FORMAT}; '
                "open it with the version that made it"
            )

    @classmethod
    def create(cls, path: Path | str) -> Workspace:
        """The workspace at a path, made if it is not there yet."""
        root = Path(path)
        if _format(root) is None:
            if root.exists() and (not root.is_dir() or any(root.iterdir())):
                raise Refused(f'"{path}" exists and is not a workspace; name another directory')
            (root / "datasets").mkdir(parents=True, exist_ok=True)
            _write_whole(root / "whence.json", json.dumps({"format": FORMAT}))
        return cls(root)

    @property
    def journal(self) -> Path:
        return self.path / "history.jsonl"

    def names(self) -> list[str]:
        """The names of all datasets."""
        return sorted(p.parent.name for p in self.path.glob("datasets/*/current"))

    def datasets(self) -> list[Table | Array]:
        """The current version of every dataset."""
        return [self.dataset(name) for name in self.names()]

    def dataset(self, name: str, version: str | None = None) -> Table | Array:
        """One dataset, in its current version or the one named."""
        names = self.names()
        if name not in names:
            raise unknown("dataset", name, names, "in this workspace")
        home = self.path / "datasets" / name
        home = home / (version or (home / "current").read_text().strip())
        try:
            found = from_json(json.loads((home / "dataset.json").read_text()))
        except (OSError, ValueError, KeyError, TypeError):
            raise Failed(f'version "{home.name}" of "{name}" is damaged; run again') from None
        return replace(found, path=str(home / found.path))

    @contextmanager
    def staged(self, name: str) -> Iterator[Path]:
        """A directory to write a version into; gone afterwards unless it was published."""
        self._sweep()
        stage = self.path / "staging" / f"{os.getpid()}-{name}-{uuid.uuid4().hex[:8]}"
        stage.mkdir(parents=True)
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)

    def publish(self, stage: Path, dataset: Dataset) -> Table | Array:
        """Make a staged version the current one: whole, on disk, and never half seen."""
        home = self.path / "datasets" / dataset.name
        home.mkdir(parents=True, exist_ok=True)
        version = self._moved(stage, home, dataset)
        _write_whole(home / "current", version)
        return self.dataset(dataset.name, version)

    def _moved(self, stage: Path, home: Path, dataset: Dataset) -> str:
        """Move a staged version to the next free number, which another run may take first."""
        taken = [int(p.name[1:]) for p in home.glob("v*") if p.name[1:].isdigit()]
        for number in count(max(taken, default=0) + 1):
            plain = to_json(replace(dataset, version=f"v{number}"))
            (stage / "dataset.json").write_text(json.dumps(plain))
            _sync_tree(stage)
            try:
                stage.rename(home / f"v{number}")
            except OSError:
                if not (home / f"v{number}").exists():
                    raise
                continue
            _sync(home)
            return f"v{number}"
        raise AssertionError("numbers do not end")

    def _sweep(self) -> None:
        """Remove what runs that died left behind."""
        for left in self.path.glob("staging/*"):
            if not _alive(left.name.split("-")[0]):
                shutil.rmtree(left, ignore_errors=True)


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, PermissionError):
        return True
    return True


def _format(path: Path) -> Any:
    """The format a directory says it has; None if it is no workspace."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return json.loads((path / "whence.json").read_text())["format"]
    return None


def _write_whole(path: Path, text: str) -> None:
    """Replace a small file so that readers see the old text or the new, never less."""
    partial = path.with_name(f".{path.name}-{uuid.uuid4().hex[:8]}")
    partial.write_text(text)
    _sync(partial)
    partial.replace(path)
    _sync(path.parent)


def _sync_tree(root: Path) -> None:
    for folder, _, files in os.walk(root):
        for file in files:
            _sync(Path(folder) / file)
        _sync(Path(folder))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
