"""How it stands with each box: made, waiting, running or failed, how much of it, and how long."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from explorer.draft import Draft
from inverses.registry import Registry
from pipelines.datasets import Array, Dataset, Table
from pipelines.errors import Refused, WhenceError
from pipelines.history import History
from pipelines.pipeline import Step
from pipelines.workspace import Workspace

SIGNS = {
    "idle": "○", "waiting": "◌", "running": "▶", "done": "✓", "changed": "↻", "failed": "✕",
    "missing": "!",
}  # fmt: skip
WORDS = {
    "idle": "not run yet", "waiting": "waiting", "running": "running", "done": "made",
    "changed": "changed since it ran", "failed": "failed", "missing": "unfinished",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Status:
    """One word for how it stands, then how much there is, how long it took, or what is wrong.

    >>> Status("done", "4 212 rows", 1.25).line
    '✓ 4 212 rows · 1.2 s'
    >>> Status("missing", 'nothing at its port "field"').line
    '! nothing at its port "field"'
    """

    state: str = "idle"
    text: str = ""
    seconds: float | None = None
    share: float | None = None

    @property
    def line(self) -> str:
        """The status as it stands on the box."""
        took = "" if self.seconds is None else f"{self.seconds:.1f} s"
        said = self.text or WORDS[self.state]
        return f"{SIGNS[self.state]} {' · '.join(part for part in (said, took) if part)}"

    @property
    def words(self) -> str:
        """The status as it is read out."""
        return f"{WORDS[self.state]}, {self.text}" if self.text else WORDS[self.state]


@dataclass(frozen=True, slots=True)
class Held:
    """What a workspace holds: the current dataset of every name."""

    datasets: Mapping[str, Table | Array] = field(default_factory=dict)

    @classmethod
    def by(cls, workspace: Workspace | None) -> Held:
        """What a workspace holds now; a damaged dataset is one that is not there."""
        found: dict[str, Table | Array] = {}
        for name in workspace.names() if workspace else ():
            with suppress(WhenceError):
                assert workspace is not None
                found[name] = workspace.dataset(name)
        return cls(found)

    def status(self, name: str, step: Step | None) -> Status:
        """How it stands with a source, or with all that a box makes, by what is there."""
        first = self._status(name, step)
        others = [self._status(*each) for each in step.besides(name).items()] if step else []
        return next((s for s in (first, *others) if s.state != "done"), first)

    def _status(self, name: str, step: Step | None) -> Status:
        found = self.datasets.get(name)
        if found is None:
            return Status() if step else Status("idle", "not read yet")
        state = "done" if step is None or self._made_so(found, step) else "changed"
        return Status(state, size_of(found), found.made.seconds if found.made else None)

    def _made_so(self, found: Dataset, step: Step) -> bool:
        """Whether a dataset was made by this very step of what is current now."""
        if found.made is None or found.made.box != step.box.name:
            return False
        given = {p: n for p, (n, _) in found.made.inputs.items()}
        now = {n: d.version for n, d in self.datasets.items()}
        fresh = all(now.get(n) == v for n, v in found.made.inputs.values())
        return dict(found.made.params) == step.box.params() and given == dict(step.inputs) and fresh


def size_of(dataset: Table | Array) -> str:
    """How much a dataset holds: rows, or the extent of its arrays."""
    if isinstance(dataset, Array):
        return " × ".join(f"{n:,}" for n in dataset.shape).replace(",", "\u202f")
    return f"{dataset.rows:,} rows".replace(",", "\u202f")


def remembered(workspace: Workspace | None, registry: Registry, held: Held) -> Draft:
    """The pipeline that was last run here, and every other dataset by the box that made it."""
    draft = _last_run(workspace, registry, held)
    for name, dataset in held.datasets.items():
        with suppress(Refused):
            draft = _with(draft, name, dataset, registry)
    for name, dataset in held.datasets.items():
        for port, (given, _) in (dataset.made.inputs if dataset.made else {}).items():
            if name in draft.steps and port not in draft.steps[name].inputs:
                with suppress(Refused):
                    draft = draft.wired(name, port, given)
    return draft


def _last_run(workspace: Workspace | None, registry: Registry, held: Held) -> Draft:
    for text in _latest_texts(workspace):
        with suppress(Refused):
            draft = Draft.from_text(text, registry.boxes)
            return _with_paths(draft, held)
    return Draft()


def _latest_texts(workspace: Workspace | None) -> list[str]:
    """The pipelines that were run here, newest first; none if the journal does not answer."""
    with suppress(WhenceError):
        return History.asked_of(workspace).latest_texts() if workspace else []
    return []


def _with_paths(draft: Draft, held: Held) -> Draft:
    """The draft with the files that were read then, wherever its text lay."""
    read = {n: held.datasets[n].path for n in draft.sources if n in held.datasets}
    return replace(
        draft, sources={n: replace(s, path=read.get(n, s.path)) for n, s in draft.sources.items()}
    )


def _with(draft: Draft, name: str, dataset: Dataset, registry: Registry) -> Draft:
    if name in draft.datasets:
        return draft
    if dataset.made is None:
        return draft.sourced(dataset.path, name)
    return draft.added(registry.box_of(dataset.made), name)
