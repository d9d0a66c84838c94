"""Peers from outside: DuckDB, scipy's search in memory, and a tree cover in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from sqlalchemy import select, text

from inverses.intervals.blocks import BLOCK, unordered
from inverses.intervals.tables import blocks, nested, places, spans
from tests.speed.histories import COUNTED, LISTED, RECURSIVE, SEARCHED, Asked, ms
from tests.speed.rows import Row

PLACE = "SELECT made FROM lineage_places WHERE node = {node}"
OVER = (
    "SELECT maker_from, maker_to, NULL FROM lineage_spans"
    " WHERE made_from <= {made} AND made_to >= {made}"
)
BLOCKS = "SELECT first, NULL, makers FROM lineage_blocks WHERE first BETWEEN {low} AND {high}"
KEPT = "SELECT ancestors FROM lineage_places WHERE node = {node}"


def duckdb_rows(asked: Asked) -> Iterator[Row]:
    """DuckDB: our labels in it beside its own recursive query, and that beside our database.

    Its recursive answers are handed over as it does that best, as arrays.
    """
    if not find_spec("duckdb"):
        yield Row("ancestors, DuckDB", LISTED, None, missing="not installed")
        return
    import duckdb
    import numpy as np

    with duckdb.connect() as base:
        base.execute("SET threads = 1")  # Both sides are slower with two.
        _copy(asked, base)

        def labelled(node: int) -> bytes:
            return np.sort(unordered(_labels(base, node))).tobytes()

        def recursive(node: int) -> Any:
            return np.sort(base.execute(RECURSIVE.format(node=node)).fetchnumpy()["id"])

        def counted(words: str) -> Callable[[int], int]:
            return lambda n: int(base.execute(words.format(node=n)).fetchone()[0])

        count = counted(f"SELECT count(*) FROM ({RECURSIVE})")
        yield Row(
            "ancestors, DuckDB with our labels",
            LISTED,
            asked.compared(labelled, lambda n: recursive(n).tobytes()),
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


def _labels(base: Any, node: int) -> list[tuple[Any, ...]]:
    """Ranges over a node and the blocks about them: what DuckDB plans soonest, bit by bit."""
    made = base.execute(PLACE.format(node=node)).fetchone()[0]
    ranges = base.execute(OVER.format(made=made)).fetchall()
    low, high = min(first for first, *_ in ranges), max(last for _, last, _ in ranges)
    return [*ranges, *base.execute(BLOCKS.format(low=low - BLOCK + 1, high=high)).fetchall()]


def _copy(asked: Asked, base: Any) -> None:
    """Edges and labels, sorted as DuckDB likes them."""
    import pandas as pd

    with asked.engine.connect() as connection:
        assert connection.execute(select(nested)).first() is None, "only spans are copied"
        for name, query in (
            ("lineage_places", select(places).order_by(places.c.node)),
            ("lineage_blocks", select(blocks).order_by(blocks.c.first)),
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
