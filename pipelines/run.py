"""Doing what a pipeline says, on Spark, with progress and cancel."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xarray as xr
import zarr
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from pipelines.arrays import Ranges, chunks_of, coordinate
from pipelines.boxes.box import ArrayBox, Box, Grid, TableBox
from pipelines.datasets import Array, Attribute, Dataset, Group, Made, Table, to_json
from pipelines.errors import WhenceError
from pipelines.history import Entry, History
from pipelines.pipeline import Pipeline, Step
from pipelines.sources import as_dataset
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
    publish: Publish | None = None,
) -> dict[str, Dataset]:
    """Run every box and `publish` what each makes; the journal says how it went."""
    made: dict[str, Dataset] = {}
    with (
        History.recorded(workspace, pipeline, whereabouts(spark)) as entry,
        ExitStack() as unkept,
    ):
        one = Run(workspace, spark, entry, progress, unkept)
        for name, source in pipeline.sources.items():
            found = as_dataset(name, source)
            entry.ready()
            made[name] = _publish_source(workspace, found)
            entry.add(name, made[name])
        for name, step in pipeline.in_order():
            made[name] = (publish or Run.publish)(one, name, step, made)
            entry.add(name, workspace.dataset(name, made[name].version))
    return entry.made


def _told(dataset: Dataset) -> str:
    """A dataset in words, by which one that was read again equals itself."""
    return json.dumps(to_json(dataset))


def _publish_source(workspace: Workspace, source: Dataset) -> Dataset:
    """Name a source in the workspace; the file stays where it is."""
    # A damaged version is told to "run again", so it may not keep us from it.
    with suppress(WhenceError):
        known = workspace.dataset(source.name)
        if _told(replace(known, version="")) == _told(source):
            return known
    with workspace.staged(source.name) as stage:
        return workspace.publish(stage, source)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: where it publishes, on which Spark, and what it will let go of at its end."""

    workspace: Workspace
    spark: SparkSession
    entry: Entry
    progress: Progress | None
    unkept: ExitStack

    def publish(self, name: str, step: Step, made: Mapping[str, Dataset]) -> Dataset:
        """Run one box; what it makes can be read by the others, published or not."""
        began = time.monotonic()
        inputs = {port: made[given] for port, given in step.inputs.items()}
        how = self.how(name, step, inputs)
        with ExitStack() as until_published:
            kept = until_published if step.keep else self.unkept
            stage = kept.enter_context(self.workspace.staged(name))
            with watched(self.spark, name, self.progress):
                dataset = _made(step.box, inputs, self.spark, stage, name)
            seconds = round(time.monotonic() - began, 3)
            dataset = replace(dataset, made=replace(how, seconds=seconds))
            self.entry.ready()
            if step.keep:
                return self.workspace.publish(stage, dataset)
            described = publish_description(self.workspace, dataset, _coordinates(stage, dataset))
            return replace(described, kept=True, path=str(stage / dataset.path))

    def how(self, name: str, step: Step, inputs: Mapping[str, Dataset]) -> Made:
        """How a step is carried out in this run."""
        versions = {p: (d.name, d.version) for p, d in inputs.items()}
        box = step.box
        return Made(box.name, name, box.params(), versions, self.entry.run, box.version)


Publish = Callable[[Run, str, Step, Mapping[str, Dataset]], Dataset]


def _made(
    box: Box, inputs: Mapping[str, Dataset], spark: SparkSession, stage: Path, name: str
) -> Dataset:
    if isinstance(box, ArrayBox):
        return _fill(box, inputs, spark, stage, name)
    assert isinstance(box, TableBox)
    return write(box.run(inputs, spark), stage, name, attributes_of(box, inputs))


def _coordinates(stage: Path, dataset: Dataset) -> Grid | None:
    """What is kept of an array that is not: where its cells would lie."""
    if not isinstance(dataset, Array):
        return None
    staged = replace(dataset, path=str(stage / dataset.path))
    found = {d: coordinate(staged, d) for d in dataset.dims}
    return Grid(found, dataset.chunks, {}, dataset.circular)


def publish_description(workspace: Workspace, dataset: Dataset, grid: Grid | None) -> Dataset:
    """Publish what a dataset is without what is in it."""
    with workspace.staged(dataset.name) as stage:
        if grid is None:
            (stage / "table").mkdir()
        else:
            lay_out(stage / "array.zarr", grid)
        return workspace.publish(stage, replace(dataset, kept=False))


def attributes_of(box: Box, inputs: Mapping[str, Dataset]) -> tuple[Attribute, ...]:
    return box.attributes_of({port: each.attributes for port, each in inputs.items()})


def write(frame: DataFrame, stage: Path, name: str, attributes: tuple[Attribute, ...]) -> Table:
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
        attributes=tuple(a for a in attributes if set(a.columns) <= set(schema.names)),
        types={f.name: str(f.type) for f in schema},
        groups=tuple(sorted(groups, key=lambda g: (g.file, g.index))),
    )


def _writer(
    folder: Path, schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        number = f"{task.partitionId():05d}" if task else uuid.uuid4().hex
        groups = write_part(batches, folder / f"part-{number}.parquet", schema)
        spared()
        rows = [(g.file, g.index, g.rows, g.bytes, json.dumps(g.bounds)) for g in groups]
        yield pa.record_batch([list(c) for c in zip(*rows, strict=True)] or [[]] * 5, schema=STATS)

    return write_rows


def _fill(
    box: ArrayBox, inputs: Mapping[str, Dataset], spark: SparkSession, stage: Path, name: str
) -> Array:
    """Lay out a Zarr array and let each task fill whole chunks of it."""
    store = stage / "array.zarr"
    grid = box.grid(inputs)
    lay_out(store, grid)
    array = array_of(name, grid, attributes_of(box, inputs))
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
