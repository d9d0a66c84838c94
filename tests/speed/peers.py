"""Peers from outside: DuckDB, scipy's search in memory, and a tree cover in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from sqlalchemy import select, text

from inverses.intervals.tables import nested, places, spans
from tests.speed.histories import COUNTED, LISTED, RECURSIVE, SEARCHED, Asked, ms
from tests.speed.rows import Row

RANGED = (
    "SELECT above.node AS id FROM lineage_spans AS span, lineage_places AS above"
    " WHERE span.made_from <= (SELECT made FROM lineage_places WHERE node = {node})"
    " AND span.made_to >= (SELECT made FROM lineage_places WHERE node = {node})"
    " AND above.maker BETWEEN span.maker_from AND span.maker_to"
)
KEPT = "SELECT ancestors FROM lineage_places WHERE node = {node}"


def duckdb_rows(asked: Asked) -> Iterator[Row]:
    """DuckDB: our labels in it beside its own recursive query, and that beside our database.

    Both of its answers are handed over as it does that best, as arrays.
    """
    if not find_spec("duckdb"):
        yield Row("ancestors, DuckDB", LISTED, None, missing="not installed")
        return
    import duckdb
    import numpy as np

    with duckdb.connect() as base:
        base.execute("SET threads = 2")
        _copy(asked, base)

        def handed(words: str) -> Callable[[int], bytes]:
            found = arrayed(words)
            return lambda n: found(n).tobytes()

        def arrayed(words: str) -> Callable[[int], Any]:
            return lambda n: np.sort(base.execute(words.format(node=n)).fetchnumpy()["id"])

        def counted(words: str) -> Callable[[int], int]:
            return lambda n: int(base.execute(words.format(node=n)).fetchone()[0])

        ours, theirs = handed(RANGED), handed(RECURSIVE)
        recursive = arrayed(RECURSIVE)
        count = counted(f"SELECT count(*) FROM ({RECURSIVE})")
        yield Row(
            "ancestors, DuckDB with our labels",
            LISTED,
            asked.compared(ours, theirs),
            notes=(_handing_over(asked, arrayed(RANGED), arrayed),),
        )
        yield Row(
            f"ancestors, {asked.name} beside DuckDB",
            LISTED,
            asked.compared(asked.index.ancestors, lambda n: recursive(n).tolist()),
        )
        inside = asked.compared(counted(KEPT), count)
        yield Row("count of ancestors, DuckDB with our labels", COUNTED, inside)
        outside = asked.compared(asked.index.count_ancestors, count)
        yield Row(f"count of ancestors, {asked.name} beside DuckDB", COUNTED, outside)


def _handing_over(
    asked: Asked,
    ours: Callable[[int], Any],
    arrayed: Callable[[str], Callable[[int], Any]],
) -> str:
    """What it takes to hand over as many rows of any table, below which no list can be."""
    sizes = {node: len(ours(node)) for node in asked.asked}
    any_table = {
        n: arrayed(f"SELECT node AS id FROM lineage_places LIMIT {s}") for n, s in sizes.items()
    }
    took = asked.timed(lambda n: any_table[n](n), ours)
    return f"handing over as many rows of any table takes {ms(took.ours)}, these {ms(took.peer)}"


def _copy(asked: Asked, base: Any) -> None:
    """Edges and labels, sorted as DuckDB likes them."""
    import pandas as pd

    with asked.engine.connect() as connection:
        assert connection.execute(select(nested)).first() is None, "only spans are copied"
        for name, query in (
            ("lineage_places", select(places).order_by(places.c.maker)),
            ("lineage_spans", select(spans).order_by(spans.c.made_from)),
            ("edges", text("SELECT source, target FROM edges ORDER BY target, source")),
        ):
            frame = pd.DataFrame(connection.execute(query).mappings())
            base.register("frame", frame)
            base.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
            base.unregister("frame")
    base.execute("CREATE INDEX by_target ON edges (target)")
    base.execute("CREATE INDEX by_node ON lineage_places (node)")


def search_row(asked: Asked) -> Row:
    """In memory: a breadth-first search by scipy, and a tree cover asked for every node."""
    name = f"ancestors, {asked.name} to scipy's search in memory"
    if not find_spec("scipy"):
        return Row(name, SEARCHED, None, missing="not installed")
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    arrows = np.array([(n, p) for n, above in asked.graph.items() for p in above])
    size = len(asked.graph)
    upward = csr_array((np.ones(len(arrows), np.int8), (arrows[:, 0], arrows[:, 1])), (size, size))

    def searched(node: int) -> list[int]:
        found = breadth_first_order(upward, node, return_predecessors=False)
        return sorted(found[1:].tolist())

    measured = asked.compared(asked.index.ancestors, searched)
    return Row(name, SEARCHED, measured, notes=tuple(_beside_a_cover(asked, arrows[:, ::-1])))


def _beside_a_cover(asked: Asked, arrows: Any) -> Iterator[str]:
    """What a tree cover in memory takes for the same list, and for a single pair."""
    if not find_spec("pyreachability"):
        yield "pyreachability is not installed"
        return
    import numpy as np
    from pyreachability import Graph as Drawn
    from pyreachability.static import TreeCover

    cover = TreeCover()
    cover.build(Drawn.from_edges(arrows[:, 0], arrows[:, 1], len(asked.graph)))
    every = np.arange(len(asked.graph), dtype=np.int32)

    def covered(node: int) -> list[int]:
        pairs = np.stack([every, np.full_like(every, node)], axis=1)
        return [n for n in every[cover.query_batch(pairs)].tolist() if n != node]

    first = min(asked.graph)
    listed = asked.compared(asked.index.ancestors, covered)
    pair = asked.compared(
        lambda n: asked.index.is_ancestor(first, n), lambda n: bool(cover.query(first, n))
    )
    yield f"a tree cover takes {cover.index_size_bytes / 1e6:.1f} MB of memory"
    yield f"the same list by it: {ms(listed.peer)}, {asked.name} {ms(listed.ours)}"
    yield f"one pair by it: {ms(pair.peer)}, {asked.name} {ms(pair.ours)}"
