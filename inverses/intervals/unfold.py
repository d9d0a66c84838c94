"""Transformation to a tree: what hangs on several nodes is copied, as long as copies stay few."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from inverses.intervals.order import Orders, two_orders
from inverses.intervals.parts import Apart, Beyond, behind_doors, joined, nested
from inverses.intervals.poset import Poset, bits

LARGEST = 300
"""A piece of more nodes that cannot be taken apart is left to a cover, and not tested."""


class TooManyCopies(Beyond):
    """A tree would take more rows than are allowed."""

    def __init__(self, most: int) -> None:
        super().__init__(f"its dimension exceeds 2, and with copies it takes more than {most} rows")


Arrows = Sequence[Sequence[int]]
Row = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Block:
    """What is copied as one: a node, some twins, or a piece behind a single entry and exit."""

    members: int
    orders: Orders

    @property
    def entry(self) -> int:
        return (self.members & -self.members).bit_length() - 1


def nest(poset: Poset, most: int) -> list[Row] | None:
    """Rows (node, left, right), one interval inside another where one node is below another.

    A node may have several rows; none if there would be more than `most` rows.

    >>> nest(Poset.of([(), (0,), (0,), (1, 2)]), most=4)
    [(0, 0, 7), (2, 1, 5), (1, 2, 6), (3, 3, 4)]
    """
    with suppress(Beyond):
        return nest_or_say(poset, most)
    return None


def nest_or_say(poset: Poset, most: int) -> list[Row]:
    """The same rows; raises Beyond, which says why, if there are none."""
    if len(poset) > most:
        raise Beyond(f"one interval for each node would take more than {most} rows")
    whole = Apart.of(poset)
    orders = nested(whole, poset.everything, lambda piece: _ordered(whole, piece, most))
    if orders is None or len(orders[0]) > most:
        raise TooManyCopies(most)
    return _rows(orders, len(poset))


def _ordered(whole: Apart, piece: int, most: int) -> Orders | None:
    if (size := piece.bit_count()) > LARGEST:
        tested = f"the dimension is tested of up to {LARGEST}"
        raise Beyond(f"{size} nodes of it cannot be taken apart, and {tested}")
    return two_orders(whole.poset, piece, whole.apart) or unfolded(whole, piece, most)


def _rows(orders: Orders, size: int) -> list[Row]:
    """The second order forwards, then the first backwards: a node's interval joins its places."""
    first, second = orders
    last = 2 * len(first) - 1
    right = {copy: last - place for place, copy in enumerate(first)}
    return [(copy % size, left, right[copy]) for left, copy in enumerate(second)]


def unfolded(whole: Apart, members: int, most: int) -> Orders | None:
    """Two orders for copies of the members; none if there would be more than `most` copies.

    Copy k of a node is its number plus k times the number of all nodes. Either what is below a
    node with several parents is copied, or what is above one with several children: whichever
    makes fewer copies.
    """
    blocks = _blocks(whole, members)
    parents = _arrows(whole, blocks)
    children = _turned(parents)
    down, up = _copies(blocks, parents), _copies(blocks[::-1], children)
    if min(down, up) > most:
        return None
    if down <= up:
        return _expanded(whole, blocks, *_walks(parents))
    last = len(blocks) - 1
    first, second = _walks(children)
    ways = [[(last - block, copy) for block, copy in way[::-1]] for way in (first, second)]
    return _expanded(whole, blocks, *ways)


def _blocks(whole: Apart, members: int) -> list[Block]:
    """Pieces behind a single door, twins, and single nodes; none before what is above it."""
    found = [Block(*each) for each in behind_doors(whole, members)]
    left = members
    for block in found:
        left &= ~block.members
    return sorted(found + _twins(whole, members, left), key=lambda block: block.entry)


def _twins(whole: Apart, members: int, left: int) -> list[Block]:
    """Those that are left, together where nothing among the members tells them apart."""
    above, below = whole.poset.above, whole.poset.below
    alike: dict[tuple[int, int], list[int]] = {}
    for n in bits(left):
        alike.setdefault((above[n] & members, below[n] & members), []).append(n)
    return [Block(sum(1 << n for n in each), (each, each[::-1])) for each in alike.values()]


def _arrows(whole: Apart, blocks: Sequence[Block]) -> list[list[int]]:
    """The parents of each block, without those that are already above another parent."""
    home = {n: 1 << b for b, block in enumerate(blocks) for n in bits(block.members)}
    known = sum(block.members for block in blocks)
    above: list[int] = []
    parents = []
    for block in blocks:
        mask = further = 0
        for n in bits(whole.poset.above[block.entry] & known):
            mask |= home[n]
        for b in bits(mask):
            further |= above[b]
        above.append(mask)
        parents.append(list(bits(mask & ~further)))
    return parents


def _turned(parents: Arrows) -> list[list[int]]:
    """The same arrows read from the other end."""
    last = len(parents) - 1
    turned: list[list[int]] = [[] for _ in parents]
    for node, above in enumerate(parents):
        for parent in above:
            turned[last - parent].append(last - node)
    return turned


def _copies(blocks: Sequence[Block], parents: Arrows) -> int:
    """How many rows a tree would have: a block has as many copies as there are paths to it."""
    times: list[int] = []
    for above in parents:
        times.append(max(1, sum(times[parent] for parent in above)))
    return sum(t * b.members.bit_count() for t, b in zip(times, blocks, strict=True))


Walk = list[tuple[int, int]]


def _walks(parents: Arrows) -> tuple[Walk, Walk]:
    """The tree walked from its roots, children in one order and in the other: (block, copy)."""
    roots, branches = _tree(parents)
    return _walk(roots[::-1], branches, -1), _walk(roots, branches, 1)


def _tree(parents: Arrows) -> tuple[Walk, dict[tuple[int, int], Walk]]:
    """A copy of each block below every copy of each of its parents."""
    times: list[int] = []
    roots: Walk = []
    branches: dict[tuple[int, int], Walk] = {}
    for block, above in enumerate(parents):
        hosts = [(parent, k) for parent in above for k in range(times[parent])]
        times.append(max(1, len(hosts)))
        if not hosts:
            roots.append((block, 0))
        for copy, host in enumerate(hosts):
            branches.setdefault(host, []).append((block, copy))
    return roots, branches


def _walk(waiting: Walk, branches: dict[tuple[int, int], Walk], step: int) -> Walk:
    seen, waiting = [], list(waiting)
    while waiting:
        at = waiting.pop()
        seen.append(at)
        waiting += branches.get(at, [])[::step]
    return seen


def _expanded(whole: Apart, blocks: Sequence[Block], first: Walk, second: Walk) -> Orders:
    """Both walks with the nodes of each block in place of it."""
    size = len(whole.poset)
    return (
        joined([[n + size * copy for n in blocks[b].orders[0]] for b, copy in first]),
        joined([[n + size * copy for n in blocks[b].orders[1]] for b, copy in second]),
    )
