"""Which dataset versions are true ancestors by the history, asked before a trace is planned."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import sqlalchemy as sa

from inverses.ancestry import Ancestry
from pipelines.catalog import nodes
from pipelines.datasets import Dataset, Key
from pipelines.errors import SourceChanged, WhenceError
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
                history = History.as_it_is(workspace)
                known = _known(Ancestry(history), dataset) if history else None
        return cls(dataset, known)

    def checked(self, found: Kept) -> Kept:
        """A version from the workspace, if it is still what the dataset was made from."""
        if self.known is not None and _mark(found) not in self.known.get(found.key, set()):
            raise SourceChanged(
                f'"{found.name}" {found.version} is not what "{self.of.name}" {self.of.version} '
                "was made from: it was made again since; run again"
            )
        return found


def _known(ancestry: Ancestry, dataset: Dataset) -> dict[Key, set[str]] | None:
    """By name and version, what tells each ancestor from others so called."""
    assert dataset.made is not None
    same = (nodes.c.namespace == ancestry.history.namespace) & (nodes.c.kind == DATASET)
    same &= (nodes.c.name == dataset.name) & (nodes.c.version == dataset.version)
    same &= nodes.c.run == dataset.made.run
    with ancestry.catalog.reading() as connection:
        node = connection.scalar(sa.select(sa.func.max(nodes.c.id)).where(same))
    if node is None:
        return None
    found: dict[Key, set[str]] = {}
    for name, version, mark in ancestry.marks(node):
        found.setdefault((name, version), set()).add(mark)
    return found


def _mark(dataset: Dataset) -> str:
    """The run that made a version, or what a source held."""
    return dataset.made.run if dataset.made else content(dataset)
