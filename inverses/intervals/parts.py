"""An order taken apart: into pieces one after another, side by side, and behind a single door."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from inverses.intervals.order import Orders, two_orders
from inverses.intervals.poset import Poset, bits, components

DEEPEST = 150
MOST_TRIED = 60


class Beyond(Exception):
    """Why an order is not held by intervals: it would take more than may be tried."""


@dataclass(frozen=True, slots=True)
class Apart:
    """An order together with both graphs by which it is taken apart."""

    poset: Poset
    apart: Sequence[int]
    related: Sequence[int]

    @classmethod
    def of(cls, poset: Poset) -> Apart:
        return cls(poset, poset.apart, poset.related)


Hard = Callable[[int], Orders | None]
"""What gives two orders of a piece that cannot be taken apart any further."""


def nested(whole: Apart, members: int, hard: Hard, depth: int = 0) -> Orders | None:
    """Two orders for the members, put together from those of their pieces; none if one has none.

    Raises Beyond if pieces lie too deep in one another.

    Independent subgraphs of the incomparability graph stand one after another, so both orders
    follow them. Pieces without an arrow between them stand side by side: the orders disagree.
    """
    if depth > DEEPEST:
        raise Beyond(f"its pieces lie in one another more than {DEEPEST} deep")
    in_series = components(members, whole.apart)
    pieces = in_series if len(in_series) > 1 else components(members, whole.related)
    if len(pieces) == 1:
        return hard(members)
    found = [nested(whole, piece, hard, depth + 1) for piece in pieces]
    done = [each for each in found if each is not None]
    if len(done) < len(pieces):
        return None
    first, second = [f for f, _ in done], [s for _, s in done]
    return joined(first), joined(second if len(in_series) > 1 else second[::-1])


def joined(lists: Sequence[list[int]]) -> list[int]:
    return list(chain.from_iterable(lists))


def realizer(whole: Apart, members: int) -> Orders | None:
    """Two orders for the members without a copy of any; none if their dimension exceeds 2."""
    with suppress(Beyond):
        return nested(whole, members, lambda piece: _at_once(whole, piece))
    return None


def _at_once(whole: Apart, piece: int) -> Orders | None:
    return two_orders(whole.poset, piece, whole.apart)


def behind_doors(whole: Apart, members: int) -> list[tuple[int, Orders]]:
    """Pieces with a single entry and a single exit that two orders can hold, largest first.

    Whatever is above one of a piece's nodes is above all of them, and so below: such a piece may
    stand for one node.
    """
    found: list[tuple[int, Orders]] = []
    taken = 0
    for region in sorted(_regions(whole, members), key=int.bit_count, reverse=True)[:MOST_TRIED]:
        orders = realizer(whole, region) if not region & taken else None
        if orders is not None:
            found.append((region, orders))
            taken |= region
    return found


def _regions(whole: Apart, members: int) -> Iterator[int]:
    """What lies between an entry and an exit through which every path into and out of it runs."""
    above, below = whole.poset.above, whole.poset.below
    for entry in bits(members):
        inside = below[entry] & members
        for exit_ in bits(inside):
            if inside & whole.apart[exit_] or above[exit_] & members & whole.apart[entry]:
                continue
            region = inside & above[exit_] | 1 << entry | 1 << exit_
            around = region | above[entry] | below[exit_]
            if region != members and all(
                not (whole.related[n] & members) & ~around for n in bits(region)
            ):
                yield region
