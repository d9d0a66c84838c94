"""Where kept, cut and joined rows came from: the inverses that face `relational`."""

from __future__ import annotations

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import ANY, USED, weakly_inverts
from pipelines.boxes.relational import Distinct, FilterRows, Join, Project, Union
from pipelines.datasets import Table
from pipelines.filters import Filter

EXACTLY = (COMPLETE, PURE, FAITHFUL)


@weakly_inverts(FilterRows, image=ANY, yields=[USED], promises=EXACTLY)
@weakly_inverts(Project, image=ANY, yields=[USED], promises=EXACTLY)
@weakly_inverts(Distinct, image=ANY, yields=[USED], promises=EXACTLY)
@weakly_inverts(Union, image=ANY, yields=[USED], promises=EXACTLY)
def same_values(box: FilterRows | Project | Distinct | Union, at: Filter, source: Table) -> Filter:
    """A row comes from those that have its values."""
    return at.only(*source.columns)


@weakly_inverts(Join, image=ANY, yields=[USED], promises=EXACTLY, port="left")
def left_values(box: Join, at: Filter, source: Table) -> Filter:
    """A pair's left row has the values that the pair has in its left columns."""
    return at.only(*source.columns)


@weakly_inverts(Join, image=ANY, yields=[USED], promises=EXACTLY, port="right")
def right_values(box: Join, at: Filter, source: Table) -> Filter:
    """A pair's right row has the values that the pair has in its right columns, by their names."""
    
