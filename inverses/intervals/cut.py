"""A large graph in an order that follows its arrows, cut where few arrows are cut."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

from pipelines.errors import Refused

LEAST, MOST = 48, 192
"""A cut leaves at least so many nodes together, and at most so many."""

Parents = Mapping[int, Sequence[int]]
"""For each node of a graph those it was made from, all of them in the graph."""


def by_number(parents: Parents) -> list[int]:
    """Each node after its parents, and by its number where that leaves a choice."""
    children = children_of(parents)
    missing = {n: len(above) for n, above in parents.items()}
    ready = [n for n, count in missing.items() if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for child in children.get(node, ()):
            missing[child] -= 1
            if not missing[child]:
                heapq.heappush(ready, child)
    if len(order) < len(parents):
        raise in_a_circle({n: parents[n] for n, count in missing.items() if count})
    return order


def by_ancestry(parents: Parents) -> list[int]:
    """Each node right after those of its ancestors that were not yet there."""
    children = children_of(parents)
    return _gathered([n for n in parents if not children.get(n)], parents)


def by_descent(parents: Parents) -> list[int]:
    """Each node right before those of its descendants that need nothing still to come."""
    return _gathered([n for n in parents if not parents[n]], children_of(parents))[::-1]


def _gathered(ends: Sequence[int], arrows: Parents) -> list[int]:
    """Everything the arrows lead to, each before where they came from: a walk in depth."""
    seen: set[int] = set()
    order: list[int] = []
    for end in ends:
        waiting = [(end, False)]
        while waiting:
            node, done = waiting.pop()
            if done:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                waiting.append((node, True))
                waiting += [(n, False) for n in arrows.get(node, ()) if n not in seen]
    return order


def children_of(parents: Parents) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for node, above in parents.items():
        for parent in above:
            found.setdefault(parent, []).append(node)
    return found


def in_a_circle(parents: Parents) -> Refused:
    """The error for nodes none of which can come first, with one circle among them."""
    node = min(parents)
    path: dict[int, None] = {}
    while node not in path:
        path[node] = None
        node = next(p for p in parents[node] if p in parents)
    circle = list(path)[list(path).index(node) :][::-1]
    shown = [str(n) for n in [circle[-1], *circle]]
    if len(shown) > 12:
        shown[6:-5] = ["..."]
    return Refused(f"the graph runs in a circle: {' -> '.join(shown)}; nothing is made of itself")


def cut(order: Sequence[int], parents: Parents) -> Iterator[list[int]]:
    """The order in pieces, each ending where the fewest arrows lead out of it."""
    leading = {n: len(below) for n, below in children_of(parents).items()}
    first = 0
    while first < len(order):
        last = _best_end(order[first : first + MOST], parents, leading)
        yield list(order[first : first + last])
        first += last


def _best_end(ahead: Sequence[int], parents: Parents, leading: Mapping[int, int]) -> int:
    if len(ahead) < MOST:
        return len(ahead)
    here: set[int] = set()
    loose, ends = 0, []
    for count, node in enumerate(ahead, 1):
        loose += leading.get(node, 0) - sum(p in here for p in parents[node])
        here.add(node)
        ends.append((loose, -count))
    return -min(ends[LEAST - 1 :])[1]


def crossing(pieces: Sequence[Sequence[int]], parents: Parents) -> int:
    """How many arrows lead from one piece into another."""
    home = {node: n for n, piece in enumerate(pieces) for node in piece}
    return sum(home.get(p) != n for node, n in home.items() for p in parents[node])
