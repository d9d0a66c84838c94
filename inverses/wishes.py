"""Different wishes for different datasets: each is answered by a plan that can keep its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from inverses.answer import Answer, Limits
from inverses.guarantees import wish
from inverses.inferring import inferring
from inverses.outline import prices
from inverses.planner import behind, plan
from inverses.plans import Plan
from inverses.registry import Registry
from inverses.selection import Selection, select
from inverses.trace import carry_out
from pipelines.errors import unknown
from pipelines.spark import Progress, session
from pipelines.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Plans:
    """The plan for all datasets behind a selection, but for those that have one of their own."""

    plan: Plan
    own: Mapping[str, Plan]

    @property
    def every(self) -> list[Plan]:
        """Each plan once: datasets that share a wish share a plan."""
        return list({id(each): each for each in (self.plan, *self.own.values())}.values())


def plans(
    workspace: Workspace,
    selection: Selection,
    want: str,
    own: Mapping[str, str],
    registry: Registry,
) -> Plans:
    """Plans by which each dataset named in `own` is traced with its wish, and others with `want`.

    Inverses that keep one guarantee may not keep another, so only what has the same wish is
    planned together, and what cannot be kept for one dataset is not lost for others.
    """
    name = selection.dataset.name
    known = {each for each, _ in behind(workspace, selection.dataset)} - {name}
    for each in own:
        if each not in known:
            raise unknown("dataset", each, known, f'behind "{name}"')
    others = known - own.keys() or known
    planned = {
        word: plan(workspace, selection, wish(word), registry, [n for n in own if own[n] == word])
        for word in dict.fromkeys(own.values())
    }
    rest = plan(workspace, selection, wish(want), registry, others if own else None)
    return Plans(rest, {each: planned[word] for each, word in own.items()})


def carry_out_each(
    planned: Plans,
    spark: SparkSession,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Do what each plan says; the answers to wishes of their own are part of the one."""
    answers = {id(each): carry_out(each, spark, limits, progress) for each in planned.every}
    answer = answers[id(planned.plan)]
    if not planned.own:
        return answer
    times = {word: sum(a.seconds[word] for a in answers.values()) for word in answer.seconds}
    jobs = sum(int(a.spark["jobs"]) for a in answers.values())
    own = {name: answers[id(each)] for name, each in planned.own.items()}
    return replace(answer, own=own, seconds=times, spark={**answer.spark, "jobs": jobs})


def trace_each(
    workspace: Workspace,
    dataset: str,
    where: str | None,
    own: Mapping[str, str],
    attributes: Iterable[str] = (),
    want: str = "exact",
    *,
    spark: SparkSession | None = None,
    registry: Registry | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    infer: bool = False,
) -> Answer:
    """Where some rows or cells came from, by the wish that each dataset behind them has."""
    selection = select(workspace, dataset, where, attributes)
    known = registry or Registry.of()
    known = inferring(known, workspace, selection.dataset) if infer else known
    planned = plans(workspace, selection, want, own, known)
    within = limits or Limits()
    for each in planned.every:
        within.check(each, prices(each))
    return carry_out_each(planned, spark or session(), within, progress)
