"""What was done: a journal of runs to which is only ever added, kept in the catalog."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from pipelines.catalog import MEMORY, Catalog, ends, nodes, runs, texts
from pipelines.datasets import Dataset, Key
from pipelines.errors import Failed, Refused, WhenceError
from pipelines.journal import (
    FAILED,
    FINISHED,
    HERE,
    RUNNING,
    about_now,
    add_end,
    add_run,
    add_space,
    now,
)
from pipelines.missed import Missed, is_known
from pipelines.run_graph import DATASET, Growth, record
from pipelines.under_way import Entry, under_way
from pipelines.workspace import Workspace

if TYPE_CHECKING:
    # Boxes, and Spark with them, take a second to load that questions need not wait for.
    from pipelines.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Run:
    """One run: what was run, by whom, when, on which Spark, how it ended, and what it made.

    Its `part` is what alone was asked for, like `tracks: lat > 20`; it is empty for the whole.
    """

    run: str
    pipeline: str
    hash: str
    at: str
    who: str
    host: str
    master: str
    spark: str
    whence: str
    part: str
    how: str
    why: str = ""
    seconds: float | None = None
    made: tuple[Key, ...] = ()


class History:
    """The journal of a workspace. Its rows are added and never changed: an end is a new row."""

    def __init__(self, workspace: Workspace, catalog: Catalog, lasting: bool = True) -> None:
        self.workspace, self.catalog, self._lasting = workspace, catalog, lasting
        self.namespace = workspace.namespace or HERE

    @classmethod
    def of(cls, workspace: Workspace) -> History:
        """The journal of a workspace, to be written."""
        return cls(workspace, Catalog(workspace.catalog))._caught_up()

    @classmethod
    @contextmanager
    def recorded(
        cls,
        workspace: Workspace,
        pipeline: Pipeline,
        spark: Mapping[str, str],
        sources: Callable[[], dict[str, Dataset]] = dict,
        part: str = "",
    ) -> Iterator[Entry]:
        """Journal a run: one transaction when it starts, one with all its steps when it ends."""
        run, url = uuid.uuid4().hex[:12], workspace.catalog

        def opening() -> History:
            journal = cls(workspace, Catalog(url, keep_open=True))
            journal._start(run, pipeline.text, about_now(pipeline.name, spark, part))
            return journal

        with under_way(workspace, run), ThreadPoolExecutor(1) as beside:
            entry = Entry(run, beside, opening, sources)
            try:
                yield entry
                entry.journal()
            except BaseException as error:
                with suppress(Exception):  # what went wrong first is what is told
                    entry.journal()._end(entry, FAILED, _reason(error))
                raise
            entry.journal()._finish(entry)

    @classmethod
    def asked_of(cls, workspace: Workspace) -> History:
        """The journal of a workspace, to be read; no catalog is made where there is none yet."""
        if workspace.keeps_own_catalog and not workspace.own_catalog.exists():
            return cls(workspace, Catalog(MEMORY), lasting=False)._caught_up()
        return cls.of(workspace)

    @classmethod
    def as_it_is(cls, workspace: Workspace) -> History | None:
        """The journal as it was left, if there is one: nothing is looked for or written."""
        if workspace.keeps_own_catalog and not workspace.own_catalog.exists():
            return None
        return cls(workspace, Catalog(workspace.catalog))

    def _caught_up(self) -> History:
        """The journal with all that the workspace holds and it had missed."""
        missed = Missed.by(self.catalog, self.namespace, self.workspace)
        if missed:
            self._settle()
            with self.catalog.writing() as connection:
                missed.write(connection, self.namespace)
            missed.clear()
        return self

    def _settle(self) -> None:
        """See that the workspace has a namespace, and says where its journal is."""
        if self._lasting:
            elsewhere = None if self.workspace.keeps_own_catalog else self.catalog.place
            self.namespace = self.workspace.settled(elsewhere)

    def _start(self, run: str, text: str, about: Mapping[str, str]) -> None:
        """What was missed is looked for when somebody asks: no run waits for it but the first."""
        if not is_known(self.catalog, self.namespace):
            self._caught_up()
        self._settle()
        with self.catalog.writing() as connection:
            add_space(connection, self.namespace, self.workspace.path)
            add_run(connection, self.namespace, run, text, about)

    def _finish(self, entry: Entry) -> None:
        """The end of a run that did all it should, which may yet fail to be written."""
        try:
            self._end(entry, FINISHED)
        except Failed as error:
            made = "what the run made is published, and is journalled once the catalog answers"
            raise Failed(f"{error}; {made}") from None

    def _end(self, entry: Entry, how: str, why: str = "") -> None:
        made, seconds = entry.contents(), round(time.monotonic() - entry.began, 3)
        if entry.used - {dataset.key for dataset, _ in made}:
            self._caught_up()  # what another run has made is known before it is used
        with closing(self.catalog), self.catalog.writing() as connection:
            growth = Growth(connection)
            record(growth, self.namespace, made, now())
            growth.write()
            add_end(connection, entry.run, how, why, seconds)

    def text_of(self, run: str) -> str | None:
        """The text of the pipeline that a run carried out, if the journal has it."""
        text = sa.select(texts.c.text).join(runs, runs.c.hash == texts.c.hash)
        with self.catalog.reading() as connection:
            return connection.scalar(text.where(runs.c.run == run)) or None

    def latest_texts(self, most: int = 20) -> list[str]:
        """The texts of the pipelines that were run here, newest first."""
        text = sa.select(texts.c.text).join(runs, runs.c.hash == texts.c.hash)
        ours = text.where(runs.c.namespace == self.namespace).order_by(runs.c.id.desc())
        with self.catalog.reading() as connection:
            return list(connection.scalars(ours.limit(most)))

    def runs(self, search: str = "", most: int | None = None) -> tuple[list[Run], int]:
        """The runs in which a text occurs, newest first, and how many those are in all."""
        kept = _mentions(search) if search else sa.true()
        with self.catalog.reading() as connection:
            rows = _told().where(kept)
            total = connection.scalar(sa.select(sa.func.count()).select_from(rows.subquery()))
            return _found(connection, rows.limit(most)), int(total or 0)

    def run(self, named: str) -> Run:
        """The run whose name begins so."""
        with self.catalog.reading() as connection:
            begins = runs.c.run.startswith(named, autoescape=True)
            found = _found(connection, _told().where(begins).limit(8)) if named else []
            others = list(
                connection.scalars(sa.select(runs.c.run).order_by(runs.c.id.desc()).limit(8))
            )
        if len(found) == 1:
            return found[0]
        listed = ", ".join([r.run for r in found] or others) or "none"
        few = "several runs begin" if found else "no run begins"
        raise Refused(f'{few} with "{named}" (runs: {listed}); see: whence runs')


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "cancelled"
    return str(error) if isinstance(error, WhenceError) else type(error).__name__


def _told() -> sa.Select[Any]:
    """What is told of runs and of their ends, newest first."""
    row = sa.select(runs, ends.c.how, ends.c.why, ends.c.seconds)
    joined = row.join(ends, ends.c.run == runs.c.run, isouter=True)
    return joined.order_by(runs.c.id.desc())


def _found(connection: sa.Connection, rows: sa.Select[Any]) -> list[Run]:
    found = connection.execute(rows).mappings().all()
    made = _made_by(connection, rows)
    return [_run(row, made.get(row["run"], ())) for row in found]


def _mentions(search: str) -> sa.ColumnElement[bool]:
    """Whether a text occurs in what is told of a run, or in the name of what it made or ran."""
    told = [runs.c[name] for name in ("run", "pipeline", "part", "who", "at")]
    named = sa.select(nodes.c.run).where(nodes.c.name.icontains(search, autoescape=True))
    spoken = [c.icontains(search, autoescape=True) for c in (*told, ends.c.how, ends.c.why)]
    return sa.or_(*spoken, runs.c.run.in_(named))


def _made_by(connection: sa.Connection, rows: sa.Select[Any]) -> dict[str, tuple[Key, ...]]:
    """The datasets that each of some runs has made."""
    made: dict[str, tuple[Key, ...]] = {}
    kept = nodes.c.run.in_(rows.with_only_columns(runs.c.run)) & (nodes.c.kind == DATASET)
    row = sa.select(nodes.c.run, nodes.c.name, nodes.c.version).where(kept).order_by(nodes.c.id)
    for run, name, version in connection.execute(row):
        made[run] = (*made.get(run, ()), (name, version))
    return made


def _run(row: Mapping[Any, Any], made: tuple[Key, ...]) -> Run:
    told = {k: v for k, v in row.items() if k not in ("id", "namespace", "how", "why")}
    return Run(**told, how=row["how"] or RUNNING, why=row["why"] or "", made=made)
