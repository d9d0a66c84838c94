"""Spans: ranges of values, one or one for each box of a filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.ends import exact, further, least_and_greatest
from pipelines.moments import in_words

Values = NDArray[Any]


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
        return " or ".join(told(a, b) for a, b in zip(self.low, self.high, strict=True))

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, index: Values) -> Span:
        return Span(self.low[index], self.high[index])

    def __and__(self, other: Span) -> Span:
        return Span(np.maximum(self.low, other.low), np.minimum(self.high, other.high))

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
    def empty(self) -> NDArray[np.bool_]:
        return np.asarray(self.low > self.high)


def span(low: Any, high: Any = None) -> Span:
    """The span from `low` to `high` (or of the one value `low`): scalars or arrays.

    >>> span([1, 5], [2, 9])
    1..2 or 5..9
    """
    bottom = np.atleast_1d(exact(low))
    return Span(bottom, bottom if high is None else np.atleast_1d(exact(high)))


def joined(first: Span, second: Span) -> Span:
    """The ranges of one span, and then those of another."""
    return Span(np.concatenate([first.low, second.low]), np.concatenate([first.high, second.high]))


def everything(dtype: np.dtype[Any], size: int) -> Span:
    """Ranges that hold all that there is of a kind."""
    low, high = least_and_greatest(dtype)
    return Span(np.full(size, low, dtype), np.full(size, high, dtype))


def extremes(values: Values, low: Values, high: Values) -> tuple[Values, Values]:
    """The least and the greatest of values at each range of positions, both ends included.

    >>> extremes(np.array([3, 1, 2]), np.array([0, 2]), np.array([1, 2]))
    (array([1, 2]), array([3, 2]))
    """
    cuts = np.column_stack([low, high + 1]).ravel()
    ended = np.append(values, values[-1:])
    least, greatest = (f.reduceat(ended, cuts)[::2] for f in (np.minimum, np.maximum))
    return least, greatest


def told(low: Any, high: Any) -> str:
    """A range in words; nothing if it restricts nothing."""
    if (low, high) == least_and_greatest(np.asarray(low).dtype):
        return ""
    single = low == high or (low != low and high != high)  # NaN is one value here.
    return _shown(low) if single else f"{_shown(low)}..{_shown(high)}"


def _shown(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return in_words(value)
    if isinstance(value, float | np.floating):
        return f"{value:g}"
    return str(value) or "''"  # A text of no letters is one, and not nothing.
