"""One hop back, on Spark: one job at most for each level, each chunk read once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from inverses.as_one import (
    able,
    around,
    as_one,
    blocks_of,
    in_groups,
    shared,
    sweeping,
    swept,
    very_many,
)
from inverses.candidates import Question, settled
from inverses.limits import Limits
from inverses.outline import Part, combined, last_parts, parts_of
from inverses.places import as_data, cells_of, grid_of
from inverses.plans import Hop
from inverses.registry import Inputs
from inverses.replay import Again
from inverses.work import Inverted, Work, answered, done, paid
from pipelines.arrays import inside
from pipelines.datasets import TUPLE, Array, Table
from pipelines.filters import Filter, lattice
from pipelines.spans import Span
from pipelines.tables import column


def invert(
    hop: Hop,
    at: Filter,
    spark: SparkSession,
    again: Again | None = None,
    limits: Limits | None = None,
) -> pa.Table:
    """What one hop finds behind data of its image, each with the number of the datum it is for."""
    return each_inverted(Work(spark, limits or Limits(seconds=inf), None, again), hop, at).rows


def inverted(work: Work, hop: Hop, at: Filter) -> Inverted:
    """What a hop finds behind data: datum by datum, or behind very many of them as one."""
    if able(hop) and very_many(hop, at):
        return inverted_as_one(work, hop, at)
    return each_inverted(work, hop, at)


def inverted_as_one(work: Work, hop: Hop, at: Filter) -> Inverted:
    """What a hop that is able to tell finds behind all of some data."""
    of_rows = isinstance(hop.image, Table) and isinstance(hop.source, Table)
    boxes = at if of_rows else as_data(hop, work.fewest(hop.image.key, cells_of(hop, at)))
    if not sweeping(hop):
        return each_inverted(work, hop, boxes, together=True)
    if isinstance(hop.source, Table):
        return _rows_swept(work, hop, at, boxes)
    return _swept(work, hop, boxes)


def each_inverted(work: Work, hop: Hop, at: Filter, together: bool = False) -> Inverted:
    """The candidates of a hop that count, level by level from the top; as one if `together`."""
    above: Filter | None = None
    found: pa.Table | None = None
    for level in hop.levels:
        with work.clocked("weak"):
            parts = parts_of(hop, level, at, above)
            question = Question.about(hop.box, hop.source, at, parts)
        with work.clocked("verify"):
            if isinstance(hop.source, Array) and level.name == TUPLE:
                above = steps_of(hop.source, question, parts)
                continue
            outline = combined(parts)
            source = work.again.source(hop, outline) if work.again else hop.source
            asked = replace(question, source=source, port=hop.port, inputs=_beside(work, hop, at))
            few = as_one(hop.source, parts) if together else parts
            found = answered(work, source, label_of(hop), asked, few)
    assert found is not None
    return Inverted(hop, found, outline, together)


def _rows_swept(work: Work, hop: Hop, at: Filter, boxes: Filter) -> Inverted:
    """What a sweep over the rows of a hop's source finds behind data that lie in some boxes."""
    (level,) = hop.levels
    with work.clocked("weak"):
        parts = shared(in_groups(hop, boxes), parts_of(hop, level, boxes))
        outline = combined(parts)
    with work.clocked("verify"):
        source = work.again.source(hop, outline) if work.again else hop.source
        question = Question.about(hop.box, source, in_groups(hop, at), parts, hop.sweep)
        rows = answered(work, source, label_of(hop), question, parts)
    return Inverted(hop, rows, outline, True)


def _swept(work: Work, hop: Hop, at: Filter) -> Inverted:
    """What a sweep over the inputs of a hop's box finds behind the cells in some boxes."""
    with work.clocked("weak"):
        parts = as_one(hop.source, last_parts(hop, at))
        blocks = blocks_of(grid_of(hop), cells_of(hop, at))
        wide = around(grid_of(hop), blocks)
        read = as_one(hop.source, last_parts(hop, as_data(hop, wide)))
    with work.clocked("verify"):
        paid(work, hop.source, read)
        inputs = work.remembered(hop, at)
        question = replace(Question.about(hop.box, hop.source, at, parts), inputs=inputs)
        each = partial(swept, hop, question)
        rows = done(work, hop.source, label_of(hop), blocks, each, question.schema)
    return Inverted(hop, rows, combined(parts), True)


def label_of(hop: Hop) -> str:
    """What is said while a hop is under way."""
    return f"{hop.image.name} to {hop.source.name}"


def _beside(work: Work, hop: Hop, at: Filter) -> Inputs:
    """All inputs of a hop's box, readable where data are asked about, if a verification looks.

    Each is traced by a hop of its own, which checks it and counts what is read of it.
    """
    return work.inputs(hop, at) if hop.beside else {}


def steps_of(array: Array, question: Question, parts: list[Part]) -> Filter:
    """The tuples of an array that count, known from its coordinates, as a filter."""
    record = array.dims[0]
    if not question.combines:
        return inside(array, parts[0].filter).only(record)
    tables = [_candidate_steps(array, p.filter, n) for n, p in enumerate(parts)]
    kept = settled(question, pa.concat_tables(tables))
    steps = column(kept, record)
    return Filter(column(kept, "owner"), {record: Span(steps, steps)})


def _candidate_steps(array: Array, filter_: Filter, part: int) -> pa.Table:
    """The steps that a filter holds, as candidates whose other columns do not matter."""
    within = inside(array, filter_)
    steps = within.spans[array.dims[0]]
    box, points = lattice(steps.low[:, None], steps.high[:, None])
    zero = np.zeros(len(points), np.int64)
    others = [zero] * (len(array.dims) - 1)
    names = ["owner", "part", "variable", *array.dims]
    return pa.table([within.owner[box], zero + part, zero, points[:, 0], *others], names=names)
