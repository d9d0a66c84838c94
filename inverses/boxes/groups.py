"""Where aggregates, ranks and the highest rows came from: the inverses that face `groups`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import AGGREGATE, ANY, USED, Mask, Row, Seen, verifies, weakly_inverts
from inverses.sweeps import sweeps
from pipelines.boxes.groups import Aggregate, RankRows, TopN, rank
from pipelines.columns import absent, listed
from pipelines.datasets import Measure, Table
from pipelines.ends import exact, least_and_greatest
from pipelines.filters import Filter
from pipelines.likeness import alike, matched
from pipelines.spans import Span


@weakly_inverts(
    Aggregate, image=ANY, yields=[USED], nature=AGGREGATE, promises=[COMPLETE, FAITHFUL]
)
@weakly_inverts(RankRows, image=ANY, yields=[USED], nature=AGGREGATE, promises=[COMPLETE, FAITHFUL])
def whole_group(box: Aggregate | RankRows, at: Filter, source: Table) -> Filter:
    """Nothing but the rows with its keys can have a say."""
    return at.only(*listed(box.keys))


@verifies(
    Aggregate,
    image=Measure,
    yields=[USED],
    nature=AGGREGATE,
    needs=[COMPLETE],
    promises=[COMPLETE, PURE],
    at_once=True,
    per_attribute=True,
)
def counted(box: Aggregate, at: Row, seen: Seen, source: Table, attribute: str) -> Mask:
    """All that are counted or share a key; those with a value, or the extreme; if none has, all."""
    of, how = box.made.get(attribute, ("", "count"))  # A key may be a measure made earlier.
    if how == "count":
        return np.ones(len(seen["owner"]), bool)
    values = seen[of]
    there = ~absent(values)
    none = ~_any_of(seen["owner"], there)
    if how not in ("min", "max"):
        return there | none
    return np.asarray(there & (values == exact(at[attribute])) | none)


def _any_of(owner: NDArray[np.int64], which: Mask) -> Mask:
    """For each candidate, whether any of its datum's candidates is one of these."""
    return np.isin(owner, owner[which])


@weakly_inverts(TopN, image=ANY, yields=[USED], nature=AGGREGATE, promises=[COMPLETE, FAITHFUL])
def none_below(box: TopN, at: Filter, source: Table) -> Filter:
    """Only rows of its group that come before it, or with it, decide whether a row is kept."""
    group = at.only(*listed(box.keys)).spans
    place = at.span(box.by)
    if place is None or box.by in group:
        return at.to(**group)
    least, greatest = least_and_greatest(place.low.dtype)
    low = np.full_like(place.low, least) if box.least else place.low
    high = place.high if box.least else np.full_like(place.high, greatest)
    return at.to(**group, **{box.by: Span(low, high)})


@verifies(
    TopN,
    image=ANY,
    yields=[USED],
    nature=AGGREGATE,
    needs=[COMPLETE],
    promises=[COMPLETE, PURE],
)
def itself_or_tied(box: TopN, at: Row, seen: Seen, source: Table) -> Mask:
    """The rows that equal it; and the others that tie, if together they could have put it out."""
    values, place = seen[box.by], exact(at[box.by])
    above = values < place if box.least else values > place
    tied = values == place
    same = np.all([_same(seen[c], at[c]) for c in source.columns], axis=0)
    together = above.sum() + (tied & ~same).sum() >= box.n
    return np.asarray(tied if together else same)


@sweeps(TopN)
def themselves_or_tied(box: TopN, asked: Seen, seen: Seen, source: Table) -> Mask:
    """The rows that equal any; and those that tie with any that they could have put out."""
    row, own = matched(*([each[n] for n in ("owner", *source.columns)] for each in (seen, asked)))
    level = alike([seen["owner"], seen[box.by]])
    above = rank(seen["owner"], seen[box.by], box.least) - 1
    others = np.bincount(level)[level] - np.bincount(row)[row]
    same = np.isin(row, own)
    return same | np.isin(level, level[same & (above + others >= box.n)])


def _same(values: NDArray[np.generic], value: object) -> Mask:
    """Which values equal one, where NaN equals NaN."""
    return np.asarray((values == exact(value)) | (absent(values) & (value != value)))


@weakly_inverts(
    RankRows,
    image=ANY,
    yields=[USED],
    nature=AGGREGATE,
    promises=[COMPLETE, PURE],
    per_attribute=True,
)
def compared(box: RankRows, at: Filter, source: Table, attribute: str) -> Filter:
    """A rank comes from its whole group, all else from the row that has it."""
    return at.only(*(listed(box.keys) if attribute == box.called else source.columns))
