"""Bins: the edges that cut an axis into cells, the same ones forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import Refused
from pipelines.moments import moment
from pipelines.spans import Span, span

MOST_BINS = 1_000_000
CIRCLE = 360.0
TURNS = (-1, 0, 1)
YEARS = np.datetime64("1678", "Y"), np.datetime64("2262", "Y")  # which nanoseconds tell apart
LATEST, HOUR = np.datetime64("2262-04-11T23:47:16"), np.timedelta64(1, "h")


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Bins from each edge up to the next, which itself is in the next bin.

    On a circle the edges go round it three times, so that degrees from -180 and from 0 both fit.

    >>> halves = Bins(np.array([0.0, 0.5, 1.0]), 2)
    >>> halves.of(np.array([0.2, 0.5, 1.0, np.nan])).tolist()
    [0, 1, -1, -1]
    >>> halves.spans(Span(np.array([1]), np.array([1])))
    [0.5..1]
    """

    edges: NDArray[Any]
    count: int

    def of(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """The bin of each value; -1 for those in none."""
        place = np.searchsorted(self.edges, values, "right") - 1
        outside = (place < 0) | (place >= len(self.edges) - 1)
        return np.where(outside, -1, place % self.count).astype(np.int64)

    def spans(self, bins: Span | None, boxes: int = 1) -> list[Span]:
        """The values that fall into bins from one to another, for each turn; else into any."""
        asked = bins or span(0, self.count - 1).repeated(boxes)
        first = np.clip(asked.low, 0, self.count).astype(np.int64)
        last = np.clip(asked.high, -1, self.count - 1).astype(np.int64)
        starts = range(0, len(self.edges) - 1, self.count)
        return [Span(self.edges[first + s], _before(self.edges[last + 1 + s])) for s in starts]


def _before(edges: NDArray[Any]) -> NDArray[Any]:
    """The last value before each edge."""
    if edges.dtype.kind == "M":
        return np.asarray(edges - np.timedelta64(1, "us"))
    return np.asarray(np.nextafter(edges, -np.inf))


def degrees(low: float, high: float, step: float) -> Bins:
    """Bins of one size from `low` to `high`, which is in the last of them."""
    count = _count(low, high, step)
    edges = low + step * np.arange(count + 1)
    return Bins(np.append(edges[:-1], np.nextafter(high, np.inf)), count)


def longitudes(west: float, east: float, step: float) -> Bins:
    """Bins of longitude: round the earth if `east` is 360 degrees after `west`."""
    if not circles(west, east):
        return degrees(west, east, step)
    count = _count(west, east, step)
    once = west + step * np.arange(count)
    around = np.concatenate([once + turn * CIRCLE for turn in TURNS])
    return Bins(np.append(around, west + 2 * CIRCLE), count)


def circles(west: float, east: float) -> bool:
    return east - west == CIRCLE


def _count(low: float, high: float, step: float) -> int:
    """How many bins of a size fit; refused if it is not a whole number of them."""
    count = round((high - low) / step)
    if not 1 <= count <= MOST_BINS or abs(low + count * step - high) > 1e-6 * step:
        raise Refused(f"cells of {step:g} degrees do not fill {low:g} to {high:g} evenly")
    return count


def times(start: str, hours: float, steps: int) -> Bins:
    """Bins of a number of hours each, from a date on."""
    return Bins(dates(start, hours, steps + 1), steps)


def dates(start: str, hours: float, count: int) -> NDArray[np.datetime64]:
    """So many dates, a number of hours apart; refused if nanoseconds cannot tell them.

    >>> dates("2000-01-01T18", 6, 2).astype(str).tolist()
    ['2000-01-01T18:00:00.000000', '2000-01-02T00:00:00.000000']
    """
    first = _moment(start)
    # In years, since a date that is far off comes round to one nearby in microseconds.
    told = YEARS[0] <= first.astype("datetime64[Y]") <= YEARS[1]
    if not told or hours * (count - 1) > (LATEST - first) / HOUR:
        raise Refused(
            f"{count:,} dates {hours:g} hours apart, from {start:.60} on, are not all of the years "
            "1678 to 2262, outside which none can be told; begin within them, and make steps "
            "fewer or shorter"
        )
    apart = np.timedelta64(round(hours * 3600e6) if count > 1 else 0, "us")
    return np.asarray(first.astype("datetime64[us]") + apart * np.arange(count))


def _moment(text: str) -> np.datetime64:
    """A date as it is written."""
    try:
        return moment(text)
    except ValueError:
        raise Refused(f'start is "{text:.60}", not a time, like: 2000-01-01T06:00') from None


def numbers(start: str, width: float, steps: int) -> Bins:
    """Bins of a width each, from a number on."""
    try:
        with np.errstate(over="ignore"):
            edges = float(start) + width * np.arange(steps + 1)
    except ValueError:
        edges = np.full(2, np.nan)
    if not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
        raise Refused(f'start is "{start:.60}", not a number to count from, like: 0')
    return Bins(edges, steps)
