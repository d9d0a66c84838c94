"""A workspace: a directory of dataset versions, each published whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from pipelines.datasets import Array, Dataset, Table, from_json, to_json
from pipelines.disk import alone, is_free, locked, opened, sync, sync_tree, write_whole
from pipelines.errors import Failed, Refused, WhenceError, unknown

FORMAT = 1
CATALOG = "WHENCE_CATALOG"
VERSION = re.compile(r"v([1-9][0-9]*)")


class Workspace:
    """The datasets that runs have published, and where the journal of those runs is kept.

    `Workspace(path)` opens one that exists; `Workspace.create(path)` makes it if need be. The
    catalog with the journal is in it, unless another one is given.
    """

    def __init__(self, path: Path | str, catalog: str | None = None) -> None:
        self.path = Path(path).resolve()
        self._catalog = catalog or os.environ.get(CATALOG)
        found = _format(self.path)
        if found is None:
            raise Refused(
                f'no workspace at "{path}"{_instead(self.path)}; name one with -w DIR, or make it '
                "with: whence run PIPELINE.yaml -w DIR"
            )
        if found != FORMAT:
            raise Refused(
                f'the workspace at "{path}" has format {found!r:.20}, this Whence reads format '
                f"{FORMAT}; open it with the version that made it"
            )

    @classmethod
    def create(cls, path: Path | str, catalog: str | None = None) -> Workspace:
        """The workspace at a path, made if it is not there yet."""
        cls.check_place(path)
        root = Path(path)
        if _format(root) is None:
            try:
                (root / "datasets").mkdir(parents=True, exist_ok=True)
                write_whole(root / "whence.json", json.dumps({"format": FORMAT}))
            except OSError as error:
                raise Failed(f'cannot make a workspace at "{path}": {error.strerror}') from None
        return cls(root, catalog)

    @classmethod
    def check_place(cls, path: Path | str) -> None:
        """Refuse a path at which no workspace is and none can be made."""
        root = Path(path)
        # Looked at before its format is: another process may be making this very workspace.
        taken = root.exists() and not _is_ours_to_make(root)
        if _format(root) is not None:
            cls(root)
        elif taken:
            raise Refused(f'"{path}" exists and is not a workspace; name another with -w DIR')

    @classmethod
    def holding(cls, dataset: Dataset) -> Workspace | None:
        """The workspace that a version was published in; none for a file from outside."""
        above = Path(dataset.path).parents
        for root in above:
            if root / "datasets" / dataset.name / dataset.version in above and _format(root):
                return cls(root)
        return None

    @property
    def own_catalog(self) -> Path:
        """Where the catalog is if no other one is given."""
        return self.path / "catalog.sqlite"

    @property
    def keeps_own_catalog(self) -> bool:
        return self.catalog == f"sqlite:///{self.own_catalog}"

    @property
    def catalog(self) -> str:
        """The address of the catalog: the one given, or else our own.

        A workspace that was handed over may not choose whom we connect to: the address of
        another catalog is remembered to be told, not to be followed.
        """
        elsewhere = _about(self.path).get("catalog")
        if not self._catalog and elsewhere:
            raise Refused(
                f'the history of this workspace is kept in the catalog "{elsewhere!s:.200}"; '
                f"name it with --catalog, or in {CATALOG}"
            )
        return self._catalog or f"sqlite:///{self.own_catalog}"

    @property
    def namespace(self) -> str:
        """What tells our datasets from those of others in one catalog; "" before it is written."""
        return str(_about(self.path).get("namespace") or "")

    def settled(self, elsewhere: str | None = None) -> str:
        """Our namespace, given now if need be; a catalog that is not our own is noted."""
        with locked(self.path / "datasets" / ".lock"):
            known = _about(self.path)
            about = {"namespace": f"whence:{uuid.uuid4().hex[:12]}", **known}
            about |= {"catalog": elsewhere} if elsewhere else {}
            if about != known:
                write_whole(self.path / "whence.json", json.dumps(about))
        return str(about["namespace"])

    def names(self) -> list[str]:
        """The names of all datasets."""
        return sorted(p.parent.name for p in self.path.glob("datasets/*/current"))

    def datasets(self) -> list[Table | Array]:
        """The current version of every dataset."""
        return [self.dataset(name) for name in self.names()]

    def versions(self, name: str) -> list[str]:
        """The versions of a dataset that are there, oldest first."""
        return _versions(self.path / "datasets" / name)

    def dataset(self, name: str, version: str | None = None) -> Table | Array:
        """One dataset, in its current version or the one named."""
        names = self.names()
        if name not in names:
            raise unknown("dataset", name, names, "in this workspace")
        home = self.path / "datasets" / name
        version = version or _current(home)
        if version not in _versions(home):
            raise unknown("version", version, _versions(home), f'of "{name}"')
        try:
            found = from_json(json.loads((home / version / "dataset.json").read_text()))
            data = home / version / found.path
            inside = Path(found.path).is_absolute() or data.resolve().is_relative_to(self.path)
            whole = inside and (found.name, found.version) == (name, version)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            whole = False
        if not whole:
            raise Failed(f'version "{version}" of "{name}" is damaged; run again')
        return replace(found, path=str(data))

    def named(self, source: Dataset) -> Table | Array:
        """A source as it is called here; its file stays where it is."""
        # A damaged version is told to "run again", so it may not keep us from it.
        with suppress(WhenceError):
            known = self.dataset(source.name)
            if _told(replace(known, version="")) == _told(source):
                return known
        with self.staged(source.name) as stage:
            return self.publish(stage, source)

    @contextmanager
    def staged(self, name: str) -> Iterator[Path]:
        """A directory to write a version into; gone afterwards unless it was published."""
        staging = self.path / "staging"
        staging.mkdir(exist_ok=True)
        stage = staging / f"{name[:40]}-{uuid.uuid4().hex[:12]}"
        lock = staging / f".{stage.name}.lock"
        with locked(staging / ".lock"):
            _sweep(staging)
            stage.mkdir()
            handle = opened(lock)
            alone(handle)
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)
            lock.unlink(missing_ok=True)
            os.close(handle)

    def publish(self, stage: Path, dataset: Dataset) -> Table | Array:
        """Make a staged version the current one: whole, on disk, and never half seen."""
        home = self.path / "datasets" / dataset.name
        home.mkdir(parents=True, exist_ok=True)
        sync_tree(stage)
        with locked(home / ".lock"):
            for left in home.glob(".current-*"):
                left.unlink(missing_ok=True)
            version = _moved(stage, home, dataset)
            write_whole(home / "current", version)
        sync(home.parent)
        return self.dataset(dataset.name, version)


def _told(dataset: Dataset) -> str:
    """A dataset in words, by which one that was read again equals itself."""
    return json.dumps(to_json(dataset))


def _current(home: Path) -> str:
    """The version that a dataset's pointer names."""
    with suppress(OSError, ValueError):
        version = (home / "current").read_text().strip()
        if version in _versions(home):
            return version
    raise Failed(f'"{home.name}" does not say which version is current; run again')


def _versions(home: Path) -> list[str]:
    """The versions of a dataset, oldest first."""
    found = [p.name for p in home.iterdir() if VERSION.fullmatch(p.name)]
    return sorted(found, key=lambda version: int(version[1:]))


def _moved(stage: Path, home: Path, dataset: Dataset) -> str:
    """Move a staged version to the next free number.

    Its number is free, since we hold the lock; where files cannot be locked another run may take
    it first, and then the next one is tried.
    """
    taken = [int(v[1:]) for v in _versions(home)]
    for number in count(max(taken, default=0) + 1):
        version = home / f"v{number}"
        plain = to_json(replace(dataset, version=version.name))
        (stage / "dataset.json").write_text(json.dumps(plain))
        sync(stage / "dataset.json")
        sync(stage)
        try:
            stage.rename(version)
        except OSError:
            if not version.exists():
                raise
            continue
        sync(home)
        return version.name
    raise AssertionError("numbers do not end")


def _sweep(staging: Path) -> None:
    """Remove what runs that died left behind: their locks went with them."""
    for left in staging.iterdir():
        if left.is_dir():
            lock = staging / f".{left.name}.lock"
            if not lock.exists() or is_free(lock):
                shutil.rmtree(left, ignore_errors=True)
    for lock in staging.glob(".*-*.lock"):
        if not (staging / lock.name[1:].removesuffix(".lock")).exists():
            lock.unlink(missing_ok=True)


def _about(path: Path) -> dict[str, Any]:
    """What a directory says of itself as a workspace; nothing if it is none."""
    with suppress(OSError, ValueError, RecursionError):
        said = json.loads((path / "whence.json").read_text())
        return said if isinstance(said, dict) else {}
    return {}


def _format(path: Path) -> Any:
    """The format a directory says it has; None if it is no workspace."""
    return _about(path).get("format")


def _instead(path: Path) -> str:
    """What is where a workspace should be."""
    if not path.exists():
        return ""
    return " (it is a directory, but not one)" if path.is_dir() else " (it is a file)"


def _is_ours_to_make(root: Path) -> bool:
    """Whether a directory is empty, or holds no more than a workspace that was never finished."""
    if not root.is_dir():
        return False
    return all(p.name == "datasets" or p.name.startswith(".whence.json-") for p in root.iterdir())
