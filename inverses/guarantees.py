"""Guarantees: complete, pure, those users define, and how each combines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from pipelines.errors import unknown


@dataclass(frozen=True, slots=True)
class Property:
    """Something promised about an answer.

    A property of the kind of *complete* survives when sets intersect, and the smaller set is the
    closer; one of the kind of *pure* survives when sets unite, and the larger is the closer.

    >>> FRESH = Property("fresh", unites=True)      # a user's own, combined like pure
    """

    name: str
    unites: bool

    def __repr__(self) -> str:
        return self.name


COMPLETE = Property("complete", unites=False)
PURE = Property("pure", unites=True)
# What a box makes of this part of its input alone is, within the region asked about, all that it
# makes there of the whole: so it can be made again from this part, or in the first place. What a
# faithful weak inverse says of a region of cells is what it says of all of them, one by one.
FAITHFUL = Property("faithful", unites=False)

Guarantee = frozenset[Property]
NOTHING: Guarantee = frozenset()
EXACT: Guarantee = frozenset({COMPLETE, PURE})
WISHES = {"exact": EXACT, "complete": frozenset({COMPLETE}), "pure": frozenset({PURE})}
SIGNS = {EXACT: "=", WISHES["complete"]: "⊇", WISHES["pure"]: "⊆"}


def wish(named: str) -> Guarantee:
    """What a user asks for, by its word.

    >>> sorted(wish("exact"), key=str)
    [complete, pure]
    """
    if named not in WISHES:
        raise unknown("wish", named, WISHES)
    return WISHES[named]


def goals(wished: Guarantee) -> list[Guarantee]:
    """What to try for, in order: the whole wish, then most of it, complete before pure.

    Complete can always be had, so it ends the list.

    >>> [names(goal) for goal in goals(EXACT)]
    [['complete', 'pure'], ['complete']]
    >>> [names(goal) for goal in goals(frozenset({PURE}))]
    [['pure'], ['complete']]
    """
    ordered = sorted(wished, key=lambda p: (p != COMPLETE, p.unites, p.name))
    sizes = range(len(ordered), 0, -1)
    tried = [frozenset(c) for n in sizes for c in combinations(ordered, n)]
    last = frozenset({COMPLETE})
    return tried[: tried.index(last) + 1] if last in tried else [*tried, last]


def unites(goal: Iterable[Property]) -> bool:
    """Whether sets of one attribute that all have these properties unite to a closer one."""
    return all(p.unites for p in goal)


def names(guarantee: Guarantee) -> list[str]:
    """The words of a guarantee, complete before pure before others."""
    return [p.name for p in sorted(guarantee, key=lambda p: (p not in EXACT, p.name))]


def sign(guarantee: Guarantee) -> str:
    """A guarantee in one sign: = exact, ⊇ complete, ⊆ pure, ? neither.

    >>> sign(EXACT)
    '='
    """
    return SIGNS.get(guarantee & EXACT, "?")
