"""Different wishes for different datasets: each is answered by a plan that can keep its own."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from inverses.guarantees import wish
from inverses.inferring import inferring
from inverses.limits import Limits
from inverses.outline import Price, prices
from inverses.planner import behind, plan
from inverses.plans import Plan
from inverses.registry import Registry
from inverses.selection import Selection
from pipelines.errors import unknown
from pipelines.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Plans:
    """The plan for all datasets behind a selection, but for those that have one of their own.

    If all have, the first of those stands for all. They took so many `seconds` to make.
    """

    plan: Plan
    own: Mapping[str, Plan]
    seconds: float = 0.0

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
    if not own:
        return Plans(plan(workspace, selection, wish(want), registry), {})
    name = selection.dataset.name
    known = {each for each, _ in behind(workspace, selection.dataset)} - {name}
    for each in own:
        if each not in known:
            raise unknown("dataset", each, known, f'behind "{name}"')
    planned = {
        word: plan(workspace, selection, wish(word), registry, [n for n in own if own[n] == word])
        for word in dict.fromkeys(own.values())
    }
    mine = {each: planned[word] for each, word in own.items()}
    others = known - own.keys()
    if not others:
        return Plans(next(iter(mine.values())), mine)
    return Plans(plan(workspace, selection, wish(want), registry, others), mine)


def checked_plans(
    workspace: Workspace,
    selection: Selection,
    want: str,
    own: Mapping[str, str],
    registry: Registry,
    limits: Limits,
    infer: bool = False,
) -> tuple[Plans, list[list[Price]]]:
    """The plans for a question and the prices of each; refused if together they cost too much."""
    began = time.monotonic()
    known = inferring(registry, workspace, selection.dataset) if infer else registry
    found = plans(workspace, selection, want, own, known)
    priced = [prices(each) for each in found.every]
    limits.check(found.plan, [price for each in priced for price in each])
    return replace(found, seconds=time.monotonic() - began), priced
