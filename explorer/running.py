"""A drawing that can be run: all of it or up to a box, with a status on each box as it goes."""

from __future__ import annotations

from typing import Any

import param
from pyspark.sql import SparkSession

from explorer.draft import Draft
from explorer.drawing import Drawing
from explorer.statuses import Held, Status
from explorer.work import Work
from inverses.registry import Registry
from pipelines.datasets import Dataset
from pipelines.errors import Refused, WhenceError
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.sources import recognised
from pipelines.spark import Progress
from pipelines.workspace import Workspace


class Running(Drawing):
    """Runs in the background through the visitor's `Work`; only one at a time."""

    def __init__(
        self, workspace: Workspace | None, registry: Registry, work: Work, author: bool = True
    ) -> None:
        super().__init__(workspace, registry, author)
        self.work = work
        self._ran: list[str] = []
        self._at = ""
        work.param.watch(self._progressed, ["label", "done", "total"])

    @property
    def runs(self) -> bool:
        """Whether this drawing is being run."""
        return bool(self._ran)

    def run_all(self) -> None:
        """Run every box."""
        self._run(self.draft)

    def run_to(self, name: str = "") -> None:
        """Run a box, by default the one selected, and those it needs."""
        if not (name or self.selected):
            self.say("select the box to run to", "info")
            return
        self._run(self.draft.upto(name or self.selected))

    def cancel(self) -> None:
        """Stop the run; what was published before stays."""
        self.work.cancel()

    def refresh(self) -> None:
        """Look again at what the workspace holds."""
        self.held = Held.by(self.workspace)
        self.param.trigger("statuses")

    def _run(self, draft: Draft) -> None:
        try:
            pipeline = self._runnable(draft)
        except WhenceError as error:
            self.say(str(error), "error")
            return
        self._ran, self._at = [n for n, _ in pipeline.in_order()], ""
        self.statuses = {draft.maker(n): Status("waiting") for n in self._ran}
        self.notice = ""
        self.work.start(f"Running {draft.name}", self._task(pipeline), self._made, self._failed)

    def _runnable(self, draft: Draft) -> Pipeline:
        self.check_author()
        if self.shelf is None:
            raise Refused("there is no workspace here to run in")
        if self.work.busy:
            raise Refused(f"{self.work.label} is not done yet; cancel it, or wait")
        return draft.finished(self.registry.boxes, self.shelf.home)

    def _task(self, pipeline: Pipeline) -> Any:
        workspace = self.workspace
        assert workspace is not None

        def task(spark: SparkSession, progress: Progress) -> dict[str, Dataset]:
            pipeline.check_sources({n: recognised(n, s) for n, s in pipeline.sources.items()})
            return run(pipeline, workspace, spark, progress)

        return task

    def _progressed(self, *_: param.parameterized.Event) -> None:
        """Show on each box that it is done, running or waiting."""
        now = self.work.label
        if now not in self._ran:
            return
        if now != self._at:
            self._at, self.held = now, Held.by(self.workspace)
        share = self.work.done / self.work.total if self.work.total else None
        tasks = f"{self.work.done} of {self.work.total} tasks" if self.work.total else ""
        ahead = map(self.draft.maker, self._ran[self._ran.index(now) + 1 :])
        running = {self.draft.maker(now): Status("running", tasks, share=share)}
        self.statuses = {**{n: Status("waiting") for n in ahead}, **running}

    def _made(self, made: dict[str, Dataset]) -> None:
        self._ended({})
        self.say(f"made {', '.join(f'{d.name} {d.version}' for d in made.values())}", "success")

    def _failed(self, why: str) -> None:
        if why == "cancelled":
            self._ended({})
            self.say("cancelled; what was made before that is kept", "info")
            return
        name = self._blamed(why)
        self._ended({name: Status("failed", why)})
        self.choose([name])
        self.say(why, "error")

    def _blamed(self, why: str) -> str:
        """The box or source that a failure is about: the one it names, else the one at work."""
        every = self.draft.datasets
        named = [n for n in every if f'source "{n}"' in why or f'box "{n}"' in why]
        return self.draft.maker(next(iter(named), self._at or self._ran[0]))

    def _ended(self, statuses: dict[str, Status]) -> None:
        self._ran, self._at, self.held = [], "", Held.by(self.workspace)
        self.statuses = statuses
        self.param.trigger("statuses")
