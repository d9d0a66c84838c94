"""Where kept, cut and joined rows came from: the inverses that face `relational`."""

from __future__ import annotations

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import ANY, USED, weakly_inverts
from pipelines.boxes.relational import Distinct, FilterRows, Join, Project, Union
from pipelines.datasets import Table
from pipelines.filters import Filter

EXACTLY = (COMPLETE, PURE, FAITHFUL)


@weakly_inverts(FilterRows, image=ANY, yields=[USED], promises=EXACTLY)
def kept_values(box: FilterRows, at: Filter, source: Table) -> Filter:
    """A row comes from those that have its values, and that the predicate can have kept."""
    here = at.only(*source.columns).spans
    there = {c: one.repeated(len(at)) for c, one in box.region(source).spans.items()}
    return at.to(**{**there, **here, **{c: here[c] & there[c] for c in here if c in there}})


@weakly_inverts(Project, image=ANY, yields=[USED], promises=EXACTLY)
@weakly_inverts(Distinct, image=ANY, yields=[USED], promises=EXACTLY)
@weakly_inverts(Union, image=ANY, yields=[USED], promises=EXACTLY)
def same_values(box: Project | Distinct | Union, at: Filter, source: Table) -> Filter:
    """A row comes from those that have its values."""
    return at.only(*source.columns)


@weakly_inverts(Join, image=ANY, yields=[USED], promises=EXACTLY, port="left")
def left_part(box: Join, at: Filter, source: Table) -> Filter:
    """A pair's left row has the values that the pair has in its left columns."""
    return _part(box, at, source, "left")


@weakly_inverts(Join, image=ANY, yields=[USED], promises=EXACTLY, port="right")
def right_part(box: Join, at: Filter, source: Table) -> Filter:
    """A pair's right row has the values that the pair has in its right columns."""
    return _part(box, at, source, "right")


def _part(box: Join, at: Filter, source: Table, port: str) -> Filter:
    """A side's columns, under the pair's names for them; no two of a pair are called alike."""
    longer = {c: c + box.suffix(port) for c in source.columns if c not in (*box.on, *at.spans)}
    # What the side has a column for is that column, if a region does not tell of the shorter one.
    names = {c: n for c, n in longer.items() if n not in source.columns}
    return at.to(**{c: at.span(names.get(c, c)) for c in source.columns})
