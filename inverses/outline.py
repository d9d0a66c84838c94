"""The outline of an answer: what the weak inverses alone say, before any data is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from inverses.places import as_data, cells_of, grid_of, tells_of_cells
from inverses.plans import Hop, Inversion, Level, Plan
from inverses.registry import SCALAR, Verification
from pipelines import arrays, tables
from pipelines.arrays import Chunk
from pipelines.datasets import ELEMENT, Array, Group, Key, Table
from pipelines.filters import Filter
from pipelines.spans import span

VARIABLE = "variable"
MANY = 10_000  # data past which nobody looks at what is behind each by itself


@dataclass(frozen=True, slots=True)
class Check:
    """The verifications of one attribute, and whether what any of them keeps is kept."""

    verify: tuple[Verification, ...]
    unites: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Candidates found by one filter and checked together; scalar parts intersect, others unite."""

    filter: Filter
    checks: tuple[Check, ...]
    scalar: bool
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Price:
    """What carrying out one level of a hop will read at most, and the filter it looks within."""

    hop: Hop
    level: Level
    within: Filter
    reads: tuple[Chunk | Group, ...]
    rows: int
    cells: int | None

    @property
    def chunks(self) -> int:
        return len(self.reads)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.reads)


def parts_of(hop: Hop, level: Level, at: Filter, above: Filter | None = None) -> list[Part]:
    """The weak inverses of a level applied to a selection, within what the level above found.

    Scalar attributes whose candidates are decided one by one, or not at all, are intersected
    here already, so that only their common candidates are ever read.
    """
    parts = _once(_part(hop, level, each, at, above) for each in _different(hop, level))
    early = [p for p in parts if p.scalar and _pointwise(p)]
    late = [p for p in parts if not (p.scalar and _pointwise(p))]
    merged = {p.variables: p for p in early}
    for variables in merged:
        same = [p for p in early if p.variables == variables]
        both = reduce(lambda a, b: a & b, [p.filter for p in same])
        merged[variables] = Part(both, tuple(c for p in same for c in p.checks), True, variables)
    return [*merged.values(), *late]


def last_parts(hop: Hop, at: Filter) -> list[Part]:
    """The weak inverses of a hop's last level, within what those above say without a look."""
    *_, (_, parts, _) = by_level(hop, at)
    return parts


def by_level(hop: Hop, at: Filter) -> Iterator[tuple[Level, list[Part], Filter]]:
    """Each level of a hop with its filters, made from filters alone; nothing is read."""
    above: Filter | None = None
    for level in hop.levels:
        parts = parts_of(hop, level, at, above)
        above = _existing(hop.source, combined(parts))
        yield level, parts, above


def _in_regions(hop: Hop, at: Filter) -> Filter:
    """Very many rows that tell of cells, by the regions of those."""
    many = tells_of_cells(hop) and len(at) > MANY
    if not many or not {f"{d}_index" for d in grid_of(hop).dims} <= set(at.spans):
        return at
    return as_data(hop, fewest(grid_of(hop), cells_of(hop, at)))


def _different(hop: Hop, level: Level) -> Iterable[Inversion]:
    """The inversions of a level, but of those that ask the same of whole rows only the first."""
    if isinstance(hop.image, Array):
        return level.inversions
    found: dict[object, Inversion] = {}
    for each in level.inversions:
        functions = tuple(id(f.function) for f in (*each.weak, *each.verify))
        same = (functions, each.nature, each.weak_unites, each.verified_unites)
        found.setdefault((same, _variables(hop, level, each)), each)
    return found.values()


def _once(parts: Iterable[Part]) -> list[Part]:
    """Parts without those that look for the very same as another does."""
    found: dict[object, Part] = {}
    for each in parts:
        spans = frozenset((key, id(span)) for key, span in each.filter.spans.items())
        same = (id(each.filter.owner), spans, each.checks, each.scalar, each.variables)
        found.setdefault(same, each)
    return list(found.values())


def _part(hop: Hop, level: Level, each: Inversion, at: Filter, above: Filter | None) -> Part:
    mine = about(hop.image, each.attribute, at)
    filters = [w(hop.box, mine, hop.source) for w in each.weak]
    found = reduce(lambda a, b: a | b if each.weak_unites else a & b, filters)
    found = found if above is None else found & above
    checks = (Check(each.verify, each.verified_unites),) if each.verify else ()
    return Part(found, checks, each.nature == SCALAR, _variables(hop, level, each))


def about(image: Table | Array, attribute: str, at: Filter) -> Filter:
    """Of cells that each are of one variable, those of this one."""
    which = at.span(VARIABLE)
    if which is None or not isinstance(image, Array) or attribute not in image.variables:
        return at
    mine = at[which.holds(np.full(len(at), image.variables.index(attribute)))]
    return Filter(mine.owner, {k: s for k, s in mine.spans.items() if k != VARIABLE})


def _pointwise(part: Part) -> bool:
    return all(v.pointwise for c in part.checks for v in c.verify)


def _variables(hop: Hop, level: Level, each: Inversion) -> tuple[str, ...]:
    """The variables whose cells an inversion finds; all where it does not say."""
    if level.name != ELEMENT:
        return ()
    assert isinstance(hop.source, Array)
    found = [a.name for a in hop.finds(each) if a.dims]
    return tuple(found or hop.source.variables)


def combined(parts: Sequence[Part]) -> Filter:
    """Where an answer can lie: in all scalar parts, or in any other."""
    scalar = [p.filter for p in parts if p.scalar]
    common = [reduce(lambda a, b: a & b, scalar)] if scalar else []
    return reduce(lambda a, b: a | b, [*common, *(p.filter for p in parts if not p.scalar)])


def located(source: Table | Array, parts: Sequence[Part]) -> Filter:
    """Where an answer can lie, variable by variable of an array, to be asked about in turn."""
    if not isinstance(source, Array) or not _all_variables(parts):
        return combined(parts)
    found = []
    for number, variable in enumerate(source.variables):
        mine = [p for p in parts if variable in p.variables]
        if mine:
            where = combined(mine)
            which = span(np.full(len(where), number))
            found.append(Filter(where.owner, {**where.spans, VARIABLE: which}))
    return reduce(lambda a, b: a | b, found)


def outlines(plan: Plan) -> Iterator[tuple[Hop, Level, list[Part], Filter]]:
    """Each hop and level with its filters, made from filters alone; nothing is read."""
    at: dict[Key, Filter] = {plan.selection.dataset.key: _selected(plan)}
    for hop in plan.hops:
        image, source = hop.image.key, hop.source.key
        for level, parts, within in by_level(hop, _in_regions(hop, at[image])):
            yield hop, level, parts, within
        # What was found is now itself asked about, box by box, whoever it was found for.
        asked = _existing(hop.source, located(hop.source, parts))
        at[source] = fewest(hop.source, at[source] | asked if source in at else asked)


def _selected(plan: Plan) -> Filter:
    """The selection; in fewer boxes where it is very large and all who are asked know regions."""
    selected, at = plan.selection.dataset, plan.selection.at
    first = [i for hop in plan.hops if hop.image.key == selected.key for i in hop.inversions]
    regions = all(w.of_regions for i in first for w in i.weak)
    many = isinstance(selected, Array) and len(at) > MANY
    return fewest(selected, at) if regions and many else at


def fewest(dataset: Table | Array, at: Filter) -> Filter:
    """The same part of a dataset, each different box once; very many cells in fewer boxes."""
    found = at.loose()
    if isinstance(dataset, Table) or len(found) <= MANY:
        return found
    return _existing(dataset, found).merged()


def outline(plan: Plan) -> dict[Key, Filter]:
    """For every dataset, a filter that the answer lies in."""
    found: dict[Key, Filter] = {}
    for hop, level, _, filter_ in outlines(plan):
        if level is hop.levels[-1]:
            key = hop.source.key
            found[key] = found[key] | filter_ if key in found else filter_
    return found


def prices(plan: Plan) -> list[Price]:
    """What each hop and level will read, at most."""
    return [_price(*each) for each in outlines(plan)]


def _price(hop: Hop, level: Level, parts: list[Part], filter_: Filter) -> Price:
    if isinstance(hop.source, Table):
        return _table_price(hop, level, hop.source, filter_)
    return _array_price(hop, level, hop.source, parts, filter_)


def _table_price(hop: Hop, level: Level, table: Table, filter_: Filter) -> Price:
    groups = tuple(table.groups[n] for n, _ in tables.touched(table, filter_))
    return Price(hop, level, filter_, groups, sum(g.rows for g in groups), None)


def _array_price(hop: Hop, level: Level, array: Array, parts: list[Part], where: Filter) -> Price:
    """A price for cells; the top level of an array is known from its coordinates, and is free."""
    inner = arrays.inside(array, where).loose()
    steps = _distinct_steps(array, inner)
    if level.name != ELEMENT:
        return Price(hop, level, where, (), steps, None)
    found = tuple(c for v in _all_variables(parts) for c, _ in arrays.touched(array, v, inner))
    cells = int(inner.points) * len(_all_variables(parts))
    return Price(hop, level, where, found, steps, min(cells, array.cells))


def _all_variables(parts: Sequence[Part]) -> list[str]:
    return list(dict.fromkeys(v for p in parts for v in p.variables))


def _distinct_steps(array: Array, inner: Filter) -> int:
    """How many steps boxes touch, counted without listing the boxes' steps one by one."""
    change = np.zeros(array.shape[0] + 1, np.int64)
    record = inner.spans[array.dims[0]]
    np.add.at(change, record.low, 1)
    np.add.at(change, record.high + 1, -1)
    return int((np.cumsum(change[:-1]) > 0).sum())


def _existing(source: Table | Array, filter_: Filter) -> Filter:
    """A filter cut to what a dataset has, where that is known without reading."""
    if isinstance(source, Table):
        return filter_
    return arrays.inside(source, filter_).only(*filter_.spans)
