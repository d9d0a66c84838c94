"""Which rows gridded cells came from: the inverses that face `gridding`."""

from __future__ import annotations

import numpy as np

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import AGGREGATE, ANY, USED, Mask, Row, Seen, verifies, weakly_inverts
from inverses.sweeps import sweeps
from pipelines.boxes.gridding import RowsOnGrid
from pipelines.columns import absent
from pipelines.datasets import Table
from pipelines.filters import Filter
from pipelines.likeness import matched


@weakly_inverts(
    RowsOnGrid, image=ANY, yields=[USED], nature=AGGREGATE, promises=[COMPLETE, FAITHFUL]
)
def rows_in_cell(box: RowsOnGrid, at: Filter, source: Table) -> Filter:
    """Only the rows that fall into a cell make its value."""
    return box.within(source, at)


@verifies(
    RowsOnGrid,
    image=ANY,
    yields=[USED],
    nature=AGGREGATE,
    needs=[COMPLETE],
    promises=[COMPLETE, PURE],
    at_once=True,
)
def counted_in_cell(box: RowsOnGrid, at: Row, seen: Seen, source: Table) -> Mask:
    """All rows in the cell that were counted, that have a value, or that attain the extreme."""
    of, how = box.aggregate
    if how == "count":
        return np.ones(len(seen["owner"]), bool)
    there = ~absent(seen[of])
    none = ~np.isin(seen["owner"], seen["owner"][there])
    return there | none if how == "mean" else _attain(seen, of, how, there) | none


@sweeps(RowsOnGrid)
def counted_in_cells(box: RowsOnGrid, asked: Seen, seen: Seen, source: Table) -> Mask:
    """The rows that count in the cell they fall into, if it is asked about."""
    bins = box.bins(source)
    places = [each.of(seen[name]) for name, each in bins.values()]
    cell, wanted = matched(places, [asked[dim] for dim in bins])
    return np.isin(cell, wanted) & counted_in_cell(box, {}, {**seen, "owner": cell}, source)


def _attain(seen: Seen, of: str, how: str, there: Mask) -> Mask:
    """Which candidates attain the extreme of their datum's."""
    _, datum = np.unique(seen["owner"], return_inverse=True)
    ends, best = (np.minimum, np.inf) if how == "min" else (np.maximum, -np.inf)
    extreme = np.full(datum.max(initial=-1) + 1, best)
    values = seen[of].astype(float)
    ends.at(extreme, datum[there], values[there])
    return np.asarray(there & (values == extreme[datum]))
