"""Labels state every ancestor of every node, each once, and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from random import Random

import networkx as nx
import pytest

from inverses.intervals import encode as encoder
from inverses.intervals.encode import COPIED, COVERED, NESTED, Labels, Past, encode
from inverses.intervals.ranges import Ranges, ranges, united
from inverses.intervals.unfold import nest
from pipelines.errors import Refused
from pipelines.run_graph import TASK
from tests.graphs import KINDS, Graph, chain, drawn, shuffled, tree
from tests.inverses.intervals.catalog import of_kind
from tests.inverses.intervals.reading import stated
from tests.workflows import eman, fmri, history, montage


def assert_exact(labels: Labels, graph: Graph) -> None:
    """Labels say what a search through the graph says."""
    picture = drawn(graph)
    truth = Counter((a, n) for n in graph for a in nx.ancestors(picture, n))
    assert Counter(stated(labels)) == truth
    above = {n: len(nx.ancestors(picture, n)) for n in graph}
    assert {p.node: p.ancestors for p in labels.places} == above
    tasks = {n: len(nx.ancestors(picture, n) & {*labels.tasks}) for n in graph}
    assert {p.node: p.tasks for p in labels.places} == tasks
    assert sorted(p.maker for p in labels.places) == list(range(len(graph)))
    assert sorted(p.made for p in labels.places) == list(range(len(graph)))


def check_random_graphs(seed: int, times: int, kinds: Sequence[str]) -> None:
    rng = Random(seed)
    for turn in range(times):
        kind = kinds[turn % len(kinds)]
        graph = KINDS[kind](rng, rng.randint(5, 100))
        assert_exact(encode(graph, of_kind(graph, TASK)), graph)
        strange = shuffled(rng, graph)
        assert_exact(encode(strange), strange)


def test_labels_are_exact_on_graphs_of_every_kind() -> None:
    check_random_graphs(1, 180, list(KINDS))


def test_labels_are_exact_on_graphs_as_the_paper_draws_them() -> None:
    rng = Random(2)
    for _ in range(150):
        graph = KINDS["scattered"](rng, rng.randint(5, 100))
        assert_exact(encode(graph), graph)


@pytest.mark.night
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 110))
def test_labels_are_exact_on_ten_thousand_graphs_as_the_paper_draws_them(seed: int) -> None:
    check_random_graphs(seed, 1000, ["scattered"])


@pytest.mark.night
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(200, 210))
def test_labels_are_exact_on_ten_thousand_graphs_of_every_kind(seed: int) -> None:
    check_random_graphs(seed, 1000, list(KINDS))


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_exact_where_a_graph_is_cut_into_small_pieces(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inverses.intervals.cut.MOST", 9)
    monkeypatch.setattr("inverses.intervals.cut.LEAST", 3)
    monkeypatch.setattr(encoder, "WHOLE", 0)
    for seed in range(6):
        graph = KINDS[kind](Random(seed), 60)
        labels = encode(graph, of_kind(graph, TASK))
        assert kind in ("crown", "dense") or len(labels.parts) > 2
        assert_exact(labels, graph)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_exact_where_every_part_is_nested_at_any_price(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "dearest", lambda covered, nodes: 3000)
    for seed in range(6):
        graph = KINDS[kind](Random(seed), 25)
        assert_exact(encode(graph), graph)


def test_what_is_appended_is_encoded_against_the_past_alone() -> None:
    rng = Random(3)
    for _ in range(40):
        graph = KINDS["scattered"](rng, 60)
        at = rng.randint(1, 59)
        tasks = of_kind(graph, TASK)
        before = encode({n: above for n, above in graph.items() if n < at}, tasks)
        past = Past(
            at,
            len(before.parts),
            lambda asked, known=before: {n: _closed(known, n) for n in asked},
            lambda places, known=before: {p: _passed(known, p) for p in places},
        )
        after = encode({n: above for n, above in graph.items() if n >= at}, tasks, past)
        whole = Labels(*(a + b for a, b in zip(_lists(before), _lists(after), strict=True)))
        assert_exact(whole, graph)


def _lists(labels: Labels) -> list[list[object]]:
    return [labels.places, labels.nested, labels.spans, labels.parts, list(labels.tasks)]


def _passed(labels: Labels, place: int) -> int:
    return sum(p.maker <= place and p.node in labels.tasks for p in labels.places)


def _closed(labels: Labels, node: int) -> Ranges:
    maker = {place.node: place.maker for place in labels.places}
    inside = [maker[a] for a, n in stated(labels) if n == node] + [maker[node]]
    return united([ranges([(p, p)]) for p in inside] + [ranges([])])


def test_a_workflow_whose_dimension_is_two_is_nested_without_a_copy() -> None:
    for graph in (montage(10), eman(3)):
        rows = nest(encoder.poset_of(list(graph), graph), most=len(graph))
        assert rows is not None and len(rows) == len(graph)


def test_the_brain_scans_need_copies_but_few() -> None:
    graph = fmri()
    poset = encoder.poset_of(list(graph), graph)
    assert nest(poset, most=45) is None
    rows = nest(poset, most=107)
    assert rows is not None and 45 < len(rows) <= 107


@pytest.mark.parametrize("graph", [fmri(), montage(8), eman(4), history(Random(4), 4)])
def test_labels_are_exact_on_workflows(graph: Graph) -> None:
    assert_exact(encode(graph), graph)


@pytest.mark.parametrize(
    ("kind", "way"), [("grid", NESTED), ("grown grid", COPIED), ("scattered", COVERED)]
)
def test_a_part_is_encoded_by_the_way_that_takes_fewest_rows(kind: str, way: str) -> None:
    (part,) = encode(KINDS[kind](Random(5), 70)).parts
    assert part.way == way
    assert part.why


@pytest.mark.parametrize(
    ("kind", "cap", "said"),
    [
        ("tree", (), r"^\d+ spans are fewer than one interval for each node$"),
        ("grid", (), r"^its dimension is at most 2; a cover would take \d+ spans$"),
        (
            "grown grid",
            (),
            r"^its dimension exceeds 2, but with \d+ rows copied it takes no more th",
        ),
        ("scattered", (), r"^(\d+) spans: its dimension exceeds 2, .* more than \1 rows$"),
        ("grown grid", ("encode.COPIES", 1), r"more than 70 rows; there may be 1 rows for each"),
        ("grid", ("unfold.LARGEST", 60), r"62 nodes of it cannot be taken apart, .* up to 60$"),
        ("grid", ("parts.DEEPEST", 0), r"spans: its pieces lie in one another more than 0 deep$"),
    ],
)
def test_the_encoder_says_what_made_it_choose(
    kind: str, cap: tuple[str, int], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cap:
        monkeypatch.setattr(f"inverses.intervals.{cap[0]}", cap[1])
    graph = KINDS[kind](Random(5), 70)
    labels = encode(graph)
    assert re.search(said, labels.parts[0].why), labels.parts[0].why
    assert_exact(labels, graph)


def test_a_wide_piece_is_tested_for_its_dimension_however_much_of_it_is_apart() -> None:
    """A fence of 300: hardly any two of it are above one another, and two orders hold it."""
    fence = {n: [p for p in (n - 151, n - 150) if p >= 0] if n >= 150 else [] for n in range(300)}
    rows = nest(encoder.poset_of(list(fence), fence), most=300)
    assert rows is not None and len(rows) == 300


def test_a_long_chain_and_a_large_tree_take_about_a_row_for_each_node() -> None:
    rng = Random(6)
    assert encode(chain(rng, 5_000)).tuples < 1.1 * 5_000
    assert encode(tree(rng, 5_000)).tuples < 3 * 5_000


def test_a_circle_is_refused_and_named() -> None:
    with pytest.raises(Refused, match="circle: 2 -> 4 -> 3 -> 2; nothing is"):
        encode({1: [], 2: [1, 3], 3: [4], 4: [2], 5: [4]})
