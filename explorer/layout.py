"""A tidy layout: boxes in layers from left to right, ordered so that few arrows cross."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import networkx as nx

ACROSS, DOWN = 300.0, 120.0
SWEEPS = 8
Layers = list[list[Any]]
Places = dict[str, tuple[float, float]]


def tidy(graph: nx.DiGraph[str]) -> Places:
    """A place for every node of a graph without circles; the same graph, the same places.

    >>> tidy(nx.DiGraph([("agcm", "minima"), ("minima", "tracks")]))
    {'agcm': (0.0, 0.0), 'minima': (300.0, 0.0), 'tracks': (600.0, 0.0)}
    """
    depth = _depths(graph)
    chained = _chained(graph, depth)
    layers = _ordered(_layers(depth, chained), chained)
    rows = _rows(layers, chained)
    top = min((rows[n] for n in graph), default=0.0)
    return {n: (depth[n] * ACROSS, (rows[n] - top) * DOWN) for n in graph}


def _depths(graph: nx.DiGraph[str]) -> dict[Any, int]:
    """The layer of every node: after all it needs; those that need nothing, next to their use."""
    layers = nx.topological_generations(graph)
    depth = {node: number for number, layer in enumerate(layers) for node in sorted(layer)}
    for node in (n for n in depth if not graph.pred[n] and graph.succ[n]):
        depth[node] = min(depth[after] for after in graph.succ[node]) - 1
    return depth


def _chained(graph: nx.DiGraph[str], depth: dict[Any, int]) -> nx.DiGraph[Any]:
    """The graph with every long arrow led through a bend in each layer that it passes.

    The bends are added to `depth`.
    """
    chained: nx.DiGraph[Any] = nx.DiGraph()
    chained.add_nodes_from(sorted(graph))
    for start, end in sorted(graph.edges):
        bends = [(start, end, number) for number in range(depth[start] + 1, depth[end])]
        depth.update({bend: bend[2] for bend in bends})
        chained.add_edges_from(pairwise([start, *bends, end]))
    return chained


def _layers(depth: Mapping[Any, int], chained: nx.DiGraph[Any]) -> Layers:
    """The nodes of each layer, to begin with in the order of a walk along the arrows."""
    layers: Layers = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in _walk(chained):
        layers[depth[node]].append(node)
    return layers


def _walk(graph: nx.DiGraph[Any]) -> Iterable[Any]:
    """Every node once, neighbours near each other; by name where nothing else decides."""
    starts = sorted((n for n in graph if not graph.pred[n]), key=str)
    seen: dict[Any, None] = {}
    for start in starts:
        seen.update(dict.fromkeys(nx.dfs_preorder_nodes(graph, start)))
    return seen


def _ordered(layers: Layers, graph: nx.DiGraph[Any]) -> Layers:
    """The best order that sweeps forth and back come upon."""
    best, fewest = layers, _crossings(layers, graph)
    for number in range(SWEEPS):
        layers = _swept(layers, graph, forth=number % 2 == 0)
        crossings = _crossings(layers, graph)
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _swept(layers: Layers, graph: nx.DiGraph[Any], forth: bool) -> Layers:
    """Each layer in turn, ordered by the mean place of what its nodes hang on."""
    hangs_on = graph.pred if forth else graph.succ
    swept: Layers = []
    place: dict[Any, float] = {}
    for layer in layers if forth else reversed(layers):
        here = {node: float(number) for number, node in enumerate(layer)}
        centre = {n: _mean([place[o] for o in hangs_on[n]], here[n]) for n in layer}
        swept.append(sorted(layer, key=lambda n: (centre[n], here[n])))
        place.update({node: float(number) for number, node in enumerate(swept[-1])})
    return swept if forth else swept[::-1]


def _crossings(layers: Layers, graph: nx.DiGraph[Any]) -> int:
    """How many pairs of arrows cross between neighbouring layers."""
    total = 0
    for layer, after in pairwise(layers):
        place = {node: number for number, node in enumerate(after)}
        total += _inversions(e for n in layer for e in sorted(place[o] for o in graph.succ[n]))
    return total


def _inversions(numbers: Iterable[int]) -> int:
    """How many pairs are in the wrong order.

    >>> _inversions([2, 0, 1])
    2
    """
    seen: list[int] = []
    total = 0
    for number in numbers:
        at = bisect_right(seen, number)
        total += len(seen) - at
        seen.insert(at, number)
    return total


def _rows(layers: Layers, graph: nx.DiGraph[Any]) -> dict[Any, float]:
    """How far down each node is: at the height of what it hangs on, one row apart at least."""
    rows = {n: float(number) for layer in layers for number, n in enumerate(layer)}
    for hangs_on, pass_over in ((graph.pred, layers), (graph.succ, layers[::-1])) * 2:
        for layer in pass_over:
            wished = [_mean([rows[o] for o in hangs_on[n]], rows[n]) for n in layer]
            rows.update(zip(layer, _apart(wished), strict=True))
    return rows


def _apart(wished: list[float]) -> list[float]:
    """Heights in this order, at least one apart, and in the mean where they were wished.

    >>> _apart([1.0, 1.0, 5.0])
    [0.5, 1.5, 5.0]
    """
    blocks: list[list[float]] = []
    for wish in wished:
        blocks.append([wish])
        while len(blocks) > 1 and _top(blocks[-1]) < _top(blocks[-2]) + len(blocks[-2]):
            last = blocks.pop()
            blocks[-1] += last
    return [_top(block) + number for block in blocks for number in range(len(block))]


def _top(block: list[float]) -> float:
    """Where the first of some nodes lies if they follow each other, nearest to what they wish."""
    return sum(wish - number for number, wish in enumerate(block)) / len(block)


def _mean(numbers: list[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise
