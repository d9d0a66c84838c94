"""Which dataset versions are true ancestors by the history, asked before a trace is planned."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import sqlalchemy as sa

from inverses.ancestry import Ancestry
from pipelines.catalog import nodes
from pipelines.datasets import Dataset, Key
from pipelines.errors import Refused, SourceChanged, WhenceError
from pipelines.fingerprints import content
from pipelines.history import History
from pipelines.run_graph import DATASET
from pipelines.workspace import Workspace

Kept = TypeVar("Kept", bound=Dataset)


@dataclass(frozen=True, slots=True)
class TrueAncestors:
    """What the history knows a dataset was made from; nothing is known if it does not answer."""

    of: Dataset
    known: dict[Key, set[str]] | None

    @classmethod
    def by(cls, workspace: Workspace, dataset: Dataset) -> TrueAncestors:
        """Ask the history, where there is one."""
        known = None
        with suppress(WhenceError):
            if dataset.made and isinstance(workspace, Workspace):
                made = Written(*dataset.key, dataset.made.run)
                known = _known(workspace.path, workspace.catalog, workspace.namespace, made)
        return cls(dataset, known)

    def checked(self, found: Kept) -> Kept:
        """A version from the workspace, if it is still what the dataset was made from."""
        if self.known is not None and mark(found) not in self.known.get(found.key, set()):
            raise SourceChanged(
                f'"{found.name}" {found.version} is not what "{self.of.name}" {self.of.version} '
                "was made from: it was made again since; run again"
            )
        return found


class Written(NamedTuple):
    """What a run made, by which the journal finds it."""

    name: str
    version: str
    run: str


@lru_cache(1024)
def _known(path: Path, catalog: str, namespace: str, made: Written) -> dict[Key, set[str]]:
    """By name and version, what tells each ancestor from others so called.

    What a run was given is written down once and never changed, so it is asked for once.
    """
    history = History.as_it_is(Workspace(path, catalog))
    if history is None:
        raise Refused("there is no journal")
    same = (nodes.c.namespace == history.namespace) & (nodes.c.kind == DATASET)
    same &= (nodes.c.name == made.name) & (nodes.c.version == made.version)
    same &= nodes.c.run == made.run
    with history.catalog.reading() as connection:
        node = connection.scalar(sa.select(sa.func.max(nodes.c.id)).where(same))
    if node is None:
        raise Refused(f'the journal does not know "{made.name}" {made.version}')
    found: dict[Key, set[str]] = {}
    for name, version, mark in Ancestry(history).marks(node):
        found.setdefault((name, version), set()).add(mark)
    return found


def mark(dataset: Dataset) -> str:
    """The run that made a version, or what a source held."""
    return dataset.made.run if dataset.made else content(dataset)
