"""Datasets and their rows, as listings show them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from inverses.answer import Found
from inverses.selection import cells_where
from pipelines.arrays import cells_in, inside, touched
from pipelines.datasets import Array, Table
from pipelines.filters import Filter
from pipelines.predicates import parsed
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
        extent = " × ".join(f"{n} {d}" for d, n in dataset.size.items())
        chunks = " × ".join(map(str, dataset.chunks))
    else:
        extent, chunks = f"{dataset.rows:,} rows", f"{len(dataset.groups)} row groups"
    attributes = ", ".join(map(repr, dataset.attributes))
    return [dataset.name, dataset.version, dataset.kind, extent, chunks, attributes]


def first_rows(dataset: Table | Array, where: str | None, limit: int) -> tuple[pa.Table, int]:
    """The first rows or cells that a predicate keeps, and how many it keeps in all."""
    predicate = parsed(where) if where else None
    if isinstance(dataset, Table):
        kept = predicate.expression(schema_of(dataset)) if predicate else None
        return matching(dataset, kept, limit), count(dataset, kept)
    at = cells_where(dataset, predicate)
    total = len(at) * len(dataset.variables)
    return _cells(dataset, at[: max(limit, 0)]).slice(0, limit), total


def _cells(array: Array, at: Filter) -> pa.Table:
    """The values of all variables at some cells."""
    parts = []
    for number, variable in enumerate(array.variables):
        within = inside(array, at)
        for chunk, boxes in touched(array, variable, within):
            _, points, values = cells_in(array, chunk, within[boxes])
            names = ["variable", *array.dims, "value"]
            columns = [np.full(len(points), number), *points.T, values.astype(float)]
            parts.append(pa.table(columns, names=names))
    names = ["variable", *array.dims, "value"]
    rows = pa.concat_tables(parts) if parts else pa.table([[] for _ in names], names=names)
    return Found(array, rows, at, {}, 0, 0, at).table()
