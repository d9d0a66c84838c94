"""One hop back, on Spark: one job at most for each level, each chunk read once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

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
from inverses.candidates import (
    Piece,
    Question,
    pieces_of,
    read,
    read_of,
    settled,
    settled_batches,
    straddles,
)
from inverses.limits import Limits
from inverses.outline import Part, combined, parts_of
from inverses.plans import Hop
from inverses.registry import Inputs
from inverses.replay import Again
from pipelines.arrays import Chunk, inside, remembering
from pipelines.datasets import TUPLE, Array, Key, Table
from pipelines.errors import Failed
from pipelines.filters import Filter, Span, lattice
from pipelines.sources import check_unchanged
from pipelines.spark import Progress, over, too_long, watched
from pipelines.tables import column

Some = TypeVar("Some")
HERE = 16 * 2**20  # bytes that are read sooner than a Spark job begins


@dataclass(frozen=True, slots=True)
class Inverted:
    """What a hop has found, where it looked, and whether it was asked about all data as one."""

    hop: Hop
    rows: pa.Table
    outline: Filter
    as_one: bool = False


@dataclass(slots=True)
class Work:
    """What a trace may do, and what it has done so far."""

    spark: SparkSession
    limits: Limits
    progress: Progress | None
    again: Again | None = None
    jobs: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"weak": 0.0, "verify": 0.0})
    reached: dict[Key, list[Inverted]] = field(default_factory=dict)
    reads: dict[Key, set[Chunk | int]] = field(default_factory=dict)
    bytes: dict[Key, int] = field(default_factory=dict)
    boxes: dict[Key, Filter] = field(default_factory=dict)
    beside: dict[Key, Inputs] = field(default_factory=dict)

    @property
    def left(self) -> float:
        """How many seconds it may still take."""
        return max(0.0, self.limits.seconds - sum(self.seconds.values()))

    @contextmanager
    def clocked(self, word: str) -> Iterator[None]:
        """Count how long something takes."""
        began = time.monotonic()
        yield
        self.seconds[word] += time.monotonic() - began

    def fewest(self, image: Key, at: Filter) -> Filter:
        """All that is asked about in a dataset in the fewest boxes, found once for all its hops."""
        if image not in self.boxes:
            self.boxes[image] = at.merged()
        return self.boxes[image]

    def inputs(self, hop: Hop, at: Filter) -> Inputs:
        """All inputs of a hop's box, readable where data are asked about."""
        return self.again.inputs(hop, at) if self.again else hop.inputs

    def remembered(self, hop: Hop, at: Filter) -> Inputs:
        """The same, read once for all hops from one image if that is done here."""
        if self.bytes[hop.source.key] > HERE:
            return self.inputs(hop, at)
        if hop.image.key not in self.beside:
            inputs = self.inputs(hop, at)
            read = {a.key: remembering(a) for a in inputs.values() if isinstance(a, Array)}
            self.beside[hop.image.key] = {p: read.get(a.key, a) for p, a in inputs.items()}
        return self.beside[hop.image.key]

    def count(self, source: Table | Array, pieces: list[Piece]) -> None:
        """Note which chunks of a dataset are read, and how many bytes those hold."""
        known = self.reads.setdefault(source.key, set())
        new = set(read_of(pieces)) - known
        known |= new
        groups = source.groups if isinstance(source, Table) else ()
        sizes = [groups[w].bytes if isinstance(w, int) else w.bytes for w in new]
        self.bytes[source.key] = self.bytes.get(source.key, 0) + sum(sizes)


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
    boxes = work.fewest(hop.image.key, at) if isinstance(hop.image, Array) else at
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
            found = _asked(work, source, label_of(hop), asked, few)
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
        rows = _asked(work, source, label_of(hop), question, parts)
    return Inverted(hop, rows, outline, True)


def _swept(work: Work, hop: Hop, at: Filter) -> Inverted:
    """What a sweep over the inputs of a hop's box finds behind the cells in some boxes."""
    assert isinstance(hop.image, Array)
    (level,) = hop.levels
    with work.clocked("weak"):
        parts = as_one(hop.source, parts_of(hop, level, at))
        blocks = blocks_of(hop.image, at)
        wide = around(hop.image, blocks)
        read = as_one(hop.source, parts_of(hop, level, wide))
    with work.clocked("verify"):
        _paid(work, hop.source, read)
        inputs = work.remembered(hop, at)
        question = replace(Question.about(hop.box, hop.source, at, parts), inputs=inputs)
        each = partial(swept, hop, question)
        rows = _done(work, hop.source, label_of(hop), blocks, each, question.schema)
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


def asked_alone(work: Work, dataset: Array, question: Question, part: Part) -> pa.Table:
    """The cells of a part of an array, with their values."""
    return _asked(work, dataset, dataset.name, question, [part])


def _asked(
    work: Work, source: Table | Array, label: str, question: Question, parts: list[Part]
) -> pa.Table:
    """The answer of one Spark job to one question."""
    pieces = _paid(work, source, parts)
    if not pieces:
        return question.schema.empty_table()
    if question.sweep is not None and work.bytes[source.key] <= HERE:
        return _done(work, source, label, [pieces], partial(_together, question), question.schema)
    if question.checked:
        return _watched(work, label, _frame(work.spark, question, pieces, len(parts)))
    return _done(work, source, label, pieces, partial(_alone, question), question.schema)


def _alone(question: Question, piece: Piece) -> list[pa.RecordBatch]:
    """What counts of the candidates in one piece, if no datum has any elsewhere."""
    found: list[pa.RecordBatch] = settled(question, read(question, piece)).to_batches()
    return found


def _together(question: Question, pieces: list[Piece]) -> list[pa.RecordBatch]:
    """What counts of the candidates in all pieces, which are seen at once."""
    found = pa.concat_tables([read(question, piece) for piece in pieces])
    kept: list[pa.RecordBatch] = settled(question, found).to_batches()
    return kept


def _paid(work: Work, source: Table | Array, parts: list[Part]) -> list[Piece]:
    """What some parts need of a source, counted, if it is unchanged and within the limits."""
    pieces = pieces_of(source, parts)
    check_unchanged(source, [where for where, _ in pieces if isinstance(where, Chunk)])
    work.limits.check_candidates(source, parts, pieces)
    work.count(source, pieces)
    return pieces


def _done(
    work: Work,
    source: Table | Array,
    label: str,
    pieces: Sequence[Some],
    each: Callable[[Some], Iterable[pa.RecordBatch]],
    schema: pa.Schema,
) -> pa.Table:
    """The rows of all pieces: by a Spark job, or here if that is done before one would begin."""
    if work.bytes[source.key] > HERE:
        return _watched(work, label, over(work.spark, pieces, each, schema))
    found: list[pa.RecordBatch] = []
    left = work.left
    began = time.monotonic()
    for number, piece in enumerate(pieces):
        if time.monotonic() - began > left:
            raise too_long(label, left)
        if work.progress is not None:
            work.progress(label, number, len(pieces))
        try:
            found += each(piece)
        except Failed as error:
            raise Failed(f"{label}: {error}") from None
    return pa.Table.from_batches(found, schema)


def _watched(work: Work, label: str, frame: DataFrame) -> pa.Table:
    """The rows of a Spark job that is watched, and stopped when its time is up."""
    with watched(work.spark, label, work.progress, work.left) as watch:
        rows = frame.toArrow()
    work.jobs += watch.jobs
    return rows


def _frame(spark: SparkSession, question: Question, pieces: list[Piece], parts: int) -> DataFrame:
    """Read each piece once and settle it there, or after a shuffle if data straddle pieces."""
    if not (question.together and straddles(pieces, parts)):
        return over(spark, pieces, partial(_alone, question), question.schema)
    candidates = over(spark, pieces, lambda p: read(question, p).to_batches(), question.schema)
    tasks = spark.sparkContext.defaultParallelism

    def settle(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settled_batches(question, batches)

    return candidates.repartition(tasks, "owner").mapInArrow(settle, candidates.schema)
