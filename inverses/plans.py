"""A plan: hops from a dataset back to its sources, levels, functions, and what they promise."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from inverses.guarantees import COMPLETE, EXACT, Guarantee
from inverses.recipes import Recipes
from inverses.registry import (
    AGGREGATE,
    INFERRED,
    SCALAR,
    USED,
    Inputs,
    Verification,
    WeakInverse,
)
from inverses.selection import Selection
from inverses.sweeps import Sweep
from pipelines.boxes.box import CHANGE, Box
from pipelines.datasets import Array, Attribute, Key, Table, Type


@dataclass(frozen=True, slots=True)
class Inversion:
    """How one attribute is inverted into one level: by which functions, and what they promise."""

    attribute: str
    nature: str
    weak: tuple[WeakInverse, ...]
    verify: tuple[Verification, ...]
    promises: Guarantee
    weak_unites: bool = False
    verified_unites: bool = False

    @property
    def yields(self) -> set[Type | str]:
        return {t for r in (*self.weak, *self.verify) for t in r.yields}

    @property
    def by_default(self) -> bool:
        return not self.verify and all(w.box is Box for w in self.weak)


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a hop: its inversions, and the guarantee down to here."""

    name: str
    inversions: tuple[Inversion, ...]
    guarantee: Guarantee

    @property
    def combination(self) -> str:
        """How the attributes' sets are combined, in one word."""
        natures = [i.nature for i in self.inversions]
        if len(natures) == 1:
            return "as it is"
        if AGGREGATE not in natures:
            return "intersect"
        return "unite" if natures.count(SCALAR) < 2 else "intersect scalars, unite"

    @property
    def inferred(self) -> list[WeakInverse]:
        """What stands for inverses that nobody wrote."""
        return [w for i in self.inversions for w in i.weak if w.name == INFERRED]


@dataclass(frozen=True, slots=True)
class Hop:
    """From a dataset back through the box that made it, into the dataset at one of its ports."""

    box: Box
    port: str
    image: Table | Array
    source: Table | Array
    levels: tuple[Level, ...]
    inputs: Inputs = field(default_factory=dict)
    sweep: Sweep | None = None

    @property
    def guarantee(self) -> Guarantee:
        return self.levels[-1].guarantee

    @property
    def inversions(self) -> list[Inversion]:
        """All inversions, of every level."""
        return [i for level in self.levels for i in level.inversions]

    @property
    def beside(self) -> bool:
        """Whether something is verified by what is at the box's other ports."""
        return any(v.beside for i in self.inversions for v in i.verify)

    def weighs(self, selected: bool) -> bool:
        """Whether something new in the source could change what is asked.

        Of selected data these are the attributes asked about; of what is behind them, whether it
        is there at all is asked too.
        """
        # Behind what any other value would change are missing cells too: nothing is beside them.
        beside_it = isinstance(self.source, Table) or self.box.influence != CHANGE
        asked = {i.attribute for i in self.inversions}
        box = self.box.alone(asked) if selected else self.box
        return beside_it and not box.monotone

    def finds(self, inversion: Inversion) -> list[Attribute]:
        """The attributes of the source that an inversion says it finds.

        What is handed on as it is, is found by its columns, which may be called otherwise together.
        """
        used: set[str] = set()
        if USED in inversion.yields:
            used = set(self.box.used(inversion.attribute, self.port, self.source))
        same = (a for a in self.image.attributes if a.name in used & {inversion.attribute})
        columns = {c for a in same for c in a.columns}
        wanted, there = inversion.yields | used, self.source.attributes
        return [a for a in there if {a.type, a.name} & wanted or columns & {*a.columns}]


def leading(hops: tuple[Hop, ...], to: Collection[str] | None) -> tuple[Hop, ...]:
    """Of hops in their order, those on the way to datasets of these names; all if none are said."""
    if to is None:
        return hops
    on_the_way: set[Key] = set()
    kept: list[Hop] = []
    for hop in reversed(hops):
        if hop.source.name in to or hop.source.key in on_the_way:
            kept.append(hop)
            on_the_way.add(hop.image.key)
    return tuple(reversed(kept))


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a trace will do, in order; frozen, so that what was shown is what runs."""

    selection: Selection
    wish: Guarantee
    hops: tuple[Hop, ...]
    recipes: Recipes = field(default_factory=dict)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised of every dataset reached."""
        return self._held(self.hops)

    def guarantee_of(self, dataset: str) -> Guarantee:
        """What is promised of one dataset."""
        return self._held(hop for hop in self.hops if hop.source.name == dataset)

    def _held(self, hops: Iterable[Hop]) -> Guarantee:
        held = EXACT | self.wish
        for hop in hops:
            held &= hop.guarantee
        return held

    @property
    def unmet(self) -> Guarantee:
        """What was wished for and cannot be promised."""
        return self.wish - self.guarantee

    def unmet_of(self, dataset: str) -> Guarantee:
        """What was wished for and cannot be promised of one dataset."""
        return self.wish - self.guarantee_of(dataset)

    @property
    def open_to_newcomers(self) -> list[Hop]:
        """Hops by which something outside a complete answer could matter if it were absent.

        It takes two boxes: one that then makes what it has not made, and one after it that weighs
        that against what it had. Where there are no two, nothing outside could.
        """
        complete = [h for h in self.hops if COMPLETE in self.guarantee_of(h.source.name)]
        with_newcomers: set[Key] = set()
        for hop in reversed(complete):
            if not hop.box.monotone or hop.source.key in with_newcomers:
                with_newcomers.add(hop.image.key)
        first = self.selection.dataset.key
        weighing = [h for h in complete if h.weighs(selected=h.image.key == first)]
        return [h for h in weighing if h.source.key in with_newcomers]

    @property
    def attributes(self) -> list[str]:
        """The attributes that the guarantee is with respect to."""
        first = [h for h in self.hops if h.image.key == self.selection.dataset.key]
        used = [i.attribute for h in first for i in h.inversions]
        return list(dict.fromkeys(used)) or list(self.selection.attributes)
