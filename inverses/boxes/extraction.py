"""Which cells extracted rows came from: the inverses that face `extraction`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pipelines.boxes.between import ExtractAbove, ExtractExtrema

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import AGGREGATE, ANY, USED, weakly_inverts
from pipelines.arrays import coordinate
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter, Span, wrapped
from pipelines.minima import when


@weakly_inverts(
    ExtractAbove, image=ANY, yields=[USED], promises=[COMPLETE, PURE, FAITHFUL], level=ELEMENT
)
def own_cell(box: ExtractAbove, at: Filter, source: Array) -> Filter:
    """A row tells of one cell."""
    return at.to(**{dim: _indices(at, dim, source) for dim in source.dims})


@weakly_inverts(
    ExtractExtrema,
    image=ANY,
    yields=[USED],
    nature=AGGREGATE,
    promises=[COMPLETE, PURE, FAITHFUL],
    level=ELEMENT,
)
def window(box: ExtractExtrema, at: Filter, source: Array) -> Filter:
    """A cell was called an extremum by all cells of the window around it."""
    around = at.to(**{dim: _reached(box, at, dim, source) for dim in source.dims})
    for dim in source.circular:
        around = wrapped(around, dim, source.size[dim])
    return around


def _reached(box: ExtractExtrema, at: Filter, dim: str, source: Array) -> Span | None:
    own = _indices(at, dim, source)
    return own if own is None or dim == source.dims[0] else own.grown(box.reach)


def _indices(at: Filter, dim: str, source: Array) -> Span | None:
    """Where along a dimension rows lie: by its index, else by its coordinate."""
    index, place = at.span(f"{dim}_index"), at.span(dim)
    if index is not None or place is None:
        return index
    return _between(place, _coordinate(source, dim))


def _coordinate(source: Array, dim: str) -> NDArray[np.generic]:
    """The coordinate as extracted rows tell it."""
    if dim == "time":
        return np.asarray(when(source, np.arange(source.size[dim]))["time"])
    return np.asarray(coordinate(source, dim).astype(float))


def _between(place: Span, values: NDArray[np.generic]) -> Span:
    """From the first to the last index whose coordinate each range holds."""
    held = place.open[:, None] | (
        (values[None] >= place.low[:, None]) & (values[None] <= place.high[:, None])
    )
    first, last = held.argmax(axis=1), len(values) - 1 - held[:, ::-1].argmax(axis=1)
    none = ~held.any(axis=1)
    return Span(np.where(none, 0, first), np.where(none, -1, last))
