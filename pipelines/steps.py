"""Steps: an array read one step after another, and the shapes of arrays made of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges, block, number_kinds
from pipelines.boxes.box import Grid
from pipelines.datasets import Array, Attribute, Time
from pipelines.errors import Refused
from pipelines.grids import grid_like, names_in, one_of

Reals = NDArray[np.float64]
Whole = NDArray[np.int64]

HANDY = 64 * 2**20  # bytes of one chunk of an array that is cut anew


def steps(
    array: Array, variable: str, wanted: Whole, ranges: Ranges
) -> Iterator[tuple[int, Reals]]:
    """Some steps with their numbers, in order; each chunk of steps is read once, from its first."""
    record, size = array.dims[0], array.chunks[0]
    for part in np.split(wanted, np.flatnonzero(np.diff(wanted // size)) + 1):
        if len(part):
            cut = {**ranges, record: (int(part[0]), int(part[-1]) + 1)}
            values = block(array, variable, cut)
            yield from ((int(t), values[t - part[0]].astype(np.float64)) for t in part)


def like(
    array: Array,
    makes: Iterable[Attribute],
    changed: Mapping[str, NDArray[Any]] | None = None,
    chunks: Mapping[str, int] | None = None,
    dtype: Any = None,
) -> Grid:
    """The grid of an array, with other coordinates and chunks where some are given.

    A dimension with other coordinates is no full circle any more.
    """
    found = changed or {}
    grid = grid_like(array, makes, found, tuple(d for d in array.circular if d not in found))
    sizes = dict(zip(array.dims, array.chunks, strict=True)) | dict(chunks or {})
    cut = tuple(max(1, min(sizes[d], n)) for d, n in zip(array.dims, grid.shape, strict=True))
    return replace(grid, chunks=cut, dtype=dtype or precision(array))


def precision(array: Array) -> type[np.floating[Any]]:
    """The kind of number that holds what an array's cells hold.

    A float of 4 bytes holds one of as many bytes, but no whole number over 2**24.
    """
    exact = array.itemsize < 4 or (array.itemsize == 4 and number_kinds(array) <= {"f"})
    return np.float32 if exact else np.float64


def middle(values: NDArray[Any]) -> Any:
    """The mean of coordinates: numbers, dates, or dates of another calendar.

    >>> middle(np.array(["2001-03-01", "2001-03-02"], "datetime64[h]"))
    np.datetime64('2001-03-01T12','h')
    """
    if values.dtype.kind in "iuf":
        return values.astype(np.float64).mean()
    return values[0] + (values - values[0]).mean()


def averaged(total: Reals, count: Reals) -> Reals:
    """The mean where something was counted, nothing elsewhere."""
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def variables(given: Iterable[Attribute]) -> tuple[Attribute, ...]:
    """The attributes of an array that are variables, after its time."""
    return tuple(a for a in given if a.type == Time or a.dims)


def listed(box: str, what: str, value: str, known: Sequence[str]) -> tuple[str, ...]:
    """The different words in a comma-separated parameter, each checked.

    >>> listed("reduce", "dimension", "lat, lon", ["time", "lat", "lon"])
    ('lat', 'lon')
    """
    words = tuple(dict.fromkeys(names_in(value)))
    if not words:
        raise Refused(f'box "{box}" needs a {what}; name some of {", ".join(known)}')
    for word in words:
        one_of(word, known, what, box)
    return words
