"""The work of a trace: what it may do, what it has done, and its questions put to Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

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
from inverses.outline import Part
from inverses.plans import Hop
from inverses.registry import Inputs
from inverses.replay import Again
from pipelines.arrays import Chunk, remembering
from pipelines.datasets import Array, Key, Table
from pipelines.errors import Failed
from pipelines.filters import Filter
from pipelines.sources import check_unchanged
from pipelines.spark import Progress, mapped, over, too_long, watched

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


def asked_alone(work: Work, dataset: Array, question: Question, part: Part) -> pa.Table:
    """The cells of a part of an array, with their values."""
    return answered(work, dataset, dataset.name, question, [part])


def answered(
    work: Work, source: Table | Array, label: str, question: Question, parts: list[Part]
) -> pa.Table:
    """The answer of one Spark job to one question."""
    pieces = paid(work, source, parts)
    if not pieces:
        return question.schema.empty_table()
    if question.checked and question.at_once and work.bytes[source.key] <= HERE:
        return done(work, source, label, [pieces], partial(_together, question), question.schema)
    if question.checked:
        return _watched(work, label, _frame(work.spark, question, pieces, len(parts)))
    return done(work, source, label, pieces, partial(_alone, question), question.schema)


def _alone(question: Question, piece: Piece) -> list[pa.RecordBatch]:
    """What counts of the candidates in one piece, if no datum has any elsewhere."""
    found: list[pa.RecordBatch] = settled(question, read(question, piece)).to_batches()
    return found


def _together(question: Question, pieces: list[Piece]) -> list[pa.RecordBatch]:
    """What counts of the candidates in all pieces, which are seen at once."""
    found = pa.concat_tables([read(question, piece) for piece in pieces])
    kept: list[pa.RecordBatch] = settled(question, found).to_batches()
    return kept


def paid(work: Work, source: Table | Array, parts: list[Part]) -> list[Piece]:
    """What some parts need of a source, counted, if it is unchanged and within the limits."""
    pieces = pieces_of(source, parts)
    check_unchanged(source, [where for where, _ in pieces if isinstance(where, Chunk)])
    work.limits.check_candidates(source, parts, pieces)
    work.count(source, pieces)
    return pieces


def done(
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

    return mapped(candidates, settle, candidates.schema, "owner", tasks)
