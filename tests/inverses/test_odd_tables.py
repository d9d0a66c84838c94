"""Tables with odd names, texts, times and numbers are made, traced and followed like others."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from explorer.cli import main
from inverses.impact import impact
from inverses.limits import pairs_about
from inverses.partial import run_only
from inverses.trace import trace
from pipelines.datasets import Group, Table
from pipelines.filters import where
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.predicates import parsed
from pipelines.run import run
from pipelines.spans import span
from pipelines.tables import matching, schema_of
from pipelines.workspace import Workspace

HERE = cast(SparkSession, Here(2))
Rows = list[dict[str, Any]]


def pipeline(workspace: Workspace, boxes: str) -> Pipeline:
    """Some boxes over the source `s` of a workspace."""
    text = f"name: odd\nsources: {{s: {{path: {workspace.path / 's.parquet'}}}}}\nboxes:\n"
    return Pipeline.from_text(text + "".join(f"  {box}\n" for box in boxes.split("\n")))


def made(
    workspace: Workspace, columns: dict[str, Any], boxes: str, spark: Any = HERE, each: int = 2
) -> None:
    """Run some boxes over a source `s` that has these columns, so many rows in a group."""
    pq.write_table(pa.table(columns), workspace.path / "s.parquet", row_group_size=each)
    run(pipeline(workspace, boxes), workspace, spark)


def rows(workspace: Workspace, name: str, where: str | None = None) -> Rows:
    table = cast(Table, workspace.dataset(name))
    kept = parsed(where).expression(schema_of(table)) if where else None
    found: Rows = matching(table, kept).to_pylist()
    return found


def behind(workspace: Workspace, name: str, where: str | None = None, **more: Any) -> Rows:
    """The rows of the source behind some rows."""
    found: Rows = trace(workspace, name, where, spark=HERE, **more).cells("s").to_pylist()
    return found


def derived(workspace: Workspace, name: str, where: str) -> Rows:
    """The rows of a dataset that some rows of the source had a part in."""
    every = impact(workspace, "s", where, spark=HERE).reached
    return [row for key, each in every.items() if key[0] == name for row in each.rows.to_pylist()]


@pytest.mark.parametrize("least", ["true", "false"])
def test_what_is_highest_by_a_time_is_derived_from_what_is_higher(
    workspace: Workspace, least: str
) -> None:
    days = [datetime(2000, 1, d) for d in (28, 2, 1)]
    box = f"{{box: top_n, inputs: {{rows: s}}, params: {{by: t, n: 2, least: {least}}}}}"
    made(workspace, {"t": pa.array(days, pa.timestamp("us"))}, f"p: {box}")
    assert derived(workspace, "p", "t = '2000-01-02'") == [{"t": datetime(2000, 1, 2)}]


NUL = {"s": ["a", "a\0", "b", "a"], "k": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("where", "kept"), [("s = 'a\0'", [2]), ("s > 'a'", [2, 3]), ("s < 'b'", [1, 2, 4])]
)
def test_texts_that_end_in_nul_are_filtered_as_they_are(
    workspace: Workspace, where: str, kept: list[int]
) -> None:
    written = where.replace("\0", "\\0")
    made(
        workspace,
        NUL,
        f'f: {{box: filter_rows, inputs: {{rows: s}}, params: {{where: "{written}"}}}}',
    )
    assert sorted(r["k"] for r in rows(workspace, "f")) == kept
    assert [r["k"] for r in behind(workspace, "f")] == kept


ENDS_IN_NUL = """\
d: {box: distinct, inputs: {rows: s}}
l: {box: aggregate, inputs: {rows: s}, params: {what: "s:min, s:count"}}
g: {box: aggregate, inputs: {rows: s}, params: {keys: s, what: "k:max"}}
t: {box: top_n, inputs: {rows: s}, params: {by: s, n: 2}}"""


def test_texts_that_end_in_nul_are_traced_as_they_are(workspace: Workspace) -> None:
    made(workspace, {**NUL, "s": ["b\0", "a\0", "b", "a\0"]}, ENDS_IN_NUL)
    asked = {"d": "k = 2", "g": "k_max = 4", "t": "k = 1"}
    found = {name: [r["k"] for r in behind(workspace, name, w)] for name, w in asked.items()}
    assert found == {"d": [2], "g": [4], "t": [1]}
    assert [r["k"] for r in behind(workspace, "l", attributes=["s_min"])] == [2, 4]
    assert derived(workspace, "g", "k = 4") == [{"s": "a\0", "k_max": 4}]


def test_texts_that_end_in_nul_meet_wherever_they_lie(workspace: Workspace) -> None:
    pairs = "j: {box: join, inputs: {left: s, right: s}, params: {keys: s}}"
    groups = "g: {box: aggregate, inputs: {rows: s}, params: {keys: s, what: 's:count'}}"
    every = ["a", *(f"a\0{n}" for n in range(9))]
    made(workspace, {"s": every + every[::-1]}, f"{pairs}\n{groups}", each=10)
    assert len(rows(workspace, "j")) == 4 * len(every)
    assert [row["s_count"] for row in rows(workspace, "g")] == [2] * len(every)


COUNTS_OF_COUNTS = """\
a: {box: aggregate, inputs: {rows: s}, params: {keys: k, what: "x:count"}}
h: {box: aggregate, inputs: {rows: a}, params: {keys: x_count, what: "k:count"}}"""


@pytest.mark.parametrize("attribute", ["all", "x_count", "k_count"])
def test_rows_grouped_by_what_was_counted_are_traced(workspace: Workspace, attribute: str) -> None:
    made(workspace, {"k": [1, 1, 2], "x": [1.0, 2.0, 3.0]}, COUNTS_OF_COUNTS)
    assert [r["k"] for r in behind(workspace, "h", "x_count = 2", attributes=[attribute])] == [1, 1]
    assert derived(workspace, "h", "k = 1") == [{"x_count": 2, "k_count": 1}]


MISSING = """\
m: {box: map_rows, inputs: {rows: s}, params: {column: z, formula: sqrt(x)}, keep: KEPT}
d: {box: distinct, inputs: {rows: m}}
a: {box: aggregate, inputs: {rows: m}, params: {keys: z, what: "k:count"}}
j: {box: join, inputs: {left: m, right: d}, params: {keys: z}}
c: {box: project, inputs: {rows: j}, params: {columns: k_right}}"""


@pytest.mark.parametrize("kept", ["true", "false"])
def test_missing_numbers_are_one_value_whatever_made_them(workspace: Workspace, kept: str) -> None:
    made(workspace, {"k": [1, 2, 2, 3], "x": [4.0, -1, -1, np.nan]}, MISSING.replace("KEPT", kept))
    asked = {"d": "k = 2", "a": "k_count = 3", "c": "k_right = 2"}
    found = {name: [r["k"] for r in behind(workspace, name, w)] for name, w in asked.items()}
    assert found == {"d": [2, 2], "a": [2, 2, 3], "c": [2, 2, 3]}
    every = {name: len(derived(workspace, name, "k = 2")) for name in asked}
    assert every == {"d": 1, "a": 1, "c": 6}


MARKED = """\
h: {box: top_n, inputs: {rows: s}, params: {by: k, n: 2}, keep: KEPT}
m: {box: map_rows, inputs: {rows: h}, params: {column: one, formula: "1"}, keep: KEPT}
p: {box: project, inputs: {rows: m}, params: {columns: "k, one"}}
q: {box: project, inputs: {rows: m}, params: {columns: one}}"""


@pytest.mark.parametrize("kept", ["true", "false"])
def test_a_column_that_is_made_of_no_other_is_made_of_the_row(
    workspace: Workspace, kept: str
) -> None:
    made(workspace, {"k": [1, 2, 3], "x": [1.0, 2.0, 3.0]}, MARKED.replace("KEPT", kept))
    found = behind(workspace, "p", "k = 2", attributes=["one"])
    assert [row["k"] for row in found] == [2]
    assert [row["k"] for row in behind(workspace, "q")] == [2, 3]
    reached = impact(workspace, "s", "k = 3", attributes=["one"], spark=HERE).reached
    assert reached["p", "v1"].rows.to_pylist() == [{"k": 3, "one": 1.0}]


@pytest.mark.parametrize(("text", "shown"), [("", "s = ''"), ("a\n\x1b[2J", r"s = a\n\x1b[2J")])
def test_texts_are_shown_as_they_are_and_move_no_cursor(
    workspace: Workspace, text: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made(workspace, {"s": [text, "b"], "k": [1, 2]}, "d: {box: distinct, inputs: {rows: s}}")
    for command in ("plan", "show"):
        assert main([command, "d", "--where", "k = 1", "-w", str(workspace.path)]) == 0
        said = capsys.readouterr().out
        assert all(c.isprintable() for line in said.split("\n") for c in line)
        assert (shown if command == "plan" else repr(text)[1:-1]) in said


PARTED = """\
f: {box: filter_rows, inputs: {rows: s}, params: {where: k = 1}}
u: {box: union, inputs: {first: f, second: s}}"""


def test_impact_goes_on_where_one_of_two_ways_leads_to_no_row_that_was_kept(
    workspace: Workspace,
) -> None:
    columns = {"k": [1, 2], "s": ["a", "b"], "t": pa.array([1, 2], pa.timestamp("us"))}
    pq.write_table(pa.table(columns), workspace.path / "s.parquet")
    run_only(pipeline(workspace, PARTED), workspace, HERE, "u: k = 2")
    assert [row["s"] for row in derived(workspace, "u", "k > 0")] == ["b"]


UNLIKE = """\
a: {box: simulate_agcm, params: {days: 0.5, resolution: 30.0}}
e: {box: extract_above, inputs: {field: a}, params: {variable: slp, threshold: 100000}}
r: {box: rank, inputs: {rows: s}, params: {by: value}}
m: {box: map_rows, inputs: {rows: r}, params: {column: lat, formula: 100 + rank}}
p: {box: project, inputs: {rows: m}, params: {columns: "ALL, lat"}}
u: {box: union, inputs: {first: ONE, second: OTHER}}"""


@pytest.mark.parametrize(("one", "other"), ["ep", "pe"])
@pytest.mark.parametrize(("attributes", "found"), [([], 2), (["lat"], 2), (["hours"], 1)])
def test_columns_that_are_one_attribute_in_only_one_of_two_tables_are_traced(
    workspace: Workspace, one: str, other: str, attributes: list[str], found: int
) -> None:
    columns = {n: [1.0, 2.0] for n in ("hours", "lon", "value")}
    columns |= {n: [1, 2] for n in ("time_index", "lat_index", "lon_index")}
    columns |= {"time": pa.array([1, 2], pa.timestamp("us"))}
    boxes = UNLIKE.replace("ALL", ", ".join(columns)).replace("ONE", one).replace("OTHER", other)
    made(workspace, columns, boxes)
    assert len(behind(workspace, "u", "lat = 101", attributes=attributes)) == found
    assert len(derived(workspace, "u", "value = 1")) == 2


EVERY_BOX = """\
f: {box: filter_rows, inputs: {rows: s}, params: {where: "`NAME` > 1"}}
p: {box: project, inputs: {rows: s}, params: {columns: NAME}}
t: {box: top_n, inputs: {rows: s}, params: {by: NAME, n: 1, keys: k}}
a: {box: aggregate, inputs: {rows: s}, params: {keys: NAME, what: "k:max"}}
m: {box: map_rows, inputs: {rows: s}, params: {column: z, formula: "2 * k"}}
j: {box: join, inputs: {left: s, right: s}, params: {keys: k}}"""


@pytest.mark.parametrize("name", ["self", "keys", "source", "of", "max wind"])
def test_columns_of_any_name_are_traced(workspace: Workspace, name: str) -> None:
    row = {name: 2.0, "k": 2}
    made(workspace, {name: [1.0, 2.0], "k": [1, 2]}, EVERY_BOX.replace("NAME", name))
    for each in "fptamj":
        where = "k_max = 2" if each == "a" else f"`{name}` = 2" if each == "p" else "k = 2"
        assert behind(workspace, each, where) == [row], each
        assert len(derived(workspace, each, "k = 2")) == 1


@pytest.mark.parametrize("bound", ["j < 2", "j > 1", "j between 1 and 2", "j <= 127"])
@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.float32()])
def test_a_bound_on_narrow_numbers_makes_the_rows_within(
    workspace: Workspace, tmp_path: Path, bound: str, kind: pa.DataType
) -> None:
    columns = {"j": pa.array([1, 2, 127, -128], kind), "k": [1, 1, 2, 2]}
    for least in ("true", "false"):
        box = (
            f"{{box: top_n, inputs: {{rows: s}}, params: {{by: j, n: 1, keys: k, least: {least}}}}}"
        )
        made(workspace, columns, f"p: {box}")
        part = Workspace.create(tmp_path / least)
        run_only(pipeline(workspace, f"p: {box}"), part, HERE, f"p: {bound}")
        found = [
            sorted(r["j"] for r in rows(*asked)) for asked in ((part, "p"), (workspace, "p", bound))
        ]
        assert found[0] == found[1]


def test_a_trace_of_many_rows_between_infinities_is_not_dear(workspace: Workspace) -> None:
    x = np.append(np.arange(8998.0), [-np.inf, np.inf])
    box = "p: {box: top_n, inputs: {rows: s}, params: {by: x, n: 9000}}"
    made(workspace, {"x": x}, box, each=2048)
    assert len(behind(workspace, "p")) == 9000


def test_what_lies_between_very_large_numbers_is_estimated() -> None:
    group = Group("", 0, 100, 0, {"x": (-1.5e308, 1.5e308)})
    part = where(
        x=span(np.array([-np.inf, 0.0, np.nan, 1e307]), np.array([0.0, 3e307, np.nan, 2e307]))
    )
    assert 0 < pairs_about([group], 100, part) <= 200
    dear = where(x=span(np.full(9, -np.inf), np.full(9, np.inf)))
    ends = Group("", 0, 100, 0, {"x": (-np.inf, np.inf)})
    assert pairs_about([ends], 100, dear) == 900
