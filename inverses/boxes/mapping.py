"""Where mapped rows came from: the inverses that face `mapping`."""

from __future__ import annotations

from math import inf, isnan

import numpy as np

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import ANY, USED, weakly_inverts
from pipelines.boxes.mapping import MapRows
from pipelines.datasets import Table
from pipelines.expressions import Ends
from pipelines.filters import Filter
from pipelines.spans import Span


@weakly_inverts(MapRows, image=ANY, yields=[USED], promises=[COMPLETE, PURE, FAITHFUL])
def unmapped(box: MapRows, at: Filter, source: Table) -> Filter:
    """A row comes from those with its other values, which its formula can take to its new one.

    A range of the new column is pushed through the formula: what is not in the range that a
    column must then lie in cannot be mapped into it.
    """
    spans = at.only(*source.columns).spans
    wanted = at.span(box.column)
    if wanted is None or all(name in spans for name in box.parsed.names):
        return at.to(**spans)
    pushed = {n: _pushed(box, n, wanted, at) for n in box.parsed.names if n not in spans}
    return at.to(**spans, **pushed)


def _pushed(box: MapRows, name: str, wanted: Span, at: Filter) -> Span:
    """Where a column lies if the new one lies where it is wanted, box by box."""
    found = [_narrowed(box, name, number, wanted, at) for number in range(len(at))]
    return Span(*np.array(found, float).reshape(-1, 2).T)


def _narrowed(box: MapRows, name: str, number: int, wanted: Span, at: Filter) -> Ends:
    """The bounds of a column for one box, given those that others have there."""
    low, high = float(wanted.low[number]), float(wanted.high[number])
    if isnan(low) or isnan(high):
        return (-inf, inf)
    others = {n: at.spans[n] for n in box.parsed.names if n in at.spans}
    given = {n: (float(s.low[number]), float(s.high[number])) for n, s in others.items()}
    known = {n: ends for n, ends in given.items() if not isnan(ends[0] + ends[1])}
    return box.parsed.narrowed(name, low, high, known)
