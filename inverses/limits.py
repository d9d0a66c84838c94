"""Limits: what a trace may cost, and about how much it would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inverses.candidates import Piece, read_of
from inverses.outline import Part, Price
from inverses.plans import Plan
from pipelines.datasets import Array, Group, Table
from pipelines.errors import TooDear
from pipelines.filters import Filter
from pipelines.spans import Span
from pipelines.tables import bounds

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

    def check_candidates(
        self, source: Table | Array, parts: list[Part], pieces: list[Piece]
    ) -> None:
        """Refuse a hop that would look at more rows or cells, datum by datum, than the limit."""
        if isinstance(source, Table):
            groups = [source.groups[n] for n in read_of(pieces) if isinstance(n, int)]
            rows = sum(g.rows for g in groups)
            dear = rows * sum(len(p.filter) for p in parts) > self.cells
            count = sum(pairs_about(groups, rows, p.filter) for p in parts) if dear else 0
        else:
            count = sum(f.points for _, f in pieces)
        if count > self.cells:
            what = "rows" if isinstance(source, Table) else "cells"
            raise TooDear(
                f'this would look at up to {count:,.0f} {what} of "{source.name}", datum by datum, '
                f"over the limit of {self.cells:,}; select fewer, or raise --limit-cells"
            )


def pairs_about(groups: Sequence[Group], rows: int, filter_: Filter) -> float:
    """About how many pairs of a box and a row there are, if so many rows are in some groups.

    Rows are taken to be spread evenly: over the values that boxes name, and between the ends of
    their groups where boxes name ranges.
    """
    named = [k for k, s in filter_.spans.items() if s.single]
    different = len(filter_.only(*named).loose()) if named else 1
    share = np.ones(len(filter_))
    for key in set(filter_.spans) - set(named):
        share *= _share(groups, key, filter_.spans[key])
    return float(rows * share.sum() / max(different, 1))


def _share(groups: Sequence[Group], key: str, each: Span) -> NDArray[np.float64]:
    """About which part of the rows in some groups lies in each range of a column."""
    kind = each.low.dtype
    known = [e for e in (bounds(g, key, kind) for g in groups) if e[0] is not None]
    if not known or kind.kind not in "iufM":
        return np.ones(len(each))
    ends, low, high = (_halves(e) for e in (np.array(known, kind), each.low, each.high))
    ends = ends[np.isfinite(ends)]
    width = np.ptp(ends) if len(ends) else 0.0
    if not width:
        return np.ones(len(each))
    low, high = (np.clip(e, ends.min(), ends.max()) for e in (low, high))
    return np.nan_to_num((high - low) / width, nan=1.0)


def _halves(values: NDArray[Any]) -> NDArray[np.float64]:
    """Values as floats, halved so that their differences are finite."""
    return values.astype(float) / 2


def estimated_seconds(prices: list[Price]) -> float:
    """About how long reading this takes, once Spark is up."""
    return sum(JOB_SECONDS + p.bytes / BYTES_A_SECOND for p in prices if p.chunks)
