"""A wrong request ends in one line that says what would do; it writes nothing and loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.workspace import Workspace
from tests.faults.publisher import publish
from tests.stories.asked import LITTLE, Ask, Said, assert_refused, contents

ROOT = Path(__file__).parents[2]

LOOKS = {
    "dataset": (
        ["trace", "trakcs"],
        ['no dataset "trakcs"', 'did you mean "tracks"?', "datasets: agcm, mine, minima, tracks"],
    ),
    "dataset to plan": (["plan", "trakcs"], ['did you mean "tracks"?']),
    "dataset to show": (["show", "../agcm"], ['no dataset "../agcm"']),
    "column": (
        ["trace", "tracks", "--where", "trak = 1"],
        ['no column "trak"', 'did you mean "track"?'],
    ),
    "column to show": (["show", "minima", "--where", "presure < 1"], ['did you mean "pressure"?']),
    "attribute": (
        ["trace", "tracks", "--attribute", "lokation"],
        ['no attribute "lokation" in "tracks"', 'did you mean "location"?'],
    ),
    "wish": (["trace", "tracks", "--want", "exactly"], ["'exact', 'complete', 'pure'"]),
    "wish of a dataset": (["plan", "tracks", "--want", "agcm=exactly"], ["'agcm=exactly' is no"]),
    "wish of nothing": (["trace", "tracks", "--want", "=pure"], ["'=pure' is no wish"]),
    "wish of another": (
        ["trace", "tracks", "--want", "pure", "--want", "agmc=complete"],
        ['no dataset "agmc" behind "tracks"', 'did you mean "agcm"?', "datasets: agcm, minima"],
    ),
    "two wishes": (
        ["trace", "tracks", "--want", "pure", "--want", "complete"],
        ["two wishes for all that is not named, pure and complete; say one"],
    ),
    "two wishes of a dataset": (
        ["plan", "tracks", "--want", "agcm=pure", "--want", "agcm=exact"],
        ['two wishes for "agcm", pure and exact'],
    ),
    "wish of what is after": (["plan", "minima", "--want", "tracks=pure"], ['behind "minima"']),
    "wish of impact": (["impact", "agcm", "--want", "tracks=pure"], ["'exact', 'complete'"]),
    "command": (["traec", "tracks"], ["invalid choice: 'traec'", "'trace'"]),
    "no command": ([], ["required: COMMAND"]),
    "option": (["trace", "tracks", "--wher", "lat > 1", "--lmit", "3"], ["--lmit"]),
    "nothing selected": (
        ["trace", "tracks", "--where", "lat > 999"],
        ['nothing in "tracks" is selected by --where "lat > 999"'],
    ),
    "a number that is stored in fewer bytes": (
        ["trace", "minima", "--where", "pressure > 0 and lat = 30.0000001"],
        ['by --where "pressure > 0 and lat = 30.0000001"; did you mean lat = 30.0?'],
    ),
    "empty predicate": (["trace", "tracks", "--where", " "], ["leave it out"]),
    "no predicate": (["trace", "tracks", "--where", "lat >"], ["is not a predicate, like: time ="]),
    "time without quotes": (
        ["trace", "tracks", "--where", "time = 2000-01-16"],
        ["cannot use -", "a time is written in quotes, like '2000-01-16'"],
    ),
    "function": (["trace", "tracks", "--where", "abs(lat) > 1"], ["cannot use abs(lat)"]),
    "file": (["trace", "tracks", "--where", "input_file('/etc/passwd') = 1"], ["cannot use input"]),
    "subselect": (
        ["trace", "tracks", "--where", "track in (select track from tracks)"],
        ["cannot use select", "compares columns with constants"],
    ),
    "statement": (["trace", "tracks", "--where", "lat > 1; drop table tracks"], ["cannot use ;"]),
    "code": (
        ["show", "tracks", "--where", "__import__('os').system('touch here') = 0"],
        ["cannot use __import__('os')"],
    ),
    "escapes": (["show", "tracks", "--where", "lat > '\x1b[31m\n'"], [r"'\x1b[31m\n'"]),
    "a year for a time": (["trace", "tracks", "--where", "time > 2000"], ["2000 is not a value"]),
    "a value of an array": (["trace", "agcm", "--where", "slp < 9"], ["one of time, lat, lon"]),
    "or in an array": (["trace", "agcm", "--where", "lat = 0 or lon = 0"], ["joined by and"]),
    "cells of nowhere": (["trace", "agcm", "--where", "lat = 999"], ['nothing in "agcm"']),
    "export suffix": (
        ["trace", "tracks", "--export", "cells.xlsx"],
        ['cannot export to "cells.xlsx"', ".csv, .parquet, .nc, .zarr"],
    ),
    "export without one": (["trace", "tracks", "--export", "cells"], ["its name may end in"]),
    "export nowhere": (["trace", "tracks", "--export", "no/cells.csv"], ["no directory"]),
    "boxes module": (
        ["trace", "tracks", "--boxes", "no_such_boxes"],
        ['no module "no_such_boxes"', "PYTHONPATH"],
    ),
    "box to list": (["boxes", "threshhold"], ['no box "threshhold"', 'mean "threshold"?']),
    "no trials": (["check", "threshold", "--trials", "0"], ["'0' is not a whole number from 1 up"]),
    "boxes module to list": (["boxes", "--boxes", "no.such.boxes"], ['no module "no.such.boxes"']),
    "boxes without name": (["boxes", "--boxes", ""], ['no module ""']),
    "boxes by path": (["boxes", "--boxes", "./own.py"], ['no module "./own.py"']),
    "box of another module": (
        ["trace", "mine"],
        ['box "own_minima" is not known', "--boxes MODULE"],
    ),
    "limit": (["trace", "tracks", "--limit-bytes", "8GB"], ["'8GB' is not a whole number"]),
    "negative limit": (["show", "tracks", "--limit", "-1"], ["'-1' is not a whole number"]),
    "endless limit": (["trace", "tracks", "--limit-seconds", "nan"], ["not a number of seconds"]),
    "bytes": (
        ["trace", "tracks", "--limit-bytes", "10"],
        ["would read", "MiB, over the limit of", "raise --limit-bytes"],
    ),
    "cells": (
        ["trace", "tracks", "--limit-cells", "8"],
        ["would find up to", "cells, over the limit of 8", "raise --limit-cells"],
    ),
    "seconds": (
        ["trace", "tracks", "--limit-seconds", "0.5"],
        ["would take about", "raise --limit-seconds"],
    ),
    "price of a plan": (["plan", "tracks", "--limit-bytes", "10"], ["over the limit of"]),
}


@pytest.mark.parametrize(("request_", "parts"), LOOKS.values(), ids=LOOKS.keys())
def test_a_wrong_question_is_refused(
    ask: Ask,
    little: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request_: list[str],
    parts: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("explorer.commands.session", lambda *_: pytest.fail("Spark was started"))
    before = contents(little.path)
    workspace = (
        ["-w", str(little.path)] if request_ and request_[0] not in ("boxes", "check") else []
    )
    assert_refused(ask(*request_, *workspace), 2, *parts)
    assert contents(little.path) == before
    assert contents(tmp_path) == {}


def pipeline(text: str) -> str:
    return f"name: p\nboxes: {{agcm: {{box: simulate_agcm}}, {text}}}\n"


RUNS = {
    "box": (pipeline("m: {box: extract_minimum}"), ['no box "extract_minimum"', "extract_minima"]),
    "dataset": (
        pipeline("m: {box: extract_minima, inputs: {field: acgm}}"),
        ['no dataset "acgm" for box "m"', 'did you mean "agcm"?'],
    ),
    "port": (
        pipeline("m: {box: extract_minima, inputs: {feild: agcm}}"),
        ['no port "feild" at box "m" (extract_minima)', 'did you mean "field"?'],
    ),
    "nothing at a port": (
        pipeline("m: {box: extract_minima}"),
        ['box "m" (extract_minima) has nothing at its port "field"'],
    ),
    "arrow of another kind": (
        pipeline("t: {box: identify_tracks, inputs: {minima: agcm}}"),
        ['port "minima" of box "t" takes a table, "agcm" is an array'],
    ),
    "parameter": (
        pipeline("m: {box: extract_minima, inputs: {field: agcm}, params: {margins: 1}}"),
        ['no parameter "margins" of box "extract_minima"', 'did you mean "margin"?'],
    ),
    "parameter out of bounds": (
        "name: p\nboxes: {agcm: {box: simulate_agcm, params: {resolution: 0.001}}}",
        ["resolution is 0.001; it may be", "0.05", "30"],
    ),
    "parameter of another type": (
        "name: p\nboxes: {agcm: {box: simulate_agcm, params: {days: many}}}",
        ["days is 'many', not a float"],
    ),
    "parameter without end": (
        "name: p\nboxes: {agcm: {box: simulate_agcm, params: {days: .inf}}}",
        ["days is inf, not a float"],
    ),
    "variable": (
        pipeline("warm: {box: threshold, inputs: {field: agcm}, params: {variable: sst}}"),
        ['warm: no variable "sst" for box "threshold" (variables: slp, u10, v10)'],
    ),
    "column": (
        pipeline(
            "m: {box: extract_minima, inputs: {field: agcm}},"
            "deep: {box: filter_rows, inputs: {rows: m}, params: {where: depth > 3}}"
        ),
        ['deep: no column "depth" for box "filter_rows" (columns: ', "pressure"],
    ),
    "circle": (
        pipeline(
            "a: {box: identify_tracks, inputs: {minima: b}},"
            "b: {box: identify_tracks, inputs: {minima: a}}"
        ),
        ["the arrows run in a circle: ", " -> "],
    ),
    "no boxes": ("name: p\n", ['pipeline "p" has no boxes']),
    "no name": ("boxes: {agcm: {box: simulate_agcm}}", ["needs a name"]),
    "key": ("name: p\nboxs: {}\n", ['no key "boxs"', 'did you mean "boxes"?']),
    "not YAML": ("name: [p\n", ["the pipeline is not YAML"]),
    "a source and a box": (
        "name: p\nsources: {a: {path: x.nc}}\nboxes: {a: {box: simulate_agcm}}",
        ['"a" is both a source and a box'],
    ),
    "kind of source": (
        "name: p\nsources: {a: {path: x.csv, kind: list}}\nboxes: {b: {box: simulate_agcm}}",
        ["a source is an array or a table"],
    ),
}


@pytest.mark.parametrize(("text", "parts"), RUNS.values(), ids=RUNS.keys())
def test_a_wrong_pipeline_is_refused(
    ask: Ask,
    copied: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    parts: list[str],
) -> None:
    monkeypatch.setattr("explorer.commands.session", lambda *_: pytest.fail("Spark was started"))
    (tmp_path / "p.yaml").write_text(text)
    before = contents(tmp_path)
    assert_refused(ask("run", tmp_path / "p.yaml", "-w", copied.path), 2, *parts)
    assert_refused(ask("run", tmp_path / "p.yaml", "-w", tmp_path / "new"), 2, *parts)
    assert contents(tmp_path) == before


def test_an_empty_dataset_has_nothing_to_select(ask: Ask, workspace: Workspace) -> None:
    publish(workspace, "empty")
    said = ask("trace", "d", "-w", workspace.path)
    assert_refused(said, 2, 'nothing in "d" is there to be selected')


def test_a_workspace_that_is_not_there_is_not_made_by_asking(ask: Ask, tmp_path: Path) -> None:
    for command in (["trace", "tracks"], ["plan", "tracks"], ["datasets"], ["show", "tracks"]):
        assert_refused(ask(*command, "-w", tmp_path / "gone"), 2, "no workspace at", "whence run")
    assert contents(tmp_path) == {}


def test_a_pipeline_that_is_not_there_makes_no_workspace(ask: Ask, tmp_path: Path) -> None:
    found = {"gone.yaml": "no file at", ".": "no pipeline can be read from"}
    for name, why in found.items():
        said = ask("run", tmp_path / name, "-w", tmp_path / "new")
        assert_refused(said, 2, why, "YAML file")
    assert contents(tmp_path) == {}


REAL = {
    "dataset": (["trace", "trakcs"], 2, 'did you mean "tracks"?'),
    "code": (["show", "tracks", "--where", "open('/etc/passwd') = 1"], 2, "cannot use open("),
    "bytes": (["trace", "tracks", "--limit-bytes", "10"], 2, "over the limit of"),
    "arguments": (["show", "--limit"], 2, "expected one argument"),
    "not UTF-8": (["show", b"tr\xff"], 2, r"tr\udcff"),
}


@pytest.mark.parametrize(("request_", "code", "part"), REAL.values(), ids=REAL.keys())
def test_a_real_command_says_one_line_too(
    little: Workspace, request_: list[str | bytes], code: int, part: str
) -> None:
    before = contents(little.path)
    command = [sys.executable, "-m", "explorer", *request_, "-w", str(little.path)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert_refused(Said(ended.returncode, ended.stdout, ended.stderr), code, part)
    assert contents(little.path) == before


def test_a_spark_that_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(LITTLE)
    command = ["-m", "explorer", "run", "p.yaml", "-w", "new", "--master", "spark:/nowhere"]
    ended = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert_refused(Said(ended.returncode, ended.stdout, ended.stderr), 1, "Spark did not start on")
    assert [p.name for p in tmp_path.iterdir()] == ["p.yaml"]


def test_json_stays_empty_when_there_is_nothing_to_say(ask: Ask, little: Workspace) -> None:
    said = ask("trace", "trakcs", "--json", "-w", little.path)
    assert_refused(said, 2, "trakcs")
    assert json.loads(ask("datasets", "--json", "-w", little.path).out)[0]["name"] == "agcm"
