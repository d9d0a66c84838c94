"""Carrying a plan out on Spark, hop by hop, and gathering what the hops have found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from inverses.answer import NO_LINKS, Answer, Found, Links
from inverses.candidates import Question
from inverses.inverting import inverted
from inverses.limits import Limits
from inverses.outline import Part, Price
from inverses.plans import Plan
from inverses.registry import Registry
from inverses.replay import Again
from inverses.selection import Selection, select
from inverses.wishes import Plans, checked_plans
from inverses.work import Work, asked_alone
from pipelines.arrays import Chunk, touched
from pipelines.datasets import Array, Key, Table
from pipelines.sources import check_unchanged
from pipelines.spark import Progress, session, whereabouts
from pipelines.tables import as_filter, column, numbered
from pipelines.workspace import Workspace


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


def carry_out(
    planned: Plan,
    spark: SparkSession,
    limits: Limits | None = None,
    progress: Progress | None = None,
    seen: Callable[[Found], object] = lambda found: None,
) -> Answer:
    """Do what a plan says, hop by hop from the selection to the sources; tell what is `seen`."""
    began = time.monotonic()
    work = Work(spark, limits or Limits(), progress, Again(planned, spark))
    selected = planned.selection
    found = {selected.dataset.key: _selected(work, planned)}
    for hop in planned.hops:
        image, source = hop.image.key, hop.source.key
        if image not in found:
            found[image] = _gathered(work, hop.image)
            seen(found[image])
        reached = inverted(work, hop, found[image].at)
        work.reached.setdefault(source, []).append(reached)
    for key, hops in work.reached.items():
        if key not in found:
            found[key] = _gathered(work, hops[0].hop.source)
            seen(found[key])
    about = {**whereabouts(spark), "jobs": work.jobs}
    seconds = {**work.seconds, "total": time.monotonic() - began}
    return Answer(planned, found, seconds, about)


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


def _selected(work: Work, planned: Plan) -> Found:
    """The selection itself; where nothing is behind it, with the values of its cells."""
    dataset, at = planned.selection.dataset, planned.selection.at
    if planned.hops or isinstance(dataset, Table):
        return Found(dataset, pa.table({k: s.low for k, s in at.spans.items()}), at, {}, 0, 0, at)
    variables = [n for n in planned.selection.attributes if n in dataset.variables]
    part = Part(at, (), True, tuple(variables) or tuple(dataset.variables))
    question = Question(None, dataset, {}, ((),), (True,), ((),), False)
    rows = asked_alone(work, dataset, question, part)
    key = dataset.key
    kept = rows.drop_columns(["owner", "part"])
    return Found(dataset, kept, at, {}, len(work.reads[key]), work.bytes[key], at)


def _gathered(work: Work, dataset: Table | Array) -> Found:
    """Everything that hops have found in a dataset, each row or cell once, with its links."""
    key = dataset.key
    hops = work.reached[key]
    together = pa.concat_tables([each.rows for each in hops])
    identity = ["row"] if isinstance(dataset, Table) else ["variable", *dataset.dims]
    same = numbered([column(together, n) for n in identity])
    _, first, which = np.unique(same, return_index=True, return_inverse=True)
    rows = together.take(first).drop_columns(["owner", "part"])
    pairs = np.column_stack([column(together, "owner"), which.ravel()])
    ends = np.cumsum([each.rows.num_rows for each in hops])
    links: dict[Key, Links] = {}
    for each, mine in zip(hops, np.split(pairs, ends[:-1]), strict=True):
        image = each.hop.image.key
        links[image] = None if each.as_one else _linked(links.get(image, NO_LINKS), mine)
    outline = reduce(lambda a, b: a | b, [each.outline for each in hops])
    at = as_filter(rows.select(dataset.columns if isinstance(dataset, Table) else identity))
    chunks, size = len(work.reads.get(key, ())), work.bytes.get(key, 0)
    return Found(dataset, rows, at, links, chunks, size, outline)


def _linked(known: Links, more: NDArray[np.int64]) -> Links:
    """Pairs of a datum and what is behind it, each once; None once nobody knows them."""
    if known is None:
        return None
    both = np.concatenate([known, more])
    return both[np.unique(numbered(list(both.T)), return_index=True)[1]]
