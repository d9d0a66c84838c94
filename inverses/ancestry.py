"""Ancestry: what whole datasets were made from and with, and what was made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from inverses.intervals.index import Index
from inverses.intervals.queries import EVERY
from inverses.meant import check_parameter, meant
from pipelines.catalog import edges, nodes, params
from pipelines.datasets import Key
from pipelines.history import History
from pipelines.run_graph import DATASET, TASK, plain
from pipelines.workspace import Workspace

Reached = Callable[..., sa.Select[Any]]
Counted = Callable[[int, str], int]


@dataclass(frozen=True, slots=True)
class Relative:
    """A dataset version or a task, as an answer names it."""

    id: int
    name: str
    version: str
    kind: str
    namespace: str
    run: str

    @property
    def key(self) -> Key:
        return self.name, self.version


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which relatives are of interest: of which kinds, and of which name.

    In a name `*` stands for any letters, and it does not matter which are capitals.
    """

    kinds: tuple[str, ...] = (DATASET,)
    name: str = ""

    @property
    def kind(self) -> str:
        """The one kind that is wanted, or every one."""
        return EVERY if {*self.kinds} == {DATASET, TASK} else self.kinds[0]

    @property
    def condition(self) -> sa.ColumnElement[bool]:
        kept = nodes.c.kind.in_(self.kinds)
        if not self.name:
            return kept
        escaped = self.name.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
        return kept & nodes.c.name.ilike(escaped.replace("*", "%"), escape="\\")


DATASETS = Wanted()


class Ancestry:
    """Answers from the journal; datasets are named like `tracks` (the newest) or `tracks@v2`."""

    def __init__(self, history: History) -> None:
        self.history, self.catalog = history, history.catalog
        with self.catalog.spoken():
            self.index = Index(history.catalog.engine)

    @classmethod
    def of(cls, workspace: Workspace) -> Ancestry:
        """The ancestry of what a workspace and its catalog hold."""
        return cls(History.asked_of(workspace))

    def find(self, named: str) -> Relative:
        """The dataset that a name means, in its newest version unless one is named."""
        return self._meant(named)[0]

    def ancestors(self, named: str, wanted: Wanted = DATASETS) -> list[Relative]:
        """All that a dataset was made from."""
        return self._relatives(self.index.ancestors_of, [self.find(named).id], wanted)

    def descendants(self, named: str, wanted: Wanted = DATASETS) -> list[Relative]:
        """All that was made from a dataset."""
        return self._relatives(self.index.descendants_of, [self.find(named).id], wanted)

    def count_ancestors(self, named: str, wanted: Wanted = DATASETS) -> int:
        """How many there are, without listing them."""
        roots, index = [self.find(named).id], self.index
        return self._count(index.ancestors_of, roots, wanted, index.count_ancestors)

    def count_descendants(self, named: str, wanted: Wanted = DATASETS) -> int:
        """How many there are, without listing them."""
        roots, index = [self.find(named).id], self.index
        return self._count(index.descendants_of, roots, wanted, index.count_descendants)

    def is_ancestor(self, first: str, last: str) -> bool:
        """Whether one dataset was used, at whatever remove, to make the other."""
        with self.catalog.spoken():
            return self.index.is_ancestor(self.find(first).id, self.find(last).id)

    def affected_by(self, *named: str, wanted: Wanted = DATASETS) -> list[Relative]:
        """All that was made from some datasets, from every version of those named without one."""
        return self._relatives(self.index.descendants_of, self._versions(named), wanted)

    def count_affected(self, *named: str, wanted: Wanted = DATASETS) -> int:
        """How many there are, without listing them."""
        roots, index = self._versions(named), self.index
        return self._count(index.descendants_of, roots, wanted, index.count_descendants)

    def made_with(
        self,
        box: str,
        given: Mapping[str, Any] | None = None,
        wanted: Wanted = DATASETS,
        directly: bool = False,
    ) -> list[Relative]:
        """All in whose making a box took part, in one version (`box@2`) or any, so parametrised."""
        reached = self._outputs_of if directly else self.index.descendants_of
        return self._relatives(reached, self._tasks(box, given or {}), wanted)

    def count_made_with(
        self,
        box: str,
        given: Mapping[str, Any] | None = None,
        wanted: Wanted = DATASETS,
        directly: bool = False,
    ) -> int:
        """How many there are, without listing them."""
        roots, index = self._tasks(box, given or {}), self.index
        if directly:
            return self._count(self._outputs_of, roots, wanted)
        return self._count(index.descendants_of, roots, wanted, index.count_descendants)

    def marks(self, node: int) -> list[tuple[str, str, str]]:
        """The datasets behind a node, each with the run that made it, or with what it held."""
        kept = self._kept(self.index.ancestors_of, [node], DATASETS).subquery()
        with self.catalog.reading() as connection:
            rows = connection.execute(sa.select(kept.c.name, kept.c.version, _mark(kept)))
            return [(name, version, str(told)) for name, version, told in rows]

    def marked(self, key: Key, mark: str) -> list[int]:
        """The nodes of a version that a run made, or that held what the mark says."""
        name, version = key
        same = (nodes.c.namespace == self.history.namespace) & (nodes.c.kind == DATASET)
        same &= (nodes.c.name == name) & (nodes.c.version == version) & (_mark(nodes) == mark)
        with self.catalog.reading() as connection:
            return list(connection.scalars(sa.select(nodes.c.id).where(same)))

    def made_of(self, some: Sequence[int]) -> list[Relative]:
        """The datasets that were made from some nodes."""
        return self._relatives(self.index.descendants_of, some, DATASETS)

    def used(self, node: int) -> list[Relative]:
        """What a node was made from directly."""
        rows = sa.select(nodes).join(edges, edges.c.source == nodes.c.id)
        with self.catalog.reading() as connection:
            found = connection.execute(rows.where(edges.c.target == node).order_by(nodes.c.id))
            return [_relative(row) for row in found]

    def behind(self, some: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """The numbers of what each of some nodes was made from directly."""
        found: dict[int, tuple[int, ...]] = dict.fromkeys(some, ())
        arrows = sa.select(edges).where(edges.c.target.in_(some)).order_by(edges.c.source)
        with self.catalog.reading() as connection:
            for source, target in connection.execute(arrows):
                found[target] = (*found[target], source)
        return found

    def _meant(self, named: str, kind: str = DATASET) -> list[Relative]:
        with self.catalog.reading() as connection:
            return [_relative(r) for r in meant(connection, named, self.history.namespace, kind)]

    def _versions(self, named: Sequence[str]) -> list[int]:
        """Every version of some datasets, of each that is named with one that version."""
        with self.catalog.reading() as connection:
            each = [meant(connection, name, self.history.namespace) for name in named]
        return list(dict.fromkeys(row.id for rows in each for row in rows))

    def _tasks(self, box: str, given: Mapping[str, Any]) -> list[int]:
        """The tasks of a box whose parameters have these values."""
        tasks = self._meant(box, TASK)
        found = [task.id for task in tasks]
        with self.catalog.reading() as connection:
            for name, value in given.items():
                check_parameter(connection, tasks[0].name, name)
                same = (params.c.name == name) & (params.c.value == plain(value))
                fitting = set(connection.scalars(sa.select(params.c.node).where(same)))
                found = [task for task in found if task in fitting]
        return found

    def _relatives(self, reached: Reached, roots: Sequence[int], wanted: Wanted) -> list[Relative]:
        kept = self._kept(reached, roots, wanted).order_by(nodes.c.id)
        with self.catalog.reading() as connection:
            return [_relative(row) for row in connection.execute(kept)]

    def _count(
        self, reached: Reached, roots: Sequence[int], wanted: Wanted, counted: Counted | None = None
    ) -> int:
        """How many are reached: of one node the index has counted them by kind, but not by name."""
        if counted and len(roots) == 1 and not wanted.name:
            with self.catalog.spoken():
                return counted(roots[0], wanted.kind)
        kept = self._kept(reached, roots, wanted).subquery()
        with self.catalog.reading() as connection:
            return int(connection.scalar(sa.select(sa.func.count()).select_from(kept)) or 0)

    def _kept(self, reached: Reached, roots: Sequence[int], wanted: Wanted) -> sa.Select[Any]:
        """The rows of wanted nodes that are reached from some others."""
        with self.catalog.spoken():
            ids = reached(*roots)
        return sa.select(nodes).where(nodes.c.id.in_(ids) & wanted.condition)

    def _outputs_of(self, *tasks: int) -> sa.Select[Any]:
        return sa.select(edges.c.target).where(edges.c.source.in_(self.index.listed(*tasks)))


def _mark(of: sa.FromClause) -> sa.ColumnElement[str]:
    """The run that made a dataset, or what a source held."""
    return sa.case((of.c.run != "", of.c.run), else_=of.c.fingerprint)


def _relative(row: Any) -> Relative:
    return Relative(row.id, row.name, row.version, row.kind, row.namespace, row.run)
