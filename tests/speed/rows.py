"""A row of the table: what was compared, how it went, and whether that is what we aim at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from tests.speed.sides import Measured

HEADINGS = ("name", "ours", "peer", "ratio", "spread", "turns", "aim", "met")


@dataclass(frozen=True, slots=True)
class Aim:
    """A bound on a ratio.

    >>> Aim("<=", 1.3), Aim("<=", 1.3).met(1.2), Aim(">=", 250).met(10)
    (<= 1.3x, True, False)
    """

    way: str
    bound: float

    def met(self, ratio: float) -> bool:
        ways = {"<": ratio < self.bound, "<=": ratio <= self.bound, ">=": ratio >= self.bound}
        return ways[self.way]

    def __repr__(self) -> str:
        return f"{self.way} {self.bound:g}x"


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison, with the facts that must hold beside its ratio and notes on how it was made.

    `ratio` is ours to the peer's, except where the aim is a gain: then the peer's to ours.
    """

    name: str
    aim: Aim
    measured: Measured | None
    facts: tuple[tuple[str, bool], ...] = ()
    notes: tuple[str, ...] = ()
    missing: str = ""
    unit: str = "s"

    @property
    def of_ratio(self) -> Measured | None:
        return self.measured and (self.measured.swapped() if self.gains else self.measured)

    @property
    def gains(self) -> bool:
        return self.aim.way == ">="

    @property
    def met(self) -> bool:
        shown = self.of_ratio
        return shown is not None and self.aim.met(shown.ratio) and all(h for _, h in self.facts)

    def cells(self) -> tuple[str, ...]:
        """The row as text, a cell for each heading."""
        shown = self.of_ratio
        if self.measured is None or shown is None:
            return (self.name, "-", "-", self.missing, "-", "0", repr(self.aim), "-")
        low, high = shown.spread
        return (
            self.name,
            self._told(median(self.measured.ours)),
            self._told(median(self.measured.peer)),
            f"{shown.ratio:.3g}x",
            f"{low:.3g} to {high:.3g}",
            str(len(shown.ratios)),
            repr(self.aim),
            "met" if self.met else "NOT MET",
        )

    def _told(self, value: float) -> str:
        return f"{value:.3f} s" if self.unit == "s" else f"{value:,.0f} {self.unit}"

    def remarks(self) -> list[str]:
        """What else there is to say, a line each."""
        stated = [f"{text}: {'holds' if holds else 'DOES NOT HOLD'}" for text, holds in self.facts]
        return [f"{self.name}: {line}" for line in (*stated, *self.notes)]


def table(rows: Iterable[Row]) -> str:
    """All rows, in columns, and below them their remarks."""
    listed = list(rows)
    lines = [HEADINGS, *(row.cells() for row in listed)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
    rule = "  ".join("-" * width for width in widths)
    remarks = [remark for row in listed for remark in row.remarks()]
    return "\n".join(line.rstrip() for line in [shown[0], rule, *shown[1:], "", *remarks])
