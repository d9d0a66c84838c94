"""Graphs of every kind: for each node, numbered from 0, the nodes it was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count, pairwise
from random import Random

import networkx as nx

Graph = dict[int, list[int]]


def scattered(rng: Random, nodes: int, most: int = 4) -> Graph:
    """Between one and `most` arrows from every node to any later ones."""
    parents: dict[int, set[int]] = {n: set() for n in range(nodes)}
    for node in range(nodes - 1):
        for _ in range(rng.randint(1, most)):
            parents[rng.randint(node + 1, nodes - 1)].add(node)
    return _sorted(parents)


def layered(rng: Random, nodes: int, width: int = 7) -> Graph:
    """Layers, each node made from up to three of the layer before."""
    layers = [range(n, min(n + width, nodes)) for n in range(0, nodes, width)]
    parents: Graph = {n: [] for n in range(nodes)}
    for before, here in pairwise(layers):
        for node in here:
            parents[node] = sorted(rng.sample(before, min(len(before), rng.randint(1, 3))))
    return parents


def tree(rng: Random, nodes: int) -> Graph:
    """Each node made from one before it."""
    return {n: [rng.randrange(n)] if n else [] for n in range(nodes)}


def gathering(rng: Random, nodes: int) -> Graph:
    """A tree turned round: each node goes into one other."""
    return turned(tree(rng, nodes))


def chain(rng: Random, nodes: int) -> Graph:
    """One after another."""
    return {n: [n - 1] if n else [] for n in range(nodes)}


def dense(rng: Random, nodes: int) -> Graph:
    """Every pair joined with the same, high chance."""
    chance = rng.uniform(0.2, 0.8)
    return {n: [p for p in range(n) if rng.random() < chance] for n in range(nodes)}


def crown(rng: Random, nodes: int) -> Graph:
    """Each of the upper half goes into all of the lower half but its own partner."""
    half = max(1, nodes // 2)
    return {n: [p for p in range(half) if n >= half and p != n - half] for n in range(2 * half)}


def series_parallel(rng: Random, nodes: int) -> Graph:
    """From one node to one other by pieces that stand one after another or side by side."""
    arrows = [(0, 1)]
    for new in range(2, nodes):
        start, end = rng.choice(arrows)
        if rng.random() < 0.5:
            arrows.remove((start, end))
        arrows += [(start, new), (new, end)]
    return renumbered(arrows)


def grid(rng: Random, nodes: int) -> Graph:
    """Rows and columns, each node made from the one to its left and the one above it."""
    side = max(2, round(nodes**0.5))
    found: Graph = {}
    for n in range(side * side):
        left, up = [n - 1] if n % side else [], [n - side] if n >= side else []
        found[n] = up + left
    return found


def grown_grid(rng: Random, nodes: int) -> Graph:
    """A crown of six, all of which goes into the first node of a grid."""
    return {**crown(rng, 6), **moved(grid(rng, max(4, nodes - 6)), 6), 6: [3, 4, 5]}


def apart(rng: Random, nodes: int) -> Graph:
    """Several small graphs with nothing between them, some of a single node."""
    found: Graph = {}
    while len(found) < nodes:
        found |= moved(scattered(rng, rng.randint(1, 8), 2), len(found))
    return found


KINDS: Mapping[str, Callable[[Random, int], Graph]] = {
    "scattered": scattered,
    "layered": layered,
    "tree": tree,
    "gathering": gathering,
    "chain": chain,
    "dense": dense,
    "crown": crown,
    "series-parallel": series_parallel,
    "grid": grid,
    "grown grid": grown_grid,
    "apart": apart,
}


def moved(graph: Graph, base: int) -> Graph:
    """The same graph under numbers that are so much greater."""
    return {n + base: [p + base for p in above] for n, above in graph.items()}


def turned(graph: Graph) -> Graph:
    """All arrows turned round, and the numbers with them."""
    last = len(graph) - 1
    parents: dict[int, set[int]] = {n: set() for n in graph}
    for node, above in graph.items():
        for parent in above:
            parents[last - parent].add(last - node)
    return _sorted(parents)


def shuffled(rng: Random, graph: Graph) -> Graph:
    """The same graph under numbers that say nothing about who came first."""
    numbers = rng.sample(range(3 * len(graph)), len(graph))
    name = dict(zip(graph, numbers, strict=True))
    return {name[n]: [name[p] for p in above] for n, above in graph.items()}


def renumbered(arrows: Iterable[tuple[int, int]]) -> Graph:
    """A graph from its arrows, numbered so that none leads to a lower number."""
    order = list(nx.lexicographical_topological_sort(nx.DiGraph(list(arrows))))
    number = {node: n for n, node in enumerate(order)}
    parents: dict[int, set[int]] = {n: set() for n in range(len(order))}
    for start, end in arrows:
        parents[number[end]].add(number[start])
    return _sorted(parents)


def drawn(graph: Graph) -> nx.DiGraph[int]:
    """The graph as networkx holds it."""
    picture: nx.DiGraph[int] = nx.DiGraph()
    picture.add_nodes_from(graph)
    picture.add_edges_from((p, n) for n, above in graph.items() for p in above)
    return picture


def _sorted(parents: Mapping[int, Iterable[int]]) -> Graph:
    return {n: sorted(above) for n, above in parents.items()}


class Drawing:
    """A graph drawn step by step: what is made, and from what."""

    def __init__(self) -> None:
        self.graph: Graph = {}
        self._numbers = count()

    def made(self, *used: int) -> int:
        """One more node, made from these."""
        node = next(self._numbers)
        self.graph[node] = list(used)
        return node

    def through(self, steps: int, *used: int) -> int:
        """A chain of so many nodes; its last one."""
        last = self.made(*used)
        for _ in range(steps - 1):
            last = self.made(last)
        return last
