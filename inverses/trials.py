"""Trials in memory: what a box makes of its inputs, and what its inverses find behind that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import inf
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from inverses.candidates import BEFORE_ROW, Question
from inverses.guarantees import COMPLETE, EXACT, Guarantee
from inverses.inverting import invert, inverted_as_one, steps_of
from inverses.limits import Limits
from inverses.outline import parts_of
from inverses.planner import Arrow, hop_about, inversion_of
from inverses.plans import Hop, Inversion, Level
from inverses.registry import SCALAR, Inputs, Registration, Registry, Verification, WeakInverse
from inverses.selection import cells_where
from inverses.work import Work
from pipelines.arrays import inside
from pipelines.boxes.box import Box
from pipelines.datasets import TUPLE, Array, Attribute, Table
from pipelines.filters import Filter
from pipelines.here import Here
from pipelines.tables import as_filter, column, matching

Item = tuple[Any, ...]
Items = set[Item]


def inversions(
    registry: Registry,
    box: Box,
    port: str,
    image: Table | Array,
    source: Table | Array,
    inputs: Inputs | None = None,
) -> Iterator[tuple[Registration, Attribute, Hop]]:
    """Every registration that fits an attribute and a port, with a hop that uses it alone.

    A verification comes with the weak inverses whose promises it needs; a level below the first
    with the best that all attributes together have above it. What looks beside needs all inputs.
    """
    arrow = Arrow(box, port, source, EXACT, registry)
    cells = [a for a in image.attributes if a.dims]
    for attribute in cells if box.flat and cells else image.attributes:
        for level in arrow.levels:
            where = (box, attribute, port, source, level)
            weak, verify = registry.weak_for(*where), registry.verifications_for(*where)
            for stated in (*weak, *verify):
                used = [stated] if isinstance(stated, WeakInverse) else _needed(stated, weak)
                inversion = _alone(attribute, stated, used)
                levels = (*_above(arrow, image, level), Level(level, (inversion,), EXACT))
                given, sweep = inputs or {port: source}, registry.sweep_of(box)
                yield stated, attribute, Hop(box, port, image, source, levels, given, sweep)


def intersections(
    registry: Registry,
    box: Box,
    port: str,
    image: Table | Array,
    source: Table | Array,
    inputs: Inputs,
) -> Iterator[tuple[Registration, Attribute, Hop]]:
    """Hops that ask about two scalar attributes of rows, so that what one finds cuts the other's.

    Each comes once for either attribute, with a registration that is used for it, and ends at the
    level at which it is cut.
    """
    arrow = Arrow(box, port, source, EXACT, registry)
    for pair in combinations(image.attributes, 2) if isinstance(image, Table) else ():
        hop = hop_about(arrow, image, inputs, frozenset(a.name for a in pair))
        for number, level in enumerate(hop.levels):
            cut = replace(hop, levels=hop.levels[: number + 1])
            for each in _cutting(level) if COMPLETE in level.guarantee else ():
                yield (each.verify or each.weak)[0], image.attribute(each.attribute), cut


def _cutting(level: Level) -> list[Inversion]:
    """The inversions of a level that are intersected with others that find something else."""
    scalar = [i for i in level.inversions if i.nature == SCALAR and not i.by_default]
    return scalar if len({(i.weak, i.verify) for i in scalar}) > 1 else []


def _needed(stated: Registration, weak: list[WeakInverse]) -> list[WeakInverse]:
    assert isinstance(stated, Verification)
    return [w for w in weak if w.promises >= stated.needs]


def _alone(attribute: Attribute, stated: Registration, weak: list[Any]) -> Inversion:
    verify = (stated,) if isinstance(stated, Verification) else ()
    return Inversion(attribute.name, stated.nature, tuple(weak), verify, stated.promises)


def _above(arrow: Arrow, image: Table | Array, level: str) -> Iterator[Level]:
    for name in arrow.levels[: arrow.levels.index(level)]:
        best: Guarantee = frozenset({COMPLETE})
        every = [inversion_of(arrow, attribute, name, None) for attribute in image.attributes]
        yield Level(name, tuple(i for i in every if not i.by_default) or tuple(every[:1]), best)


def found_by(hop: Hop, at: Filter) -> list[Items]:
    """What a hop finds behind each datum: cells by variable and indices, rows by their number.

    Where it leads to whole tuples of an array, these are found, by their number too.
    """
    found: list[Items] = [set() for _ in range(len(at))]
    for owner, item in _tuples(hop, at) if tuples_of_array(hop) else _parts(hop, at):
        found[owner].add(item)
    return found


def tuples_of_array(hop: Hop) -> bool:
    """Whether a hop ends at the tuples of an array, and not at its cells."""
    return isinstance(hop.source, Array) and hop.levels[-1].name == TUPLE


def _parts(hop: Hop, at: Filter) -> Iterator[tuple[int, Item]]:
    rows = invert(hop, at, cast(SparkSession, Here(2)))
    return zip(column(rows, "owner").tolist(), _items(hop.source, rows), strict=True)


def _tuples(hop: Hop, at: Filter) -> Iterator[tuple[int, Item]]:
    assert isinstance(hop.source, Array)
    parts = parts_of(hop, hop.levels[-1], at)
    steps = steps_of(hop.source, Question.about(hop.box, hop.source, at, parts), parts)
    within = inside(hop.source, steps)
    span = within.spans[hop.source.dims[0]]
    for owner, low, high in zip(within.owner.tolist(), span.low, span.high, strict=True):
        yield from ((owner, (step,)) for step in range(int(low), int(high) + 1))


def found_as_one(hop: Hop, at: Filter) -> Items:
    """What a hop that is able to tell finds behind data that are asked about as one."""
    told = at.only(*(hop.image.dims if isinstance(hop.image, Array) else hop.image.columns))
    work = Work(cast(SparkSession, Here(2)), Limits(seconds=inf), None)
    data = Filter(np.arange(len(at)), told.spans)
    return set(_items(hop.source, inverted_as_one(work, hop, data).rows))


def _items(source: Table | Array, rows: pa.Table) -> Iterator[Item]:
    if isinstance(source, Array):
        names = [source.variables[v] for v in column(rows, "variable")]
        return zip(names, *(column(rows, d).tolist() for d in source.dims), strict=True)
    before, total = [], 0
    for group in source.groups:
        before.append(total)
        total += group.rows
    numbers = column(rows, "row")
    inside = numbers & ((1 << BEFORE_ROW) - 1)
    return ((before[g] + n,) for g, n in zip(numbers >> BEFORE_ROW, inside.tolist(), strict=True))


def data_of(image: Table | Array) -> Filter:
    """Every row of a table, or every cell of an array, as one selection."""
    if isinstance(image, Table):
        return as_filter(matching(image, None))
    return cells_where(image, None)
