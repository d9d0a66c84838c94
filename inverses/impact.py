"""Impact: from cells of an input forward to everything derived from them, by the same inverses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from inverses.answer import plain_value, shown
from inverses.forward import Forward
from inverses.guarantees import Guarantee, names, wish
from inverses.limits import Limits
from inverses.outline import VARIABLE
from inverses.planner import behind, plan
from inverses.registry import Registry
from inverses.selection import Selection, select
from inverses.trace import check_selected
from inverses.true_descendants import true_descendants
from pipelines.arrays import coordinate
from pipelines.datasets import Array, Key, Table
from pipelines.errors import unknown
from pipelines.filters import Filter
from pipelines.spark import session
from pipelines.tables import column
from pipelines.workspace import Workspace

SAMPLE = 10


@dataclass(frozen=True, slots=True)
class Reached:
    """What of one dataset was derived from a selection, with what holds of it."""

    dataset: Table | Array
    rows: pa.Table
    guarantee: Guarantee
    attributes: tuple[str, ...]

    def table(self) -> pa.Table:
        """The rows, or the cells with their coordinates, as people read them."""
        if isinstance(self.dataset, Table):
            return self.rows
        array = self.dataset
        named = {d: shown(coordinate(array, d)[column(self.rows, d)]) for d in array.dims}
        kinds = np.array(array.variables, object)[column(self.rows, VARIABLE)]
        indices = {f"{d}_index": self.rows[d] for d in array.dims}
        return pa.table({"variable": kinds, **named, **indices})

    def to_json(self) -> dict[str, Any]:
        sample = self.table().slice(0, SAMPLE).to_pylist()
        array = isinstance(self.dataset, Array)
        return {
            "kind": self.dataset.kind,
            "rows": None if array else self.rows.num_rows,
            "cells": self.rows.num_rows if array else None,
            "guarantee": names(self.guarantee),
            "attributes": list(self.attributes),
            "kept": self.dataset.kept,
            "sample": [{k: plain_value(v) for k, v in row.items()} for row in sample],
        }


@dataclass(frozen=True, slots=True)
class Impact:
    """Everything that was derived from a selection, and the guarantee that elsewhere is nothing."""

    selection: Selection
    reached: Mapping[Key, Reached]
    seconds: float
    elsewhere: Mapping[Key, Guarantee] = field(default_factory=dict)

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
    attributes: Iterable[str] = (),
    spark: SparkSession | None = None,
    registry: Registry | None = None,
    limits: Limits | None = None,
) -> Impact:
    """What some rows or cells of a dataset have had a part in, with a guarantee.

    All attributes of what was derived are asked about, or only `attributes`; datasets that have
    none of these are then left out.
    """
    began = time.monotonic()
    selection = select(workspace, dataset, where)
    check_selected(selection)
    origin, rows = selection.dataset, _selected(selection)
    forward = Forward(origin, rows, spark or session(), limits or Limits(), began)
    known, wanted = registry or Registry.of(), wish(want)
    reached: dict[Key, Reached] = {}
    elsewhere: dict[Key, Guarantee] = {}
    for image, names_ in _asked(list(_derived(workspace, origin)), list(attributes)):
        chosen = Selection(image, None, names_, Filter(np.zeros(0, np.int64), {}))
        planned = plan(workspace, chosen, wanted, known, [origin.name])
        rows, held = forward.reached(planned), planned.guarantee_of(origin.name)
        if rows is not None and rows.num_rows:
            reached[image.key] = Reached(image, rows, held, tuple(planned.attributes))
        else:
            elsewhere[image.key] = held
    return Impact(selection, reached, time.monotonic() - began, elsewhere)


def _asked(
    derived: Sequence[Table | Array], named: Sequence[str]
) -> Iterator[tuple[Table | Array, tuple[str, ...]]]:
    """Each dataset with the attributes of it that are asked about: those named, or all."""
    named = [] if named == ["all"] else named
    every = {n: a.name for d in derived for a in d.attributes for n in (a.name, *a.columns)}
    for name in named:
        if name not in every:
            raise unknown("attribute", name, set(every.values()), "in what was derived")
    for each in derived:
        mine = [a.name for a in each.attributes if not named or {a.name, *a.columns} & {*named}]
        if mine:
            yield each, tuple(mine)


def _selected(selection: Selection) -> pa.Table:
    """The rows or cells that are selected, cells of every variable."""
    spans = {k: s.low for k, s in selection.at.spans.items()}
    if isinstance(selection.dataset, Table):
        return pa.table(spans)
    variables = range(len(selection.dataset.variables))
    each = [pa.table({VARIABLE: np.full(len(selection), n), **spans}) for n in variables]
    return pa.concat_tables(each)


def _derived(workspace: Workspace, origin: Table | Array) -> Iterator[Table | Array]:
    """What was made, however indirectly, from this version into what is current: in order."""
    graph: nx.DiGraph[Key] = nx.DiGraph()
    for each in true_descendants(workspace, origin):
        graph = nx.compose(graph, behind(workspace, each))
    if origin.key not in graph:
        return
    after = nx.ancestors(graph, origin.key)
    for key in reversed(list(nx.topological_sort(graph.subgraph(after)))):
        yield graph.nodes[key]["dataset"]
