"""Reading arrays: chunks, blocks with a halo, and single cells, from Zarr or NetCDF in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pipelines.datasets import Array, check_kept
from pipelines.ends import whole
from pipelines.errors import Failed, WhenceError
from pipelines.files import File, open_file, reason, under_our_names
from pipelines.filters import Filter, lattice
from pipelines.spans import Span

Ranges = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk of one variable: where it lies (last index included), and its bytes."""

    variable: str
    ranges: tuple[tuple[int, int], ...]
    bytes: int


@contextmanager
def opened(array: Array) -> Iterator[xr.Dataset]:
    """The array's file as xarray sees it, under our names; it is let go of at the end."""
    file = _opened(array.path, array.engine, _state(array), tuple(sorted(array.stored.items())))
    try:
        yield file.data
    except WhenceError:
        raise
    except Exception as error:
        raise Failed(f'cannot read "{array.path}": {reason(error)}') from None
    finally:
        file.close()


def _state(array: Array) -> str:
    """What tells one content of a path from another that it had or will have."""
    run = array.made.run if array.made else None
    return f"{array.version} {run} {(array.origin or {}).get('times')}"


@lru_cache(maxsize=64)
def _opened(path: str, engine: str, state: str, stored: tuple[tuple[str, str], ...]) -> File:
    file = open_file(path, engine)
    return File(under_our_names(file.data, dict(stored)), file.close)


def coordinate(array: Array, dim: str) -> NDArray[Any]:
    """The coordinate values along a dimension (its indices where the file has none)."""
    if array.content is not None:
        return np.asarray(array.content.coordinate(dim))
    with opened(array) as data:
        return np.asarray(data[dim].values) if dim in data.coords else np.arange(array.size[dim])


def number_kinds(array: Array) -> set[str]:
    """The kinds of numbers, as numpy calls them, that an array's cells are stored as.

    The file knows, even where a few of its cells stand in for it as floats. Of an array whose
    cells were not kept no kind is known.
    """
    if not array.path:
        nowhere = dict.fromkeys(array.dims, (0, 0))
        return {block(array, v, nowhere).dtype.kind for v in array.variables}
    if not array.kept:
        return set()
    with opened(array) as data:
        return {data[v].dtype.kind for v in array.variables}


def chunks_of(array: Array, variable: str) -> list[Chunk]:
    """Every chunk of a variable, in order."""
    high = np.array([[-(-n // c) - 1 for n, c in zip(array.shape, array.chunks, strict=True)]])
    _, keys = lattice(np.zeros_like(high), high)
    return [_chunk(array, variable, key) for key in keys]


def _chunk(array: Array, variable: str, key: NDArray[np.int64]) -> Chunk:
    ranges = tuple(
        (int(k) * c, min((int(k) + 1) * c, n) - 1)
        for k, c, n in zip(key, array.chunks, array.shape, strict=True)
    )
    return Chunk(variable, ranges, int(np.prod(array.chunks)) * array.itemsize)


def inside(array: Array, filter_: Filter) -> Filter:
    """A filter on every dimension of the array, cut to what exists; other keys stay."""
    spans = {k: s for k, s in filter_.spans.items() if k not in array.dims}
    for dim, extent in array.size.items():
        span = filter_.span(dim)
        low = np.zeros(len(filter_), np.int64) if span is None else _whole(span.low, np.ceil)
        high = np.full(len(filter_), extent - 1) if span is None else _whole(span.high, np.floor)
        spans[dim] = Span(np.maximum(low, 0), np.minimum(high, extent - 1))
    return Filter(filter_.owner, spans).without_empty()


def _whole(values: NDArray[Any], rounding: Any) -> NDArray[np.int64]:
    if values.dtype.kind != "f":
        return whole(values)
    return np.asarray(rounding(np.clip(values, -1, 2**62)).astype(np.int64))


def touched(array: Array, variable: str, filter_: Filter) -> list[tuple[Chunk, NDArray[np.int64]]]:
    """The chunks that a filter needs, each with the positions of the boxes that need it."""
    low, high = _corners(array, filter_)
    size = np.array(array.chunks)
    box, keys = lattice(low // size, high // size)
    if not len(keys):
        return []
    every = tuple(-(-np.array(array.shape) // size))
    numbers = np.ravel_multi_index(tuple(keys.T), every)
    order = np.argsort(numbers, kind="stable")
    found, first = np.unique(numbers[order], return_index=True)
    groups = np.split(box[order], first[1:])
    places = np.column_stack(np.unravel_index(found, every))
    return [(_chunk(array, variable, k), g) for k, g in zip(places, groups, strict=True)]


def cells_in(
    array: Array, chunk: Chunk, filter_: Filter
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """The cells of one chunk that a filter holds: owner, indices and value of each, once."""
    low, high = _corners(array, filter_)
    first, last = np.array(chunk.ranges).T
    low, high = np.maximum(low, first), np.minimum(high, last)
    box, points = lattice(low, high)
    once = _first_of_each(filter_.owner[box], points - first, last - first + 1)
    owner, points = filter_.owner[box][once], points[once]
    origin = points.min(axis=0) if len(points) else first
    stop = points.max(axis=0) if len(points) else first - 1
    region = _values(array, chunk.variable, list(zip(origin, stop + 1, strict=True)))
    return owner, points, region[tuple((points - origin).T)]


def cells_at(
    array: Array, variable: str, points: Mapping[str, NDArray[np.int64]]
) -> NDArray[np.float64]:
    """The values at some cells, told by an index along each dimension; a chunk is read once."""
    found = np.full(len(points[array.dims[0]]), np.nan)
    where = Filter(np.arange(len(found)), {d: Span(points[d], points[d]) for d in array.dims})
    for chunk, boxes in touched(array, variable, where):
        owner, _, values = cells_in(array, chunk, where[boxes])
        found[owner] = values
    return found


def _first_of_each(
    owner: NDArray[np.int64], points: NDArray[np.int64], shape: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The positions of each pair of owner and point the first time it comes."""
    cell = np.ravel_multi_index(tuple(points.T), tuple(shape))
    return np.unique(owner * int(shape.prod()) + cell, return_index=True)[1]


def _corners(array: Array, filter_: Filter) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    spans = [filter_.spans[d] for d in array.dims]
    return np.column_stack([s.low for s in spans]), np.column_stack([s.high for s in spans])


def block(array: Array, variable: str, ranges: Ranges) -> NDArray[Any]:
    """The values in index ranges (last excluded) that may reach past the seam of a circle."""
    cut = {d: ranges.get(d, (0, n)) for d, n in array.size.items()}
    past = next((d for d, ends in cut.items() if _wraps(array, d, *ends)), None)
    if past is None:
        return _values(array, variable, [*cut.values()])
    (first, last), size, axis = cut[past], array.size[past], array.dims.index(past)
    if last - first >= size:
        whole = block(array, variable, {**cut, past: (0, size)})
        return np.take(whole, np.arange(first, last) % size, axis)
    parts = [block(array, variable, {**cut, past: run}) for run in _runs(first, last, size)]
    return np.concatenate(parts, axis)


def _runs(first: int, last: int, size: int) -> list[tuple[int, int]]:
    """A range of less than a turn past the seam of a circle, in ranges that are not.

    >>> _runs(-2, 3, 10), _runs(-5, -2, 10), _runs(8, 11, 10)
    ([(8, 10), (0, 3)], [(5, 8)], [(8, 10), (0, 1)])
    """
    start = first % size
    stop = start + last - first
    return [(start, stop)] if stop <= size else [(start, size), (0, stop - size)]


def _wraps(array: Array, dim: str, first: int, last: int) -> bool:
    return dim in array.circular and (first < 0 or last > array.size[dim])


def _values(array: Array, variable: str, ranges: list[tuple[Any, Any]]) -> NDArray[Any]:
    index = {d: slice(int(a), int(b)) for d, (a, b) in zip(array.dims, ranges, strict=True)}
    if array.content is not None:
        cut = {d: (s.start, s.stop) for d, s in index.items()}
        return np.asarray(array.content.values(variable, cut))
    check_kept(array)
    with opened(array) as data:
        found = data[variable].transpose(*array.dims, ...).isel(index)
        return np.asarray(found.values).reshape([s.stop - s.start for s in index.values()])


def remembering(array: Array) -> Array:
    """The same array, of which no block is read twice: for as long as it is there, blocks stay."""
    return replace(array, content=_Remembered(array))


@dataclass(frozen=True, slots=True, eq=False)
class _Remembered:
    """The cells of an array, and the blocks of them that were read."""

    array: Array
    blocks: dict[Any, NDArray[Any]] = field(default_factory=dict)

    def coordinate(self, dim: str) -> NDArray[Any]:
        return coordinate(self.array, dim)

    def values(self, variable: str, ranges: Ranges) -> NDArray[Any]:
        block = variable, *ranges.values()
        if block not in self.blocks:
            self.blocks[block] = _values(self.array, variable, [*ranges.values()])
            self.blocks[block].flags.writeable = False
        return self.blocks[block]
