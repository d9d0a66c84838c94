"""Reading and writing tables: Parquet in small row groups whose bounds are known beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf, prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.contents import ends
from pipelines.datasets import Attribute, Group, Table, check_kept
from pipelines.errors import Failed, TooDear
from pipelines.filters import Filter
from pipelines.likeness import matched
from pipelines.spans import Span, span

GROUP_ROWS = 2048
TRIED = 1000  # boxes of very many, by which the columns that tell most are chosen
MOST_PAIRS = 50_000_000  # of a datum and a row, looked at together in one row group


def column(table: pa.Table, name: str) -> NDArray[Any]:
    """A column as numpy; times as datetime64, missing numbers as NaN."""
    values = table[name].combine_chunks()
    if pa.types.is_timestamp(values.type):
        return np.asarray(values.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False))
    return np.asarray(values.to_numpy(zero_copy_only=False))


def table_of(name: str, schema: pa.Schema, attributes: Iterable[Attribute]) -> Table:
    """A table that has these columns, and those attributes that have no others."""
    return Table(
        name=name,
        version="",
        path="table",
        attributes=tuple(a for a in attributes if set(a.columns) <= set(schema.names)),
        types={f.name: str(f.type) for f in schema},
    )


def schema_of(table: Table) -> pa.Schema:
    """The columns of a table and how they are stored."""
    return pa.schema([(c, pa.type_for_alias(t)) for c, t in table.types.items()])


def read_group(table: Table, group: Group) -> pa.Table:
    """One row group, whole."""
    if table.content is not None:
        found: pa.Table = table.content.group(group.index)
        return found
    check_kept(table)
    path = Path(table.path) / group.file
    try:
        with pq.ParquetFile(path) as file:
            rows = file.read_row_group(group.index)
            return rows if table.origin is None else _cast(rows, schema_of(table))
    except (OSError, pa.ArrowInvalid) as error:
        raise Failed(f'cannot read "{path}": {error}') from None


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of a file from outside, whose columns may be in an order of their own."""
    return rows.select(schema.names).cast(schema)


def as_filter(rows: pa.Table) -> Filter:
    """A filter that holds exactly the values of each row, one owner a row."""
    spans = {c: span(column(rows, c)) for c in rows.column_names}
    return Filter(np.arange(rows.num_rows), spans)


def touched(table: Table, filter_: Filter) -> list[tuple[int, NDArray[np.int64]]]:
    """The row groups that may hold rows of a filter, each with those boxes."""
    keys = _telling(table, filter_)
    found = []
    for number, group in enumerate(table.groups):
        boxes = np.arange(len(filter_))
        for key in keys:
            boxes = boxes[_meets(group, key, filter_.spans[key][boxes])]
        if len(boxes):
            found.append((number, boxes))
    return found


def _telling(table: Table, filter_: Filter) -> list[str]:
    """The columns that tell which row groups boxes touch, the one that tells most first.

    Of very many boxes some are tried: what leaves most of these to most groups tells nothing.
    """
    some = filter_[:: max(1, len(filter_) // TRIED)]
    left = {k: sum(_meets(g, k, s).sum() for g in table.groups) for k, s in some.spans.items()}
    most = len(some) * len(table.groups) / 2 if len(some) < len(filter_) else inf
    return sorted((k for k in left if left[k] <= most), key=left.__getitem__)


def _meets(group: Group, key: str, each: Span) -> NDArray[np.bool_]:
    """Which ranges of a column may hold values in a row group."""
    low, high = bounds(group, key, each.low.dtype)
    if low is None:
        return np.ones(len(each), bool)
    return np.asarray(((each.high >= low) & (each.low <= high)) | _missing(each.low))


def bounds(group: Group, key: str, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The ends of a column in a row group, in the filter's type; None if unknown."""
    low, high = group.bounds[key]
    if low is None or dtype.kind not in "MO":
        return low, high
    # In a coarser unit the open end of a filter would go round; numpy's own texts end at a NUL.
    return np.array(low, dtype), np.array(high, dtype)


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are NaN, and so equal to nothing but one another here."""
    return np.asarray(np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool))


def rows_in(rows: pa.Table, filter_: Filter) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which rows a filter holds: the owner and the position of each, once."""
    if not filter_.spans:
        owners = np.unique(filter_.owner)
        return np.repeat(owners, rows.num_rows), np.tile(np.arange(rows.num_rows), len(owners))
    start, found = _fewest(rows, filter_)
    box, position = found.pairs()
    for key in (k for k in filter_.spans if k not in start):
        each = filter_.spans[key]
        values = column(rows, key)[position]
        inside = (values >= each.low[box]) & (values <= each.high[box])
        inside |= _missing(each.low)[box] & _missing(values)
        keep = inside | each.open[box]
        box, position = box[keep], position[keep]
    owner = filter_.owner[box]
    first = np.unique(numbered([owner, position]), return_index=True)[1]
    return owner[first], position[first]


def _fewest(rows: pa.Table, filter_: Filter) -> tuple[tuple[str, ...], _Between]:
    """The columns by which the fewest pairs of a box and a row are left, and these pairs.

    They are all for which boxes name values, or one for which they name ranges.
    """
    named = tuple(k for k, s in filter_.spans.items() if s.single)
    ways = {named: _equal(rows, filter_.only(*named))} if named else {}
    ranges = (k for k in filter_.spans if k not in named and not rows[k].null_count)
    ways |= {(k,): _between(column(rows, k), filter_.spans[k]) for k in ranges}
    return min(ways.items(), key=lambda way: way[1].counts.sum())


def _equal(rows: pa.Table, filter_: Filter) -> _Between:
    """The rows that are equal to what boxes name in all of some columns."""
    there = [column(rows, key) for key in filter_.spans]
    number, wanted = matched(there, [each.low for each in filter_.spans.values()])
    return _between(number, span(wanted))


@dataclass(frozen=True, slots=True, eq=False)
class _Between:
    """The rows in order of one column, and for each box where those it holds begin, how many."""

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    counts: NDArray[np.int64]

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every pair of a box and the position of a row that it holds."""
        if (total := int(self.counts.sum())) > MOST_PAIRS:
            raise TooDear(
                f"{len(self.counts):,} data share so many rows that {total:,} pairs would have to "
                f"be looked at, over the limit of {MOST_PAIRS:,}; select fewer"
            )
        box = np.repeat(np.arange(len(self.counts)), self.counts)
        step = np.arange(total) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        return box, self.order[self.first[box] + step]


def _between(values: NDArray[Any], each: Span) -> _Between:
    """Where the rows whose values lie in each of some ranges are, by one sorted search."""
    order = np.argsort(values, kind="stable")
    first = np.searchsorted(values, each.low, "left", sorter=order)
    last = np.searchsorted(values, each.high, "right", sorter=order)
    last = np.where(each.open, len(values), last)
    return _Between(order, first, np.maximum(last - first, 0))


def numbered(columns: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """A number for each row of some columns of integers, the same for equal rows alone.

    >>> numbered([np.array([5, 5, 7]), np.array([-1, 2, -1])]).tolist()
    [0, 3, 8]
    """
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    least = [int(c.min()) for c in columns]
    sizes = [int(c.max()) - low + 1 for c, low in zip(columns, least, strict=True)]
    if prod(sizes) >= 2**63:
        return np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel()
    total = np.zeros(len(columns[0]), np.int64)
    for values, low, size in zip(columns, least, sizes, strict=True):
        total = total * size + (values - low)
    return total


def held(table: Table, filter_: Filter) -> pa.Table:
    """The rows that a filter holds, reading only the row groups it touches."""
    parts = [read_group(table, table.groups[number]) for number, _ in touched(table, filter_)]
    kept = [part.take(np.unique(rows_in(part, filter_)[1])) for part in parts]
    return pa.concat_tables(kept) if kept else schema_of(table).empty_table()


def matching(table: Table, predicate: pc.Expression | None, limit: int | None = None) -> pa.Table:
    """The rows that a predicate keeps, at most `limit` of them; other row groups are not read."""
    if table.content is None:
        check_kept(table)
    if not table.groups:
        return schema_of(table).empty_table()
    if table.content is not None and predicate is None and limit is None:
        return _held(table)
    with _readable(table):
        found = _scanned(table, predicate)
        return found.to_table() if limit is None else found.head(limit)


@contextmanager
def _readable(table: Table) -> Iterator[None]:
    """Say in one line what keeps a table from being read."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        reason = str(error).splitlines()[0]
        raise Failed(f'cannot read "{table.name}" in "{table.path}": {reason}') from None


def count(table: Table, predicate: pc.Expression | None) -> int:
    """How many rows a predicate keeps."""
    if predicate is None or not table.groups:
        return table.rows
    with _readable(table):
        return int(_scanned(table, predicate).count_rows())


def _held(table: Table) -> pa.Table:
    return pa.concat_tables([read_group(table, group) for group in table.groups])


def _scanned(table: Table, predicate: pc.Expression | None) -> ds.Scanner:
    """The rows that a predicate keeps, as Arrow finds them."""
    if table.content is not None:
        return ds.dataset(_held(table)).scanner(filter=predicate)
    check_kept(table)
    if table.origin is not None:
        return ds.Scanner.from_batches(_batches(table), schema=schema_of(table), filter=predicate)
    files = list(dict.fromkeys(str(Path(table.path) / g.file) for g in table.groups))
    return ds.dataset(files, format="parquet").scanner(filter=predicate)


def _batches(table: Table) -> Iterator[pa.RecordBatch]:
    """All rows of a file from outside, by whose own bounds Arrow would skip some that are NaN."""
    for group in table.groups:
        yield from read_group(table, group).to_batches()


def write_part(batches: Iterable[pa.RecordBatch], path: Path, schema: pa.Schema) -> list[Group]:
    """Write batches to one Parquet file in small row groups; an empty one writes nothing."""
    rows = pa.Table.from_batches(list(batches), schema)
    if not rows.num_rows:
        return []
    temporary = path.with_suffix(".partial")
    # Parquet's bounds leave NaN out, so that by them Arrow would skip rows that are `<> 1`.
    exact = [f.name for f in schema if not pa.types.is_floating(f.type)]
    footers: list[pq.FileMetaData] = []
    pq.write_table(
        rows,
        temporary,
        row_group_size=GROUP_ROWS,
        compression="zstd",
        write_statistics=exact,
        metadata_collector=footers,
    )
    temporary.replace(path)
    return list(_groups(path.name, rows, footers[0]))


def _groups(file: str, rows: pa.Table, footer: pq.FileMetaData) -> Iterator[Group]:
    first = 0
    for index in range(footer.num_row_groups):
        stored = footer.row_group(index)
        mine = rows.slice(first, stored.num_rows)
        limits = {c: ends(mine[c]) for c in rows.column_names}
        yield Group(file, index, stored.num_rows, stored.total_byte_size, limits)
        first += stored.num_rows


@dataclass(frozen=True, slots=True, eq=False)
class SomeRows:
    """The rows of a table that a filter holds, read when they are asked for."""

    table: Table
    filter: Filter

    def group(self, index: int) -> pa.Table:
        rows = read_group(self.table, self.table.groups[index])
        return rows.take(np.unique(rows_in(rows, self.filter)[1]))


def restricted(table: Table, filter_: Filter) -> Table:
    """A table that has only the rows a filter holds; other row groups are never read."""
    groups = [replace(table.groups[n], index=n) for n, _ in touched(table, filter_)]
    return replace(table, groups=tuple(groups), content=SomeRows(table, filter_))
