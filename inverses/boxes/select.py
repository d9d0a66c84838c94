"""Where parts of arrays came from: the inverses that face `pipelines/boxes/select.py`."""

from __future__ import annotations

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.reaches import reached
from inverses.registry import ANY, SCALAR, USED, weakly_inverts
from pipelines.boxes.select import Picking
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter


@weakly_inverts(
    Picking,
    image=ANY,
    yields=[USED],
    nature=SCALAR,
    promises=[COMPLETE, PURE, FAITHFUL],
    level=ELEMENT,
)
def same_cell(box: Picking, at: Filter, source: Array) -> Filter:
    """The cell that was taken."""
    found = at.only(*source.dims)
    for dim, places in box.picked(source).items():
        found = reached(found, dim, places, places, source)
    return found
