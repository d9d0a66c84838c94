"""Ranges, blocks and cuts say what plain sets say."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from inverses.intervals.blocks import BLOCK, STORED, packed, unpacked
from inverses.intervals.cover import Seats, descendants
from inverses.intervals.cut import LEAST, MOST, by_ancestry, by_descent, by_number, children_of, cut
from inverses.intervals.encode import Past, encode
from inverses.intervals.ranges import ranges, size, united
from tests.graphs import KINDS, drawn, layered
from tests.speed.approaches import path_rows


def some_places(rng: Random, most: int = 60) -> set[int]:
    return {rng.randrange(most) for _ in range(rng.randint(1, 25))}


def singles(places: set[int]) -> list[tuple[int, int]]:
    return [(place, place) for place in sorted(places)]


def test_united_ranges_are_the_union_and_never_touch() -> None:
    rng = Random(1)
    for _ in range(200):
        sets = [some_places(rng) for _ in range(rng.randint(2, 4))]
        found = united([ranges(singles(each)) for each in sets])
        spread = {place for first, last in found.tolist() for place in range(first, last + 1)}
        assert spread == set().union(*sets)
        assert size(found) == len(spread)
        assert all(b[0] > a[1] + 1 for a, b in pairwise(found))


def test_seats_find_the_ranges_of_any_set() -> None:
    rng = Random(2)
    for _ in range(200):
        seats = Seats(places := some_places(rng))
        chosen = {place for place in places if rng.random() < 0.6}
        found = seats.ranges(sum(seats.bit(place) for place in chosen))
        assert [p for a, b in found for p in range(a, b + 1)] == sorted(chosen)
        assert all(b[0] > a[1] + 1 for a, b in pairwise(found))


def _none(places: Iterable[int]) -> dict[int, int]:
    return dict.fromkeys(places, 0)


def test_what_blocks_hold_is_found_again() -> None:
    rng = Random(3)
    labels = encode(KINDS["scattered"](rng, 3 * BLOCK + 17), past=Past(1000, passed=_none))
    by_maker = {place.maker: place.node for place in labels.places}
    held = [(first, None, makers) for first, makers, _ in packed(labels.places)]
    assert sum(len(np.frombuffer(nodes, STORED)) for *_, nodes in held) == len(by_maker)
    for _ in range(50):
        asked = [(a, a + rng.randrange(90)) for a in range(1000, 1700, 100)]
        wanted = {by_maker[p] for a, b in asked for p in range(a, b + 1)}
        assert unpacked([*((a, b, None) for a, b in asked), *held]) == sorted(wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_every_order_puts_parents_first_and_is_cut_into_pieces_of_fit_size(kind: str) -> None:
    graph = KINDS[kind](Random(4), 700)
    for order in (by_number(graph), by_ancestry(graph), by_descent(graph)):
        at = {node: n for n, node in enumerate(order)}
        assert len(at) == len(graph)
        assert all(at[p] < at[n] for n, above in graph.items() for p in above)
        pieces = list(cut(order, graph))
        assert [node for piece in pieces for node in piece] == order
        assert all(LEAST <= len(piece) <= MOST for piece in pieces[:-1])


def test_descendants_are_counted_in_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inverses.intervals.cover.AT_ONCE", 7)
    graph = KINDS["scattered"](Random(5), 60)
    below = children_of(graph)
    counts = descendants([below.get(n, []) for n in range(60)])
    assert counts == [len(_reached(drawn(graph).adj, n)) for n in range(60)]


def _reached(adjacent: object, node: int) -> set[int]:
    found: set[int] = set()
    waiting = [node]
    while waiting:
        for child in adjacent[waiting.pop()]:  # type: ignore[index]
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def test_a_graph_with_more_paths_than_can_be_walked_takes_few_rows() -> None:
    graph = layered(Random(6), 400)
    assert path_rows(graph) > 10**9
    assert encode(graph).tuples < 20 * len(graph)
