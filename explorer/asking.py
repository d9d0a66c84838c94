"""Asking where something came from: a question, its plan at once, its answer from Spark."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import param

from explorer.suspects import Suspect, suspects
from explorer.work import Work
from inverses.answer import Answer, Found
from inverses.guarantees import wish
from inverses.limits import Limits
from inverses.outline import Price, outline, prices
from inverses.planner import plan
from inverses.plans import Plan
from inverses.proof import prove
from inverses.registry import Registry
from inverses.selection import select
from inverses.trace import carry_out
from pipelines.datasets import Key
from pipelines.errors import Refused, WhenceError
from pipelines.filters import Filter
from pipelines.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: which rows or cells, about which attributes, and with what guarantee.

    Without `where`, it is about all of them.

    >>> Question("tracks", "track = 7").command(Path("W"))
    "whence trace tracks --where 'track = 7' -w W"
    """

    dataset: str
    where: str
    attributes: tuple[str, ...] = ()
    want: str = "exact"

    def command(self, workspace: Path) -> str:
        """The command that asks the same."""
        named = [x for a in self.attributes for x in ("--attribute", a)]
        wished = [] if self.want == "exact" else ["--want", self.want]
        which = ["--where", self.where] if self.where else []
        words = ["whence", "trace", self.dataset, *which, *named, *wished]
        return shlex.join([*words, "-w", str(workspace)])

    def plain(self) -> list[Any]:
        """This question as plain data; `Question.of` is its inverse."""
        return [self.dataset, self.where, list(self.attributes), self.want]

    @classmethod
    def of(cls, plain: Any) -> Question:
        """The question that plain data, perhaps from an address, stands for."""
        try:
            dataset, where, attributes, want = plain
            return cls(str(dataset), str(where), tuple(map(str, attributes)), str(want))
        except (TypeError, ValueError):
            raise Refused(f"no question can be read from {plain!r:.60}") from None

    def python(self, workspace: Path) -> str:
        """The lines of Python that ask the same."""
        which = self.where or None
        given = [repr(x) for x in (self.dataset, which, list(self.attributes), self.want)]
        return (
            "from inverses.trace import trace\n"
            "from pipelines.workspace import Workspace\n\n"
            f"answer = trace(Workspace({str(workspace)!r}), {', '.join(given)})\n"
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """A question with all that is known of its answer before any data is read."""

    question: Question
    plan: Plan
    prices: list[Price]
    outline: Mapping[Key, Filter]


@dataclass(frozen=True, slots=True)
class Traced:
    """A question with its answer, and what is suspicious among the cells found."""

    planned: Planned
    answer: Answer
    suspects: tuple[Suspect, ...]

    @property
    def question(self) -> Question:
        return self.planned.question


class Asking(param.Parameterized):
    """What one visitor asks, step by step: planned, being traced, traced; and what is pinned."""

    planned = param.Parameter(None)
    found = param.Dict({})
    traced = param.Parameter(None)
    pinned = param.List([])
    trouble = param.String("")

    def __init__(
        self, workspace: Workspace, registry: Registry, work: Work, limits: Limits
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.workspace, self.registry = workspace, registry
        self.work, self.limits = work, limits

    def after(self, act: Callable[[], None], *names: str) -> None:
        """Do something whenever one of these has changed, once the map has shown it."""
        self.param.watch(lambda *_: self.work.later(act), list(names))

    def ask(self, question: Question) -> None:
        """Plan a question and outline its answer; nothing is read but the selected rows."""
        try:
            planned = self._planned(question)
        except WhenceError as error:
            self.param.update(planned=None, found={}, traced=None, trouble=str(error))
        else:
            self.param.update(planned=planned, found={}, traced=None, trouble="")

    def _planned(self, question: Question) -> Planned:
        at = select(self.workspace, question.dataset, question.where or None, question.attributes)
        found = plan(self.workspace, at, wish(question.want), self.registry)
        return Planned(question, found, prices(found), outline(found))

    def wished(self, want: str) -> None:
        """Ask the same with another guarantee."""
        if self.planned is not None:
            self.ask(replace(self.planned.question, want=want))

    def trace(self) -> None:
        """Have the question answered; what is found on the way is told hop by hop."""
        planned = self.planned
        if planned is None:
            self.trouble = "nothing is selected yet; click a point, a row or a cell first"
            return
        try:
            self.limits.check(planned.plan, planned.prices)
        except WhenceError as error:
            self.trouble = str(error)
            return
        self.param.update(trouble="", traced=None, found={})
        self.work.start("tracing", self._task(planned), self._answered, self._failed)

    def _task(self, planned: Planned) -> Any:
        def seen(found: Found) -> None:
            key = found.dataset.key
            self.work.later(lambda: self.param.update(found={**self.found, key: found}))

        return lambda spark, progress: self._answer(planned, spark, progress, seen)

    def _answer(self, planned: Planned, spark: Any, progress: Any, seen: Any) -> Traced:
        answer = carry_out(planned.plan, spark, self.limits, progress, seen)
        return Traced(planned, answer, tuple(suspects(answer)))

    def _answered(self, traced: Traced) -> None:
        if self.planned is traced.planned:
            self.param.update(found=dict(traced.answer.found), traced=traced)

    def _failed(self, why: str) -> None:
        self.param.update(trouble=why, found={})

    def prove(self) -> None:
        """Run the boxes again on the answer alone, and say whether the selection came back."""
        traced: Traced | None = self.traced
        if traced is None:
            return

        def proved(spark: Any, progress: Any) -> Traced:
            answer = replace(traced.answer, proof=prove(traced.answer, spark))
            return replace(traced, answer=answer)

        self.work.start("proving", proved, self._answered, self._failed)

    def clear(self) -> None:
        """Ask nothing; a trace under way is cancelled."""
        self.work.cancel()
        self.param.update(planned=None, found={}, traced=None, trouble="")

    def pin(self) -> None:
        """Keep the answer beside the next ones, to compare."""
        if self.traced is not None and self.traced not in self.pinned:
            self.pinned = [*self.pinned, self.traced]

    def restore(self, asked: Question | None, pinned: list[Question]) -> None:
        """Answer again what an address says was answered and what was pinned."""

        def task(spark: Any, progress: Any) -> list[Traced]:
            every = [self._planned(q) for q in (*pinned, *([asked] if asked else []))]
            for planned in every:
                self.limits.check(planned.plan, planned.prices)
            return [self._answer(p, spark, progress, lambda found: None) for p in every]

        def then(traced: list[Traced]) -> None:
            self.pinned = traced[: len(pinned)]
            if asked:
                last = traced[-1]
                found = dict(last.answer.found)
                self.param.update(planned=last.planned, found=found, traced=last)

        self.work.start("tracing again", task, then, self._failed)

    def let_go(self) -> None:
        """Let go of all answers that were kept."""
        self.pinned = []
