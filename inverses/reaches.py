"""Reaches: from places along a dimension of what was made to the places that they were made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.datasets import Array
from pipelines.filters import Filter, wrapped
from pipelines.spans import Span

Indices = NDArray[np.int64]


def reached(at: Filter, dim: str, first: Indices, last: Indices, source: Array) -> Filter:
    """A filter whose spans on `dim` are turned from the image's places into the source's.

    Place `n` of the image was made of the places `first[n]` to `last[n]` of the source, which may
    go past the seam of a circle; of none where `first` is beyond `last`. A range of places is
    turned into as few spans as say exactly what its places say one by one.

    >>> from pipelines.contents import held_array
    >>> from pipelines.filters import span, where
    >>> line = held_array("line", (), {"x": np.arange(10)}, {})
    >>> thirds = np.array([0, 3, 6, 9])
    >>> reached(where(x=span(1, 2)), "x", thirds, thirds + 2, line)
    x 3..8
    >>> reached(where(x=span(1, 2)), "x", thirds, thirds, line)
    (x = 3) or (x = 6)
    """
    within = _within(at, dim, len(first))
    low, high = within.spans[dim].low, within.spans[dim].high
    run, start, stop = _runs(first, last)
    counts = run[high] - run[low] + 1
    spread, nth = within.repeated(counts)
    number = np.repeat(run[low], counts) + nth
    a = np.maximum(np.repeat(low, counts), start[number])
    b = np.minimum(np.repeat(high, counts), stop[number])
    found = Span(np.minimum(first[a], first[b]), np.maximum(last[a], last[b]))
    turned = Filter(spread.owner, {**spread.spans, dim: found}).without_empty()
    return wrapped(turned, dim, source.size[dim]) if dim in source.circular else turned


def _within(at: Filter, dim: str, size: int) -> Filter:
    """A filter that is restricted on a dimension, to places that there are."""
    every = Span(np.zeros(len(at), np.int64), np.full(len(at), size - 1))
    given = at.span(dim) or every
    low = np.ceil(np.clip(given.low, 0, size)).astype(np.int64)
    high = np.floor(np.clip(given.high, -1, size - 1)).astype(np.int64)
    return Filter(at.owner, {**at.spans, dim: Span(low, high)}).without_empty()


def _runs(first: Indices, last: Indices) -> tuple[Indices, Indices, Indices]:
    """The run that each place is in, and where runs start and stop.

    Within a run the reaches move one way and leave no gap, so that its ends tell all of it.
    """
    rising = first[-1] >= first[0]
    one, other = (slice(None, -1), slice(1, None)) if rising else (slice(1, None), slice(None, -1))
    joined = (
        (first[one] <= first[other])
        & (last[one] <= last[other])
        & (first[other] <= last[one] + 1)
        & (first[one] <= last[one])
        & (first[other] <= last[other])
    )
    run = np.concatenate([[0], np.cumsum(~joined)])
    start = np.flatnonzero(np.concatenate([[True], ~joined]))
    stop = np.concatenate([start[1:] - 1, [len(first) - 1]])
    return run, start, stop
