"""Bounds: where numbers lie, and whether some may be missing."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter

# Above what a library's exp, log or power may be wrong by; the four signs and sqrt are rounded
# exactly, so that one step of a float is enough for them.
SLACK, LEAST, MOST = 1e-9, 1e-300, 1e300


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where values lie, both ends included (infinities too), and whether some may be NaN.

    >>> Bounds(1, 2) & Bounds(0, 1)
    Bounds(low=1, high=1, nan=False)
    """

    low: float
    high: float
    nan: bool = False

    def __and__(self, other: Bounds) -> Bounds:
        return Bounds(max(self.low, other.low), min(self.high, other.high), self.nan and other.nan)

    def __or__(self, other: Bounds) -> Bounds:
        if self.empty or other.empty:
            return other if self.empty else self
        return Bounds(min(self.low, other.low), max(self.high, other.high), self.nan or other.nan)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def empty(self) -> bool:
        return self.low > self.high

    @property
    def endless(self) -> bool:
        return -inf in self or inf in self

    def stepped(self) -> Bounds:
        """One float wider at both ends: where an exact number was before it was rounded."""
        return Bounds(nextafter(self.low, -inf), nextafter(self.high, inf))

    def loosened(self) -> Bounds:
        """Wider by more than a library's error, and open to what over- and underflowed."""
        low = min(self.low, MOST)
        high = max(self.high, -MOST)
        return Bounds(low - abs(low) * SLACK - LEAST, high + abs(high) * SLACK + LEAST, self.nan)


ANYTHING = Bounds(-inf, inf, True)
NOTHING = Bounds(inf, -inf)
