"""Touching: which data of a dataset have weak inverses that hold something of what was reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inverses.outline import VARIABLE, combined, parts_of
from inverses.plans import Hop
from pipelines.datasets import Array, Group, Table
from pipelines.ends import least_and_greatest
from pipelines.filters import Filter
from pipelines.spans import Span, everything, span
from pipelines.tables import as_filter, bounds, column, held, rows_in, schema_of

Indices = NDArray[np.int64]
ENOUGH = 1024  # boxes that tell a region well, though smaller ones would be narrower
ORDERED = "iufM"


def candidates(hop: Hop, image: Table | Array, reached: pa.Table) -> Filter:
    """The data of a hop's image, one owner each, that may be derived from what was reached."""
    if isinstance(image, Table):
        return _candidate_rows(hop, image, reached)
    found = [_candidate_cells(hop, image, v, reached) for v in image.variables]
    whole = found[0]
    for each in found[1:]:
        whole = whole | each
    return whole


def derivable(hop: Hop, table: Table, reached: pa.Table) -> Filter:
    """Where rows of a table lie that may be derived from what was reached; none of it is read."""
    if isinstance(hop.source, Array):
        return _among_indices(hop, table, hop.source, reached)
    return _among_values(hop, table, hop.source, reached)


def weakly_behind(hop: Hop, at: Filter) -> Filter:
    """Where the weak inverses of a hop look for what is behind data of its image."""
    above: Filter | None = None
    for level in hop.levels:
        above = combined(parts_of(hop, level, at, above))
    assert above is not None
    return above


def _candidate_rows(hop: Hop, table: Table, reached: pa.Table) -> Filter:
    """Row groups that may hold derived rows are read, and their rows asked one by one."""
    near = [g for g in table.groups if _touches(hop, _bounds(table, g), reached).any()]
    some = replace(table, groups=tuple(near))
    at = as_filter(held(some, Filter(np.zeros(1, np.int64), {})))
    return at[_touches(hop, at, reached)] if len(at) else at


def _bounds(table: Table, group: Group) -> Filter:
    """A region that all rows of a row group lie in, by the ends of its columns."""
    kinds = {c: column(schema_of(table).empty_table(), c).dtype for c in table.columns}
    ends = {c: _between(group, c, kind) for c, kind in kinds.items()}
    return Filter(np.zeros(1, np.int64), {c: each for c, each in ends.items() if each})


def _between(group: Group, name: str, kind: np.dtype[Any]) -> Span | None:
    """The range of a column in a row group: all there is of numbers, of which some may be missing.

    Ends say nothing of those.
    """
    if kind.kind == "f":
        return everything(kind, 1)
    low, high = bounds(group, name, kind)
    return None if low is None else span(low, high)


def _candidate_cells(hop: Hop, array: Array, variable: str, reached: pa.Table) -> Filter:
    number = array.variables.index(variable)

    def boxes(low: Indices, high: Indices) -> Filter:
        at = _boxes(array.dims, low, high)
        return Filter(at.owner, {**at.spans, VARIABLE: span(np.full(len(low), number))})

    return _halved_down(hop, array.shape, boxes, reached)


def _among_indices(hop: Hop, table: Table, array: Array, reached: pa.Table) -> Filter:
    """Boxes of the places that rows were found at, in an array that tells where these are."""
    sizes = {f"{d}_index": n for d, n in array.size.items() if f"{d}_index" in table.columns}
    if not sizes:
        return Filter(np.zeros(1, np.int64), {})
    return _halved_down(
        hop, tuple(sizes.values()), lambda a, b: _boxes(list(sizes), a, b), reached, ENOUGH
    )


def _among_values(hop: Hop, table: Table, source: Table, reached: pa.Table) -> Filter:
    """The ranges of what was reached in the columns that both tables have.

    Only where rows beyond such a range cannot be derived from what was reached is it kept to.
    """
    alike = [c for c, kind in table.types.items() if source.types.get(c) == kind]
    found = {c: _range(hop, c, column(reached, c), reached) for c in alike}
    return Filter(np.zeros(1, np.int64), {c: each for c, each in found.items() if each})


def _range(hop: Hop, name: str, values: NDArray[Any], reached: pa.Table) -> Span | None:
    """The range of a column outside which nothing can be derived; None where there is none."""
    kind = values.dtype.kind
    if kind not in ORDERED or (values != values).any():
        return None
    low, high = values.min(), values.max()
    least, greatest = (np.array(v, values.dtype)[()] for v in least_and_greatest(values.dtype))
    if least == low or high == greatest:
        return None
    outside = [(least, _next(low, -1)), (_next(high, 1), greatest)]
    outside += [(np.nan, np.nan)] if kind == "f" else []
    at = span(*np.array(outside, values.dtype).T)
    below, above, *missing = _touches(hop, Filter(np.arange(len(at)), {name: at}), reached)
    if any(missing) or (below and above):
        return None
    return span(least if below else low, greatest if above else high)


def _next(value: Any, way: int) -> Any:
    """The next value that its type can hold, up or down."""
    if value.dtype.kind == "f":
        return np.nextafter(value, way * np.inf)
    return value + 1 if way > 0 else value - 1


def _halved_down(
    hop: Hop,
    shape: tuple[int, ...],
    boxes: Callable[[Indices, Indices], Filter],
    reached: pa.Table,
    enough: float = np.inf,
) -> Filter:
    """Boxes are halved as long as their weak inverses touch what was reached, and are few."""
    low, high = np.zeros((1, len(shape)), np.int64), np.array([shape]) - 1
    while len(low):
        touching = _touches(hop, boxes(low, high), reached)
        low, high = low[touching], high[touching]
        sizes = high - low
        if not sizes.any() or len(low) >= enough:
            break
        low, high = _halved(low, high, sizes)
    return boxes(low, high)


def _boxes(names: Sequence[str], low: Indices, high: Indices) -> Filter:
    spans = {name: Span(low[:, n], high[:, n]) for n, name in enumerate(names)}
    return Filter(np.arange(len(low)), spans)


def _halved(low: Indices, high: Indices, sizes: Indices) -> tuple[Indices, Indices]:
    """Each box cut in two along its longest side; those of one cell as they are."""
    axis = sizes.argmax(axis=1)
    each = np.arange(len(low))
    many = sizes[each, axis] > 0
    middle = (low[each, axis] + high[each, axis]) // 2
    first_high, second_low = high.copy(), low.copy()
    first_high[each, axis] = middle
    second_low[each, axis] = middle + 1
    return (
        np.concatenate([low, second_low[many]]),
        np.concatenate([first_high, high[many]]),
    )


def _touches(hop: Hop, at: Filter, reached: pa.Table) -> NDArray[np.bool_]:
    """For each datum or region, whether its weak inverses hold something of what was reached."""
    above = weakly_behind(hop, Filter(np.arange(len(at)), at.spans))
    touched = np.zeros(len(at), bool)
    if isinstance(hop.source, Table):
        touched[rows_in(reached, above)[0]] = True
        return touched
    counts = _counting(hop.source, reached)
    touched[above.owner[counts(above) > 0]] = True
    return touched


def _counting(array: Array, rows: pa.Table) -> Any:
    """How many of some cells lie in each box of a filter, by sums over the box around them."""
    cells = np.column_stack([column(rows, d) for d in array.dims])
    first, last = cells.min(axis=0), cells.max(axis=0)
    sums = np.zeros(last - first + 2, np.int64)
    np.add.at(sums, tuple((cells - first + 1).T), 1)
    for axis in range(sums.ndim):
        sums = sums.cumsum(axis=axis)

    def count(boxes: Filter) -> Indices:
        ends = [_clipped(boxes, d, a, b) for d, a, b in zip(array.dims, first, last, strict=True)]
        total = np.zeros(len(boxes), np.int64)
        for corner in np.ndindex(*(2,) * len(ends)):
            index = tuple(end[c] for end, c in zip(ends, corner, strict=True))
            total += (-1) ** (len(ends) - sum(corner)) * sums[index]
        return total

    return count


def _clipped(boxes: Filter, dim: str, first: int, last: int) -> tuple[Indices, Indices]:
    """Where a box begins and ends along a dimension, in the sums."""
    each = boxes.span(dim)
    if each is None:
        return np.zeros(len(boxes), np.int64), np.full(len(boxes), last - first + 1)
    low = np.clip(np.ceil(each.low), first, last + 1).astype(np.int64) - first
    high = np.clip(np.floor(each.high), first - 1, last).astype(np.int64) - first + 1
    return low, np.maximum(low, high)
