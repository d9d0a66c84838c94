"""Tables from outside are read in place, checked, and traced exactly."""

from __future__ import annotations

from datetime import datetime
from math import nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.guarantees import COMPLETE, EXACT
from inverses.trace import trace
from pipelines.datasets import Quantity, Table, Text, Time
from pipelines.errors import Failed, Refused, SourceChanged, WhenceError
from pipelines.pipeline import Pipeline, Source
from pipelines.predicates import parsed
from pipelines.run import run
from pipelines.sources import as_dataset, check_unchanged, recognised
from pipelines.tables import count, matching, schema_of
from pipelines.workspace import Workspace

ONE_BOX = "name: p\nsources: {s: {path: %s}}\nboxes: {d: {box: distinct, inputs: {rows: s}}}"
STAFF = {
    "name": ["ann", "bob", "cid", "dan", "eva", "fay"],
    "team": [1, 2, 1, 2, 1, 2],
    "salary": [90_000.0, nan, 120_000.0, 50_000.0, 120_000.0, 99_000.0],
    "since": [datetime(2000 + n, 1, 1) for n in range(6)],
}


def stored(path: Path, columns: dict[str, Any] | pa.Table, rows: int = 2) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=rows)
    return path


def table_at(path: Path) -> Table:
    found = as_dataset("staff", Source(str(path), "table"))
    assert isinstance(found, Table)
    return found


def refusal(kind: type[WhenceError], path: Path) -> str:
    with pytest.raises(kind) as refused:
        table_at(path)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.fixture
def staff(tmp_path: Path) -> Path:
    return stored(tmp_path / "staff.parquet", STAFF)


def test_columns_become_attributes_by_what_they_hold(staff: Path) -> None:
    found = table_at(staff)
    meant = {a.name: a.type for a in found.attributes}
    assert meant == {"name": Text, "team": Quantity, "salary": Quantity, "since": Time}
    assert [g.bounds["name"] for g in found.groups] == [
        ("ann", "bob"),
        ("cid", "dan"),
        ("eva", "fay"),
    ]
    assert recognised("staff", Source(str(staff), "table")).attributes == found.attributes


def test_rows_that_are_missing_a_number_are_found_whatever_the_file_says(staff: Path) -> None:
    found = table_at(staff)
    unlike = parsed("salary <> 90000").expression(schema_of(found))
    assert matching(found, unlike)["name"].to_pylist() == ["bob", "cid", "dan", "eva", "fay"]
    assert count(found, parsed("not salary > 0").expression(schema_of(found))) == 1


def test_times_are_read_in_microseconds_of_utc_and_texts_plainly(tmp_path: Path) -> None:
    zoned = pa.array([datetime(2000, 1, 1)], pa.timestamp("ns", tz="Europe/Paris"))
    columns = {"t": zoned, "d": pa.array([1], pa.date32()), "s": pa.array(["a"], pa.large_string())}
    found = table_at(stored(tmp_path / "t.parquet", columns))
    assert found.types == {"t": "timestamp[us]", "d": "timestamp[us]", "s": "string"}
    row = matching(found, None).to_pylist()[0]
    assert row == {"t": datetime(2000, 1, 1), "d": datetime(1970, 1, 2), "s": "a"}


def test_whole_numbers_without_a_sign_are_read_with_one_if_they_fit(tmp_path: Path) -> None:
    small, large = (pa.array([n], pa.uint64()) for n in (7, 2**63))
    assert table_at(stored(tmp_path / "s.parquet", {"n": small})).types == {"n": "int64"}
    assert "cannot read" in refusal(Failed, stored(tmp_path / "l.parquet", {"n": large}))


def test_a_directory_of_files_is_one_table(tmp_path: Path) -> None:
    home = tmp_path / "parts"
    home.mkdir()
    for n in range(2):
        stored(home / f"part-{n}.parquet", {"x": [float(n)]})
    found = table_at(home)
    assert matching(found, None)["x"].to_pylist() == [0.0, 1.0]
    stored(home / "part-2.parquet", {"y": [1]})
    assert "have different columns" in refusal(Refused, home)


def test_files_may_have_their_columns_in_orders_of_their_own(tmp_path: Path) -> None:
    home = tmp_path / "parts"
    home.mkdir()
    stored(home / "part-0.parquet", {"k": [1], "x": [1.0]})
    stored(home / "part-1.parquet", {"x": [2.0], "k": [2]})
    both = [{"k": 1, "x": 1.0}, {"k": 2, "x": 2.0}]
    assert matching(table_at(home), None).to_pylist() == both


@pytest.mark.parametrize("microseconds", [600_000_000_000_000_000, -80_000_000_000_000_000])
def test_times_that_cannot_be_shown_are_refused(tmp_path: Path, microseconds: int) -> None:
    times = pa.array([0, microseconds], pa.timestamp("us"))
    said = refusal(Refused, stored(tmp_path / "far.parquet", {"t": times}))
    assert '"t" has times before the year 1 or after 9999' in said


def test_what_cannot_be_a_table_here_is_refused_in_one_line(tmp_path: Path) -> None:
    said = {
        "nested": refusal(Refused, stored(tmp_path / "n.parquet", {"l": [[1, 2]]})),
        "nulls": refusal(Refused, stored(tmp_path / "u.parquet", {"x": [1, None]})),
        "reserved": refusal(Refused, stored(tmp_path / "r.parquet", {"row": [1]})),
        "absent": refusal(Refused, tmp_path / "nowhere.parquet"),
        "empty": refusal(Refused, tmp_path),
    }
    assert 'column "l" is list' in said["nested"]
    assert '"x" has nulls' in said["nulls"]
    assert "none of owner, part, row" in said["reserved"]
    assert "no file at" in said["absent"]


def test_other_files_are_told_from_parquet(tmp_path: Path) -> None:
    text = tmp_path / "staff.csv"
    text.write_text("a,b\n1,2\n")
    assert "make it Parquet first" in refusal(Refused, text)
    text.rename(tmp_path / "staff.parquet")
    assert "cannot read" in refusal(Failed, tmp_path / "staff.parquet")


def test_a_pipeline_says_that_a_source_is_a_table_or_its_path_does() -> None:
    text = ONE_BOX
    assert Pipeline.from_text(text % "a.parquet").sources["s"].kind == "table"
    assert Pipeline.from_text(text % "parts, kind: table").sources["s"].kind == "table"
    with pytest.raises(Refused, match='takes a table, "s" is an array'):
        Pipeline.from_text(text % "a.nc")
    with pytest.raises(Refused, match="a source is an array or a table"):
        Pipeline.from_text(text % "a.nc, kind: list")
    with pytest.raises(Refused, match="keep their names"):
        Pipeline.from_text(text % "a.parquet, variables: {x: y}")


def test_a_table_that_changed_since_the_run_is_not_answered_from(staff: Path) -> None:
    found = table_at(staff)
    check_unchanged(found)
    stored(staff, {**STAFF, "team": [9] * 6})
    with pytest.raises(SourceChanged):
        check_unchanged(found)


PAY = """
name: pay
sources: {staff: {path: staff.parquet}}
boxes:
  taxed:
    box: map_rows
    inputs: {rows: staff}
    params: {column: tax, formula: "max(0.4 * salary - 8000, 0)"}
  rich: {box: filter_rows, inputs: {rows: taxed}, params: {where: tax > 30000}}
  teams:
    box: aggregate
    inputs: {rows: taxed}
    params: {keys: team, what: "tax:max, salary:mean"}
  mates: {box: join, inputs: {left: rich, right: teams}, params: {keys: team}}
  ranked: {box: rank, inputs: {rows: mates}, params: {by: tax, keys: team}}
  first: {box: top_n, inputs: {rows: ranked}, params: {by: tax, n: 1}}
  named: {box: project, inputs: {rows: first}, params: {columns: "name, tax_max"}}
  twice: {box: union, inputs: {first: named, second: named}}
  once: {box: distinct, inputs: {rows: twice}}
"""


def test_tables_are_made_and_traced_on_spark(
    staff: Path, workspace: Workspace, spark: SparkSession
) -> None:
    made = run(Pipeline.from_text(PAY, base=staff.parent), workspace, spark)
    assert rows_of(made["teams"], "team") == [
        {"team": 1, "tax_max": 40_000.0, "salary_mean": 110_000.0},
        {"team": 2, "tax_max": 31_600.0, "salary_mean": 74_500.0},
    ]
    assert [r["name"] for r in rows_of(made["rich"], "name")] == ["cid", "eva", "fay"]
    assert [r["rank"] for r in rows_of(made["ranked"], "name")] == [1, 1, 1]
    assert rows_of(made["once"], "name") == [
        {"name": "cid", "tax_max": 40_000.0},
        {"name": "eva", "tax_max": 40_000.0},
    ]
    for (dataset, where, *asked), names in EXACTLY_BEHIND.items():
        answer = trace(workspace, dataset, where, asked, spark=spark)
        assert answer.plan.guarantee >= EXACT, dataset
        assert sources_of(answer) == set(names.split()), dataset
    for dataset, names in COMPLETELY_BEHIND.items():
        answer = trace(workspace, dataset, "team = 2", spark=spark)
        assert COMPLETE in answer.plan.guarantee, dataset
        assert sources_of(answer) == set(names.split()), dataset


def test_a_source_that_is_as_it_was_keeps_its_version(
    staff: Path, workspace: Workspace, spark: SparkSession
) -> None:
    text = ONE_BOX % "staff.parquet"
    first, second = (
        run(Pipeline.from_text(text, base=staff.parent), workspace, spark) for _ in range(2)
    )
    assert first["s"] == second["s"]
    assert first["d"].version != second["d"].version


def rows_of(table: Any, by: str) -> list[dict[str, Any]]:
    return sorted(matching(table, None).to_pylist(), key=lambda r: r[by])


EXACTLY_BEHIND = {
    ("teams", "team = 1", "tax_max"): "cid eva",
    ("rich", "name = 'fay'"): "fay",
}


# To a key, every row of its group contributed.
COMPLETELY_BEHIND = {"mates": "bob dan fay"}


def sources_of(answer: Answer) -> set[str]:
    found = next(f for key, f in answer.found.items() if key[0] == "staff")
    return set(found.rows["name"].to_pylist())
