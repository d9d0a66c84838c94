"""A filter: part of a dataset, described rather than listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.ends import further, least_and_greatest
from pipelines.likeness import alike, overlaps, pairs, runs
from pipelines.moments import in_words

Values = NDArray[Any]
Meeting = Callable[[Values, Values, Values], tuple[Values, Values]]


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Values from `low` to `high`, both included: one range, or one range per box of a filter.

    >>> span(3).grown(2)
    1..5
    >>> span(1, 4).grown(2, low=0)
    0..6
    """

    low: Values
    high: Values

    def __repr__(self) -> str:
        return " or ".join(_range(a, b) for a, b in zip(self.low, self.high, strict=True))

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, index: Values) -> Span:
        return Span(self.low[index], self.high[index])

    def __and__(self, other: Span) -> Span:
        mine, theirs = (_comparable(s) for s in (self, other))
        return Span(np.maximum(mine.low, theirs.low), np.minimum(mine.high, theirs.high))

    def grown(self, reach: Any, low: Any = None, high: Any = None) -> Span:
        """This span, `reach` wider at both ends, kept from `low` to `high`."""
        wide = self.stretched(reach * np.int64(-1), reach)
        return Span(
            wide.low if low is None else np.maximum(wide.low, low),
            wide.high if high is None else np.minimum(wide.high, high),
        )

    def moved(self, by: Any) -> Span:
        """This span, `by` further up."""
        return self.stretched(by, by)

    def stretched(self, below: Any, above: Any) -> Span:
        """This span, its low end `below` further up and its high one `above`; open ends stay."""
        return Span(further(self.low, below), further(self.high, above))

    def repeated(self, times: int) -> Span:
        """This one range, for each of many boxes."""
        return Span(np.repeat(self.low, times), np.repeat(self.high, times))

    def holds(self, values: Values) -> NDArray[np.bool_]:
        """Which of `values` (one per range, or any against one range) are inside."""
        return np.asarray((values >= self.low) & (values <= self.high))

    @property
    def open(self) -> NDArray[np.bool_]:
        """Which ranges hold everything, even what compares with nothing, like NaN."""
        low, high = least_and_greatest(self.low.dtype)
        return np.asarray((self.low == low) & (self.high == high))

    @property
    def single(self) -> bool:
        """Whether each range is a single value."""
        kind = self.low.dtype.kind
        return self.low is self.high or np.array_equal(self.low, self.high, equal_nan=kind == "f")

    @property
    def endless(self) -> bool:
        """Whether ranges have no low end, and ranges no high one: all of them may hold less."""
        low, high = least_and_greatest(self.low.dtype)
        return bool((self.low == low).any() and (self.high == high).any())

    @property
    def empty(self) -> NDArray[np.bool_]:
        return np.asarray(self.low > self.high)


def span(low: Any, high: Any = None) -> Span:
    """The span from `low` to `high` (or of the one value `low`): scalars or arrays.

    >>> span([1, 5], [2, 9])
    1..2 or 5..9
    """
    bottom = np.atleast_1d(np.asarray(low))
    return Span(bottom, bottom if high is None else np.atleast_1d(np.asarray(high)))


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
            {k: _joined(self._open(k, other), other._open(k, self)) for k in keys},
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
        return _everything(other.spans[key].low.dtype, len(self))

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
        ranges = [k for k, s in self.spans.items() if not (s.single or s.endless)]
        return self.loose()._merged_along(ranges, overlaps)

    def _merged_along(self, keys: Iterable[str], meeting: Meeting) -> Filter:
        """This filter with boxes that differ in one of some keys, and meet there, made one."""
        found = self
        for key in keys if len(self) else ():
            found = found._merged(key, meeting)
        return found

    def _merged(self, key: str, meeting: Meeting) -> Filter:
        """This filter with boxes that differ in one key alone, and leave no gap there, made one."""
        others = self._ends(without=key)
        group = alike(others) if others else np.zeros(len(self), np.int64)
        order = np.lexsort([self.spans[key].low, group])
        low, high = self.spans[key].low[order], self.spans[key].high[order]
        first, reach = meeting(group[order], low, high)
        spans = {**self[order[first]].spans, key: Span(low[first], reach)}
        return Filter(np.arange(len(first)), spans)

    def to(self, **spans: Span | None) -> Filter:
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
        shown = ((k, _range(s.low[i], s.high[i])) for k, s in self.spans.items())
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


def _comparable(each: Span) -> Span:
    """A span whose ends numpy can compare with others': texts as objects."""
    texts = each.low.dtype.kind == "U"
    return Span(each.low.astype(object), each.high.astype(object)) if texts else each


def _joined(first: Span, second: Span) -> Span:
    return Span(np.concatenate([first.low, second.low]), np.concatenate([first.high, second.high]))


def _everything(dtype: np.dtype[Any], size: int) -> Span:
    low, high = least_and_greatest(dtype)
    return Span(np.full(size, low, dtype), np.full(size, high, dtype))


def _range(low: Any, high: Any) -> str:
    """A range in words; nothing if it restricts nothing."""
    if (low, high) == least_and_greatest(np.asarray(low).dtype):
        return ""
    return _shown(low) if low == high else f"{_shown(low)}..{_shown(high)}"


def _shown(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return in_words(value)
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def _literal(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return f"timestamp_ntz '{value}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"double('{value}')" if isinstance(value, float | np.floating) else str(value)
