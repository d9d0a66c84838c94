"""The planner: from a selection and a wish to a plan of hops, levels, functions and prices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx

from inverses.guarantees import EXACT, NOTHING, Guarantee, goals, unites
from inverses.registry import (
    AGGREGATE,
    SCALAR,
    Registry,
    Verification,
    WeakInverse,
    default_weak,
)
from inverses.selection import Selection, asked_of
from pipelines.boxes.box import Box
from pipelines.datasets import Array, Attribute, Table, Type
from pipelines.workspace import Workspace

Key = tuple[str, str]


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


@dataclass(frozen=True, slots=True)
class Hop:
    """From a dataset back through the box that made it, into the dataset at one of its ports."""

    box: Box
    port: str
    image: Table | Array
    source: Table | Array
    levels: tuple[Level, ...]

    @property
    def guarantee(self) -> Guarantee:
        return self.levels[-1].guarantee


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a trace will do, in order; frozen, so that what was shown is what runs."""

    selection: Selection
    wish: Guarantee
    hops: tuple[Hop, ...]

    @property
    def guarantee(self) -> Guarantee:
        """What is promised of every dataset reached."""
        held = EXACT | self.wish
        for hop in self.hops:
            held &= hop.guarantee
        return held

    @property
    def unmet(self) -> Guarantee:
        """What was wished for and cannot be promised."""
        return self.wish - self.guarantee

    @property
    def attributes(self) -> list[str]:
        """The attributes that the guarantee is with respect to."""
        first = [h for h in self.hops if _key(h.image) == _key(self.selection.dataset)]
        used = [i.attribute for h in first for level in h.levels for i in level.inversions]
        return list(dict.fromkeys(used)) or list(self.selection.attributes)


def plan(workspace: Workspace, selection: Selection, wish: Guarantee, registry: Registry) -> Plan:
    """The plan that meets a wish as closely as the registered inverses can.

    Hops run from the selection to the sources, levels from the top down. Every goal that the
    wish leaves is tried in turn for the whole graph, since one that a single hop breaks is lost.
    """
    ancestry = _ancestry(workspace, selection.dataset)
    found: Plan | None = None
    for goal in goals(wish):
        found = Plan(selection, wish, tuple(_hops(ancestry, selection, goal, registry)))
        if goal <= found.guarantee:
            return found
    assert found is not None
    return found


def _key(dataset: Table | Array) -> Key:
    return dataset.name, dataset.version


def _ancestry(workspace: Workspace, dataset: Table | Array) -> nx.DiGraph[Key]:
    """The versions a dataset was made from, each with an arrow back from what was made of it."""
    graph: nx.DiGraph[Key] = nx.DiGraph()
    graph.add_node(_key(dataset), dataset=dataset)
    waiting = [dataset]
    while waiting:
        image = waiting.pop()
        for name, version in image.made.inputs.values() if image.made else ():
            if (name, version) not in graph:
                source = workspace.dataset(name, version)
                graph.add_node((name, version), dataset=source)
                waiting.append(source)
            graph.add_edge(_key(image), (name, version))
    return graph


def _hops(
    ancestry: nx.DiGraph[Key], selection: Selection, goal: Guarantee, registry: Registry
) -> Iterator[Hop]:
    held: dict[Key, Guarantee] = {_key(selection.dataset): EXACT | goal}
    asked: dict[Key, set[Type | str]] = {}
    for key in nx.topological_sort(ancestry):
        image: Table | Array = ancestry.nodes[key]["dataset"]
        if image.made is None:
            continue
        box = registry.box(image.made.box, image.made.params)
        attributes = _attributes(image, box, selection, asked.get(key))
        for port, source_key in image.made.inputs.items():
            source = ancestry.nodes[source_key]["dataset"]
            levels = _levels(box, port, image, source, attributes, goal, registry, held[key])
            hop = Hop(box, port, image, source, levels)
            yield hop
            held[source_key] = held.get(source_key, hop.guarantee) & hop.guarantee
            asked.setdefault(source_key, set()).update(_yields(hop))


def _attributes(
    image: Table | Array, box: Box, selection: Selection, asked: set[Type | str] | None
) -> list[Attribute]:
    """What is asked of a dataset: by the selection, or by the hop that led to it."""
    if asked is None:
        return asked_of(image, selection.attributes, box.asks)
    return chosen(image, asked) or asked_of(image, (), box.asks)


def chosen(dataset: Table | Array, wanted: set[Type | str]) -> list[Attribute]:
    """The attributes of a dataset that are wanted by type or by name."""
    return [a for a in dataset.attributes if {a.type, a.name} & wanted]


def _yields(hop: Hop) -> set[Type | str]:
    return {t for level in hop.levels for i in level.inversions for t in i.yields}


def _levels(
    box: Box,
    port: str,
    image: Table | Array,
    source: Table | Array,
    attributes: list[Attribute],
    goal: Guarantee,
    registry: Registry,
    held: Guarantee,
) -> tuple[Level, ...]:
    """The levels of a hop, top down: a level keeps only what every level above it has."""
    found = []
    for name in source.levels:
        inversions = [_inversion(box, a, port, source, name, goal, registry) for a in attributes]
        answering = [i for i in inversions if not i.by_default] or inversions[:1]
        for each in answering:
            held &= each.promises
        held = held if box.deterministic else NOTHING
        found.append(Level(name, tuple(answering), held))
    return tuple(found)


def _inversion(
    box: Box,
    attribute: Attribute,
    port: str,
    source: Table | Array,
    level: str,
    goal: Guarantee,
    registry: Registry,
) -> Inversion:
    """How to invert one attribute: verifications that give the goal, weak inverses they need."""
    where = (box, attribute, port, source, level)
    weak, verify = registry.weak_for(*where), registry.verifications_for(*where)
    default = default_weak(attribute, level)
    for chosen in _satisfiable([v for v in verify if v.promises >= goal], weak, default):
        return _chosen(attribute, *chosen, goal)
    direct = [w for w in weak if w.promises >= goal]
    return _chosen(attribute, tuple(direct) or (default,), (), goal)


def _satisfiable(
    verify: list[Verification], weak: list[WeakInverse], default: WeakInverse
) -> Iterator[tuple[tuple[WeakInverse, ...], tuple[Verification, ...]]]:
    """Verifications with weak inverses that meet their apply conditions, the fullest set first."""
    while verify:
        needs = frozenset().union(*(v.needs for v in verify))
        meeting = [w for w in weak if w.promises >= needs]
        if not meeting and default.promises >= needs:
            meeting = [default]
        if meeting:
            yield tuple(meeting), tuple(verify)
        verify = verify[:-1]


def _chosen(
    attribute: Attribute,
    weak: tuple[WeakInverse, ...],
    verify: tuple[Verification, ...],
    goal: Guarantee,
) -> Inversion:
    """An inversion by these functions, with what it promises and how its sets combine."""
    promises = (verify or weak)[0].promises
    for each in verify or weak:
        promises &= each.promises
    needs = frozenset().union(*(v.needs for v in verify)) if verify else goal
    natures = {r.nature for r in (*weak, *verify) if r.box is not Box}
    nature = SCALAR if natures == {SCALAR} else AGGREGATE
    met = needs <= weak[0].promises and bool(needs)
    return Inversion(
        attribute.name, nature, weak, verify, promises, met and unites(needs), unites(goal)
    )
