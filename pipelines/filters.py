"""A filter: part of a dataset, described rather than listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.ends import further, least_and_greatest
from pipelines.likeness import alike, overlaps, pairs, runs
from pipelines.spans import Span, Values, everything, joined, span, told

Meeting = Callable[[Values, Values, Values], tuple[Values, Values]]


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """A union of boxes, each restricting some attributes or dimensions to a span.

    Every box belongs to an *owner*, the selected datum it was made for, so that one filter
    carries the questions of many data at once. A key that is not restricted is absent.

    >>> here = where(lat=span(3, 7), lon=span(0, 2))
    >>> here
    lat 3..7 and lon 0..2
    >>> here & where(lat=span(5, 9))
    lat 5..7 and lon 0..2
    >>> here | where(lat=span(9))
    (lat 3..7 and lon 0..2) or (lat = 9)
    """

    owner: NDArray[np.int64]
    spans: Mapping[str, Span]

    def __len__(self) -> int:
        return len(self.owner)

    def __repr__(self) -> str:
        return self.text()

    def __getitem__(self, index: Any) -> Filter:
        return Filter(self.owner[index], {k: s[index] for k, s in self.spans.items()})

    def __or__(self, other: Filter) -> Filter:
        keys = dict.fromkeys([*self.spans, *other.spans])
        return Filter(
            np.concatenate([self.owner, other.owner]),
            {k: joined(self._open(k, other), other._open(k, self)) for k in keys},
        )

    def __and__(self, other: Filter) -> Filter:
        mine, theirs = pairs(self.owner, other.owner)
        left, right = self[mine], other[theirs]
        both = {k: left.spans[k] & right.spans[k] for k in left.spans if k in right.spans}
        return Filter(left.owner, {**left.spans, **right.spans, **both}).without_empty()

    def _open(self, key: str, other: Filter) -> Span:
        """The span of `key`, or one that holds everything `other` may hold there."""
        if key in self.spans:
            return self.spans[key]
        return everything(other.spans[key].low.dtype, len(self))

    @property
    def points(self) -> float:
        """How many whole numbers, or places of whole numbers, all boxes hold, each for itself."""
        sizes = [s.high - s.low + 1.0 for s in self.spans.values()]
        return float(np.prod(sizes, axis=0).sum()) if sizes else float(len(self))

    def span(self, key: str) -> Span | None:
        """The restriction on `key`, or None where there is none."""
        return self.spans.get(key)

    def only(self, *keys: str) -> Filter:
        """This filter without its restrictions on other keys."""
        return Filter(self.owner, {k: s for k, s in self.spans.items() if k in keys})

    def without_empty(self) -> Filter:
        """This filter without the boxes that can hold nothing."""
        empty = np.zeros(len(self), bool)
        for each in self.spans.values():
            empty |= each.empty
        return self[~empty] if empty.any() else self

    def loose(self) -> Filter:
        """The same part of the dataset, each different box once and an owner to itself."""
        if not self.spans:
            return Filter(np.zeros(min(len(self), 1), np.int64), {})
        _, first = np.unique(alike(self._ends()), return_index=True)
        return Filter(np.arange(len(first)), self[np.sort(first)].spans)

    def _ends(self, without: str = "") -> list[Values]:
        """The ends of all boxes, key by key."""
        spans = [s for k, s in self.spans.items() if k != without]
        return [end for s in spans for end in ((s.low,) if s.single else (s.low, s.high))]

    def merged(self) -> Filter:
        """The same part of whole numbers, in fewer boxes: those side by side become one.

        >>> where(y=span([1, 1, 2, 2]), x=span([4, 5, 5, 4])).merged()
        y 1..2 and x 4..5
        """
        return self.loose()._merged_along(reversed(list(self.spans)), runs)

    def overlapped(self) -> Filter:
        """The same part of any values, in fewer boxes: ranges that overlap become one.

        >>> where(k=span([1, 1, 2]), x=span([0.5, 0.7, 0.9], [1.0, 1.5, 2.0])).overlapped()
        (k = 1 and x 0.5..1.5) or (k = 2 and x 0.9..2)
        """
        ranges = [k for k, s in self.spans.items() if not s.single]
        return self.loose()._merged_along(ranges, overlaps)

    def _merged_along(self, keys: Iterable[str], meeting: Meeting) -> Filter:
        """This filter with boxes that differ in one of some keys, and meet there, made one."""
        found = self
        for key in keys if len(self) else ():
            found = found._merged(key, meeting)
        return found

    def _merged(self, key: str, meeting: Meeting) -> Filter:
        """This filter with boxes that differ in one key alone, and leave no gap there, made one."""
        group = self._groups(key)
        order = np.lexsort([self.spans[key].low, group])
        low, high = self.spans[key].low[order], self.spans[key].high[order]
        first, reach = meeting(group[order], low, high)
        spans = {**self[order[first]].spans, key: Span(low[first], reach)}
        return Filter(np.arange(len(first)), spans)

    def _groups(self, key: str) -> NDArray[np.int64]:
        """A number for each box, the same for those that differ in one key and may be one there.

        One without a low end may not, unless a box of everything is there: one with no high end
        would make it one of everything, and so of what compares with nothing, like NaN.
        """
        others, mine = self._ends(without=key), self.spans[key]
        group = alike(others) if others else np.zeros(len(self), np.int64)
        endless = mine.low == least_and_greatest(mine.low.dtype)[0]
        return np.asarray(2 * group + ~(endless & ~np.isin(group, group[mine.open])))

    def to(self, /, **spans: Span | None) -> Filter:
        """A filter for the same owners, box by box, on other keys (None restricts nothing)."""
        kept = {k: s for k, s in spans.items() if s is not None}
        return Filter(self.owner, kept).without_empty()

    def repeated(self, counts: Values) -> tuple[Filter, NDArray[np.int64]]:
        """Each box `counts` times, with the number 0, 1, 2... of each repetition."""
        index = np.repeat(np.arange(len(self)), counts)
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        return self[index], np.arange(len(index)) - starts

    def text(self, most: int = 4) -> str:
        """This filter in words; past `most` boxes, the smallest box around them all."""
        if not len(self):
            return "nothing"
        if not self.spans:
            return "everything"
        boxes = list(dict.fromkeys(self._box(i) for i in range(min(len(self), 4 * most))))
        if len(self) > 4 * most or len(boxes) > most:
            return f"{len(self)} boxes within {self.hull().text()}"
        return boxes[0] if len(boxes) == 1 else " or ".join(f"({b})" for b in boxes)

    def _box(self, i: int) -> str:
        shown = ((k, told(s.low[i], s.high[i])) for k, s in self.spans.items())
        words = [f"{k} {r}" if ".." in r else f"{k} = {r}" for k, r in shown if r]
        return " and ".join(words) or "everything"

    def hull(self) -> Filter:
        """The one smallest box around all boxes."""
        around = {k: span(s.low.min(), s.high.max()) for k, s in self.spans.items()}
        return Filter(np.zeros(1, np.int64), around)

    def sql(self) -> str:
        """This filter as a Spark SQL predicate."""
        if not self.spans:
            return "true"
        boxes = dict.fromkeys(self._sql_box(i) for i in range(len(self)))
        return " or ".join(f"({b})" for b in boxes) or "false"

    def _sql_box(self, i: int) -> str:
        return " and ".join(
            f"{k} between {_literal(s.low[i])} and {_literal(s.high[i])}"
            for k, s in self.spans.items()
        )


def where(**spans: Span) -> Filter:
    """One filter for one owner, from restrictions by name."""
    boxes = max((len(s) for s in spans.values()), default=1)
    return Filter(np.zeros(boxes, np.int64), spans)


def wrapped(filter_: Filter, key: str, period: float, low: float = 0, step: float = 1) -> Filter:
    """A filter whose spans on a circular `key` are cut at the seam of `low .. low + period`.

    >>> wrapped(where(lon=span(-2, 2)), "lon", 144)
    (lon 0..2) or (lon 142..143)
    """
    spans = filter_.spans.get(key)
    if spans is None:
        return filter_
    high = low + period - step
    full = spans.high >= further(spans.low, period - step)
    turns = [spans.moved(t * period) for t in (0, 1, -1)]
    turns[0] = Span(np.where(full, low, turns[0].low), np.where(full, high, turns[0].high))
    cut = [Filter(filter_.owner, {**filter_.spans, key: t.grown(0, low, high)}) for t in turns]
    keep = [cut[0], cut[1][~full], cut[2][~full]]
    return (keep[0] | keep[1] | keep[2]).without_empty()


def lattice(
    low: NDArray[np.int64], high: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every whole-number point of every box, with the number of its box.

    >>> lattice(np.array([[0, 5]]), np.array([[1, 6]]))[1].tolist()
    [[0, 5], [0, 6], [1, 5], [1, 6]]
    """
    sizes = np.maximum(high - low + 1, 0)
    counts = sizes.prod(axis=1)
    box = np.repeat(np.arange(len(low)), counts)
    rest = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    points = np.empty((len(box), low.shape[1]), np.int64)
    for axis in reversed(range(low.shape[1])):
        rest, points[:, axis] = np.divmod(rest, sizes[box, axis])
    return box, points + low[box]


def _literal(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return f"timestamp_ntz '{value}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"double('{value}')" if isinstance(value, float | np.floating) else str(value)
