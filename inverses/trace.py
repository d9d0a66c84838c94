"""Carrying a plan out on Spark: one job at most for each hop and level."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from inverses.answer import Answer, Found, Limits
from inverses.candidates import (
    Piece,
    Question,
    pieces_of,
    read,
    settled,
    settled_batches,
    straddles,
)
from inverses.outline import Part, Price, combined, parts_of
from inverses.plans import Hop, Plan
from inverses.registry import Inputs, Registry
from inverses.replay import Again
from inverses.selection import Selection, select
from inverses.wishes import Plans, checked_plans
from pipelines.arrays import Chunk, inside, touched
from pipelines.datasets import TUPLE, Array, Key, Table
from pipelines.errors import Failed
from pipelines.filters import Filter, Span, lattice
from pipelines.sources import check_unchanged
from pipelines.spark import Progress, over, session, watched, whereabouts
from pipelines.tables import as_filter, column, numbered
from pipelines.workspace import Workspace

HERE = 16 * 2**20  # bytes that are read sooner than a Spark job begins


def trace(
    workspace: Workspace,
    dataset: str,
    where: str | None = None,
    attributes: Iterable[str] = (),
    want: str = "exact",
    *,
    spark: SparkSession | None = None,
    registry: Registry | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    infer: bool = False,
) -> Answer:
    """Where some rows or cells of a dataset came from, with a guarantee.

    What is inferred of boxes that have no inverses has none; it is used if asked to `infer`.
    """
    return trace_each(
        workspace,
        dataset,
        where,
        {},
        attributes,
        want,
        spark=spark,
        registry=registry,
        limits=limits,
        progress=progress,
        infer=infer,
    )


def trace_each(
    workspace: Workspace,
    dataset: str,
    where: str | None,
    own: Mapping[str, str],
    attributes: Iterable[str] = (),
    want: str = "exact",
    *,
    spark: SparkSession | None = None,
    registry: Registry | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    infer: bool = False,
) -> Answer:
    """Where some rows or cells came from, by the wish that each dataset behind them has."""
    selection = select(workspace, dataset, where, attributes)
    known, within = registry or Registry.of(), limits or Limits()
    planned, _ = checked_plans(workspace, selection, want, own, known, within, infer)
    return carry_out_each(planned, spark or session(), within, progress)


def carry_out_each(
    planned: Plans,
    spark: SparkSession,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Do what each plan says in the time that all have; answers to own wishes are in the one."""
    left, answers = limits or Limits(), {}
    for each in planned.every:
        done = answers[id(each)] = carry_out(each, spark, left, progress)
        left = replace(left, seconds=max(0.0, left.seconds - done.seconds["total"]))
    answer = answers[id(planned.plan)]
    times = {word: sum(a.seconds[word] for a in answers.values()) for word in answer.seconds}
    times |= {"plan": planned.seconds, "total": times["total"] + planned.seconds}
    jobs = sum(int(a.spark["jobs"]) for a in answers.values())
    own = {name: answers[id(each)] for name, each in planned.own.items()}
    return replace(answer, own=own, seconds=times, spark={**answer.spark, "jobs": jobs})


@dataclass(slots=True)
class _Work:
    """What a trace has found so far."""

    spark: SparkSession
    limits: Limits
    progress: Progress | None
    again: Again | None = None
    jobs: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"weak": 0.0, "verify": 0.0})
    reached: dict[Key, list[tuple[Hop, pa.Table, Filter]]] = field(default_factory=dict)
    reads: dict[Key, set[Chunk | int]] = field(default_factory=dict)
    bytes: dict[Key, int] = field(default_factory=dict)

    def count(self, source: Table | Array, pieces: list[Piece]) -> None:
        """Note which chunks of a dataset are read, and how many bytes those hold."""
        known = self.reads.setdefault(source.key, set())
        new = {where for where, _ in pieces} - known
        known |= new
        groups = source.groups if isinstance(source, Table) else ()
        sizes = [groups[w].bytes if isinstance(w, int) else w.bytes for w in new]
        self.bytes[source.key] = self.bytes.get(source.key, 0) + sum(sizes)


def carry_out(
    planned: Plan,
    spark: SparkSession,
    limits: Limits | None = None,
    progress: Progress | None = None,
    seen: Callable[[Found], object] = lambda found: None,
) -> Answer:
    """Do what a plan says, hop by hop from the selection to the sources; tell what is `seen`."""
    began = time.monotonic()
    work = _Work(spark, limits or Limits(), progress, Again(planned, spark))
    selected = planned.selection
    found = {selected.dataset.key: _selected(work, planned)}
    for hop in planned.hops:
        image, source = hop.image.key, hop.source.key
        if image not in found:
            found[image] = _gathered(work, hop.image)
            seen(found[image])
        rows, outline = _hop(work, hop, found[image].at)
        work.reached.setdefault(source, []).append((hop, rows, outline))
    for key, hops in work.reached.items():
        if key not in found:
            found[key] = _gathered(work, hops[0][0].source)
            seen(found[key])
    about = {**whereabouts(spark), "jobs": work.jobs}
    seconds = {**work.seconds, "total": time.monotonic() - began}
    return Answer(planned, found, seconds, about)


def invert(
    hop: Hop,
    at: Filter,
    spark: SparkSession,
    again: Again | None = None,
    limits: Limits | None = None,
) -> pa.Table:
    """What one hop finds behind data of its image, each with the number of the datum it is for."""
    return _hop(_Work(spark, limits or Limits(seconds=inf), None, again), hop, at)[0]


def check_sources(planned: Plan, priced: Iterable[Price]) -> None:
    """Refuse at once what a trace would refuse on the way: sources that runs read otherwise."""
    check_selected(planned.selection)
    for price in priced:
        check_unchanged(price.hop.source, [c for c in price.reads if isinstance(c, Chunk)])


def check_selected(selection: Selection) -> None:
    """Refuse what is selected of a source that runs read otherwise."""
    selected, at = selection.dataset, selection.at
    if selected.origin is not None and isinstance(selected, Array):
        everywhere = [touched(selected, v, at) for v in selected.variables]
        check_unchanged(selected, [chunk for found in everywhere for chunk, _ in found])
    else:
        check_unchanged(selected)


def _hop(work: _Work, hop: Hop, at: Filter) -> tuple[pa.Table, Filter]:
    """The candidates of a hop that count, level by level from the top."""
    above: Filter | None = None
    found: pa.Table | None = None
    for level in hop.levels:
        began = time.monotonic()
        parts = parts_of(hop, level, at, above)
        question = Question.about(hop.box, hop.source, at, parts)
        work.seconds["weak"] += time.monotonic() - began
        began = time.monotonic()
        if isinstance(hop.source, Array) and level.name == TUPLE:
            above = steps_of(hop.source, question, parts)
        else:
            outline = combined(parts)
            source = work.again.source(hop, outline) if work.again else hop.source
            label = f"{hop.image.name} to {hop.source.name}"
            asked = replace(question, source=source, port=hop.port, inputs=_beside(work, hop, at))
            found = _asked(work, source, label, asked, parts)
        work.seconds["verify"] += time.monotonic() - began
    assert found is not None
    return found, outline


def _beside(work: _Work, hop: Hop, at: Filter) -> Inputs:
    """All inputs of a hop's box, readable where data are asked about, if a verification looks.

    Each is traced by a hop of its own, which checks it and counts what is read of it.
    """
    if not hop.beside:
        return {}
    return work.again.inputs(hop, at) if work.again else hop.inputs


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


def _asked(
    work: _Work, source: Table | Array, label: str, question: Question, parts: list[Part]
) -> pa.Table:
    """The answer of one Spark job to one question."""
    pieces = pieces_of(source, parts)
    check_unchanged(source, [where for where, _ in pieces if isinstance(where, Chunk)])
    work.limits.check_candidates(source, pieces)
    work.count(source, pieces)
    if not pieces:
        return question.schema.empty_table()
    if not any(question.checks) and work.bytes[source.key] <= HERE:
        return _read_here(work, label, question, pieces)
    left = max(0.0, work.limits.seconds - sum(work.seconds.values()))
    with watched(work.spark, label, work.progress, left) as watch:
        rows = _frame(work.spark, question, pieces, len(parts)).toArrow()
    work.jobs += watch.jobs
    return rows


def _read_here(work: _Work, label: str, question: Question, pieces: list[Piece]) -> pa.Table:
    """What nobody has to verify, and is little: read before a Spark job would have begun."""
    found = []
    for number, piece in enumerate(pieces):
        if work.progress is not None:
            work.progress(label, number, len(pieces))
        try:
            found.append(settled(question, read(question, piece)))
        except Failed as error:
            raise Failed(f"{label}: {error}") from None
    return pa.concat_tables(found)


def _frame(spark: SparkSession, question: Question, pieces: list[Piece], parts: int) -> DataFrame:
    """Read each piece once and settle it there, or after a shuffle if data straddle pieces."""
    if not (question.together and straddles(pieces, parts)):
        return over(
            spark,
            pieces,
            lambda p: settled(question, read(question, p)).to_batches(),
            question.schema,
        )
    candidates = over(spark, pieces, lambda p: read(question, p).to_batches(), question.schema)
    tasks = spark.sparkContext.defaultParallelism

    def settle(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settled_batches(question, batches)

    return candidates.repartition(tasks, "owner").mapInArrow(settle, candidates.schema)


def _selected(work: _Work, planned: Plan) -> Found:
    """The selection itself; where nothing is behind it, with the values of its cells."""
    dataset, at = planned.selection.dataset, planned.selection.at
    if planned.hops or isinstance(dataset, Table):
        return Found(dataset, pa.table({k: s.low for k, s in at.spans.items()}), at, {}, 0, 0, at)
    variables = [n for n in planned.selection.attributes if n in dataset.variables]
    part = Part(at, (), True, tuple(variables) or tuple(dataset.variables))
    question = Question(None, dataset, {}, ((),), (True,), ((),), False)
    rows = _asked(work, dataset, dataset.name, question, [part])
    key = dataset.key
    kept = rows.drop_columns(["owner", "part"])
    return Found(dataset, kept, at, {}, len(work.reads[key]), work.bytes[key], at)


def _gathered(work: _Work, dataset: Table | Array) -> Found:
    """Everything that hops have found in a dataset, each row or cell once, with its links."""
    key = dataset.key
    hops = work.reached[key]
    together = pa.concat_tables([rows for _, rows, _ in hops])
    identity = ["row"] if isinstance(dataset, Table) else ["variable", *dataset.dims]
    same = numbered([column(together, n) for n in identity])
    _, first, which = np.unique(same, return_index=True, return_inverse=True)
    rows = together.take(first).drop_columns(["owner", "part"])
    pairs = np.column_stack([column(together, "owner"), which.ravel()])
    ends = np.cumsum([found.num_rows for _, found, _ in hops])
    links: dict[Key, NDArray[np.int64]] = {}
    for (hop, _, _), mine in zip(hops, np.split(pairs, ends[:-1]), strict=True):
        known = links.get(hop.image.key, np.zeros((0, 2), np.int64))
        both = np.concatenate([known, mine])
        links[hop.image.key] = both[np.unique(numbered(list(both.T)), return_index=True)[1]]
    outline = reduce(lambda a, b: a | b, [each for _, _, each in hops])
    at = as_filter(rows.select(dataset.columns if isinstance(dataset, Table) else identity))
    chunks, size = len(work.reads.get(key, ())), work.bytes.get(key, 0)
    return Found(dataset, rows, at, links, chunks, size, outline)
