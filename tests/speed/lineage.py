"""Measure lineage among whole datasets: `python -m tests.speed.lineage` prints tables, draws PNGs.

First the evaluation of the 2008 paper on interval encoding, on graphs built to its description,
then a history of a hundred thousand datasets.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from sqlalchemy import Engine, create_engine, text

from tests.graphs import Graph, scattered
from tests.postgres import postgresql
from tests.speed.approaches import APPROACHES, Kept, keep
from tests.speed.histories import (
    FULL,
    QUICK,
    Large,
    append_row,
    engine_rows,
    grown,
    indexed,
)
from tests.speed.peers import duckdb_rows, search_row
from tests.speed.plots import plot
from tests.speed.rows import Row, table
from tests.workflows import eman, fmri, montage

PAPER = (
    "In the paper fMRI takes 107 rows by intervals and 2,496 by all paths. Rows of labels here"
    " include a place for each node; a dash stands where rows would be too many."
)


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; the exit code says nothing of aims."""
    asked = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, postgresql() as url:
        if asked.part in ("paper", "both"):
            every = evaluated(url, asked.quick)
            print(shown(every))
            drawn = ", ".join(map(str, plot(every, asked.plots)))
            print(f"\ndrawn: {drawn or 'nothing, as matplotlib is not installed'}\n")
        if asked.part in ("large", "both"):
            print(table(_large(url, asked.quick, Path(folder))))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.speed.lineage", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller graphs")
    parser.add_argument("--part", choices=("paper", "large", "both"), default="both")
    parser.add_argument("--plots", type=Path, default=Path("lineage-plots"), metavar="DIR")
    return parser


def graphs(quick: bool) -> Iterator[tuple[str, int, Graph]]:
    """The graphs of the paper's evaluation: kind, size, graph."""
    rng = Random(8)
    for size in sorted(rng.randint(5, 100) for _ in range(3 if quick else 60)):
        yield "random", size, scattered(rng, size)
    yield "fMRI", 45, fmri()
    for inputs in (10,) if quick else range(10, 101, 10):
        yield "Montage", inputs, montage(inputs)
    for iterations in (1,) if quick else (1, 2, 3, 5, 10, 15, 20):
        yield "EMAN", iterations, eman(iterations)


def evaluated(url: str, quick: bool) -> list[Kept]:
    engine = create_engine(url)
    try:
        return [keep(engine, *each) for each in graphs(quick)]
    finally:
        _cleared(engine)
        engine.dispose()


def _cleared(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))


def _large(url: str, quick: bool, folder: Path) -> Iterator[Row]:
    for row in measured(url, QUICK if quick else FULL, folder):
        print(f"measured {row.name}", file=sys.stderr, flush=True)
        yield row


def measured(url: str, large: Large, folder: Path) -> Iterator[Row]:
    """All that is measured on a large history: in SQLite and beside peers, then in PostgreSQL."""
    before, later = grown(large)
    for address in (f"sqlite:///{folder / 'catalog.db'}", url):
        engine = create_engine(address)
        with indexed(engine, before, large, folder) as asked:
            yield from engine_rows(asked)
            if asked.name == "sqlite":
                yield from duckdb_rows(asked)
                yield search_row(asked)
        yield append_row(asked, later)
        engine.dispose()


def shown(every: Sequence[Kept]) -> str:
    """A table for each measure; a dash where an approach would take too many rows."""
    rows = [[_count(k.rows[a]) for a in APPROACHES] for k in every]
    prepared = [[_ms(k.prepared.get(a), 1000) for a in APPROACHES] for k in every]
    asked = [[_ms(k.asked.get(a), 1) for a in APPROACHES] for k in every]
    titled = {"rows stored": rows, "preparation, ms": prepared, "query, ms": asked}
    parts = [_aligned(_lines(title, every, cells)) for title, cells in titled.items()]
    return "\n\n".join([*parts, PAPER])


def _lines(title: str, every: Sequence[Kept], cells: list[list[str]]) -> list[list[str]]:
    heading = [title, "size", "nodes", *APPROACHES]
    named = zip(every, cells, strict=True)
    return [heading, *([k.name, str(k.size), str(k.nodes), *row] for k, row in named)]


def _count(rows: int | None) -> str:
    if rows is None:
        return "-"
    return f"{rows:,}" if rows < 10**9 else f"{rows:.1e}"


def _ms(value: float | None, scale: int) -> str:
    return "-" if value is None else f"{scale * value:.2f}"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width for width in widths]
    every = [lines[0], rule, *lines[1:]]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(e, widths, strict=True)) for e in every)


if __name__ == "__main__":
    sys.exit(main())
