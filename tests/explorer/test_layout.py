"""A tidy layout reads from left to right, lays nothing over anything, and is quick."""

from __future__ import annotations

import random
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.layout import ACROSS, DOWN, tidy


def acyclic(arrows: list[tuple[int, int]], nodes: int = 0) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(f"n{n}" for n in range(nodes))
    graph.add_edges_from((f"n{min(a, b)}", f"n{max(a, b)}") for a, b in arrows if a != b)
    return graph


GRAPHS = st.builds(
    acyclic, st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=30), st.just(5)
)


@settings(max_examples=100)
@given(GRAPHS)
def test_arrows_lead_to_the_right_and_boxes_keep_apart(graph: nx.DiGraph) -> None:
    places = tidy(graph)
    assert set(places) == set(graph)
    assert all(places[b][0] >= places[a][0] + ACROSS for a, b in graph.edges)
    for (x, y), (u, v) in combinations(places.values(), 2):
        assert x != u or abs(y - v) > 0.99 * DOWN


@given(GRAPHS, st.randoms())
def test_the_same_graph_gets_the_same_layout(graph: nx.DiGraph, chance: random.Random) -> None:
    nodes, edges = list(graph), list(graph.edges)
    chance.shuffle(nodes)
    chance.shuffle(edges)
    again = nx.DiGraph()
    again.add_nodes_from(nodes)
    again.add_edges_from(edges)
    assert tidy(again) == tidy(graph)


def test_arrows_that_need_not_cross_do_not() -> None:
    places = tidy(nx.DiGraph([("a", "z"), ("b", "y"), ("c", "x")]))
    rows = [[places[n][1] for n in names] for names in ("abc", "zyx")]
    assert rows[0] == pytest.approx(rows[1])


def test_a_source_lies_beside_what_it_is_used_for() -> None:
    places = tidy(nx.DiGraph([("a", "b"), ("b", "c"), ("late", "c")]))
    assert places["late"][0] == places["b"][0]


def test_three_hundred_boxes_each_have_a_place_of_their_own() -> None:
    chance = random.Random(0)
    arrows = [(end, chance.randrange(end)) for end in range(1, 300) for _ in range(2)]
    assert len({tuple(place) for place in tidy(acyclic(arrows)).values()}) == 300
