"""Where cells of other grids came from: the inverses that face `pipelines/boxes/regrid.py`."""

from __future__ import annotations

from typing import Any

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.reaches import reached
from inverses.registry import AGGREGATE, ANY, USED, weakly_inverts
from pipelines.boxes.regrid import PLACES, Coarsen, Regrid
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter

CELLS: dict[str, Any] = {
    "image": ANY,
    "yields": [USED],
    "level": ELEMENT,
    "promises": [COMPLETE, PURE, FAITHFUL],
}


@weakly_inverts(Regrid, nature=AGGREGATE, **CELLS)
def weighed(box: Regrid, at: Filter, source: Array) -> Filter:
    """The cells that have a weight for a place, along one dimension and the other."""
    found = at.only(*source.dims)
    for dim in PLACES:
        weights = box.weights(source, dim)
        found = reached(found, dim, weights.first, weights.last, source)
    return found


@weakly_inverts(Coarsen, nature=AGGREGATE, **CELLS)
def covered(box: Coarsen, at: Filter, source: Array) -> Filter:
    """The cells that a place covers."""
    found = at.only(*source.dims)
    for dim in source.dims:
        found = reached(found, dim, *box.covered(source, dim), source)
    return found
