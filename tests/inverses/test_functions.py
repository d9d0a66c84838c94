"""What authors state of functions is tested, and prunes what runs and traces read."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from explorer.cli import main
from inverses.functions import check_function
from inverses.partial import run_only
from inverses.registry import Registry
from inverses.trace import trace
from pipelines.datasets import Made, Table
from pipelines.errors import Refused
from pipelines.functions import Function, function, functions_in
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import matching
from pipelines.workspace import Workspace
from tests.inverses import taxes

HERE = cast(SparkSession, Here(2))
TAXES = ("--boxes", "tests.inverses.taxes")
TEXT = """
name: taxes
sources: {{staff: {{path: staff.parquet, kind: table}}}}
boxes:
  taxed: {{box: map_rows, inputs: {{rows: staff}}, params: {{column: due, formula: {formula}}},
          keep: {keep}}}
  told: {{box: project, inputs: {{rows: taxed}}, params: {{columns: "age, due"}}}}
"""


@pytest.mark.parametrize("name", functions_in([taxes]))
def test_what_is_true_of_a_function_holds(name: str) -> None:
    found = check_function(functions_in([taxes])[name], 20)
    assert [f.counterexample for f in found if not f.holds] == []
    assert {f.law for f in found} >= {"alone"}
    assert all(f.trials > 10 for f in found)


def registered(does: Callable[..., Any], **stated: Any) -> Function:
    """A function as its author registers it, under a name of its own."""
    does.__name__ = "mine"
    held = ModuleType("authors")
    vars(held).update(mine=function(**stated)(does))
    return functions_in([held])["mine"]


UNTRUE: dict[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "falls a little": (
        lambda x: np.where(x < 50_000, 0.42 * x, 0.4 * x),
        {"rises": True},
        "rises",
    ),
    "rises": (lambda x: 0.42 * x, {"falls": True}, "falls"),
    "goes up and down": (lambda x: np.sin(x), {"rises": True}, "rises"),
    "is missing below": (lambda x: np.log(x), {"rises": True}, "rises"),
    "falls outside": (lambda x: np.square(x), {"rises": True, "within": (-1.0, inf)}, "rises"),
    "is wider": (lambda x: 2 * np.sin(x), {"bounds": lambda x: (-1.9, 1.9)}, "bounds"),
    "is wide in between": (
        lambda x: np.sin(x) + np.where(x < 50, 0, x),
        {"bounds": lambda x: (-1.5, 1.5) if x[1] < 50 else (x[0] - 1.5, x[1] + 1.5)},
        "bounds",
    ),
    "of two is wider": (
        lambda a, b: np.hypot(a, b),
        {"bounds": lambda a, b: (0, 1.1 * max(map(abs, (*a, *b))))},
        "bounds",
    ),
    "is missing within bounds": (
        lambda x: np.sqrt(x),
        {"bounds": lambda x: (0, max(x[1], 0))},
        "bounds",
    ),
    "comes from elsewhere": (
        lambda x: 0.42 * x - 8000,
        {"back": lambda due: (due[0] / 0.42, due[1] / 0.42)},
        "back",
    ),
    "looks around": (lambda x: x - x.mean(), {}, "alone"),
    "looks back": (lambda x: np.cumsum(x), {}, "alone"),
}


@pytest.mark.parametrize("case", UNTRUE)
def test_a_function_that_is_not_as_stated_is_caught(case: str) -> None:
    does, stated, law = UNTRUE[case]
    found = {f.law: f for f in check_function(registered(does, **stated), 60)}
    assert not found[law].holds
    assert "mine(" in str(found[law].counterexample)


def broken_ends(x: Any) -> Any:
    raise LookupError("no such ends")


@pytest.mark.parametrize(
    "does, stated, says",
    [
        (lambda x: x[1:], {}, {"alone": "made float64 of shape (399,) of 400 values"}),
        (lambda x: x, {"bounds": broken_ends}, {"bounds": "no such ends", "back": "no such ends"}),
        (lambda x: x, {"back": lambda ends: ends[0]}, {"back": "not two ends"}),
    ],
)
def test_a_function_that_ends_in_an_error_holds_nothing(
    does: Any, stated: dict[str, Any], says: dict[str, str]
) -> None:
    broken = {f.law: f for f in check_function(registered(does, **stated), 20) if not f.holds}
    assert broken.keys() == says.keys()
    assert all(text in str(broken[law].counterexample) for law, text in says.items())


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> str:
    """A module whose author takes a tax that dips for one that rises."""
    held = ModuleType("planted")

    @function(rises=True)
    def dips(salary: Any) -> Any:
        return np.where(salary < 50_000, 0.42 * salary, 0.4 * salary)

    vars(held).update(dips=dips)
    monkeypatch.setitem(sys.modules, "planted", held)
    return "planted"


def test_check_tells_of_functions_as_it_does_of_boxes(
    planted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "dips", "--boxes", planted, "--json"]) == 1
    found = {each["law"]: each for each in json.loads(capsys.readouterr().out)}
    assert {*found} == {"alone", "rises", "back"}
    assert {*found["rises"]} == {"box", "inverse", "law", "trials", "holds", "counterexample"}
    assert (found["rises"]["box"], found["rises"]["holds"]) == ("function dips", False)
    assert main(["check", "tax", *TAXES, "--trials", "20"]) == 0
    assert "function tax: pushed back, rises: holds in 63 trials" in capsys.readouterr().out
    assert main(["check", "taxx", *TAXES]) == 2
    assert 'did you mean "tax"?' in capsys.readouterr().err


def test_functions_are_listed_with_the_boxes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boxes", *TAXES]) == 0
    told = capsys.readouterr().out
    assert (
        "tax(salary): What is due of a salary; nothing up to a point.\n  in formulas; rises" in told
    )
    assert "  in formulas; falls, within (0.0, inf)\n" in told
    assert "  in formulas; nothing is known of its values\n" in told


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the salaries of 2,000 people are, in 20 row groups."""
    rows = {"salary": np.arange(2000) * 100.0, "age": np.arange(2000) % 40 + 20}
    pq.write_table(pa.table(rows), tmp_path / "staff.parquet", row_group_size=100)
    return tmp_path


class Counted:
    """A registry that knows a tax; how many numbers that is given, and which groups are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **stated: Any) -> None:
        self.numbers, self.groups = 0, list[int]()
        plainly = pq.ParquetFile.read_row_group

        def read(file: Any, group: int, *how: Any, **also: Any) -> Any:
            self.groups.append(group)
            return plainly(file, group, *how, **also)

        def counted_tax(salary: Any) -> Any:
            self.numbers += len(salary) if len(salary) > 2 else 0  # pushing back asks about two
            return np.maximum(0.42 * salary - 8000, 0)

        held = ModuleType("counted")
        vars(held).update(counted_tax=function(**stated)(counted_tax))
        monkeypatch.setitem(sys.modules, "counted", held)
        monkeypatch.setattr(pq.ParquetFile, "read_row_group", read)
        self.registry = Registry.of(["counted"])

    def forget(self) -> None:
        """Begin again to count."""
        self.numbers = 0
        self.groups.clear()


def pipeline(registry: Registry, home: Path, formula: str, keep: str = "true") -> Pipeline:
    return Pipeline.from_text(TEXT.format(formula=formula, keep=keep), registry.boxes, home)


def test_a_trace_through_a_function_that_rises_reads_fewer_groups_and_finds_the_same(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for name, stated in {"known": {"rises": True}, "unknown": {}}.items():
        counted = Counted(monkeypatch, **stated)
        workspace = Workspace.create(home / name)
        run(pipeline(counted.registry, home, "counted_tax(salary)", "false"), workspace, HERE)
        counted.forget()
        asked = trace(workspace, "told", "due > 75800", registry=counted.registry, spark=HERE)
        found[name] = (asked.lineage["staff"].table(), counted.numbers, len({*counted.groups}))
    (known, few, read), (unknown, many, all_) = found["known"], found["unknown"]
    assert known.equals(unknown)
    assert known["salary"].to_pylist() == [199_600, 199_700, 199_800, 199_900]
    assert few <= 4 and many == 200, "only those of these ages, in either case"
    assert read <= 2 and all_ == 20, "the last of staff, and the only one of what was told"


def test_a_run_in_part_asks_a_function_about_the_rows_it_needs_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch, rises=True)
    workspace = Workspace.create(home / "w")
    what = pipeline(counted.registry, home, "counted_tax(salary)")
    run_only(what, workspace, HERE, "taxed: due > 70000 and age < 30", counted.registry)
    assert counted.groups[20:] == [18, 19], "after a source was looked through"
    assert counted.numbers < 40, "of 2,000 rows"
    made = matching(cast(Table, workspace.dataset("taxed")), None).to_pylist()
    plain = [(n * 100.0, n % 40 + 20) for n in range(2000)]
    expected = [s for s, age in plain if 0.42 * s - 8000 > 70_000 and age < 30]
    assert sorted(row["salary"] for row in made) == expected


def test_a_plan_shows_what_a_restriction_becomes_before_the_function(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = Registry.of(TAXES[1:])
    workspace = Workspace.create(home / "w")
    run(pipeline(registry, home, "tax(salary)", "false"), workspace, HERE)
    asked = ["told", "--where", "due > 75800", "-w", str(workspace.path)]
    assert main(["plan", *asked, *TAXES]) == 0
    told = capsys.readouterr().out
    assert "told where due > 75800, so looked for within:" in told
    assert "due = 75832" in told and "salary 199600..199600" in told


def test_a_dataset_made_with_a_function_says_what_it_needs_to_be_traced(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace.create(home / "w")
    first = Counted(monkeypatch, rises=True).registry
    run(pipeline(first, home, "counted_tax(salary)"), workspace, HERE)
    made = workspace.dataset("taxed").made
    assert isinstance(made, Made) and made.box_version == "1+counted_tax.1"
    assert main(["trace", "taxed", "--where", "salary = 0", "-w", str(workspace.path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert 'no function "counted_tax"' in said and "--boxes MODULE" in said
    changed = Counted(monkeypatch, rises=True, version="2").registry
    with pytest.raises(Refused, match=r"version 1\+counted_tax.1 .* 1\+counted_tax.2 now"):
        trace(workspace, "taxed", "salary = 0", registry=changed, spark=HERE)


def test_functions_go_to_spark_with_the_boxes_that_name_them(
    spark: SparkSession, home: Path
) -> None:
    registry = Registry.of(TAXES[1:])
    workspace = Workspace.create(home / "w")
    run(pipeline(registry, home, "tax(salary) / rate(age)", "false"), workspace, spark)
    answer = trace(workspace, "told", "age = 59 and due > 44000", registry=registry, spark=spark)
    assert answer.lineage["staff"].table()["salary"].to_pylist() == [199_900.0]


def test_array_boxes_name_functions_too(tmp_path: Path) -> None:
    registry = Registry.of(TAXES[1:])
    workspace = Workspace.create(tmp_path / "w")
    text = """
name: arrays
boxes:
  agcm: {box: simulate_agcm, params: {days: 1, resolution: 30}}
  felt: {box: calculate, inputs: {field: agcm}, params: {formula: "away(u10, v10)", keep: true}}
  seen: {box: choose, inputs: {field: felt},
         params: {condition: tax(slp) > 0, then: result, otherwise: squashed(u10)}}
"""
    run(Pipeline.from_text(text, registry.boxes), workspace, HERE)
    made = {n: workspace.dataset(n).made for n in ("felt", "seen")}
    assert [m and m.box_version for m in made.values()] == ["1+away.1", "1+squashed.1+tax.1"]
    answer = trace(workspace, "seen", "lat = 0 and lon = 0", registry=registry, spark=HERE)
    assert {*answer.cells("agcm").to_pandas()["variable"]} == {"slp", "u10", "v10"}
