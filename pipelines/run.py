"""Doing what a pipeline says, on Spark, with progress and cancel."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
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
from pipelines.datasets import Array, Attribute, Dataset, Group, Made, Table
from pipelines.fingerprints import sum_at, sum_of, sum_of_values
from pipelines.history import History
from pipelines.pipeline import Pipeline, Step
from pipelines.sources import as_dataset, fingerprinted
from pipelines.spark import Progress, mapped, over, spared, watched, whereabouts
from pipelines.tables import table_of, write_part
from pipelines.under_way import Entry
from pipelines.workspace import Workspace

STATS = pa.schema(
    [
        ("file", pa.string()),
        ("index", pa.int64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("bounds", pa.string()),
        ("sum", pa.string()),
    ]
)
FILLED = pa.schema([("block", pa.string()), ("sum", pa.string())])


def run(
    pipeline: Pipeline,
    workspace: Workspace,
    spark: SparkSession,
    progress: Progress | None = None,
    publish: Publish | None = None,
    part: str = "",
) -> dict[str, Dataset]:
    """Run every box and `publish` what each makes; the journal says how it went.

    Where `publish` makes less than the whole, `part` says what.
    """
    sources = {name: as_dataset(name, source) for name, source in pipeline.sources.items()}

    def named() -> dict[str, Dataset]:
        return {name: workspace.named(fingerprinted(each)) for name, each in sources.items()}

    recorded = History.recorded(workspace, pipeline, whereabouts(spark), named, part)
    with recorded as entry, ExitStack() as unkept:
        one = Run(workspace, spark, entry, progress, unkept, {**sources})
        for name, step in pipeline.in_order():
            one.made[name] = (publish or Run.publish)(one, name, step)
    return {**entry.sources(), **entry.made}


@dataclass(frozen=True, slots=True)
class Run:
    """One run: where it publishes, on which Spark, and what it will let go of at its end."""

    workspace: Workspace
    spark: SparkSession
    entry: Entry
    progress: Progress | None
    unkept: ExitStack
    made: dict[str, Dataset]

    def inputs(self, step: Step) -> dict[str, Dataset]:
        """What a step reads; sources may not have a version yet."""
        return {port: self.made[given] for port, given in step.inputs.items()}

    def publish(self, name: str, step: Step) -> Dataset:
        """Run one box; what it makes can be read by the others, published or not."""
        began = time.monotonic()
        with ExitStack() as until_published:
            kept = until_published if step.keep else self.unkept
            stage = kept.enter_context(self.workspace.staged(name))
            with watched(self.spark, name, self.progress):
                dataset = self._made(step.box, self.inputs(step), stage, name)
            seconds = round(time.monotonic() - began, 3)
            dataset = replace(dataset, made=replace(self.how(name, step), seconds=seconds))
            if step.keep:
                return self.note(self.workspace.publish(stage, dataset))
            grid = _coordinates(stage, dataset)
            described = self.note(publish_description(self.workspace, dataset, grid))
            return replace(described, kept=True, path=str(stage / dataset.path))

    def note(self, published: Dataset) -> Dataset:
        """Have a version that was published written down."""
        self.entry.add(published.name, published)
        return published

    def _made(self, box: Box, inputs: Mapping[str, Dataset], stage: Path, name: str) -> Dataset:
        if isinstance(box, ArrayBox):
            frame, array = _filling(box, inputs, self.spark, stage, name)
            self.entry.begin()
            return _filled(array, frame.toArrow())
        assert isinstance(box, TableBox)
        attributes = attributes_of(box, inputs)
        frame = box.run(inputs, self.spark)
        stats = writing(frame, stage)
        self.entry.begin()
        return written(stats.toArrow(), frame, name, attributes)

    def how(self, name: str, step: Step) -> Made:
        """How a step is carried out in this run, once the journal says that it has begun."""
        self.made.update(self.entry.sources())
        versions = {p: (d.name, d.version) for p, d in self.inputs(step).items()}
        box = step.box
        return Made(box.name, name, box.params(), versions, self.entry.run, box.code)


Publish = Callable[[Run, str, Step], Dataset]


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


def writing(frame: DataFrame, stage: Path) -> DataFrame:
    """To collect this is to write a data frame as Parquet, each task one file."""
    folder = stage / "table"
    folder.mkdir()
    work = _writer(folder, to_arrow_schema(frame.schema))
    return mapped(frame, work, from_arrow_schema(STATS))


def written(
    stats: pa.Table, frame: DataFrame, name: str, attributes: tuple[Attribute, ...]
) -> Table:
    """The table that was written, with the bounds of its row groups."""
    schema = to_arrow_schema(frame.schema)
    sums = sorted(set(zip(stats["file"].to_pylist(), stats["sum"].to_pylist(), strict=True)))
    told = stats.drop_columns(["sum"]).to_pylist()
    groups = [Group(**{**g, "bounds": json.loads(g["bounds"])}) for g in told]
    return replace(
        table_of(name, schema, attributes),
        groups=tuple(sorted(groups, key=lambda g: (g.file, g.index))),
        checksum=sum_of([str(schema), sums]),
    )


def _writer(
    folder: Path, schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        number = f"{task.partitionId():05d}" if task else uuid.uuid4().hex
        file = folder / f"part-{number}.parquet"
        groups = write_part(batches, file, schema)
        total = sum_at(file) if groups else ""
        spared()
        told = [(g.file, g.index, g.rows, g.bytes, json.dumps(g.bounds), total) for g in groups]
        columns = [list(c) for c in zip(*told, strict=True)] or [[]] * len(STATS)
        yield pa.record_batch(columns, schema=STATS)

    return write_rows


def _filling(
    box: ArrayBox, inputs: Mapping[str, Dataset], spark: SparkSession, stage: Path, name: str
) -> tuple[DataFrame, Array]:
    """Lay out a Zarr array; to collect the frame is to let each task fill whole chunks of it."""
    store = stage / "array.zarr"
    grid = box.grid(inputs)
    lay_out(store, grid)
    described = sum_of([grid.metadata, grid.chunks, sum_of_values(grid.coordinates)])
    array = replace(array_of(name, grid, attributes_of(box, inputs)), checksum=described)
    blocks = [c.ranges for c in chunks_of(array, array.variables[0])]

    def fill(ranges: tuple[tuple[int, int], ...]) -> Iterator[pa.RecordBatch]:
        cut = {d: (a, b + 1) for d, (a, b) in zip(array.dims, ranges, strict=True)}
        made = {n: np.asarray(v, grid.dtype) for n, v in box.block(inputs, cut).items()}
        write_block(store, made, cut)
        yield pa.record_batch([[str(ranges)], [sum_of_values(made)]], schema=FILLED)

    return over(spark, blocks, fill, FILLED), array


def _filled(array: Array, blocks: pa.Table) -> Array:
    """An array with the sum of what it is and of all blocks that were written."""
    sums = sorted((each["block"], each["sum"]) for each in blocks.to_pylist())
    return replace(array, checksum=sum_of([array.checksum, sums]))


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
