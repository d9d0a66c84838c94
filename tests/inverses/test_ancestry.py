"""Questions about whole datasets are answered as a walk over the graph would, and in words."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import networkx as nx
import pytest
import sqlalchemy as sa

from inverses.ancestry import Ancestry, Wanted
from pipelines.errors import Failed, Refused
from pipelines.foreign.graph import Graph, add
from pipelines.history import History
from pipelines.run_graph import DATASET, TASK, Node
from pipelines.workspace import Workspace
from tests.databases import own_schema
from tests.runs import ran

EVERY = Wanted((DATASET, TASK))


@pytest.fixture
def here(tmp_path: Path, catalog_url: str) -> Workspace:
    return Workspace.create(tmp_path / "w", catalog_url)


def drawn(chance: random.Random, size: int) -> nx.DiGraph[str]:
    """A random graph without circles whose nodes are datasets (d) and tasks (t)."""
    names = [f"{chance.choice('ddt')}{n}" for n in range(size)]
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    for place, name in enumerate(names[1:], 1):
        for _ in range(chance.randint(0, 3)):
            graph.add_edge(names[chance.randrange(place)], name)
    return graph


def stored(graph: nx.DiGraph[str]) -> Graph:
    kinds = {"d": DATASET, "t": TASK}
    found = Graph()
    known = {name: found.put(Node(kinds[name[0]], name)) for name in graph}
    for source, target in graph.edges:
        found.arrow(known[source], known[target])
    return found


def named(relatives: list[object]) -> list[str]:
    return sorted(r.name for r in relatives)  # type: ignore[attr-defined]


@contextmanager
def said(ancestry: Ancestry) -> Iterator[list[str]]:
    """The statements that are put to the database meanwhile."""
    heard: list[str] = []

    def hear(_: object, __: object, statement: str, *___: object) -> None:
        heard.append(statement)

    sa.event.listen(ancestry.catalog.engine, "before_cursor_execute", hear)
    yield heard
    sa.event.remove(ancestry.catalog.engine, "before_cursor_execute", hear)


def seen(history: History, view: str, name: str) -> list[str]:
    """What the catalog says to who asks it in SQL."""
    with history.catalog.reading() as connection:
        asked = sa.text(f"SELECT name FROM {view} WHERE of_name = :name ORDER BY name")
        return list(connection.scalars(asked, {"name": name}))


@pytest.mark.parametrize("seed", range(2))
def test_answers_are_those_of_a_walk(here: Workspace, seed: int) -> None:
    chance = random.Random(seed)
    graph = drawn(chance, 40)
    history = History.of(here)
    add(history.catalog, stored(graph))
    ancestry = Ancestry(history)
    for name in chance.sample(sorted(n for n in graph if n[0] == "d"), 6):
        before, after = nx.ancestors(graph, name), nx.descendants(graph, name)
        assert named(ancestry.ancestors(name, EVERY)) == sorted(before)
        assert named(ancestry.descendants(name, EVERY)) == sorted(after)
        assert named(ancestry.ancestors(name)) == sorted(n for n in before if n[0] == "d")
        assert named(ancestry.descendants(name, Wanted((TASK,)))) == sorted(
            n for n in after if n[0] == "t"
        )
        assert seen(history, "ancestors", name) == sorted(before)
        assert seen(history, "descendants", name) == sorted(after)
        assert ancestry.count_ancestors(name, EVERY) == len(before)
        for wanted in (EVERY, Wanted(), Wanted((TASK,)), Wanted((TASK,), "*1*")):
            above, below = ancestry.ancestors(name, wanted), ancestry.descendants(name, wanted)
            assert ancestry.count_ancestors(name, wanted) == len(above)
            assert ancestry.count_descendants(name, wanted) == len(below)
        some = Wanted((DATASET, TASK), "*1*")
        assert named(ancestry.ancestors(name, some)) == sorted(n for n in before if "1" in n)
        assert ancestry.count_ancestors(name, some) == len([n for n in before if "1" in n])
        for other in chance.sample(sorted(n for n in graph if n[0] == "d"), 4):
            assert ancestry.is_ancestor(other, name) == (other in before)
    pair = chance.sample(sorted(n for n in graph if n[0] == "d"), 2)
    spoiled = {d for p in pair for d in nx.descendants(graph, p) if d[0] == "d"}
    assert named(ancestry.affected_by(*pair)) == sorted(spoiled)
    assert ancestry.count_affected(*pair) == len(spoiled)
    assert ancestry.count_affected(pair[0]) == ancestry.count_descendants(pair[0])


def test_a_graph_that_grows_is_asked_as_it_is_now(here: Workspace) -> None:
    ancestry = Ancestry(History.of(here))
    ran(here, {"a": [], "b": ["a"]})
    assert named(ancestry.ancestors("b")) == ["a"]
    ran(here, {"c": ["b"]})
    assert named(ancestry.ancestors("c")) == ["a", "b"]
    assert named(ancestry.descendants("a")) == ["b", "c"]


def test_a_name_means_the_newest_version_unless_one_is_said(here: Workspace) -> None:
    for _ in range(2):
        ran(here, {"a": [], "b": ["a"]})
    ancestry = Ancestry.of(here)
    assert [r.key for r in ancestry.ancestors("b")] == [("a", "v2")]
    assert [r.key for r in ancestry.ancestors("b@v1")] == [("a", "v1")]
    assert [r.key for r in ancestry.descendants("a")] == [("b", "v2")]
    assert [r.key for r in ancestry.affected_by("a")] == [("b", "v1"), ("b", "v2")]
    assert [r.key for r in ancestry.affected_by("a@v1")] == [("b", "v1")]


def test_what_was_made_with_a_box_is_found_by_version_and_parameters(here: Workspace) -> None:
    steps = {"a": [], "b": ["a"], "c": ["b"]}
    ran(here, steps, params={"b": {"margin": 1000.0, "way": "near"}})
    ran(here, steps, params={"b": {"margin": 500, "way": "near"}}, versions={"b": "2"})
    ancestry = Ancestry.of(here)

    def made(box: str, directly: bool = False, **given: object) -> list[tuple[str, str]]:
        found = ancestry.made_with(box, given, directly=directly)
        assert ancestry.count_made_with(box, given, directly=directly) == len(found)
        return [r.key for r in found]

    assert made("make_b") == [("b", "v1"), ("c", "v1"), ("b", "v2"), ("c", "v2")]
    assert made("make_b", directly=True) == [("b", "v1"), ("b", "v2")]
    assert made("make_b@2") == made("make_b", margin=500) == [("b", "v2"), ("c", "v2")]
    assert made("make_b", directly=True, margin=1000, way="near") == [("b", "v1")]
    assert made("make_b", margin=1000, way="far") == made("make_b", margin=1) == []
    with pytest.raises(Refused, match='"margn" of "make_b" in the history; did you mean "margin"'):
        made("make_b", margn=1000)
    assert made("make_c", directly=True) == [("c", "v1"), ("c", "v2")]


def test_labels_that_a_database_will_not_store_are_asked_for_again(
    tmp_path: Path, postgres: str
) -> None:
    ancestry = Ancestry.of(here := Workspace.create(tmp_path / "w", own_schema(postgres)))
    ran(here, {"a": [], "b": ["a"]})
    with ancestry.catalog.writing() as connection:
        connection.execute(
            sa.text("ALTER TABLE lineage_places ADD CONSTRAINT full_up CHECK (false)")
        )
    with pytest.raises(Failed, match='does not answer: new row for relation "lineage_places"'):
        ancestry.ancestors("b")
    with ancestry.catalog.writing() as connection:
        connection.execute(sa.text("ALTER TABLE lineage_places DROP CONSTRAINT full_up"))
    assert named(ancestry.ancestors("b")) == ["a"]


def test_tasks_in_between_are_listed_if_asked_for(here: Workspace) -> None:
    ran(here, {"a": [], "b": ["a"]})
    found = Ancestry.of(here).ancestors("b", EVERY)
    assert [(r.name, r.kind) for r in found] == [
        ("make_a", TASK), ("a", DATASET), ("make_b", TASK),
    ]  # fmt: skip


def test_a_name_is_looked_for_in_small_letters_and_capitals(here: Workspace) -> None:
    ran(here, {"raw": [], "Lows_1": ["raw"], "lows_10": ["raw"], "lowsx1": ["raw"]})
    ancestry = Ancestry.of(here)
    for wanted in (Wanted(name=said) for said in ("lows_*", "LOWS_*", "*S_1*")):
        assert named(ancestry.descendants("raw", wanted)) == ["Lows_1", "lows_10"]
        assert ancestry.count_descendants("raw", wanted) == 2


QUESTIONS: tuple[Callable[[Ancestry], object], ...] = (
    lambda asked: asked.ancestors("b"),
    lambda asked: asked.count_ancestors("b"),
    lambda asked: asked.count_descendants("a", Wanted(name="b")),
    lambda asked: asked.is_ancestor("a", "b"),
    lambda asked: asked.affected_by("a", "b"),
    lambda asked: asked.made_with("make_a", directly=True),
    lambda asked: asked.marks(2),
    lambda asked: asked.used(2),
    lambda asked: asked.behind([1, 2]),
)


def test_a_connection_that_is_lost_at_any_moment_is_told_in_one_line(here: Workspace) -> None:
    ran(here, {"a": [], "b": ["a"]})
    asked = Ancestry.of(here)
    asked.index.catch_up()
    for question in QUESTIONS:
        for turn in range(connections(asked, question)):
            lost = pytest.raises(Failed, match=r"^the catalog .* does not answer: lost$")
            with losing(asked, turn), lost:
                question(asked)


def connections(asked: Ancestry, question: Callable[[Ancestry], object]) -> int:
    """How many connections a question needs one after another."""
    with losing(asked, 100) as tried:
        question(asked)
    return len(tried)


@contextmanager
def losing(asked: Ancestry, turn: int) -> Iterator[list[object]]:
    """A database that lets us in so many times and no more."""
    engine, tried = asked.catalog.engine, []

    def lose(*_: object) -> None:
        tried.append(None)
        if len(tried) > turn:
            raise engine.dialect.loaded_dbapi.OperationalError("lost")

    sa.event.listen(engine, "do_connect", lose)
    yield tried
    sa.event.remove(engine, "do_connect", lose)


def with_boxes(graph: nx.DiGraph[str]) -> Graph:
    """The same graph, in which every task is a run of one box."""
    found = Graph()
    known = {
        name: found.put(Node(TASK, "box", run=name) if name[0] == "t" else Node(DATASET, name))
        for name in graph
    }
    for source, target in graph.edges:
        found.arrow(known[source], known[target])
    return found


def reached(graph: nx.DiGraph[str], roots: list[str], kinds: str, holding: str = "") -> list[str]:
    """What a walk from each of the roots reaches, of some kinds and with a letter in its name."""
    every = {n for root in roots for n in nx.descendants(graph, root)}
    return sorted(n for n in every if n[0] in kinds and holding in n)


def test_what_comes_of_very_many_is_listed_and_counted_as_a_walk_would(here: Workspace) -> None:
    chance = random.Random(1)
    graph = drawn(chance, 400)
    add((history := History.of(here)).catalog, with_boxes(graph))
    ancestry = Ancestry(history)
    tasks = [name for name in graph if name[0] == "t"]
    some = chance.sample([name for name in graph if name[0] == "d"], 70)
    assert len(tasks) > 100
    for wanted, kinds, holding in (
        (Wanted(), "d", ""),
        (Wanted((TASK,)), "t", ""),
        (EVERY, "dt", ""),
        (Wanted(name="*7*"), "d", "7"),
    ):
        spoiled, made = (reached(graph, roots, kinds, holding) for roots in (some, tasks))
        assert len(ancestry.affected_by(*some, wanted=wanted)) == len(spoiled)
        assert ancestry.count_affected(*some, wanted=wanted) == len(spoiled)
        assert ancestry.count_made_with("box", wanted=wanted) == len(made)
    assert named(ancestry.affected_by(*some)) == reached(graph, some, "d")
    assert named(ancestry.made_with("box")) == reached(graph, tasks, "d")
    direct = sorted({n for task in tasks for n in graph.successors(task) if n[0] == "d"})
    assert named(ancestry.made_with("box", directly=True)) == direct
    assert ancestry.count_made_with("box", directly=True) == len(direct)


def test_very_many_are_counted_in_a_few_statements_that_list_nothing(here: Workspace) -> None:
    graph = Graph()
    for number in range(600):
        task = graph.put(Node(TASK, "box", run=str(number)))
        graph.arrow(task, graph.put(Node(DATASET, f"d{number}")))
    add((history := History.of(here)).catalog, graph)
    ancestry = Ancestry(history)
    assert len(ancestry.made_with("box")) == 600
    with said(ancestry) as statements:
        assert ancestry.count_made_with("box") == 600
        assert ancestry.count_made_with("box", directly=True) == 600
    assert len(statements) < 15
    listing = [each for each in statements if "lineage_spans" in each]
    assert len(listing) == 1 and listing[0].startswith("SELECT count(")


def test_one_name_in_several_namespaces_is_asked_back(here: Workspace) -> None:
    history = History.of(here)
    graph = Graph()
    for space in ("lab", "office"):
        raw = graph.put(Node(DATASET, f"raw-{space}", namespace=space))
        graph.arrow(raw, graph.put(Node(DATASET, "report", namespace=space)))
    add(history.catalog, graph)
    ancestry = Ancestry(history)
    with pytest.raises(Refused, match=r'"report" may be 2 things; say which: lab/report, office/r'):
        ancestry.ancestors("report")
    assert named(ancestry.ancestors("lab/report")) == ["raw-lab"]
    assert named(ancestry.ancestors("office:report")) == ["raw-office"]
    ran(here, {"report": []})
    assert Ancestry.of(here).ancestors("report") == []


@pytest.fixture
def both(tmp_path: Path, catalog_url: str) -> list[Workspace]:
    """Two workspaces that share a catalog."""
    return [Workspace.create(tmp_path / name, catalog_url) for name in ("ours", "theirs")]


def test_a_box_is_the_same_in_every_workspace_that_shares_a_catalog(both: list[Workspace]) -> None:
    ours, theirs = both
    ran(theirs, {"a": [], "b": ["a"]}, params={"b": {"margin": 3}})
    assert [r.key for r in Ancestry.of(ours).made_with("make_b")] == [("b", "v1")]
    ran(ours, {"a": [], "c": ["a"], "b": ["c"]}, params={"b": {"margin": 4}})
    for one in both:
        ancestry = Ancestry.of(one)
        assert [r.name for r in ancestry.made_with("make_a")] == ["a", "b", "a", "c", "b"]
        assert ancestry.count_made_with("make_a") == 5
        assert [r.name for r in ancestry.made_with("make_c")] == ["c", "b"]
        assert [r.namespace for r in ancestry.made_with("make_b", {"margin": 3})] == [
            theirs.namespace
        ]
    named_whole = f"{theirs.namespace}/make_b"
    assert [r.namespace for r in Ancestry.of(ours).made_with(named_whole)] == [theirs.namespace]


def test_a_box_that_only_others_ran_is_no_riddle(both: list[Workspace], tmp_path: Path) -> None:
    for one in both:
        ran(one, {"a": []})
    third = Workspace.create(tmp_path / "third", both[0].catalog)
    assert [r.key for r in Ancestry.of(third).made_with("make_a")] == [("a", "v1")] * 2


def test_a_dataset_means_our_own_where_others_have_one_of_that_name(both: list[Workspace]) -> None:
    ours, theirs = both
    ran(ours, {"a": [], "b": ["a"]})
    ran(theirs, {"a": [], "x": ["a"], "b": ["x"]})
    assert named(Ancestry.of(ours).ancestors("b")) == ["a"]
    assert named(Ancestry.of(theirs).ancestors("b")) == ["a", "x"]
    assert named(Ancestry.of(ours).affected_by("a")) == ["b"]


def test_boxes_whose_names_end_alike_are_asked_back(here: Workspace) -> None:
    graph = Graph()
    for name in ("etl:clean", "old:clean"):
        graph.arrow(graph.put(Node(TASK, name, namespace="lab")), graph.put(Node(DATASET, name)))
    add((history := History.of(here)).catalog, graph)
    with pytest.raises(Refused, match="may be 2 things; say which: lab/etl:clean, lab/old:clean"):
        Ancestry(history).made_with("clean")
    assert named(Ancestry(history).made_with("etl:clean")) == ["etl:clean"]


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("trakcs", 'no dataset "trakcs" in the history; did you mean "tracks"?'),
        ("tracks@v9", r'no dataset "tracks@v9" .* did you mean "tracks"\?'),
        ("", 'no dataset "" in the history'),
        ("x" * 3000, "no dataset"),
        ("%", 'no dataset "%"'),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_one_that_is(
    here: Workspace, said: str, hint: str
) -> None:
    ran(here, {"tracks": []})
    with pytest.raises(Refused, match=hint):
        Ancestry.of(here).ancestors(said)
    with pytest.raises(Refused, match="no box"):
        Ancestry.of(here).made_with("make_nothing")
