"""Two sides of a comparison, run in turns: medians, the ratio of each turn, and its spread."""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from statistics import median, quantiles

Side = Callable[[Path], object]


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of both sides, turn by turn.

    >>> two = Measured((2.0, 3.0, 4.0, 5.0), (1.0, 1.0, 1.0, 1.0))
    >>> two.ratio, two.spread, two.swapped().ratio < 1
    (3.5, (2.75, 4.25), True)
    """

    ours: tuple[float, ...]
    peer: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.peer, strict=True)]

    @property
    def ratio(self) -> float:
        """The median of the ratios of all turns."""
        return median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """The quarters around the median; of fewer than four turns, the ends."""
        if len(self.ratios) < 4:
            return min(self.ratios), max(self.ratios)
        low, _, high = quantiles(self.ratios, n=4, method="inclusive")
        return low, high

    def swapped(self) -> Measured:
        """The other way round: how many times as long the peer takes."""
        return Measured(self.peer, self.ours)

    def of_each(self, count: int) -> Measured:
        """The seconds of one, where each turn took as many."""
        ours, peer = (tuple(s / count for s in side) for side in (self.ours, self.peer))
        return Measured(ours, peer)


def side_by_side(ours: Side, peer: Side, turns: int, warm: int, folder: Path) -> Measured:
    """Time both in turns, after `warm` turns that do not count; who goes first alternates.

    Each call is given an empty directory, made before and removed after the clock runs.
    """
    every = [_turn(ours, peer, folder, bool(n % 2)) for n in islice(count(), warm + turns)]
    kept = every[warm:]
    return Measured(tuple(a for a, _ in kept), tuple(b for _, b in kept))


def _turn(ours: Side, peer: Side, folder: Path, peer_first: bool) -> tuple[float, float]:
    if peer_first:
        theirs = seconds(peer, folder)
        return seconds(ours, folder), theirs
    mine = seconds(ours, folder)
    return mine, seconds(peer, folder)


def seconds(side: Side, folder: Path) -> float:
    """How long one call takes."""
    empty = Path(tempfile.mkdtemp(dir=folder))
    gc.collect()
    began = time.perf_counter()
    side(empty)
    took = time.perf_counter() - began
    shutil.rmtree(empty, ignore_errors=True)
    return took
