"""Impact: from cells of an input forward to everything derived from them, by the same inverses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from inverses.answer import plain_value
from inverses.guarantees import EXACT, Guarantee, names, wish
from inverses.inverting import invert
from inverses.limits import Limits
from inverses.outline import VARIABLE
from inverses.planner import behind, plan
from inverses.plans import Plan
from inverses.registry import Registry
from inverses.replay import Again, Read, available, read_behind, read_beside
from inverses.selection import Selection, select
from inverses.touching import candidates, derivable, weakly_behind
from inverses.trace import check_selected
from pipelines.arrays import Chunk, coordinate
from pipelines.datasets import Array, Key, Table
from pipelines.errors import TooDear
from pipelines.filters import Filter
from pipelines.sources import check_unchanged
from pipelines.spark import watched
from pipelines.tables import column
from pipelines.workspace import Workspace

SAMPLE = 10


@dataclass(frozen=True, slots=True)
class Reached:
    """What of one dataset was derived from a selection, with what holds of it."""

    dataset: Table | Array
    rows: pa.Table
    guarantee: Guarantee

    def table(self) -> pa.Table:
        """The rows, or the cells with their coordinates, as people read them."""
        if isinstance(self.dataset, Table):
            return self.rows
        array = self.dataset
        named = {d: coordinate(array, d)[column(self.rows, d)] for d in array.dims}
        shown = {d: v.astype("datetime64[us]") if v.dtype.kind == "M" else v
                 for d, v in named.items()}  # fmt: skip
        kinds = np.array(array.variables, object)[column(self.rows, VARIABLE)]
        indices = {f"{d}_index": self.rows[d] for d in array.dims}
        return pa.table({"variable": kinds, **shown, **indices})

    def to_json(self) -> dict[str, Any]:
        sample = self.table().slice(0, SAMPLE).to_pylist()
        array = isinstance(self.dataset, Array)
        return {
            "kind": self.dataset.kind,
            "rows": None if array else self.rows.num_rows,
            "cells": self.rows.num_rows if array else None,
            "guarantee": names(self.guarantee),
            "kept": self.dataset.kept,
            "sample": [{k: plain_value(v) for k, v in row.items()} for row in sample],
        }


@dataclass(frozen=True, slots=True)
class Impact:
    """Everything that was derived from a selection."""

    selection: Selection
    reached: Mapping[Key, Reached]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "selection": {
                "dataset": self.selection.dataset.name,
                "where": self.selection.where,
                "rows": len(self.selection),
            },
            "impact": {key[0]: each.to_json() for key, each in self.reached.items()},
            "seconds": {"total": round(self.seconds, 3)},
        }


def impact(
    workspace: Workspace,
    dataset: str,
    where: str | None = None,
    want: str = "exact",
    *,
    spark: SparkSession,
    registry: Registry | None = None,
    limits: Limits | None = None,
) -> Impact:
    """What some rows or cells of a dataset have had a part in, with a guarantee."""
    began = time.monotonic()
    selection = select(workspace, dataset, where)
    check_selected(selection)
    known, within = registry or Registry.of(), limits or Limits()
    reached = {selection.dataset.key: _selected(selection)}
    for image in _derived(workspace, selection.dataset):
        found = [
            _through(arrow, reached[source], spark, _left(within, began))
            for source, arrow in _arrows(workspace, image, want, known)
            if source in reached and reached[source].rows.num_rows
        ]
        if found:
            reached[image.key] = _united(image, found)
    del reached[selection.dataset.key]
    some = {key: each for key, each in reached.items() if each.rows.num_rows}
    return Impact(selection, some, time.monotonic() - began)


def _left(limits: Limits, began: float) -> Limits:
    """What is left of some limits for the next hop."""
    seconds = limits.seconds - (time.monotonic() - began)
    if seconds <= 0:
        raise TooDear(
            f"not done after {limits.seconds:,.0f} s; select fewer, or raise --limit-seconds"
        )
    return replace(limits, seconds=seconds)


def _selected(selection: Selection) -> Reached:
    spans = {k: s.low for k, s in selection.at.spans.items()}
    if isinstance(selection.dataset, Table):
        return Reached(selection.dataset, pa.table(spans), EXACT)
    wanted = [n for n, v in enumerate(selection.dataset.variables)
              if not selection.attributes or v in selection.attributes]  # fmt: skip
    each = [pa.table({VARIABLE: np.full(len(selection), n), **spans}) for n in wanted]
    return Reached(selection.dataset, pa.concat_tables(each), EXACT)


def _derived(workspace: Workspace, origin: Table | Array) -> Iterator[Table | Array]:
    """The current datasets that were made, however indirectly, from this version: in order."""
    graph: nx.DiGraph[Key] = nx.DiGraph()
    for each in workspace.datasets():
        before = behind(workspace, each)
        if origin.key in before and each.key != origin.key:
            graph = nx.compose(graph, before)
    if origin.key not in graph:
        return
    after = nx.ancestors(graph, origin.key)
    for key in reversed(list(nx.topological_sort(graph.subgraph(after)))):
        yield graph.nodes[key]["dataset"]


def _arrows(
    workspace: Workspace, image: Table | Array, want: str, registry: Registry
) -> Iterator[tuple[Key, Plan]]:
    """For each dataset that an image was made of, a plan that has only the hop back to it."""
    nothing = Filter(np.zeros(0, np.int64), {})
    planned = plan(workspace, Selection(image, None, (), nothing), wish(want), registry)
    for hop in planned.hops:
        if hop.image.key == image.key:
            yield hop.source.key, replace(planned, hops=(hop,))


def _through(arrow: Plan, reached: Reached, spark: SparkSession, limits: Limits) -> Reached:
    """The data of a hop's image that some of what was reached in its source is behind."""
    (hop,) = arrow.hops
    near = candidates(hop, _readable(arrow, reached.rows, spark, limits), reached.rows)
    if len(near) > limits.cells:
        raise TooDear(
            f'{len(near):,} of "{hop.image.name}" may be derived from these, over the limit of '
            f"{limits.cells:,}; select fewer, or raise --limit-cells"
        )
    guarantee = reached.guarantee & hop.guarantee
    if not len(near):
        return Reached(hop.image, _rows(hop.image, near), guarantee)
    at = Filter(np.arange(len(near)), near.spans)
    _check_hop(arrow, at, limits)
    found = invert(hop, at, spark, Again(arrow, spark), limits)
    derived = np.unique(column(found, "owner")[_among(hop.source, found, reached.rows)])
    return Reached(hop.image, _rows(hop.image, at[derived]), guarantee)


def _readable(arrow: Plan, reached: pa.Table, spark: SparkSession, limits: Limits) -> Table | Array:
    """A hop's image, of which rows can be read that may be derived from what was reached.

    The cells of an array need not be: where they lie is known without them.
    """
    (hop,) = arrow.hops
    image = hop.image
    if image.kept or isinstance(image, Array):
        return image
    region = derivable(hop, image, reached)
    again = f'"{image.name}" was not kept, and to make again what may be derived from these'
    _check(again, read_behind(image, region, arrow.recipes), limits)
    if not len(region):
        return image
    with watched(spark, f"{image.name} again", seconds=limits.seconds):
        return available(image, region, arrow.recipes, spark)


def _check_hop(arrow: Plan, at: Filter, limits: Limits) -> None:
    """Refuse to look behind data of a hop's image if that is dear, or not what it was."""
    (hop,) = arrow.hops
    read = list(read_behind(hop.source, weakly_behind(hop, at), arrow.recipes))
    if hop.beside:
        read += read_beside(hop.image, at, arrow.recipes)
    _check(f'to look behind {len(at):,} of "{hop.image.name}"', read, limits)


def _check(why: str, read: Iterable[Read], limits: Limits) -> None:
    """Refuse to read more than the limit, or of sources that are not what the run read."""
    found = list(read)
    dear = sum(piece.bytes for _, pieces in found for piece in pieces)
    if dear > limits.bytes:
        raise TooDear(
            f"{why} would read {dear / 2**20:,.0f} MiB, over the limit of "
            f"{limits.bytes / 2**20:,.0f} MiB; select fewer, or raise --limit-bytes"
        )
    for dataset, pieces in found:
        check_unchanged(dataset, [each for each in pieces if isinstance(each, Chunk)])


def _rows(image: Table | Array, at: Filter) -> pa.Table:
    names_ = image.columns if isinstance(image, Table) else (VARIABLE, *image.dims)
    return pa.table({n: at.spans[n].low if n in at.spans else [] for n in names_})


def _among(source: Table | Array, found: pa.Table, reached: pa.Table) -> NDArray[np.bool_]:
    """Which of what was found is among what was reached."""
    names_ = source.columns if isinstance(source, Table) else [VARIABLE, *source.dims]
    there = set(_keys(reached, names_))
    return np.array([key in there for key in _keys(found, names_)], bool)


def _keys(rows: pa.Table, names_: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    columns = [rows[n].to_pylist() for n in names_]
    return (tuple("nan" if v != v else v for v in row) for row in zip(*columns, strict=True))


def _united(image: Table | Array, found: list[Reached]) -> Reached:
    """What several ports or paths lead to, each row or cell once."""
    rows = pa.concat_tables([each.rows for each in found])
    keys = list(_keys(rows, rows.column_names))
    first = sorted({key: n for n, key in reversed(list(enumerate(keys)))}.values())
    guarantee = found[0].guarantee
    for each in found[1:]:
        guarantee &= each.guarantee
    return Reached(image, rows.take(pa.array(first, pa.int64())), guarantee)
