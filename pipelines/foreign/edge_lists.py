"""Plain edge lists: CSV with the header source,target."""

from __future__ import annotations

import csv
from io import StringIO

from pipelines.errors import Refused
from pipelines.foreign.graph import Graph, text
from pipelines.run_graph import DATASET, Identity, Node

HEADER = ["source", "target"]


def read(content: str) -> Graph:
    """The graph of an edge list.

    >>> len(read("source,target\\na,b\\nb,c\\n").nodes)
    3
    """
    graph, known = Graph(), dict[str, Identity]()
    try:
        rows = csv.reader(StringIO(content), strict=True)
        header = [cell.strip() for cell in next(rows, [])]
        if header != HEADER:
            raise Refused(f"an edge list begins with source,target; found {','.join(header)!r:.60}")
        for row in rows:
            if row:
                graph.arrow(*_ends(graph, known, row, rows.line_num))
    except csv.Error as error:
        raise Refused(f"the edge list is not CSV in line {rows.line_num}: {error}") from None
    return graph


def _ends(
    graph: Graph, known: dict[str, Identity], row: list[str], line: int
) -> tuple[Identity, Identity]:
    if len(row) != 2:
        raise Refused(f"line {line} has {len(row)} columns; an edge has a source and a target")
    for name in row:
        if name not in known:
            checked = text(name.strip(), f"line {line}: a name")
            known[name] = graph.put(Node(DATASET, checked))
    return known[row[0]], known[row[1]]
