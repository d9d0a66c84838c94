"""Sharing work out: how boxes that are pure functions of rows or chunks are spread over Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipelines.arrays import Chunk, Ranges, chunks_of
from pipelines.datasets import Array, Group, Table
from pipelines.likeness import plain
from pipelines.spark import over, spared
from pipelines.tables import column, read_group, schema_of

Rows = Callable[[Mapping[str, pa.Table]], pa.Table]
Keys = Mapping[str, tuple[str, ...] | None]
PARCEL = pa.schema([("bucket", pa.int64()), ("port", pa.int64()), ("rows", pa.binary())])


def rows_of_chunks(
    spark: SparkSession,
    inputs: Mapping[str, Any],
    port: str,
    rows_in: Callable[[Mapping[str, Any], Ranges], pa.Table],
    schema: pa.Schema,
    chunks: list[Chunk] | None = None,
) -> DataFrame:
    """The rows of every chunk of the array at a port, or of some of them."""
    array: Array = inputs[port]
    pieces = chunks_of(array, array.variables[0]) if chunks is None else chunks

    def rows(chunk: Chunk) -> Iterator[pa.RecordBatch]:
        cut = {d: (a, b + 1) for d, (a, b) in zip(array.dims, chunk.ranges, strict=True)}
        yield from rows_in(inputs, cut).cast(schema).to_batches()

    return over(spark, pieces, rows, schema)


def rows_together(
    spark: SparkSession, inputs: Mapping[str, Any], keys: Keys, rows: Rows, schema: pa.Schema
) -> DataFrame:
    """The rows made of tables whose rows with equal keys are seen together."""
    empty = {port: schema_of(table).empty_table() for port, table in inputs.items()}
    groups = [(port, group) for port, table in inputs.items() for group in table.groups]
    if all(key is None for key in keys.values()):

        def alone(piece: tuple[str, Group]) -> Iterator[pa.RecordBatch]:
            port, group = piece
            mine = {**empty, port: read_group(inputs[port], group)}
            yield from rows(mine).cast(schema).to_batches()

        return over(spark, groups, alone, schema)
    return _shuffled(spark, inputs, keys, groups, _together(empty, rows, schema), schema)


def _shuffled(
    spark: SparkSession,
    inputs: Mapping[str, Table],
    keys: Keys,
    groups: list[tuple[str, Group]],
    work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    ports = list(inputs)
    buckets = 4 * spark.sparkContext.defaultParallelism if all(keys.values()) else 1

    def parcels(piece: tuple[str, Group]) -> Iterator[pa.RecordBatch]:
        port, group = piece
        yield _parcels(
            read_group(inputs[port], group), keys[port] or (), ports.index(port), buckets
        )

    found = over(spark, groups, parcels, PARCEL)
    together = found.repartition(buckets, "bucket")
    return together.mapInArrow(work, from_arrow_schema(schema, prefer_timestamp_ntz=True))


def _together(
    empty: Mapping[str, pa.Table], rows: Rows, schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    ports = list(empty)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: dict[str, list[pa.Table]] = {port: [empty[port]] for port in ports}
        for batch in batches:
            for port, packed in zip(batch["port"].to_pylist(), batch["rows"], strict=True):
                found[ports[port]].append(pa.ipc.open_stream(packed.as_buffer()).read_all())
        # A parcel's shapes may differ from the empty table's in metadata alone.
        whole = {port: pa.concat_tables(tables) for port, tables in found.items()}
        if any(table.num_rows for table in whole.values()):
            yield from rows(whole).cast(schema).to_batches()
        spared()

    return work


def _parcels(rows: pa.Table, keys: tuple[str, ...], port: int, buckets: int) -> pa.RecordBatch:
    """Rows packed by the bucket that their keys fall into, so that equal keys meet."""
    bucket = _bucket(rows, keys, buckets)
    numbers = np.unique(bucket)
    packed = [_packed(rows.filter(pa.array(bucket == n))) for n in numbers]
    return pa.record_batch([numbers, np.full(len(numbers), port), packed], schema=PARCEL)


def _bucket(rows: pa.Table, keys: tuple[str, ...], buckets: int) -> NDArray[np.int64]:
    if buckets == 1 or not keys:
        return np.zeros(rows.num_rows, np.int64)
    chosen = pd.DataFrame({key: _comparable(column(rows, key)) for key in keys})
    # Categories, which are told apart up to a NUL, would depend on what other texts are there.
    sums = pd.util.hash_pandas_object(chosen, index=False, categorize=False).to_numpy()
    return np.asarray(sums % np.uint64(buckets)).astype(np.int64)


def _comparable(values: NDArray[Any]) -> NDArray[Any]:
    """Keys of which equal ones are hashed alike: whole numbers as floats, one zero, one NaN."""
    return plain(values.astype(float)) if values.dtype.kind in "iuf" else values


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())
