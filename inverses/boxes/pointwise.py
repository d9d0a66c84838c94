"""Where the cells of formulas came from: the inverses that face `pipelines/boxes/pointwise.py`."""

from __future__ import annotations

from typing import Any

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import AGGREGATE, ANY, USED, weakly_inverts
from pipelines.boxes.pointwise import Calculate, Combine
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter

CELLS: dict[str, Any] = {"image": ANY, "yields": [USED], "nature": AGGREGATE, "level": ELEMENT}


@weakly_inverts(Calculate, promises=[COMPLETE, PURE, FAITHFUL], **CELLS)
@weakly_inverts(Combine, promises=[COMPLETE, PURE, FAITHFUL], **CELLS)
def same_place(box: Any, at: Filter, source: Array) -> Filter:
    """A cell is made of those at its place, or of the only one where there is but one."""
    return at.only(*(d for d in source.dims if source.size[d] > 1))
