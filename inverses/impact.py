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

from inverses.answer import Limits, plain_value
from inverses.guarantees import EXACT, Guarantee, names, wish
from inverses.outline import VARIABLE, combined, parts_of
from inverses.planner import behind, plan
from inverses.plans import Hop
from inverses.registry import Registry
from inverses.selection import Selection, select
from inverses.trace import invert
from pipelines.arrays import coordinate
from pipelines.datasets import Array, Key, Table
from pipelines.errors import Refused, TooDear
from pipelines.filters import Filter, Span, span
from pipelines.tables import as_filter, bounds, column, held, rows_in
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
    known = registry or Registry.of()
    reached = {selection.dataset.key: _selected(selection)}
    for image in _derived(workspace, selection.dataset):
        hops = _hops(workspace, image, want, known)
        found = [
            _through(hop, reached[hop.source.key], spark, limits or Limits())
            for hop in hops
            if hop.source.key in reached and reached[hop.source.key].rows.num_rows
        ]
        if found:
            reached[image.key] = _united(image, found)
    del reached[selection.dataset.key]
    kept = {key: each for key, each in reached.items() if each.rows.num_rows}
    return Impact(selection, kept, time.monotonic() - began)


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
        found = graph.nodes[key]["dataset"]
        if not found.kept:
            raise Refused(
                f'"{key[0]}" was not kept, so what is derived through it cannot be told; run again '
                "with keep: true"
            )
        yield found


def _hops(workspace: Workspace, image: Table | Array, want: str, registry: Registry) -> list[Hop]:
    nothing = Filter(np.zeros(0, np.int64), {})
    planned = plan(workspace, Selection(image, None, (), nothing), wish(want), registry)
    return [hop for hop in planned.hops if hop.image.key == image.key]


def _through(hop: Hop, reached: Reached, spark: SparkSession, limits: Limits) -> Reached:
    """The data of a hop's image that some of what was reached in its source is behind."""
    near = _candidates(hop, reached)
    if len(near) > limits.cells:
        raise TooDear(
            f'{len(near):,} of "{hop.image.name}" may be derived from these, over the limit of '
            f"{limits.cells:,}; select fewer, or raise --limit-cells"
        )
    guarantee = reached.guarantee & hop.guarantee
    if not len(near):
        return Reached(hop.image, _rows(hop.image, near), guarantee)
    at = Filter(np.arange(len(near)), near.spans)
    found = invert(hop, at, spark)
    derived = np.unique(column(found, "owner")[_among(hop.source, found, reached.rows)])
    return Reached(hop.image, _rows(hop.image, at[derived]), guarantee)


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


def _candidates(hop: Hop, reached: Reached) -> Filter:
    """The data of the image whose weak inverses hold something of what was reached."""
    if isinstance(hop.image, Table):
        return _candidate_rows(hop, hop.image, reached)
    found = [_candidate_cells(hop, hop.image, v, reached) for v in hop.image.variables]
    whole = found[0]
    for each in found[1:]:
        whole = whole | each
    return whole


def _candidate_rows(hop: Hop, table: Table, reached: Reached) -> Filter:
    """Row groups that may hold derived rows are read, and their rows asked one by one."""
    near = [g for g in table.groups if _touches(hop, _bounds(table, g), reached).any()]
    some = replace(table, groups=tuple(near))
    at = as_filter(held(some, Filter(np.zeros(1, np.int64), {})))
    return at[_touches(hop, at, reached)] if len(at) else at


def _bounds(table: Table, group: Any) -> Filter:
    """The ends of the columns of a row group as a region."""
    empty = {c: column(_no_rows(table), c).dtype for c in table.columns}
    ends = {c: bounds(group, c, kind) for c, kind in empty.items()}
    known = {c: span(low, high) for c, (low, high) in ends.items() if low is not None}
    return Filter(np.zeros(1, np.int64), known)


def _no_rows(table: Table) -> pa.Table:
    return pa.schema([(c, pa.type_for_alias(t)) for c, t in table.types.items()]).empty_table()


def _candidate_cells(hop: Hop, array: Array, variable: str, reached: Reached) -> Filter:
    """Boxes of cells are halved as long as their weak inverses touch what was reached."""
    number = array.variables.index(variable)
    low, high = np.zeros((1, len(array.dims)), np.int64), np.array([array.shape]) - 1
    while len(low):
        at = _boxes(array, number, low, high)
        touching = _touches(hop, at, reached)
        low, high = low[touching], high[touching]
        sizes = high - low
        if not len(low) or not sizes.any():
            break
        low, high = _halved(low, high, sizes)
    return _boxes(array, number, low, high)


def _boxes(array: Array, number: int, low: NDArray[np.int64], high: NDArray[np.int64]) -> Filter:
    spans = {d: Span(low[:, n], high[:, n]) for n, d in enumerate(array.dims)}
    which = span(np.full(len(low), number))
    return Filter(np.arange(len(low)), {**spans, VARIABLE: which})


def _halved(
    low: NDArray[np.int64], high: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each box cut in two along its longest side; those of one cell as they are."""
    axis = sizes.argmax(axis=1)
    each = np.arange(len(low))
    many = sizes[each, axis] > 0
    middle = (low[each, axis] + high[each, axis]) // 2
    first_high, second_low = high.copy(), low.copy()
    first_high[each, axis] = middle
    second_low[each, axis] = middle + 1
    return (
        np.concatenate([low, second_low[many]]),
        np.concatenate([first_high, high[many]]),
    )


def _touches(hop: Hop, at: Filter, reached: Reached) -> NDArray[np.bool_]:
    """For each datum or region, whether its weak inverses hold something of what was reached."""
    owners = Filter(np.arange(len(at)), at.spans)
    above: Filter | None = None
    for level in hop.levels:
        parts = parts_of(hop, level, owners, above)
        above = combined(parts)
    assert above is not None
    touched = np.zeros(len(at), bool)
    if isinstance(hop.source, Table):
        touched[rows_in(reached.rows, above)[0]] = True
        return touched
    counts = _counting(hop.source, reached.rows)
    touched[above.owner[counts(above) > 0]] = True
    return touched


def _counting(array: Array, rows: pa.Table) -> Any:
    """How many of some cells lie in each box of a filter, by sums over the box around them."""
    cells = np.column_stack([column(rows, d) for d in array.dims])
    first, last = cells.min(axis=0), cells.max(axis=0)
    sums = np.zeros(last - first + 2, np.int64)
    np.add.at(sums, tuple((cells - first + 1).T), 1)
    for axis in range(sums.ndim):
        sums = sums.cumsum(axis=axis)

    def count(boxes: Filter) -> NDArray[np.int64]:
        ends = [_clipped(boxes, d, a, b) for d, a, b in zip(array.dims, first, last, strict=True)]
        total = np.zeros(len(boxes), np.int64)
        for corner in np.ndindex(*(2,) * len(ends)):
            index = tuple(end[c] for end, c in zip(ends, corner, strict=True))
            total += (-1) ** (len(ends) - sum(corner)) * sums[index]
        return total

    return count


def _clipped(
    boxes: Filter, dim: str, first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where a box begins and ends along a dimension, in the sums."""
    each = boxes.span(dim)
    if each is None:
        return np.zeros(len(boxes), np.int64), np.full(len(boxes), last - first + 1)
    low = np.clip(np.ceil(each.low), first, last + 1).astype(np.int64) - first
    high = np.clip(np.floor(each.high), first - 1, last).astype(np.int64) - first + 1
    return low, np.maximum(low, high)


def _united(image: Table | Array, found: list[Reached]) -> Reached:
    """What several ports or paths lead to, each row or cell once."""
    rows = pa.concat_tables([each.rows for each in found])
    keys = list(_keys(rows, rows.column_names))
    first = sorted({key: n for n, key in reversed(list(enumerate(keys)))}.values())
    guarantee = found[0].guarantee
    for each in found[1:]:
        guarantee &= each.guarantee
    return Reached(image, rows.take(pa.array(first, pa.int64())), guarantee)
