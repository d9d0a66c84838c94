"""Untried: what is stated of a box that no sample could test, and what its author can do."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from inspect import unwrap
from typing import Any

from inverses.guarantees import COMPLETE, FAITHFUL, PURE, Guarantee, names
from inverses.registry import ANY, USED, Registration, Registry, WeakInverse
from inverses.words import many
from pipelines.boxes.box import STATED, Box

ANYWAY = "monotony"  # a law that every inverse is tried for, whatever it promises


def as_stated(stated: Registration) -> Registration:
    """An inverse as its author stated it, whichever attribute it was told to invert."""
    return replace(stated, function=unwrap(stated.function))


def never_tried(
    registry: Registry, kind: type[Box], tried: Set[Registration]
) -> list[Registration]:
    """The inverses of a box that are not among those tried.

    Those of a class that it shares with other boxes may be meant for these, if any was tried.
    """
    every = [s for s in (*registry.weak, *registry.verifications) if issubclass(kind, s.box)]
    mine = [s for s in every if not tried or getattr(s.box, "name", None) == kind.name]
    known = {as_stated(each) for each in tried}
    return [each for each in mine if as_stated(each) not in known]


def laws_of(kind: type[Box], stated: Registration) -> list[str]:
    """The laws by which trials would have shown what an inverse promises."""
    shown: Guarantee = frozenset({COMPLETE} if kind.influence == STATED else {COMPLETE, PURE})
    whole = shown | {FAITHFUL} if isinstance(stated, WeakInverse) else shown
    return names(stated.promises & whole) or [ANYWAY]


def reason(stated: Registration, trials: int, fruitless: str | None) -> str:
    """Why an inverse was never tried, and what would do."""
    if fruitless:
        return (
            f"never tried: of {many(trials, 'sample')}, mostly numbers from -3 to 7, the box makes "
            f"{fruitless}; give it examples, parameters with which it does, or ask for more trials"
        )
    return (
        f"never tried: in no sample {_fitting(stated)}; state what the box makes and is given, "
        "or give it examples in which there is this"
    )


def unvaried(kind: type[Box]) -> dict[str, Any]:
    """The parameters of a box that are the same in all its examples, and what they are."""
    first, *others = (kind.from_params(each).params() for each in kind.examples)
    return {n: v for n, v in first.items() if all(each[n] == v for each in others)}


def _fitting(stated: Registration) -> str:
    """What an inverse is stated of, in words."""
    image = "anything" if stated.image == ANY else str(stated.image)
    what = f"{image} called {stated.named}" if stated.named else image
    named = [str(each) for each in stated.yields if each != USED]
    where = f"port {stated.port}" if stated.port else "a port"
    return (
        f"{what} is made of {' or '.join(named) or 'anything'} at {where}, by its {stated.level}s"
    )
