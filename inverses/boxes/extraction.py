"""Which cells extracted rows came from: the inverses that face `extraction`."""

from __future__ import annotations

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import AGGREGATE, ANY, USED, weakly_inverts
from pipelines.boxes.extraction import ExtractAbove, ExtractExtrema
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter, wrapped
from pipelines.spans import Span


@weakly_inverts(
    ExtractAbove, image=ANY, yields=[USED], promises=[COMPLETE, PURE, FAITHFUL], level=ELEMENT
)
def own_cell(box: ExtractAbove, at: Filter, source: Array) -> Filter:
    """A row tells of one cell."""
    return at.to(**{dim: at.span(f"{dim}_index") for dim in source.dims})


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
    own = at.span(f"{dim}_index")
    return own if own is None or dim == source.dims[0] else own.grown(box.reach)
