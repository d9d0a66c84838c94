"""The forward run of an engine that knows nothing of lineage: same boxes, same Spark, same files.

Left out are the journal, the fingerprints of sources, how each dataset was made, and the bounds
of row groups. Where a box reads part of a table, Parquet's own footers say where that part lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr
import zarr
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from pipelines.arrays import chunks_of
from pipelines.boxes.box import ArrayBox, Grid, TableBox
from pipelines.datasets import Array, Dataset, Group, Table
from pipelines.pipeline import Pipeline, Step
from pipelines.sources import as_array
from pipelines.spark import over, spared, watched
from pipelines.tables import GROUP_ROWS
from pipelines.workspace import Workspace

ONE = pa.schema([("n", pa.int64())])


def run_plainly(pipeline: Pipeline, workspace: Workspace, spark: SparkSession) -> None:
    """Run every box and publish its files as durably as ever, with nothing to trace them by."""
    made: dict[str, Dataset] = {}
    with patch("pipelines.sources.seen", return_value=None):
        for name, source in pipeline.sources.items():
            with workspace.staged(name) as stage:
                made[name] = workspace.publish(stage, as_array(name, source))
    for name, step in pipeline.in_order():
        inputs = {port: _with_footers(made[given]) for port, given in step.inputs.items()}
        with workspace.staged(name) as stage, watched(spark, name):
            made[name] = workspace.publish(stage, _written(step, inputs, spark, stage, name))


def _written(
    step: Step, inputs: Mapping[str, Dataset], spark: SparkSession, stage: Path, name: str
) -> Dataset:
    box = step.box
    if isinstance(box, ArrayBox):
        return _array(box, inputs, spark, stage, name)
    assert isinstance(box, TableBox)
    return _table(box, inputs, spark, stage, name)


def _table(
    box: TableBox, inputs: Mapping[str, Dataset], spark: SparkSession, stage: Path, name: str
) -> Table:
    folder = stage / "table"
    folder.mkdir()
    frame = box.run(inputs, spark)
    schema = to_arrow_schema(frame.schema)
    frame.mapInArrow(_writer(folder, schema), "n long").toArrow()
    types = {f.name: str(f.type) for f in schema}
    return Table(name=name, version="", path="table", attributes=box.makes, types=types)


def _writer(
    folder: Path, schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        rows = pa.Table.from_batches(list(batches), schema)
        if rows.num_rows:
            file = folder / f"part-{task.partitionId():05d}.parquet"
            temporary = file.with_suffix(".partial")
            pq.write_table(rows, temporary, row_group_size=GROUP_ROWS, compression="zstd")
            temporary.replace(file)
        spared()
        yield pa.record_batch([[rows.num_rows]], schema=ONE)

    return write


def _with_footers(dataset: Dataset) -> Dataset:
    """A table with what the footers of its files say of the steps in each row group."""
    if not isinstance(dataset, Table):
        return dataset
    files = sorted(Path(dataset.path).glob("*.parquet"))
    groups = tuple(group for file in files for group in _groups(file))
    kept = {n: getattr(dataset, n) for n in ("name", "version", "path", "attributes", "types")}
    return Table(**kept, groups=groups)


def _groups(file: Path) -> Iterator[Group]:
    footer = pq.read_metadata(file)
    column = footer.schema.to_arrow_schema().get_field_index("time_index")
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        steps = group.column(column).statistics
        bounds = {"time_index": (steps.min, steps.max)}
        yield Group(file.name, number, group.num_rows, group.total_byte_size, bounds)


def _array(
    box: ArrayBox, inputs: Mapping[str, Dataset], spark: SparkSession, stage: Path, name: str
) -> Array:
    store, grid = stage / "array.zarr", box.grid(inputs)
    _lay_out(store, grid)
    array = _described(box, grid, name)
    blocks = [chunk.ranges for chunk in chunks_of(array, array.variables[0])]

    def fill(ranges: tuple[tuple[int, int], ...]) -> Iterator[pa.RecordBatch]:
        cut = {d: (a, b + 1) for d, (a, b) in zip(array.dims, ranges, strict=True)}
        group = zarr.open_group(store, mode="r+")
        for variable, values in box.block(inputs, cut).items():
            stored = group[variable]
            assert isinstance(stored, zarr.Array)
            stored[tuple(slice(*ends) for ends in cut.values())] = values
        yield pa.record_batch([[1]], schema=ONE)

    over(spark, blocks, fill, ONE).toArrow()
    return array


def _lay_out(store: Path, grid: Grid) -> None:
    described = {d: (d, c, grid.metadata.get(d, {})) for d, c in grid.coordinates.items()}
    empty = xr.Dataset(coords=described, attrs=grid.metadata.get("", {}))
    empty.to_zarr(store, consolidated=False)
    group = zarr.open_group(store, mode="r+")
    for variable in set(grid.metadata) - set(grid.coordinates) - {""}:
        group.create_array(
            variable,
            shape=grid.shape,
            chunks=grid.chunks,
            dtype=grid.dtype,
            fill_value=float("nan"),
            dimension_names=list(grid.coordinates),
            attributes=dict(grid.metadata[variable]),
        )


def _described(box: ArrayBox, grid: Grid, name: str) -> Array:
    dims = tuple(grid.coordinates)
    names = [*dims, *(a.name for a in box.makes if a.dims)]
    return Array(
        name=name,
        version="",
        path="array.zarr",
        attributes=box.makes,
        dims=dims,
        shape=grid.shape,
        chunks=grid.chunks,
        itemsize=np.dtype(grid.dtype).itemsize,
        stored={n: n for n in names},
        circular=grid.circular,
    )
