"""The history from the command line: questions in words and in JSON, and wrong ones refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from explorer.cli import main
from pipelines.catalog import VERSION, Catalog, catalog
from pipelines.workspace import Workspace
from tests.runs import publish, ran

STEPS: dict[str, list[str]] = {"lows": ["field"], "paths": ["lows"]}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, list[str]]:
    """A workspace with two runs from one source, and their names."""
    workspace = Workspace.create(tmp_path_factory.mktemp("told"))
    publish(workspace, "field", None, "one")
    runs = [ran(workspace, STEPS, params={"lows": {"margin": m}}) for m in (500, 900.5)]
    return workspace, runs


@pytest.fixture
def ask(told: tuple[Workspace, list[str]], capsys: pytest.CaptureFixture[str]) -> Any:
    """Ask a question of it, in JSON or in words."""

    def asked(*arguments: str, words: bool = False) -> Any:
        form = [] if words else ["--json"]
        assert main([*arguments, "-w", str(told[0].path), *form]) == 0
        said = capsys.readouterr().out
        return said if words else json.loads(said)

    return asked


def keys(found: list[dict[str, Any]]) -> list[str]:
    return [f"{each['name']}@{each['version']}" for each in found]


def test_ancestors_and_descendants(ask: Any) -> None:
    found = ask("ancestors", "paths")
    assert found["of"] == "paths" and found["count"] == 2
    assert keys(found["ancestors"]) == ["field@v1", "lows@v2"]
    assert {e["kind"] for e in found["ancestors"]} == {"dataset"}
    assert keys(ask("descendants", "lows@v1")["descendants"]) == ["paths@v1"]
    tasks = ask("ancestors", "paths", "--tasks")["ancestors"]
    assert [e["kind"] for e in tasks].count("task") == 2
    assert ask("ancestors", "paths", "--kind", "task")["count"] == 2
    assert ask("ancestors", "paths", "--name", "f*")["count"] == 1
    assert ask("descendants", "field", "--count") == {"of": "field", "count": 4}


def test_whether_one_is_an_ancestor_of_another(ask: Any) -> None:
    for other, true in (("field", True), ("lows@v1", False), ("paths", False)):
        assert ask("ancestors", "paths", "--is", other)["ancestor"] is true
    assert ask("ancestors", "paths", "--is", "field", words=True) == "yes\n"


def test_affected_by_and_made_with(ask: Any) -> None:
    assert (
        ask("affected-by", "lows")["affected"]
        == ask("affected-by", "lows@v1", "lows@v2")["affected"]
    )
    assert ask("affected-by", "field", "--count")["count"] == 4
    assert ask("affected-by", "field", "lows")["of"] == ["field", "lows"]
    assert keys(ask("made-with", "make_lows", "--directly")["made"]) == ["lows@v1", "lows@v2"]
    assert ask("made-with", "make_lows@1")["count"] == 4
    chosen = ask("made-with", "make_lows", "--param", "margin=900.5")
    assert keys(chosen["made"]) == ["lows@v2", "paths@v2"]
    assert ask("made-with", "make_lows", "--param", "margin=900.5", "--count")["count"] == 2


def test_runs_and_what_is_different(told: tuple[Workspace, list[str]], ask: Any) -> None:
    _, (first, second) = told
    found = ask("runs")
    assert found["count"] == 2
    assert [r["run"] for r in found["runs"]] == [second, first]
    assert ask("runs", "--limit", "1", "--search", "lows")["count"] == 2
    (only,) = ask("compare", first[:8], second)["differences"]
    assert only == {"what": "parameter", "where": "lows.margin", "before": "500", "after": "900.5"}


def test_all_of_it_in_words(told: tuple[Workspace, list[str]], ask: Any) -> None:
    first, second = told[1]
    assert "2 ancestors: paths" in ask("ancestors", "paths", words=True)
    assert ask("descendants", "field", "--count", words=True) == "4\n"
    assert "4 affected: field" in ask("affected-by", "field", words=True)
    assert "0 made: make_lows" in ask("made-with", "make_lows", "--param", "margin=1", words=True)
    assert "2 shown of 2 runs" in ask("runs", words=True)
    assert "lows.margin  500" in ask("compare", first, second, words=True)


def test_what_is_exported_here_is_imported_there(
    ask: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = str(tmp_path / "there")
    for name in ("h.jsonl", "h.json"):
        assert f"wrote {tmp_path / name}" in ask("export", str(tmp_path / name), words=True)
    assert main(["import", str(tmp_path / "h.jsonl"), "-w", there]) == 0
    assert "added 5 datasets, 4 tasks and 8 arrows" in capsys.readouterr().out
    assert main(["import", str(tmp_path / "h.json"), "-w", there, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arrows"] == 0
    assert main(["ancestors", "paths@v1", "-w", there, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["count"] == 2


WRONG = {
    "dataset": (["ancestors", "pahts"], 'no dataset "pahts"'),
    "version": (["descendants", "paths@v9"], 'no dataset "paths@v9"'),
    "other": (["ancestors", "paths", "--is", "x"], 'no dataset "x"'),
    "box": (["made-with", "make_low"], 'did you mean "make_lows"?'),
    "parameter": (["made-with", "make_lows", "--param", "margin"], "is not like margin=1000"),
    "unknown parameter": (
        ["made-with", "make_lows", "--param", "margn=1"],
        'no parameter "margn" of "make_lows" in the history; did you mean "margin"?',
    ),
    "run": (["compare", "zz", "zz"], 'no run begins with "zz"'),
    "one run": (["compare", "zz"], "required: RUN"),
    "file": (["import", "nothing.csv"], 'cannot import "nothing.csv": No such file'),
    "form": (["export", "history.txt"], "end it in .jsonl or .json, or use --as"),
    "nobody": (["affected-by"], "required: NAME"),
    "catalog": (["runs", "--catalog", "mysql://h/d"], "is no catalog"),
    "two kinds": (["ancestors", "paths", "--tasks", "--kind", "task"], "not allowed with"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_question_is_one_line(
    told: tuple[Workspace, list[str]], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    arguments, hint = WRONG[name]
    try:
        code = main([*arguments, "-w", str(told[0].path)])
    except SystemExit as left:
        code = int(left.code or 0)
    said = capsys.readouterr()
    assert code == 2
    assert hint in said.err and said.err.count("\n") == 1
    assert said.out == "" and "unexpected" not in said.err


def test_a_wrong_file_or_a_catalog_that_is_gone_makes_no_workspace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("source,target\na\n", "source,target\na,b\nb,a\n"):
        (tmp_path / "e.csv").write_text(text)
        assert main(["import", str(tmp_path / "e.csv"), "-w", str(tmp_path / "w")]) == 2
        assert not (tmp_path / "w").exists()
    assert "run in a circle" in capsys.readouterr().err
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    gone = ["--catalog", "postgresql+psycopg://me@127.0.0.1:1/nowhere"]
    assert main(["import", str(tmp_path / "e.csv"), "-w", str(tmp_path / "w"), *gone]) == 1
    assert not (tmp_path / "w").exists()


def test_a_newer_catalog_and_one_that_does_not_answer_are_said(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(workspace, {"a": []})
    gone = "postgresql+psycopg://me:secret@127.0.0.1:1/nowhere"
    assert main(["runs", "-w", str(workspace.path), "--catalog", gone]) == 1
    said = capsys.readouterr().err
    assert "does not answer" in said and "secret" not in said and said.count("\n") == 1
    with Catalog(workspace.catalog).writing() as connection:
        connection.execute(sa.update(catalog).values(version=VERSION + 1))
    assert main(["ancestors", "a", "-w", str(workspace.path)]) == 2
    assert f"has version {VERSION + 1}" in capsys.readouterr().err


def test_a_catalog_that_an_option_names_is_asked_and_forgotten(
    workspace: Workspace, catalog_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(Workspace(workspace.path, catalog_url), {"a": []})
    where = ["-w", str(workspace.path), "--json"]
    assert main(["runs", *where, "--catalog", catalog_url]) == 0
    assert json.loads(capsys.readouterr().out)["count"] == 1
    assert main(["runs", *where]) == 2
    assert "name it with --catalog" in capsys.readouterr().err
