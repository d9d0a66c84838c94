"""The planner: from a selection and a wish to a plan that meets it as closely as can be."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import networkx as nx

from inverses.guarantees import COMPLETE, EXACT, NOTHING, Guarantee, goals, unites
from inverses.plans import Hop, Inversion, Level, Plan, leading
from inverses.recipes import recipes
from inverses.registry import AGGREGATE, SCALAR, USED, Registry, Verification, WeakInverse
from inverses.selection import Selection, asked_of
from inverses.true_ancestors import TrueAncestors
from pipelines.boxes.box import Box
from pipelines.datasets import Array, Attribute, Key, Table
from pipelines.filters import where
from pipelines.workspace import Workspace

Asked = frozenset[str]
NOBODY = Registry({}, (), ())


@dataclass(frozen=True, slots=True)
class Arrow:
    """What the planner works on: a box, one of its ports, the dataset there, and the goal."""

    box: Box
    port: str
    source: Table | Array
    goal: Guarantee
    registry: Registry

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels to invert into: the last one alone for a box that finds cells at once."""
        return self.source.levels[-1:] if self.box.flat else self.source.levels


def plan(
    workspace: Workspace,
    selection: Selection,
    wish: Guarantee,
    registry: Registry,
    to: Collection[str] | None = None,
) -> Plan:
    """The plan that meets a wish as closely as the registered inverses can.

    Hops run from the selection to the sources, levels from the top down. Every goal that the
    wish leaves is tried in turn for the whole graph, since one that a single hop breaks is lost;
    or for what leads `to` datasets of some names, and only that is then planned. Where nobody
    has named attributes, those that have only defaults are left out if others can answer.
    """
    named = {frozenset(selection.attributes)} if selection.attributes else None
    ancestry = behind(workspace, selection.dataset)
    made = recipes([ancestry.nodes[key]["dataset"] for key in ancestry], registry)
    found: Plan | None = None
    for goal in goals(wish):
        hops = leading(tuple(_hops(ancestry, selection, goal, registry, named)), to)
        found = Plan(selection, wish, hops, made)
        if goal <= found.guarantee:
            return found
    assert found is not None
    return found


def hop_about(
    arrow: Arrow, image: Table | Array, inputs: Mapping[str, Table | Array], named: Asked
) -> Hop:
    """One hop back from attributes that are named together, as close as the inverses allow."""
    box, registry = arrow.box, arrow.registry
    nothing = Selection(image, None, (), where())
    for goal in goals(EXACT):
        levels = _levels(replace(arrow, goal=goal), image, nothing, {named}, EXACT)
        hop = Hop(box, arrow.port, image, arrow.source, levels, inputs, registry.sweep_of(box))
        if goal <= hop.guarantee:
            break
    return hop


def behind(workspace: Workspace, dataset: Table | Array) -> nx.DiGraph[Key]:
    """The versions a dataset was made from, each with an arrow back from what was made of it."""
    ancestors = TrueAncestors.by(workspace, dataset)
    graph: nx.DiGraph[Key] = nx.DiGraph()
    graph.add_node(dataset.key, dataset=dataset)
    waiting = [dataset]
    while waiting:
        image = waiting.pop()
        for name, version in image.made.inputs.values() if image.made else ():
            if (name, version) not in graph:
                source = ancestors.checked(workspace.dataset(name, version))
                graph.add_node((name, version), dataset=source)
                waiting.append(source)
            graph.add_edge(image.key, (name, version))
    return graph


def _hops(
    ancestry: nx.DiGraph[Key],
    selection: Selection,
    goal: Guarantee,
    registry: Registry,
    first: set[Asked] | None,
) -> Iterator[Hop]:
    held: dict[Key, Guarantee] = {selection.dataset.key: EXACT | goal}
    asked: dict[Key, set[Asked]] = {selection.dataset.key: first} if first else {}
    for key in nx.topological_sort(ancestry):
        image: Table | Array = ancestry.nodes[key]["dataset"]
        if image.made is None:
            continue
        box = registry.box_of(image.made)
        inputs = {p: ancestry.nodes[k]["dataset"] for p, k in image.made.inputs.items()}
        for port, source_key in image.made.inputs.items():
            arrow = Arrow(box, port, ancestry.nodes[source_key]["dataset"], goal, registry)
            levels = _levels(arrow, image, selection, asked.get(key), held[key])
            hop = Hop(box, port, image, arrow.source, levels, inputs, registry.sweep_of(box))
            yield hop
            held[source_key] = held.get(source_key, hop.guarantee) & hop.guarantee
            asked.setdefault(source_key, set()).update(_asks(hop, registry))


def _asks(hop: Hop, registry: Registry) -> Iterator[Asked]:
    """What a hop asks of the dataset it leads to: scalars as one, each aggregate for itself.

    An inversion that does not say what it finds may have found anything, so asks about all. That
    what was found is there at all is asked in any case.
    """
    every = frozenset(a.name for a in hop.source.attributes)
    there = _making_go(hop.source, registry)
    together: dict[str, set[str]] = {}
    for each in (i for level in hop.levels for i in level.inversions):
        group = "" if each.nature == SCALAR else each.attribute
        found = frozenset(a.name for a in hop.finds(each)) if each.yields else every
        together.setdefault(group, set()).update(found | there)
    return map(frozenset, together.values())


def _making_go(dataset: Table | Array, registry: Registry) -> Asked:
    """The attributes behind which is all that can make a row of a dataset go, if not behind any."""
    lost = registry.box_of(dataset.made).lost if dataset.made else None
    return frozenset(lost or ()) & {a.name for a in dataset.attributes}


def _levels(
    arrow: Arrow,
    image: Table | Array,
    selection: Selection,
    asked: set[Asked] | None,
    held: Guarantee,
) -> tuple[Level, ...]:
    """The levels of a hop, top down: a level keeps only what every level above it has."""
    if asked is None:
        attributes = asked_of(image, selection.attributes, arrow.box.asks)
    else:
        attributes = [a for a in image.attributes if any(a.name in each for each in asked)]
    if arrow.box.flat and isinstance(image, Array):
        of_cells = [a for a in attributes if a.dims]
        # A coordinate of an array is of no variable: nobody has said what is behind it.
        arrow = arrow if of_cells else replace(arrow, registry=NOBODY)
        attributes = of_cells or attributes
    cells = {a.name for a in attributes if a.dims}
    found: list[Level] = []
    for name, inversions in _answering(arrow, attributes, asked is not None):
        unlike = None if _alike(arrow, inversions) else asked
        each = tuple(
            _of_one_variable(i) if i.attribute in cells else _united(i, unlike) for i in inversions
        )
        for inversion in each:
            held &= inversion.promises
        held = held if arrow.box.deterministic else NOTHING
        found.append(Level(name, each, held))
    return tuple(found)


def _answering(
    arrow: Arrow, attributes: list[Attribute], all_of_them: bool
) -> Iterator[tuple[str, list[Inversion]]]:
    """The inversions of each level.

    Attributes that nothing but a default meets the goal for are left out where others can
    answer; if `all_of_them` must be answered, only where another level answers them.
    """
    above: Guarantee | None = None
    table: dict[str, list[Inversion]] = {}
    for name in arrow.levels:
        table[name] = [inversion_of(arrow, a, name, above) for a in attributes]
        for each in [i for i in table[name] if not i.by_default] or table[name][:1]:
            above = each.promises if above is None else above & each.promises
    answered = {i.attribute for level in table.values() for i in level if not i.by_default}
    for name, inversions in table.items():
        missing = [a for a in attributes if all_of_them and a.name not in answered]
        nearest = [_nearest(arrow, a, name) for a in missing]
        met = [i for i in inversions if not i.by_default]
        yield name, [*met, *nearest] or inversions[:1]


def _nearest(arrow: Arrow, attribute: Attribute, level: str) -> Inversion:
    """How to invert an attribute for which nothing meets the goal: at least completely."""
    weak = arrow.registry.weak_for(arrow.box, attribute, arrow.port, arrow.source, level)
    default = arrow.registry.default_for(arrow.box, attribute, arrow.port, arrow.source, level)
    complete = tuple(w for w in weak if COMPLETE in w.promises)
    return _chosen(attribute, complete or (default,), (), frozenset({COMPLETE}))


def _of_one_variable(inversion: Inversion) -> Inversion:
    """An inversion for cells, which are of one variable each: others' answers do not concern it."""
    return replace(inversion, nature=AGGREGATE)


def _alike(arrow: Arrow, inversions: list[Inversion]) -> bool:
    """Whether all find the same, so that it is one which attributes a row is asked about."""

    def used(each: Inversion) -> frozenset[str]:
        by = arrow.box.used(each.attribute, arrow.port, arrow.source) if USED in each.yields else ()
        return frozenset(by)

    return len({(each.weak, each.verify, used(each)) for each in inversions}) == 1


def _united(inversion: Inversion, asked: set[Asked] | None) -> Inversion:
    """An inversion for rows of which not all are asked about the same attributes.

    A scalar that only some are asked about may not cut the others' answers: it is united. So
    the answer stays complete, and is no longer pure.
    """
    if asked is None or len(asked) < 2:
        return inversion
    promises = frozenset(p for p in inversion.promises if not p.unites)
    shared = all(inversion.attribute in each for each in asked)
    nature = inversion.nature if shared else AGGREGATE
    return replace(inversion, nature=nature, promises=promises)


def inversion_of(
    arrow: Arrow, attribute: Attribute, level: str, above: Guarantee | None
) -> Inversion:
    """How to invert one attribute: verifications that give the goal, weak inverses they need."""
    where = (arrow.box, attribute, arrow.port, arrow.source, level)
    weak, verify = arrow.registry.weak_for(*where), arrow.registry.verifications_for(*where)
    default = arrow.registry.default_for(*where)
    goal = arrow.goal
    wanted = [v for v in verify if v.promises >= goal and (above is None or above >= v.needs)]
    for functions in _satisfiable(wanted, weak, default):
        return _chosen(attribute, *functions, goal)
    direct = [w for w in weak if w.promises >= goal]
    return _chosen(attribute, tuple(direct) or (default,), (), goal)


def _satisfiable(
    verify: list[Verification], weak: list[WeakInverse], default: WeakInverse
) -> Iterator[tuple[tuple[WeakInverse, ...], tuple[Verification, ...]]]:
    """Verifications, as many as can be, with the weak inverses that meet all their conditions."""

    def meeting(needs: Guarantee) -> list[WeakInverse]:
        return [w for w in weak if w.promises >= needs] or [
            w for w in [default] if w.promises >= needs
        ]

    possible = [v for v in verify if meeting(v.needs)]
    while possible:
        needs = frozenset().union(*(v.needs for v in possible))
        if meeting(needs):
            yield tuple(meeting(needs)), tuple(possible)
        possible = possible[:-1]


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
