"""The journal keeps every run, changes none, and finds what a run that died has left."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pipelines.catalog import tables
from pipelines.comparison import changed_lines, compare
from pipelines.datasets import Dataset, Made
from pipelines.errors import Failed, Refused, SourceChanged
from pipelines.history import History
from pipelines.journal import about_now, add_run
from pipelines.run_graph import Growth, Node
from pipelines.workspace import Workspace
from tests.databases import own_schema
from tests.runs import SPARK, described, pipeline, publish, ran, step

ROOT = Path(__file__).parents[2]
CHAIN: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["a", "b"]}


@pytest.fixture
def here(tmp_path: Path, catalog_url: str) -> Workspace:
    """A workspace whose journal is in another database."""
    return Workspace.create(tmp_path / "w", catalog_url)


def rows(history: History) -> dict[str, set[Any]]:
    """All that a catalog holds, by table."""
    with history.catalog.reading() as connection:
        return {t.name: set(connection.execute(sa.select(t)).all()) for t in tables.sorted_tables}


def arrows(history: History) -> set[tuple[str, str]]:
    """The arrows of the run graph, by the names at their ends."""
    with history.catalog.reading() as connection:
        query = """SELECT s.name || '@' || s.version, t.name || '@' || t.version
                   FROM edges JOIN nodes s ON s.id = source JOIN nodes t ON t.id = target"""
        return {(source, target) for source, target in connection.execute(sa.text(query))}


def test_a_run_is_remembered_with_all_there_is_to_say(here: Workspace) -> None:
    run = ran(here, CHAIN, params={"b": {"margin": 1000.0, "on": True}}, versions={"b": "7"})
    ((found,), total) = History.asked_of(here).runs()
    assert (found.run, found.how, found.pipeline, total) == (run, "finished", "p", 1)
    assert found.who and found.host and found.at.endswith("+00:00")
    assert (found.master, found.spark) == ("nowhere", "0")
    assert found.made == (("a", "v1"), ("b", "v1"), ("c", "v1"))
    assert found.seconds is not None
    history = History.asked_of(here)
    assert history.text_of(run) == pipeline().text
    assert history.text_of("nothing") is None
    assert arrows(history) == {
        ("make_a@1", "a@v1"), ("a@v1", "make_b@7"), ("make_b@7", "b@v1"),
        ("a@v1", "make_c@1"), ("b@v1", "make_c@1"), ("make_c@1", "c@v1"),
    }  # fmt: skip
    stored = rows(history)
    assert {(p.name, p.value) for p in stored["params"]} == {("margin", "1000"), ("on", "true")}
    datasets = [n for n in stored["nodes"] if n.kind == "dataset"]
    assert all(len(n.fingerprint) == 32 for n in datasets)


def asked(history: History, query: str) -> list[tuple[Any, ...]]:
    """What SQL answers."""
    with history.catalog.reading() as connection:
        return [tuple(row) for row in connection.execute(sa.text(query))]


def test_the_views_tell_of_runs_and_of_what_made_what(here: Workspace) -> None:
    run = ran(here, CHAIN, versions={"b": "7"})
    with pytest.raises(Failed), History.recorded(here, pipeline("q"), SPARK, part="a: n > 1"):
        raise Failed("as it happens")
    history = History.asked_of(here)
    assert asked(history, "SELECT pipeline, part, how, why FROM history ORDER BY id") == [
        ("p", "", "finished", ""),
        ("q", "a: n > 1", "failed", "as it happens"),
    ]
    assert asked(history, "SELECT run FROM history WHERE ended >= at AND seconds >= 0") != []
    columns = "name, version, box, box_version, run, step, seconds"
    assert asked(history, f"SELECT {columns} FROM made_with ORDER BY id") == [
        ("a", "v1", "make_a", "1", run, "a", 0.5),
        ("b", "v1", "make_b", "7", run, "b", 0.5),
        ("c", "v1", "make_c", "1", run, "c", 0.5),
    ]
    columns = "name, version, box, used_name, used_version"
    assert asked(history, f"SELECT {columns} FROM made_from ORDER BY id, used_id") == [
        ("b", "v1", "make_b", "a", "v1"),
        ("c", "v1", "make_c", "a", "v1"),
        ("c", "v1", "make_c", "b", "v1"),
    ]


def test_arrows_lead_from_lower_numbers_to_higher(here: Workspace) -> None:
    for _ in range(3):
        ran(here, CHAIN)
    assert all(e.source < e.target for e in rows(History.of(here))["edges"])


def test_nothing_that_was_written_is_ever_changed(here: Workspace) -> None:
    before: dict[str, set[Any]] = {}
    for number in range(3):
        ran(here, CHAIN, name=f"p{number}")
        with pytest.raises(Failed), History.recorded(here, pipeline(), SPARK):
            raise Failed("as it happens")
        after = rows(History.asked_of(here))
        assert all(after[table] >= kept for table, kept in before.items())
        before = after
    assert len(before["runs"]) == len(before["ends"]) == 6


def test_a_run_that_fails_says_why_and_what_it_had_made(here: Workspace) -> None:
    with pytest.raises(Failed), History.recorded(here, pipeline(), SPARK) as entry:
        step(here, entry, "a")
        raise Failed('box "b" has no data')
    ((found,), _) = History.asked_of(here).runs()
    assert (found.how, found.why, found.made) == ("failed", 'box "b" has no data', (("a", "v1"),))


def test_a_run_is_running_until_it_ends(here: Workspace) -> None:
    with History.recorded(here, pipeline(), SPARK) as entry:
        step(here, entry, "a")
        ((found,), _) = History.asked_of(here).runs()
        assert (found.how, found.made) == ("running", ())
    ((found,), _) = History.asked_of(here).runs()
    assert (found.how, found.made) == ("finished", (("a", "v1"),))


DYING = """
import os, signal, sys
from pipelines.history import History
from pipelines.workspace import Workspace
from tests.databases import own_schema
from tests.runs import SPARK, pipeline, step
here = Workspace(sys.argv[1], sys.argv[2])
with History.recorded(here, pipeline(), SPARK) as entry:
    one = step(here, entry, "a")
    step(here, entry, "b", [one])
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_whose_process_died_is_interrupted_and_what_it_published_is_known(
    here: Workspace, catalog_url: str
) -> None:
    command = [sys.executable, "-c", DYING, str(here.path), catalog_url]
    assert subprocess.run(command, cwd=ROOT).returncode == -9
    history = History.asked_of(here)
    ((found,), _) = history.runs()
    assert (found.how, found.made) == ("interrupted", (("a", "v1"), ("b", "v1")))
    assert ("a@v1", "make_b@1") in arrows(history)
    known = rows(history)
    ran(here, CHAIN)
    after = rows(History.asked_of(here))
    assert all(after[table] >= kept for table, kept in known.items())
    assert not list((here.path / "running").iterdir())


def test_what_a_run_that_died_left_is_known_to_whoever_asks_after_other_runs(
    here: Workspace, catalog_url: str
) -> None:
    command = [sys.executable, "-c", DYING, str(here.path), catalog_url]
    ran(here, {"z": []})
    assert subprocess.run(command, cwd=ROOT).returncode == -9
    ran(here, CHAIN)
    ran(here, {"y": ["b"]})
    shutil.rmtree(here.path / "datasets" / "a" / "v2")
    history = History.asked_of(here)
    assert [run.how for run in history.runs()[0]] == [
        "finished",
        "finished",
        "interrupted",
        "finished",
    ]
    assert history.runs()[0][2].made == (("a", "v1"), ("b", "v1"))
    assert {("a@v1", "make_b@1"), ("a@v2", "make_b@1"), ("b@v2", "make_y@1")} <= arrows(history)
    assert all(e.source < e.target for e in rows(history)["edges"])


def test_a_run_that_uses_what_a_dead_one_made_finds_out_how(
    here: Workspace, catalog_url: str
) -> None:
    ran(here, {"z": []})
    command = [sys.executable, "-c", DYING, str(here.path), catalog_url]
    assert subprocess.run(command, cwd=ROOT).returncode == -9
    ran(here, {"y": ["b"]})
    history = History.as_it_is(here)
    assert history is not None
    assert {("a@v1", "make_b@1"), ("make_b@1", "b@v1"), ("b@v1", "make_y@1")} <= arrows(history)


def test_a_version_that_is_made_again_under_its_old_number_has_its_own_ancestors(
    here: Workspace,
) -> None:
    ran(here, {"a": [], "b": ["a"]})
    shutil.rmtree(here.path / "datasets" / "b")
    ran(here, {"c": []})
    ran(here, {"b": ["c"]})
    stored = rows(History.asked_of(here))
    again = sorted(n.id for n in stored["nodes"] if (n.name, n.version) == ("b", "v1"))
    assert len(again) == 2
    assert ("c@v1", "make_b@1") in arrows(History.asked_of(here))


def test_a_source_that_has_not_changed_is_one_node(here: Workspace) -> None:
    for text in ("one", "one", "two"):
        source = described("field", None, str(here.path), text)
        named = partial(lambda field: {"field": here.named(field)}, source)
        with History.recorded(here, pipeline(), SPARK, named) as entry:
            step(here, entry, "b", [entry.sources()["field"]])
    sources = [n for n in rows(History.of(here))["nodes"] if n.name == "field"]
    assert sorted((n.version, n.fingerprint) for n in sources) == [("v1", "one"), ("v2", "two")]


def test_a_run_whose_source_cannot_be_named_has_failed_and_says_why(here: Workspace) -> None:
    def changed() -> dict[str, Dataset]:
        raise SourceChanged('source "field" changed while it was read')

    with pytest.raises(SourceChanged), History.recorded(here, pipeline(), SPARK, changed) as entry:
        step(here, entry, "a")
    ((found,), _) = History.asked_of(here).runs()
    assert (found.how, found.made) == ("failed", ()) and "changed while" in found.why
    assert here.names() == []


def test_runs_are_found_by_what_they_mention(here: Workspace) -> None:
    first = ran(here, {"tracks": []}, name="storms")
    second = ran(here, {"land": ["tracks"]}, name="cover")
    history = History.asked_of(here)
    for text, runs in {
        "STORM": [first], "tracks": [first], "make_land": [second], "finished": [second, first],
        "%": [], "": [second, first], second[:6]: [second],
    }.items():  # fmt: skip
        assert [r.run for r in history.runs(text)[0]] == runs
    assert history.runs(most=1)[1] == 2
    assert history.run(first[:7]).run == first
    for named in ("zz", ""):
        with pytest.raises(Refused, match="no run begins with"):
            history.run(named)


def test_two_runs_are_compared_by_code_parameters_and_inputs(here: Workspace) -> None:
    publish(here, "field", None, "one")
    steps = {"b": ["field"], "c": ["b"]}
    first = ran(here, steps, params={"b": {"margin": 1, "kept": "x"}})
    again = ran(here, steps, params={"b": {"margin": 1.0, "kept": "x"}})
    publish(here, "field", None, "two")
    other = ran(here, {**steps, "d": []}, params={"b": {"margin": 2, "kept": "x"}},
                versions={"c": "2"}, name="q")  # fmt: skip
    history = History.asked_of(here)
    assert compare(history, first, again) == []
    assert changed_lines(history, first, again) == []
    found = {(d.what, d.where, d.before, d.after) for d in compare(history, first[:6], other)}
    assert found == {
        ("code", "c", "make_c 1", "make_c 2"),
        ("code", "d", "", "make_d 1"),
        ("parameter", "b.margin", "1", "2"),
        ("input", "field", "content one", "content two"),
        ("place", "pipeline", "p", "q"),
    }
    assert changed_lines(history, first, other) == ["-name: p", "+name: q"]


def test_runs_that_used_other_versions_beside_a_common_one_are_told_apart(here: Workspace) -> None:
    fields = [publish(here, "field", None, text) for text in ("one", "two", "three")]

    def merged(*used: Dataset) -> str:
        with History.recorded(here, pipeline(), SPARK) as entry:
            step(here, entry, "b", used)
        return entry.run

    first, second = merged(fields[0], fields[2]), merged(fields[1], fields[2])
    (only,) = compare(History.asked_of(here), first, second)
    assert (only.before, only.after) == (
        "content one, content three",
        "content three, content two",
    )


def test_an_input_whose_content_is_known_once_is_told_by_its_version(here: Workspace) -> None:
    publish(here, "field", None, "one")
    known = ran(here, {"b": ["field"]})
    history = History.asked_of(here)
    with history.catalog.writing() as connection:
        growth = Growth(connection)
        for run, version in (("same", "v1"), ("other", "v2")):
            add_run(connection, history.namespace, run, pipeline().text, about_now("p", SPARK))
            field = growth.add(Node("dataset", "field", version, history.namespace))
            growth.arrow(field, growth.add(Node("task", "make_b", "1", run=run, step="b")))
        growth.write()
    assert compare(history, known, "same") == []
    (only,) = compare(history, known, "other")
    assert (only.what, only.before, only.after) == ("input", "v1", "v2")


def test_workspaces_share_a_catalog_and_are_told_apart(tmp_path: Path, catalog_url: str) -> None:
    both = [Workspace.create(tmp_path / name, catalog_url) for name in "vw"]
    one, other = (ran(each, {"a": []}, name=each.path.name) for each in both)
    assert len({w.namespace for w in both}) == 2
    for workspace, run in zip(both, (one, other), strict=True):
        history = History.asked_of(workspace)
        assert history.runs()[1] == 2
        assert history.latest_texts() == [history.text_of(run)]
    assert {s.path for s in rows(History.of(both[0]))["spaces"]} == {str(w.path) for w in both}


def test_a_workspace_whose_journal_is_elsewhere_says_so(here: Workspace) -> None:
    ran(here, {"a": []})
    with pytest.raises(Refused, match=r"kept in the catalog .* name it with --catalog"):
        History.asked_of(Workspace(here.path))
    assert not here.own_catalog.exists()


def test_the_catalog_may_be_named_in_the_environment(
    workspace: Workspace, catalog_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHENCE_CATALOG", catalog_url)
    named = Workspace(workspace.path)
    ran(named, {"a": []})
    assert History.asked_of(Workspace(workspace.path)).runs()[1] == 1
    assert not workspace.own_catalog.exists()


def test_asking_a_workspace_without_runs_writes_nothing(workspace: Workspace) -> None:
    before = sorted(p.name for p in workspace.path.rglob("*"))
    assert History.asked_of(workspace).runs() == ([], 0)
    assert sorted(p.name for p in workspace.path.rglob("*")) == before


LINES: list[dict[str, Any]] = [
    {"event": "started", "run": "r1", "pipeline": "old", "text": "name: old", "master": "local",
     "version": "4.1", "pid": 1, "at": "2025-01-01T00:00:00+00:00"},
    {"event": "finished", "run": "r1", "made": {"a": "v1"}, "seconds": 2.5, "at": "2025-01-02"},
    {"event": "started", "run": "r2", "pipeline": "old", "text": "name: older"},
    {"event": "failed", "run": "r2", "why": "no data"},
    {"event": "started", "run": "r3", "pipeline": "old", "text": None},
]  # fmt: skip


def as_of_old(workspace: Workspace) -> None:
    """Make a workspace look as earlier versions left it."""
    publish(workspace, "a", Made("make_a", "a", {"n": 1}, {}, "r1"))
    publish(workspace, "b", Made("make_b", "b", {}, {"p": ("a", "v1")}, "r1"))
    lines = [json.dumps(line) for line in LINES]
    text = "\n".join([*lines, "[1, 2]", '{"event": "sta'])
    (workspace.path / "history.jsonl").write_text(text)


def test_what_an_earlier_version_wrote_is_taken_over_once(here: Workspace) -> None:
    as_of_old(here)
    for _ in range(2):
        found, total = History.of(here).runs()
        assert total == 3
    told = {r.run: (r.how, r.why, r.seconds, r.pipeline) for r in found}
    assert told["r1"] == ("finished", "", 2.5, "old")
    assert told["r2"] == ("failed", "no data", None, "old")
    assert told["r3"][0] == "interrupted"
    history = History.asked_of(here)
    assert history.text_of("r1") == "name: old"
    assert history.latest_texts()[1:] == ["name: older", "name: old"]
    assert ("a@v1", "make_b@1") in arrows(history)
    ran(here, CHAIN)
    assert History.asked_of(here).runs()[1] == 4


def test_an_earlier_versions_journal_is_read_without_writing(workspace: Workspace) -> None:
    as_of_old(workspace)
    before = {p: p.stat().st_mtime_ns for p in workspace.path.rglob("*")}
    history = History.asked_of(workspace)
    assert history.runs()[1] == 3
    assert ("a@v1", "make_b@1") in arrows(history)
    assert {p: p.stat().st_mtime_ns for p in workspace.path.rglob("*")} == before


def test_a_catalog_that_does_not_answer_stops_a_run_before_it_starts(
    workspace: Workspace,
) -> None:
    gone = Workspace(workspace.path, "postgresql+psycopg://nobody@127.0.0.1:1/nowhere")
    with pytest.raises(Failed, match="does not answer"):
        ran(gone, {"a": []})
    assert workspace.names() == []
    assert workspace.namespace == ""


END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname IS NOT NULL
"""


@contextmanager
def acting(postgres: str) -> Iterator[sa.Connection]:
    """A connection of somebody else, who may do anything."""
    engine = sa.create_engine(postgres)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def test_a_database_that_was_away_during_a_run_is_no_matter(tmp_path: Path, postgres: str) -> None:
    here = Workspace.create(tmp_path / "w", own_schema(postgres))
    with History.recorded(here, pipeline(), SPARK) as entry:
        step(here, entry, "a")
        with acting(postgres) as anyone:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            anyone.execute(
                sa.text(f"{others} WHERE pid <> pg_backend_pid() AND datname IS NOT NULL")
            )
    ((found,), _) = History.asked_of(here).runs()
    assert (found.how, found.made) == ("finished", (("a", "v1"),))


def test_a_database_that_is_away_at_the_end_fails_the_run_and_loses_no_dataset(
    tmp_path: Path, postgres: str
) -> None:
    url = own_schema(postgres)
    here, schema = Workspace.create(tmp_path / "w", url), url.rpartition("%3D")[2]
    failing = pytest.raises(Failed, match=r"does not answer: .*what the run made is published")
    with failing, History.recorded(here, pipeline(), SPARK) as entry:
        step(here, entry, "b", [step(here, entry, "a")])
        with acting(postgres) as anyone:
            anyone.execute(sa.text(f"DROP SCHEMA {schema} CASCADE"))
    assert here.names() == ["a", "b"]
    with acting(postgres) as anyone:
        anyone.execute(sa.text(f"CREATE SCHEMA {schema}"))
    assert ("a@v1", "make_b@1") in arrows(History.asked_of(here))
