"""Whether intervals can hold an order: its incomparability graph is given directions that chain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from inverses.intervals.poset import Poset, bits

Orders = tuple[list[int], list[int]]


def two_orders(poset: Poset, members: int, apart: Sequence[int]) -> Orders | None:
    """Two linear orders that agree on just what is above what; none if two are not enough.

    The members' dimension is at most 2 if the lines between incomparable ones can be given
    directions that chain. One order follows these directions, the other their reverse.

    >>> crown = Poset.of([(), (), (), (0, 1), (0, 2), (1, 2)])
    >>> two_orders(crown, crown.everything, crown.apart) is None
    True
    >>> fence = Poset.of([(), (), (0,), (0, 1)])
    >>> two_orders(fence, fence.everything, fence.apart)
    ([0, 2, 1, 3], [1, 0, 3, 2])
    """
    after = directed(members, apart)
    if after is None:
        return None
    ahead = {n: (poset.above[n] & members).bit_count() for n in after}
    before = dict.fromkeys(after, 0)
    for ends in after.values():
        for end in bits(ends):
            before[end] += 1
    first = sorted(after, key=lambda n: ahead[n] + before[n])
    return first, sorted(after, key=lambda n: ahead[n] + after[n].bit_count())


def directed(members: int, apart: Sequence[int]) -> dict[int, int] | None:
    """For each member those its lines lead to, so that directions chain; none if they cannot.

    One line is directed at will; it forces others, and these force more. When nothing is forced
    any longer the lines that are left are a graph of their own, and it begins anew.
    """
    near = {n: apart[n] & members for n in bits(members)}
    after = dict.fromkeys(near, 0)
    for node in near:
        while near[node]:
            forced = _forced(node, (near[node] & -near[node]).bit_length() - 1, near)
            if forced is None:
                return None
            _settle(forced, near, after)
    return after if _chains(after) else None


def _forced(start: int, end: int, near: Mapping[int, int]) -> dict[int, int] | None:
    """All directions that one direction forces; none if one of them forces its own reverse.

    Two lines that meet, and whose other ends no line joins, both lead to where they meet or both
    away from it: otherwise there would have to be a third.
    """
    out: dict[int, int] = defaultdict(int, {start: 1 << end})
    into: dict[int, int] = defaultdict(int, {end: 1 << start})
    waiting = [(start, end)]
    while waiting:
        u, v = waiting.pop()
        away = [(u, w) for w in bits(near[u] & ~near[v] & ~out[u])]
        towards = [(w, v) for w in bits(near[v] & ~near[u] & ~into[v])]
        for a, b in away + towards:
            if out[b] >> a & 1:
                return None
            out[a] |= 1 << b
            into[b] |= 1 << a
            waiting.append((a, b))
    return out


def _settle(forced: Mapping[int, int], near: dict[int, int], after: dict[int, int]) -> None:
    """Take directed lines out of the graph that is left."""
    for start, ends in forced.items():
        after[start] |= ends
        near[start] &= ~ends
        for end in bits(ends):
            near[end] &= ~(1 << start)


def _chains(after: Mapping[int, int]) -> bool:
    """Whether what is two directions away is always one direction away too."""
    return all(not after[w] & ~ends for ends in after.values() for w in bits(ends))
