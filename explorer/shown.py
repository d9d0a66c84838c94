"""Datasets, their rows and plans, as listings show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import prod
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inverses import words
from inverses.answer import Found, asked_json, hops_json
from inverses.guarantees import names
from inverses.outline import Price, prices
from inverses.plans import Plan
from inverses.selection import indices_where
from pipelines.arrays import cells_in, touched
from pipelines.datasets import Array, Dataset, Table
from pipelines.filters import Filter
from pipelines.predicates import parsed
from pipelines.sources import check_unchanged
from pipelines.spans import span
from pipelines.tables import count, matching, schema_of


def dataset_json(dataset: Table | Array) -> dict[str, Any]:
    """A dataset as plain data."""
    array = isinstance(dataset, Array)
    return {
        "name": dataset.name,
        "kind": dataset.kind,
        "path": dataset.path,
        "rows": dataset.rows,
        "shape": dict(dataset.size) if isinstance(dataset, Array) else None,
        "chunks": list(dataset.chunks) if isinstance(dataset, Array) else len(dataset.groups),
        "attributes": [{**asdict(a), "type": a.type.name} for a in dataset.attributes],
        "version": dataset.version,
        "made_by": dataset.made.box if dataset.made else None,
        **({"notes": dict(dataset.notes)} if array and dataset.notes else {}),
    }


def dataset_row(dataset: Table | Array) -> list[str]:
    """A dataset in a line of a listing."""
    if isinstance(dataset, Array):
        chunks = " × ".join(map(str, dataset.chunks))
    else:
        chunks = f"{len(dataset.groups)} row groups"
    chunks = chunks if dataset.kept else ""
    attributes = ", ".join(map(repr, dataset.attributes))
    told = [dataset.name, dataset.version, dataset.kind, extent(dataset), chunks, attributes]
    return [*told, dataset.path]


def extent(dataset: Dataset) -> str:
    """How much there is of a dataset."""
    if not dataset.kept:
        return "not kept"
    if isinstance(dataset, Array):
        return " × ".join(f"{n} {d}" for d, n in dataset.size.items())
    return words.many(cast(Table, dataset).rows, "row")


def first_rows(dataset: Table | Array, where: str | None, limit: int) -> tuple[pa.Table, int]:
    """The first rows or cells that a predicate keeps, and how many it keeps in all."""
    predicate = parsed(where) if where else None
    check_unchanged(dataset)
    if isinstance(dataset, Table):
        kept = predicate.of(dataset).expression(schema_of(dataset)) if predicate else None
        return matching(dataset, kept, limit), count(dataset, kept)
    return _first_cells(dataset, indices_where(dataset, predicate), max(limit, 0))


def _first_cells(array: Array, kept: list[NDArray[np.int64]], limit: int) -> tuple[pa.Table, int]:
    """The first cells among some indices of each dimension, without listing all of them."""
    total = prod(len(k) for k in kept)
    first = np.unravel_index(np.arange(min(limit, total)), [len(k) or 1 for k in kept])
    points = {d: span(k[i]) for d, k, i in zip(array.dims, kept, first, strict=True)}
    at = Filter(np.arange(len(first[0])), points)
    return _cells(array, at).slice(0, limit), total * len(array.variables)


def _cells(array: Array, at: Filter) -> pa.Table:
    """The values of all variables at some cells."""
    names = ["variable", *array.dims, "value"]
    parts = [pa.table([np.zeros(0, int) for _ in names], names=names)]
    for number, variable in enumerate(array.variables):
        for chunk, boxes in touched(array, variable, at):
            _, points, values = cells_in(array, chunk, at[boxes])
            columns = [np.full(len(points), number), *points.T, values.astype(float)]
            parts.append(pa.table(columns, names=names))
    rows = pa.concat_tables(parts, promote_options="permissive")
    return Found(array, rows, at, {}, 0, 0, at).table()


def plans_json(found: Plan, own: Mapping[str, Plan]) -> dict[str, Any]:
    """A plan as plain data, and with it the plans for datasets that have a wish of their own."""
    plain = _plan_json(found, prices(found))
    if own:
        plain["own"] = {name: _plan_json(each, prices(each)) for name, each in own.items()}
    return plain


def _plan_json(found: Plan, priced: list[Price]) -> dict[str, Any]:
    """A plan as plain data, with what each hop will read."""
    reads = [
        {
            "chunks": p.chunks,
            "bytes": p.bytes,
            "rows": p.rows,
            "cells": p.cells,
            "filter": p.within.text(),
        }
        for p in priced
    ]
    return {
        **asked_json(found),
        "guarantee": names(found.guarantee),
        "hops": [{**h, "reads": r} for h, r in zip(hops_json(found), reads, strict=True)],
        "steps": [s.does for s in words.steps(priced)],
    }
