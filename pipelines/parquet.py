"""Tables from outside: Parquet files, recognised and checked, read where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.columns import RESERVED
from pipelines.contents import ends
from pipelines.datasets import Attribute, Group, Quantity, Table, Text, Time, Type
from pipelines.errors import Failed, Refused
from pipelines.files import reason
from pipelines.pipeline import Source
from pipelines.stores import LARGEST_CHUNK
from pipelines.tables import read_group

SUFFIX = ".parquet"


def table_in(name: str, source: Source) -> Table:
    """The table in a source's files, without reading its rows."""
    path = Path(source.path)
    if not (path.is_file() or path.is_dir()):
        raise Refused(f'source "{name}": no file at "{path}"; mend the path in the pipeline')
    with _readable(name, path):
        found = [_described(name, path, file) for file in _files(name, path)]
    for other in found[1:]:
        if other.types != found[0].types:
            raise Refused(f'source "{name}": the files in "{path}" have different columns')
    return replace(found[0], groups=tuple(g for each in found for g in each.groups))


def with_bounds(table: Table) -> Table:
    """The table with the ends of every column in every row group; refused if values are missing."""
    with _readable(table.name, Path(table.path)):
        return replace(table, groups=tuple(_bounded(table, group) for group in table.groups))


def _bounded(table: Table, group: Group) -> Group:
    rows = read_group(table, group)
    for column in rows.column_names:
        if rows[column].null_count:
            raise Refused(
                f'source "{table.name}": "{column}" has nulls; leave out those rows, or fill them '
                "(a missing number may be NaN)"
            )
    return replace(group, bounds={c: _ends(table, c, rows[c]) for c in rows.column_names})


def _ends(table: Table, column: str, values: pa.ChunkedArray) -> tuple[Any, Any]:
    """The ends of a column; refused if they are times that nobody could be shown."""
    try:
        return ends(values)
    except OverflowError:
        raise Refused(
            f'source "{table.name}": "{column}" has times before the year 1 or after 9999; leave '
            "out those rows"
        ) from None


def _files(name: str, path: Path) -> list[str]:
    """The files below a path by their names there; of a single file, nothing more to say."""
    if path.is_file():
        return [""]
    found = sorted(p.name for p in path.iterdir() if p.suffix == SUFFIX and p.is_file())
    if not found:
        raise Refused(f'source "{name}": there is no file like part{SUFFIX} in "{path}"')
    return found


def _described(name: str, path: Path, file: str) -> Table:
    """The table in one file: its columns, and its row groups without bounds."""
    with pq.ParquetFile(path / file) as stored:
        kinds = {f.name: _kind(name, f) for f in stored.schema_arrow}
        if len(kinds) < len(stored.schema_arrow) or RESERVED & set(kinds):
            raise Refused(
                f'source "{name}": columns need different names, and none of '
                f"{', '.join(sorted(RESERVED))}"
            )
        groups = [_group(name, file, stored.metadata.row_group(n), n)
                  for n in range(stored.metadata.num_row_groups)]  # fmt: skip
    return Table(
        name=name,
        version="",
        path=str(path.resolve()),
        attributes=tuple(Attribute(c, _meaning(t), (c,)) for c, t in kinds.items()),
        types={c: str(t) for c, t in kinds.items()},
        groups=tuple(g for g in groups if g.rows),
        origin={},
    )


def _group(name: str, file: str, stored: pq.RowGroupMetaData, index: int) -> Group:
    if stored.total_byte_size > LARGEST_CHUNK:
        size = f"{stored.total_byte_size >> 20:,} MiB, over {LARGEST_CHUNK >> 20:,} MiB"
        raise Refused(f'source "{name}" has a row group of {size}; write it in smaller ones')
    return Group(file, index, stored.num_rows, stored.total_byte_size, {})


def _kind(name: str, field: pa.Field) -> pa.DataType:
    """How a column is read here: times in microseconds, in UTC if they say where; as Spark can."""
    kind = field.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pa.timestamp("us")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_unsigned_integer(kind):
        return pa.int64()
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return kind
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return kind
    raise Refused(
        f'source "{name}": column "{field.name}" is {kind!s:.60}; a column may hold numbers, '
        "texts, times or true and false"
    )


def _meaning(kind: pa.DataType) -> Type:
    if pa.types.is_timestamp(kind):
        return Time
    return Text if pa.types.is_string(kind) else Quantity


@contextmanager
def _readable(name: str, path: Path) -> Iterator[None]:
    """Say in one line what keeps a source from being read."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if path.suffix.lower() in (".csv", ".txt", ".tsv"):
            hint = "it is text; make it Parquet first, like: pandas.read_csv(..).to_parquet(..)"
            raise Refused(f'source "{name}": "{path}" is not Parquet: {hint}') from None
        raise Failed(f'source "{name}": cannot read "{path}": {reason(error)}') from None
