"""Bounds: where numbers lie, and whether some may be missing."""

from __future__ import annotations

import struct
from collections.abc import Callable
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


def trimmed(within: Bounds, missed: Callable[[float, float], bool]) -> Bounds:
    """What is left of bounds when all is cut off at both ends that is known to be missed.

    `missed(low, high)` says whether nothing from `low` to `high` counts; what it does not say of
    is kept. The ends are found by bisection over all floats in order, in about 64 steps each.

    >>> trimmed(Bounds(-inf, inf), lambda low, high: high < 2 or low > 3)
    Bounds(low=2.0, high=3.0, nan=False)
    """
    if within.empty or missed(within.low, within.high):
        return NOTHING
    first, last = place(within.low), place(within.high)
    low = float_at(_least(first, last, lambda n: not missed(within.low, float_at(n))))
    back = _least(-last, -place(low), lambda n: not missed(float_at(-n), within.high))
    return Bounds(low, float_at(-back))


def _least(first: int, last: int, kept: Callable[[int], bool]) -> int:
    """The least number that is kept, as is the last, all before it having been let go of."""
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if kept(middle) else (middle + 1, last)
    return first


def place(value: float) -> int:
    """The place of a float among all floats in order, of which both zeros have the same.

    >>> place(-0.0), place(nextafter(0, 1)), place(nextafter(0, -1))
    (0, 1, -1)
    """
    (bits,) = struct.unpack("<Q", struct.pack("<d", abs(value)))
    return -int(bits) if value < 0 else int(bits)


def float_at(place: int) -> float:
    """The float that has a place.

    >>> float_at(place(0.1)), float_at(place(-inf))
    (0.1, -inf)
    """
    (value,) = struct.unpack("<d", struct.pack("<Q", abs(place)))
    return -float(value) if place < 0 else float(value)
