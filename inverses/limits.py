"""Limits: what a trace may cost, and about how much it would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inverses.outline import Price
from inverses.plans import Plan
from pipelines.datasets import Array, Table
from pipelines.errors import TooDear
from pipelines.filters import Filter

JOB_SECONDS = 1.0
BYTES_A_SECOND = 50e6


@dataclass(frozen=True, slots=True)
class Limits:
    """What a trace may cost; a dearer one is refused before it runs."""

    bytes: int = 8 * 2**30
    cells: int = 20_000_000
    seconds: float = 600.0

    def check(self, plan: Plan, prices: list[Price]) -> None:
        """Refuse a plan whose price is over a limit, with the figures."""
        bytes_ = sum(p.bytes for p in prices)
        cells = sum(p.cells or 0 for p in prices)
        seconds = estimated_seconds(prices)
        for what, price, limit, flag in (
            ("read", f"{bytes_ / 2**20:,.0f} MiB", f"{self.bytes / 2**20:,.0f} MiB", "bytes"),
            ("find up to", f"{cells:,} cells", f"{self.cells:,}", "cells"),
            ("take about", f"{seconds:,.0f} s", f"{self.seconds:,.0f} s", "seconds"),
        ):
            if {"bytes": bytes_, "cells": cells, "seconds": seconds}[flag] > getattr(self, flag):
                rows = f'{len(plan.selection):,} of "{plan.selection.dataset.name}"'
                raise TooDear(
                    f"this trace would {what} {price}, over the limit of {limit}: it "
                    f"selects {rows}; select fewer, or raise --limit-{flag}"
                )

    def check_candidates(self, source: Table | Array, pieces: Sequence[tuple[Any, Filter]]) -> None:
        """Refuse a hop that would look at more rows or cells, datum by datum, than the limit."""
        if isinstance(source, Table):
            held = [(source.groups[n].rows, f) for n, f in pieces]
            most = sum(rows * len(f) for rows, f in held)
            count = sum(_pairs(*each) for each in held) if most > self.cells else 0
        else:
            count = sum(f.points for _, f in pieces)
        if count > self.cells:
            what = "rows" if isinstance(source, Table) else "cells"
            raise TooDear(
                f'this trace would look at up to {count:,.0f} {what} of "{source.name}", over the '
                f"limit of {self.cells:,}; select fewer, or raise --limit-cells"
            )


def _pairs(rows: int, filter_: Filter) -> float:
    """About how many pairs of a datum and a row of a group are to be looked at.

    Rows are taken to be spread evenly over the values that data name. Where they name ranges
    alone nobody knows before reading, and none are counted.
    """
    named = [k for k, s in filter_.spans.items() if s.single]
    return rows * len(filter_) / len(filter_.only(*named).loose()) if named else 0


def estimated_seconds(prices: list[Price]) -> float:
    """About how long reading this takes, once Spark is up."""
    return sum(JOB_SECONDS + p.bytes / BYTES_A_SECOND for p in prices if p.chunks)
