"""Doing what a pipeline says, on Spark, with progress and cancel."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xarray as xr
import zarr
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from pipelines.arrays import Ranges, chunks_of
from pipelines.boxes.box import ArrayBox, Grid, TableBox
from pipelines.datasets import Array, Attribute, Dataset, Group, Made, Table
from pipelines.errors import WhenceError
from pipelines.history import Entry, History
from pipelines.pipeline import Pipeline, Step
from pipelines.sources import as_array
from pipelines.spark import Progress, over, spared, watched, whereabouts
from pipelines.tables import write_part
from pipelines.workspace import Workspace

STATS = pa.schema(
    [
        ("file", pa.string()),
        ("index", pa.int64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("bounds", pa.string()),
    ]
)


def run(
    pipeline: Pipeline,
    workspace: Workspace,
    spark: SparkSession,
    progress: Progress | None = None,
) -> dict[str, Dataset]:
    """Run every box and publish what each makes; the journal says how it went."""
    with History.recorded(workspace, pipeline, whereabouts(spark)) as entry:
        for name, source in pipeline.sources.items():
            array = as_array(name, source)
            entry.ready()
            entry.add(name, _publish_source(workspace, array))
        for name, step in pipeline.in_order():
            entry.add(name, _publish_step(workspace, spark, name, step, entry, progress))
    return entry.made


def _publish_source(workspace: Workspace, array: Array) -> Dataset:
    """Name a source in the workspace; the file stays where it is."""
    # A damaged version is told to "run again", so it may not keep us from it.
    with suppress(WhenceError):
        known = workspace.dataset(array.name)
        if replace(known, version="") == array:
            return known
    with workspace.staged(array.name) as stage:
        return workspace.publish(stage, array)


def _publish_step(
    workspace: Workspace,
    spark: SparkSession,
    name: str,
    step: Step,
    entry: Entry,
    progress: Progress | None,
) -> Dataset:
    began = time.monotonic()
    inputs = {port: entry.made[given] for port, given in step.inputs.items()}
    versions = {p: (d.name, d.version) for p, d in inputs.items()}
    box = step.box
    how = Made(box.name, name, box.params(), versions, entry.run, box.version)
    with workspace.staged(name) as stage, watched(spark, name, progress):
        if isinstance(box, ArrayBox):
            dataset: Dataset = _fill(box, inputs, spark, stage, name)
        else:
            assert isinstance(box, TableBox)
            frame = box.run(inputs, spark)
            dataset = _write(frame, stage, name, box)
        seconds = round(time.monotonic() - began, 3)
        entry.ready()
        return workspace.publish(stage, replace(dataset, made=replace(how, seconds=seconds)))


def _write(frame: DataFrame, stage: Path, name: str, box: TableBox) -> Table:
    """Write a data frame as Parquet, each task one file, and gather the bounds of its groups."""
    folder = stage / "table"
    folder.mkdir()
    schema = to_arrow_schema(frame.schema)
    stats = frame.mapInArrow(_writer(folder, schema), from_arrow_schema(STATS)).toArrow()
    groups = [Group(**{**g, "bounds": json.loads(g["bounds"])}) for g in stats.to_pylist()]
    return Table(
        name=name,
        version="",
        path="table",
        attributes=tuple(a for a in box.makes if set(a.columns) <= set(schema.names)),
        types={f.name: str(f.type) for f in schema},
        groups=tuple(sorted(groups, key=lambda g: (g.file, g.index))),
    )


def _writer(
    folder: Path, schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        groups = write_part(batches, folder / f"part-{task.partitionId():05d}.parquet", schema)
        spared()
        rows = [(g.file, g.index, g.rows, g.bytes, json.dumps(g.bounds)) for g in groups]
        yield pa.record_batch([list(c) for c in zip(*rows, strict=True)] or [[]] * 5, schema=STATS)

    return write


def _fill(
    box: ArrayBox, inputs: Mapping[str, Dataset], spark: SparkSession, stage: Path, name: str
) -> Array:
    """Lay out a Zarr array and let each task fill whole chunks of it."""
    store = stage / "array.zarr"
    grid = box.grid(inputs)
    lay_out(store, grid)
    array = array_of(name, grid, box.makes)
    blocks = [c.ranges for c in chunks_of(array, array.variables[0])]

    def fill(ranges: tuple[tuple[int, int], ...]) -> Iterator[pa.RecordBatch]:
        cut = {d: (a, b + 1) for d, (a, b) in zip(array.dims, ranges, strict=True)}
        write_block(store, box.block(inputs, cut), cut)
        yield pa.record_batch({"n": pa.array([1], pa.int64())})

    over(spark, blocks, fill, pa.schema([("n", pa.int64())])).toArrow()
    return array


def lay_out(store: Path, grid: Grid) -> None:
    """Make an empty Zarr array of this shape, with its coordinates."""
    described = {d: (d, c, grid.metadata.get(d, {})) for d, c in grid.coordinates.items()}
    xr.Dataset(coords=described, attrs=grid.metadata.get("", {})).to_zarr(store, consolidated=False)
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


def array_of(name: str, grid: Grid, makes: tuple[Attribute, ...]) -> Array:
    """The dataset that a laid out array is."""
    dims = tuple(grid.coordinates)
    names = [*dims, *(a.name for a in makes if a.dims)]
    return Array(
        name=name,
        version="",
        path="array.zarr",
        attributes=makes,
        dims=dims,
        shape=grid.shape,
        chunks=grid.chunks,
        itemsize=np.dtype(grid.dtype).itemsize,
        stored={n: n for n in names},
        circular=grid.circular,
        notes=grid.notes,
    )


def write_block(store: Path, values: Mapping[str, Any], ranges: Ranges) -> None:
    """Write values into index ranges of a laid out array."""
    group = zarr.open_group(store, mode="r+")
    where = tuple(slice(a, b) for a, b in ranges.values())
    for variable, block in values.items():
        stored = group[variable]
        assert isinstance(stored, zarr.Array)
        stored[where] = block
