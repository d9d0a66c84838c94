"""Where principal components came from: the inverse that faces `pipelines/boxes/components.py`."""

from __future__ import annotations

from inverses.guarantees import COMPLETE, FAITHFUL
from inverses.registry import AGGREGATE, ANY, USED, weakly_inverts
from pipelines.boxes.components import PrincipalComponents
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter


@weakly_inverts(
    PrincipalComponents,
    image=ANY,
    yields=[USED],
    nature=AGGREGATE,
    promises=[COMPLETE, FAITHFUL],
    level=ELEMENT,
)
def all_cells(box: PrincipalComponents, at: Filter, source: Array) -> Filter:
    """Any cell of the variable may matter; not every one does, so this is not pure.

    Where all components are kept a cell is itself again, whatever others are, and a place where
    two steps are missing has no say however one of them is changed.
    """
    return at.to()
