"""Making in memory: what a box makes of inputs that are small enough to be tried."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from inverses.registry import Inputs
from pipelines.arrays import chunks_of
from pipelines.boxes.box import ArrayBox, Box, CellBox, RowBox, TableBox
from pipelines.contents import held_array, held_table
from pipelines.datasets import Array, Table
from pipelines.errors import Refused
from pipelines.here import Here
from pipelines.tables import matching


def made_by(box: Box, inputs: Inputs, name: str = "made") -> Table | Array:
    """What a box makes of its inputs, held in memory."""
    attributes = box.attributes_of({port: each.attributes for port, each in inputs.items()})
    if isinstance(box, ArrayBox):
        grid = box.grid(inputs)
        made = box.block(inputs, {d: (0, len(c)) for d, c in grid.coordinates.items()})
        values = {v: np.asarray(each, grid.dtype) for v, each in made.items()}
        return held_array(name, attributes, grid.coordinates, values, grid.chunks, grid.circular)
    assert isinstance(box, TableBox)
    rows = _rows(box, inputs)
    kept = tuple(a for a in attributes if set(a.columns) <= set(rows.column_names))
    return held_table(name, kept, rows)


def made_unless_refused(box: Box, inputs: Inputs) -> Table | Array | None:
    """What a box makes of inputs that it may refuse."""
    with suppress(Refused):
        return made_by(box, inputs)
    return None


def _rows(box: TableBox, inputs: Inputs) -> pa.Table:
    if isinstance(box, RowBox):
        tables = {p: matching(cast(Table, t), None) for p, t in inputs.items()}
        return box.rows(tables).cast(box.schema(inputs))
    if isinstance(box, CellBox):
        array = cast(Array, inputs[box.takes[0].name])
        cuts = [c.ranges for c in chunks_of(array, array.variables[0])]
        ranges = [
            {d: (a, b + 1) for d, (a, b) in zip(array.dims, cut, strict=True)} for cut in cuts
        ]
        schema = box.schema(inputs)
        found = [box.rows_in(inputs, each).cast(schema) for each in ranges]
        return pa.concat_tables([schema.empty_table(), *found])
    return box.run(inputs, cast(SparkSession, Here(1))).toArrow()
