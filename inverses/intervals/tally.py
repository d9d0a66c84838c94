"""A tally: how many tasks there are up to each place, so that its two ends count any range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inverses.intervals.ranges import NONE, Numbers, Ranges

NOTHING: Mapping[int, int] = {-1: 0}
"""What is known of the places before the first."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Some places in order, and how many tasks there are up to each of them.

    >>> from inverses.intervals.ranges import ranges
    >>> tally = Tally.of([True, False, True, True])
    >>> tally.counts(ranges([(0, 1), (1, 3)])).tolist()
    [1, 2]
    """

    places: Numbers
    tasks: Numbers

    @classmethod
    def of(cls, new: Sequence[bool], known: Mapping[int, int] = NOTHING) -> Tally:
        """Which of new places have tasks, after the last of those that are known already."""
        places = np.array(sorted(known), np.int64)
        tasks = np.array([known[place] for place in sorted(known)], np.int64)
        following = places[-1] + 1 + np.arange(len(new))
        more = tasks[-1] + np.cumsum(np.array(new, np.int64))
        return cls(np.concatenate([places, following]), np.concatenate([tasks, more]))

    def up_to(self, place: int) -> int:
        """How many tasks there are up to a place."""
        return int(self.tasks[np.searchsorted(self.places, place)])

    def counts(self, found: Ranges) -> Numbers:
        """How many tasks there are in each range."""
        ends = self.tasks[np.searchsorted(self.places, _ends(found))]
        counted: Numbers = ends[:, 1] - ends[:, 0]
        return counted


def ends_of(sets: Sequence[Ranges]) -> set[int]:
    """The places up to which a tally must reach, to count any union of some sets.

    >>> from inverses.intervals.ranges import ranges
    >>> sorted(ends_of([ranges([(0, 3), (8, 9)])]))
    [-1, 3, 7, 9]
    """
    return set(_ends(np.concatenate([NONE, *sets])).ravel().tolist())


def _ends(found: Ranges) -> Ranges:
    """For each range the place before it, and its last."""
    before: Ranges = found - np.array([1, 0], np.int64)
    return before
