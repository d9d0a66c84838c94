"""Intervals hold an order just if two linear orders do, also where these come from pieces."""

from __future__ import annotations

from itertools import combinations_with_replacement, permutations
from random import Random

import pytest

from inverses.intervals.order import directed, two_orders
from inverses.intervals.parts import Apart, behind_doors, realizer
from inverses.intervals.poset import Poset, bits, runs
from inverses.intervals.unfold import nest
from tests.graphs import KINDS, Graph


def poset(graph: Graph) -> Poset:
    return Poset.of(graph[n] for n in range(len(graph)))


def extensions(order: Poset) -> list[tuple[int, ...]]:
    """All linear orders in which each comes after what is above it."""
    every = permutations(range(len(order)))
    return [way for way in every if all(_placed(way, n, order.above[n]) for n in way)]


def _placed(way: tuple[int, ...], node: int, above: int) -> bool:
    return all(way.index(a) < way.index(node) for a in bits(above))


def agreed(one: tuple[int, ...], two: tuple[int, ...]) -> set[tuple[int, int]]:
    """Pairs that come in the same order in both."""
    return {
        (a, b)
        for a in one
        for b in one
        if one.index(a) < one.index(b) and two.index(a) < two.index(b)
    }


def pairs(order: Poset) -> set[tuple[int, int]]:
    return {(a, n) for n in range(len(order)) for a in bits(order.above[n])}


def is_of_dimension_two(order: Poset) -> bool:
    """Whether two of all linear extensions agree on the order and on nothing else."""
    ways = extensions(order)
    tried = combinations_with_replacement(ways, 2)
    return any(agreed(*two) == pairs(order) for two in tried)


def test_two_orders_are_found_just_where_trying_all_of_them_finds_two() -> None:
    rng = Random(1)
    seen = set()
    for turn in range(60):
        kind = ["scattered", "dense", "crown", "layered"][turn % 4]
        order = poset(KINDS[kind](rng, 6))
        found = two_orders(order, order.everything, order.apart)
        assert (found is not None) == is_of_dimension_two(order)
        seen.add(found is None)
        if found is not None:
            assert agreed(tuple(found[0]), tuple(found[1])) == pairs(order)
    assert seen == {True, False}


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_put_together_give_what_the_whole_gives(kind: str) -> None:
    for seed in range(12):
        order = poset(KINDS[kind](Random(seed), 20))
        at_once = two_orders(order, order.everything, order.apart)
        by_pieces = realizer(Apart.of(order), order.everything)
        assert (at_once is None) == (by_pieces is None)
        if by_pieces is not None:
            assert agreed(tuple(by_pieces[0]), tuple(by_pieces[1])) == pairs(order)


def test_directions_chain() -> None:
    order = poset(KINDS["tree"](Random(7), 30))
    after = directed(order.everything, order.apart)
    assert after is not None
    assert all(after[w] & ~ends == 0 for ends in after.values() for w in bits(ends))


def test_a_piece_behind_a_door_stands_for_one_node() -> None:
    """A crown of three has a diamond in place of one of its nodes."""
    crown = {0: [], 1: [], 2: [], 3: [0, 1], 4: [3], 5: [3], 6: [4, 5], 7: [0, 2], 8: [1, 2]}
    order = poset(crown)
    assert two_orders(order, order.everything, order.apart) is None
    found = behind_doors(Apart.of(order), order.everything)
    assert [sorted(bits(piece)) for piece, _ in found] == [[3, 4, 5, 6]]


def test_copies_are_made_upwards_or_downwards_whichever_are_fewer() -> None:
    fans_out = {0: [], 1: [], 2: [], 3: [0, 1], 4: [0, 2], 5: [1, 2]}
    long = {**fans_out, 6: [3], 7: [6], 8: [7]}
    for graph, most in ((fans_out, 9), (long, 12)):
        rows = nest(poset(graph), most=100)
        assert rows is not None and len(graph) < len(rows) <= most


def test_too_many_copies_are_none() -> None:
    order = poset(KINDS["layered"](Random(2), 40))
    assert nest(order, most=80) is None


def test_runs_of_bits_are_what_counting_finds() -> None:
    rng = Random(3)
    for _ in range(200):
        mask = rng.getrandbits(70)
        spread = {place for first, last in runs(mask) for place in range(first, last + 1)}
        assert spread == {n for n in range(70) if mask >> n & 1}
        assert all(b[0] > a[1] + 1 for a, b in zip(runs(mask), runs(mask)[1:], strict=False))
