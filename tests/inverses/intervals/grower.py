"""A process that appends runs to a catalog and asks about them: URL, its number, how many runs."""

from __future__ import annotations

import sys
from random import Random

from sqlalchemy import create_engine, select

from inverses.intervals.index import Index
from inverses.intervals.tables import nodes
from tests.inverses.intervals.catalog import Catalog

MOST = 100_000


def main(url: str, number: str, runs: str) -> None:
    """Append runs of five nodes each, made from any that are there, and check each last one."""
    waits = {"timeout": 60} if url.startswith("sqlite") else {}
    engine = create_engine(url, connect_args=waits)
    rng, index = Random(int(number)), Index(engine)
    for run in range(int(runs)):
        first = int(number) * MOST + 5 * run
        with engine.begin() as connection:
            there = list(connection.scalars(select(nodes.c.id)))
            used = rng.sample(there, min(2, len(there)))
            chain = [(n, n + 1) for n in range(first, first + 4)]
            arrows = [*((node, first) for node in used), *chain]
            Catalog.put(connection, range(first, first + 5), arrows)
        if not run:
            print("began", flush=True)
        above = set(index.ancestors(first + 4))
        assert {*used, first, first + 1, first + 2, first + 3} <= above, (used, above)


if __name__ == "__main__":
    main(*sys.argv[1:])
