"""How large an export will be, estimated from counts and a few rows before it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from explorer.cells import box_cells, box_of, exported, one_array
from explorer.export import suffix_of
from inverses.answer import Answer, Found
from pipelines.datasets import Array
from pipelines.errors import Refused

SAMPLE = 1000
# What a NetCDF file has beside its cells, and a bundle beside its tables and boxes.
HEADER, DESCRIPTIONS = 16_000, 16_000
Write = Callable[[pa.Table, BytesIO], Any]


def estimated_bytes(answer: Answer, path: Path | str) -> int:
    """About how many bytes an export to this path will have; refused if it cannot be made."""
    return SIZES[suffix_of(path)](answer)


def _of_rows(found: Found, write: Write) -> int:
    """The size of some rows, as many times as there are that many."""
    some = replace(found, rows=found.rows.slice(0, SAMPLE)).table()
    none, sample = _written(some.slice(0, 0), write), _written(some, write)
    times = int(found.rows.num_rows) / max(1, int(some.num_rows))
    return none + round((sample - none) * times)


def _written(rows: pa.Table, write: Write) -> int:
    buffer = BytesIO()
    write(rows, buffer)
    return len(buffer.getvalue())


def _csv(answer: Answer) -> int:
    parts = exported(answer).items()
    names = sum((len(name) + 3) * int(found.rows.num_rows) for name, found in parts)
    return names + sum(_of_rows(found, pyarrow.csv.write_csv) for _, found in parts)


def _parquet(answer: Answer) -> int:
    return sum(_of_rows(found, pq.write_table) for found in exported(answer).values())


def _box(answer: Answer) -> int:
    return _of_box(answer.lineage[one_array(answer)])


def _of_box(found: Found) -> int:
    """The size of a box whose cells have a value and a mark each, as if nothing were compressed."""
    assert isinstance(found.dataset, Array)
    box = box_of(found)
    coordinates = 8 * sum(len(i) for i in box.values())
    return HEADER + coordinates + box_cells(found, box) * (found.dataset.itemsize + 1)


def _bundle(answer: Answer) -> int:
    parts = answer.lineage.values()
    boxes = sum(_of_box_if_any(found) for found in parts)
    return DESCRIPTIONS + boxes + sum(_of_rows(found, pq.write_table) for found in parts)


def _of_box_if_any(found: Found) -> int:
    try:
        return _of_box(found) if isinstance(found.dataset, Array) else 0
    except Refused:
        return 0


SIZES: Mapping[str, Callable[[Answer], int]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".nc": _box,
    ".zarr": _box,
    ".zarr.zip": _box,
    ".whence.zip": _bundle,
}
