"""Run graphs of other programs come in whole or not at all, and ours go out for others to read."""

from __future__ import annotations

import json
import random
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import sqlalchemy as sa
from prov.model import ProvDocument

from inverses.ancestry import Ancestry, Wanted
from pipelines.catalog import edges, nodes
from pipelines.errors import Failed, Refused
from pipelines.foreign import files
from pipelines.foreign.graph import Added, add
from pipelines.history import History
from pipelines.journal import about_now, add_end, add_run
from pipelines.run_graph import DATASET, TASK
from pipelines.workspace import Workspace
from tests.runs import SPARK, pipeline, ran, step

EVERY = Wanted((DATASET, TASK))


@pytest.fixture
def here(tmp_path: Path, catalog_url: str) -> Workspace:
    return Workspace.create(tmp_path / "w", catalog_url)


def imported(workspace: Workspace, path: Path, content: Any) -> Added:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return add(History.of(workspace).catalog, files.read(path))


def ancestors(workspace: Workspace, name: str, wanted: Wanted = EVERY) -> list[str]:
    return sorted(r.name for r in Ancestry.of(workspace).ancestors(name, wanted))


def event(
    job: str,
    run: str,
    inputs: list[Any],
    outputs: list[Any],
    at: str = "2026-01-01T00:00:00Z",
    how: str = "COMPLETE",
) -> dict[str, Any]:
    """An OpenLineage event as a scheduler sends it."""

    def datasets(names: list[Any]) -> list[dict[str, Any]]:
        pairs = [n if isinstance(n, tuple) else (n, None) for n in names]
        facets = [{"version": {"datasetVersion": v}} if v else {} for _, v in pairs]
        both = zip(pairs, facets, strict=True)
        return [{"namespace": "db", "name": n, "facets": f} for (n, _), f in both]

    return {
        "eventType": how, "eventTime": at, "producer": "https://example.org",
        "run": {"runId": run}, "job": {"namespace": "airflow", "name": job},
        "inputs": datasets(inputs), "outputs": datasets(outputs),
    }  # fmt: skip


EVENTS = [
    event("clean", "r1", ["raw"], []),
    event("clean", "r1", [], ["tidy"], at="2026-01-01T00:05:00+00:00"),
    event("report", "r2", ["tidy", "prices"], ["report"], at="2026-01-02T00:00:00"),
]
PROV = {
    "prefix": {"ex": "http://example.org/"},
    "entity": {"ex:raw": {}, "ex:tidy": {"prov:label": "tidy data"}, "ex:report": [{}, {}]},
    "activity": {"ex:clean": {"prov:startTime": "2026-01-01T00:00:00"}},
    "used": {"_:u1": {"prov:activity": "ex:clean", "prov:entity": "ex:raw"}},
    "wasGeneratedBy": {"_:g1": {"prov:entity": "ex:tidy", "prov:activity": "ex:clean"},
                       "_:g2": {"prov:entity": "ex:tidy"}},
    "wasDerivedFrom": {"_:d1": [{"prov:generatedEntity": "ex:report",
                                 "prov:usedEntity": "ex:tidy"}]},
    "agent": {"ex:me": {}},
    "bundle": {"ex:b": {"wasDerivedFrom": {"_:d2": {"prov:generatedEntity": "ex:report",
                                                    "prov:usedEntity": "ex:prices"}}}},
}  # fmt: skip


def test_an_edge_list_becomes_datasets(here: Workspace, tmp_path: Path) -> None:
    added = imported(
        here, tmp_path / "e.csv", '\ufeffsource,target\r\na,"b, c"\r\n\r\n"b, c",d\r\n'
    )
    assert added == Added(3, 0, 2)
    assert ancestors(here, "d") == ["a", "b, c"]


@pytest.mark.parametrize("lines", [True, False])
def test_events_become_tasks_and_datasets(here: Workspace, tmp_path: Path, lines: bool) -> None:
    text = "\n".join(json.dumps(e) for e in EVENTS) if lines else json.dumps(EVENTS)
    assert imported(here, tmp_path / "e", text) == Added(4, 2, 5)
    assert ancestors(here, "report") == ["clean", "prices", "raw", "report", "tidy"]
    assert ancestors(here, "db/report", Wanted()) == ["prices", "raw", "tidy"]
    assert [r.name for r in Ancestry.of(here).made_with("clean")] == ["tidy", "report"]


def test_events_that_say_versions_keep_them_apart(here: Workspace, tmp_path: Path) -> None:
    told = [
        event("load", "r1", ["raw1"], [("t", "1")], at="2026-01-01T00:00:00Z"),
        event("load", "r2", ["raw2", ("t", "1")], [("t", "2")], at="2026-01-03T00:00:00Z"),
        event("early", "r3", ["t"], ["first"], at="2026-01-02T00:00:00Z"),
        event("late", "r4", ["t"], ["second"], at="2026-01-04T00:00:00Z"),
        event("named", "r5", [("t", "1")], ["third"], at="2026-01-04T00:00:00Z"),
    ]
    imported(here, tmp_path / "e.jsonl", told)
    assert ancestors(here, "first", Wanted()) == ["raw1", "t"]
    assert ancestors(here, "second", Wanted()) == ["raw1", "raw2", "t", "t"]
    assert ancestors(here, "third", Wanted()) == ["raw1", "t"]


def test_what_a_run_that_failed_was_to_write_was_not_made(here: Workspace, tmp_path: Path) -> None:
    told = [
        event("load", "r1", ["raw"], [("t", "1")], at="2026-01-01T00:00:00Z"),
        event("load", "r2", ["bad"], [("t", "2")], at="2026-01-02T00:00:00Z", how="START"),
        event("load", "r2", [], [("t", "2")], at="2026-01-02T01:00:00Z", how="FAIL"),
        event("load", "r2", [], [], at="2026-01-02T02:00:00Z", how="OTHER"),
        event("stop", "r3", ["raw"], ["half"], at="2026-01-02T00:00:00Z", how="ABORT"),
        event("use", "r4", ["t"], ["report"], at="2026-01-03T00:00:00Z"),
    ]
    assert imported(here, tmp_path / "e.jsonl", told) == Added(4, 4, 6)
    assert ancestors(here, "report", Wanted()) == ["raw", "t"]
    assert Ancestry.of(here).made_with("stop") == []
    with pytest.raises(Refused, match='no dataset "half"'):
        ancestors(here, "half")


def test_a_run_that_failed_and_was_done_after_all_has_made_it(
    here: Workspace, tmp_path: Path
) -> None:
    done = event("load", "r1", ["raw"], ["t"], at="2026-01-02T00:00:00Z")
    failed = event("load", "r1", ["raw"], ["t"], how="FAIL")
    imported(here, tmp_path / "e.jsonl", [done, failed])
    assert ancestors(here, "t") == ["load", "raw"]


def test_a_document_of_prov_becomes_tasks_and_datasets(here: Workspace, tmp_path: Path) -> None:
    assert imported(here, tmp_path / "p.json", PROV) == Added(4, 1, 4)
    assert ancestors(here, "report") == ["clean", "prices", "raw", "tidy"]
    assert ancestors(here, "http://example.org/tidy") == ["clean", "raw"]


def test_a_prefix_is_what_it_stands_for(here: Workspace, tmp_path: Path) -> None:
    def made(prefix: str, stands_for: str, used: str) -> Added:
        ends = {"prov:generatedEntity": f"{prefix}out", "prov:usedEntity": f"{prefix}{used}"}
        prefixes = {prefix.rstrip(":") or "default": stands_for}
        told = {"prefix": prefixes, "bundle": {"b": {"wasDerivedFrom": {"_:d": ends}}}}
        return imported(here, tmp_path / "p.json", told)

    assert made("ex:", "http://one.org/", "a") == Added(2, 0, 1)
    assert made("ex:", "http://two.org/", "a") == Added(2, 0, 1)
    assert made("one:", "http://one.org/", "b") == Added(1, 0, 1)
    assert made("", "http://one.org/", "c") == Added(1, 0, 1)
    assert ancestors(here, "http://one.org/out") == ["a", "b", "c"]
    assert ancestors(here, "http://two.org/out") == ["a"]


def test_a_prefix_that_is_not_declared_is_part_of_the_name(here: Workspace, tmp_path: Path) -> None:
    imported(here, tmp_path / "p.json", {**PROV, "prefix": {}})
    assert ancestors(here, "ex:report") == ["ex:clean", "ex:prices", "ex:raw", "ex:tidy"]
    assert ancestors(here, "tidy") == ["ex:clean", "ex:raw"]


def test_what_prov_itself_writes_is_read(here: Workspace, tmp_path: Path) -> None:
    document = ProvDocument()
    document.add_namespace("ex", "http://example.org/")
    document.entity("ex:in", {"ex:size": 3})
    document.activity("ex:work")
    document.used("ex:work", "ex:in")
    document.wasGeneratedBy(document.entity("ex:out"), "ex:work")
    imported(here, tmp_path / "p.json", str(document.serialize(format="json")))
    assert ancestors(here, "out") == ["in", "work"]


def test_importing_twice_adds_nothing(here: Workspace, tmp_path: Path) -> None:
    for content in ("source,target\na,b\n", EVENTS, PROV):
        assert imported(here, tmp_path / "f", content) != Added(0, 0, 0)
        assert imported(here, tmp_path / "f", content) == Added(0, 0, 0)


def test_a_later_import_goes_on_where_an_earlier_ended(here: Workspace, tmp_path: Path) -> None:
    imported(here, tmp_path / "f", "source,target\nb,c\n")
    assert imported(here, tmp_path / "f", "source,target\na,b\nc,d\n") == Added(2, 0, 2)
    assert ancestors(here, "d") == ["a", "b", "c"]


BAD = {
    "nothing": ("", "it is empty"),
    "blank": (" \n", "it is empty"),
    "no header": ("a,b\nb,c\n", "an edge list begins with source,target; found 'a,b'"),
    "other header": ("from,to\na,b\n", "begins with source,target"),
    "a column too many": ("source,target\na,b,c\n", "line 2 has 3 columns"),
    "half an edge": ("source,target\na\n", "line 2 has 1 columns"),
    "no name": ("source,target\na,\n", "line 2: a name is a text"),
    "an open quote": ('source,target\n"a,b\n', "not CSV in line"),
    "a long name": (f"source,target\na,{'b' * 3000}\n", "up to 2,000 characters"),
    "a null": ("source,target\na,b\0\n", "a character that no name has|not CSV"),
    "a circle": ("source,target\na,b\nb,c\nc,a\n", "arrows run in a circle: "),
    "a circle of one": ("source,target\na,a\n", "arrows run in a circle: a -> a"),
    "a circle of jobs": ([event("j", "r", ["t"], ["t"])], "run in a circle: .*say which version"),
    "torn JSON": ('{"eventTime": ', "line 1 is not JSON"),
    "a torn line": (json.dumps(EVENTS[0]) + '\n{"run', "line 2 is not JSON"),
    "deep JSON": ("[" * 200_000, "nests too deep|is not JSON"),
    "numbers": ([1, 2], "neither an event nor a document of PROV"),
    "another object": ({"a": 1}, "neither an event nor a document of PROV"),
    "no job": ([{**EVENTS[0], "job": None}], "event 1: job is an object"),
    "a job without a name": ([{**EVENTS[0], "job": {"namespace": "n"}}], "the name of its job"),
    "no namespace": ([{**EVENTS[0], "job": {"name": "n"}}], "its namespace is a text"),
    "no run number": ([{**EVENTS[0], "run": {}}], "runId is a text"),
    "no time": ([{**EVENTS[0], "eventTime": "soon"}], "eventTime is a date and time"),
    "inputs that are none": ([{**EVENTS[0], "inputs": "raw"}], "inputs is an array"),
    "an input that is none": ([{**EVENTS[0], "inputs": ["raw"]}], "one of its inputs is an object"),
    "half a character": ([{**EVENTS[0], "inputs": [{"name": "\ud800"}]}], "that no name has"),
    "prefixes that are none": ({"prefix": ["ex"], "entity": {}}, "prefix is an object"),
    "a prefix for nothing": ({"prefix": {"ex": 1}, "entity": {}}, 'prefix "ex" is a text'),
    "entities that are none": ({"entity": ["ex:a"]}, "entity is an object"),
    "a relation that is none": ({"entity": {}, "used": {"u": 1}}, 'used "u" is an object'),
    "an end that is none": ({"used": {"u": {"prov:entity": 1, "prov:activity": "a"}}}, "a name in"),
    "a circle in PROV": (
        {"wasDerivedFrom": {"a": {"prov:generatedEntity": "e", "prov:usedEntity": "e"}}},
        "run in a circle",
    ),
}  # fmt: skip


def held(history: History) -> list[Any]:
    with history.catalog.reading() as connection:
        return [set(connection.execute(sa.select(t)).all()) for t in (nodes, edges)]


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_wrong_is_refused_and_changes_nothing(
    workspace: Workspace, tmp_path: Path, name: str
) -> None:
    content, hint = BAD[name]
    imported(workspace, tmp_path / "good", "source,target\nx,y\n")
    before = held(History.of(workspace))
    with pytest.raises(Refused, match=hint) as refusal:
        imported(workspace, tmp_path / "bad", content)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 600
    assert held(History.of(workspace)) == before


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content:
        (tmp_path / "f").write_bytes(content)
    with pytest.raises(
        Refused, match=r'cannot import ".*": (No such file|it is not text in UTF-8)'
    ):
        files.read(tmp_path / "f")


def test_a_circle_over_two_imports_is_refused_whole(here: Workspace, tmp_path: Path) -> None:
    imported(here, tmp_path / "f", "source,target\na,b\nb,c\n")
    before = held(History.of(here))
    with pytest.raises(Refused, match=r"run in a circle: .*new.*") as refusal:
        imported(here, tmp_path / "f", "source,target\nfresh,a\nc,new\nnew,a\n")
    assert {"a", "b", "c", "new"} <= set(str(refusal.value).replace(";", " ").split())
    assert held(History.of(here)) == before


def shape(workspace: Workspace) -> list[Any]:
    """A run graph without the numbers that its nodes happen to have."""
    with History.asked_of(workspace).catalog.reading() as connection:
        found = connection.execute(sa.select(nodes)).all()
        told = {n.id: (n.kind, n.namespace, n.name, n.version, n.run, n.step) for n in found}
        tasks = {n: t if t[0] == TASK else (*t[:4], "", "") for n, t in told.items()}
        arrows = connection.execute(sa.select(edges)).all()
        given = connection.execute(sa.text("SELECT node, name, value FROM params")).all()
    return [
        sorted(tasks.values()),
        sorted((tasks[n.id], n.seconds) for n in found if n.kind == TASK and n.seconds is not None),
        sorted((tasks[s], tasks[t]) for s, t in arrows),
        sorted((tasks[n], name, value) for n, name, value in given),
    ]


@pytest.mark.parametrize("name", ["history.jsonl", "history.json"])
def test_what_is_exported_can_be_imported_elsewhere(
    here: Workspace, tmp_path: Path, name: str
) -> None:
    ran(here, {"a": [], "b": ["a"]}, params={"b": {"margin": 2.5, "way": "near", "on": True}})
    ran(here, {"b": ["a"], "c": ["a", "b"]})
    imported(here, tmp_path / "f", "source,target\nx,y z\ny z,ü\nx,ü\n")
    imported(here, tmp_path / "f", EVENTS)
    assert files.write(History.of(here).catalog, tmp_path / name) == 0
    there = Workspace.create(tmp_path / "there")
    imported(there, tmp_path / "copy", (tmp_path / name).read_text())
    assert shape(there) == shape(here)


def with_all_ends(workspace: Workspace) -> dict[str, str]:
    """The names of a run of each ending: finished, failed, interrupted, and none yet."""
    named = {"finished": ran(workspace, {"a": []})}
    with pytest.raises(Failed), History.recorded(workspace, pipeline(), SPARK) as entry:
        step(workspace, entry, "b", [workspace.dataset("a")])
        raise Failed("as it happens")
    with History.of(workspace).catalog.writing() as connection:
        for run in ("interrupted", "running"):
            add_run(connection, "another workspace", run, "", about_now("p", SPARK))
        add_end(connection, "interrupted", "interrupted", at="")
    return {**named, "failed": entry.run, "interrupted": "interrupted", "running": "running"}


def test_events_say_how_and_when_runs_ended(here: Workspace, tmp_path: Path) -> None:
    named = with_all_ends(here)
    files.write(History.of(here).catalog, tmp_path / "h.jsonl")
    told = [json.loads(line) for line in (tmp_path / "h.jsonl").read_text().splitlines()]
    whole = [e for e in told if "pipeline" in e["run"]["facets"]["whence"]]
    assert [e["eventType"] for e in whole] == [
        "START", "COMPLETE", "START", "FAIL", "START", "ABORT", "START",
    ]  # fmt: skip
    assert whole[3]["run"]["facets"]["errorMessage"]["message"] == "as it happens"
    began, ended = (datetime.fromisoformat(e["eventTime"]) for e in whole[:2])
    assert began == datetime.fromisoformat(History.of(here).run(named["finished"]).at) <= ended
    tasks = [e for e in told if e not in whole]
    assert [e["run"]["facets"]["whence"]["seconds"] for e in tasks] == [0.5, 0.5]
    assert {e["run"]["facets"]["parent"]["run"]["runId"] for e in tasks} == {
        e["run"]["runId"] for e in whole[:4]
    }


def test_a_document_says_how_and_when_runs_ended(here: Workspace, tmp_path: Path) -> None:
    named = with_all_ends(here)
    files.write(History.of(here).catalog, tmp_path / "h.json")
    told = json.loads((tmp_path / "h.json").read_text())["activity"]
    for how, run in named.items():
        said = told[f"whence:run/{run}"]
        assert said.get("whence:how", "running") == how
        assert "prov:startTime" in said
        assert ("prov:endTime" in said) == (how in ("finished", "failed"))
    took = [a["whence:seconds"]["$"] for a in told.values() if "whence:step" in a]
    assert took == ["0.5", "0.5"]


@pytest.mark.parametrize("name", ["h.jsonl", "h.json"])
def test_what_a_run_made_before_it_failed_is_imported_as_made(
    here: Workspace, tmp_path: Path, name: str
) -> None:
    with_all_ends(here)
    files.write(History.of(here).catalog, tmp_path / name)
    there = Workspace.create(tmp_path / "there")
    assert imported(there, tmp_path / "copy", (tmp_path / name).read_text()) == Added(2, 2, 3)
    assert shape(there) == shape(here)


def test_what_openlineage_has_no_words_for_is_counted(here: Workspace, tmp_path: Path) -> None:
    told = {"wasInformedBy": {"w": {"prov:informed": "late", "prov:informant": "early"}}}
    imported(here, tmp_path / "f", told)
    catalog = History.of(here).catalog
    assert files.write(catalog, tmp_path / "h.jsonl") == 1
    assert files.write(catalog, tmp_path / "h.json") == 0
    with pytest.raises(Refused, match=r"end it in \.jsonl or \.json, or use --as"):
        files.write(catalog, tmp_path / "h.txt")


def test_an_exported_document_is_one_for_prov(here: Workspace, tmp_path: Path) -> None:
    ran(here, {"a": [], "b": ["a"]})
    files.write(History.of(here).catalog, tmp_path / "h.json")
    document = ProvDocument.deserialize(tmp_path / "h.json", format="json")
    kinds = sorted(type(r).__name__ for r in document.get_records())
    assert kinds == ["ProvActivity"] * 3 + ["ProvEntity"] * 2 + ["ProvGeneration"] * 2 + [
        "ProvUsage"
    ]


@pytest.mark.parametrize("size", [10_000, pytest.param(100_000, marks=pytest.mark.night)])
def test_large_graphs_come_in_within_seconds(here: Workspace, tmp_path: Path, size: int) -> None:
    chance = random.Random(5)
    pairs = {(chance.randrange(n), n) for n in range(1, size) for _ in range(2)}
    lines = "\n".join(f"d{s},d{t}" for s, t in sorted(pairs)[:size])
    began = time.monotonic()
    assert imported(here, tmp_path / "f", f"source,target\n{lines}\n").arrows == size
    assert time.monotonic() - began < 60
    graph = nx.DiGraph(line.split(",") for line in lines.split("\n"))
    name = max(graph, key=lambda n: len(graph.pred[n]))
    assert set(ancestors(here, name)) == nx.ancestors(graph, name)
