"""What cannot be asked of tables is refused in one line, before Spark starts."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.stories.asked import Ask, assert_refused, contents

ROWS = pa.table(
    {
        "k": [1, 1, 2],
        "x": [1.0, 2.0, 3.0],
        "s": ["a", "b", "c"],
        "t": pa.array([datetime(2000, 1, d) for d in (1, 2, 3)], pa.timestamp("us")),
    }
)
KEPT = 'box "filter_rows": where'


def filtered(where: str) -> str:
    return f'g: {{box: filter_rows, inputs: {{rows: s}}, params: {{where: "{where}"}}}}'


def summed(what: str, of: str = "s", name: str = "g") -> str:
    return (
        f'{name}: {{box: aggregate, inputs: {{rows: {of}}}, params: {{keys: k, what: "{what}"}}}}'
    )


PIPELINES = {
    "no predicate": (filtered("x >"), [f'g: {KEPT} "x >" is not a predicate']),
    "no comparison": (filtered("abs(x) > 1"), [f'g: {KEPT} "abs(x) > 1": cannot use abs(x);']),
    "another type": (filtered("s > 1"), [f'g: {KEPT} "s > 1": 1 is not a value of "s" (string)']),
    "mean of texts": (summed("s:mean"), ['g: box "aggregate": "s" is text, which has no mean']),
    "mean of times": (summed("t:mean"), ['g: box "aggregate": "t" is a time, which has no mean']),
    "sum of latest times": (
        f"{summed('t:max', name='m')}, {summed('t_max:sum', of='m')}",
        ['g: box "aggregate": "t_max" is a time, which has no sum'],
    ),
}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a table lies, and no Spark is."""
    monkeypatch.setattr("explorer.commands.session", lambda *_: pytest.fail("Spark was started"))
    pq.write_table(ROWS, tmp_path / "s.parquet")
    return tmp_path


def written(table: Path, boxes: str) -> Path:
    path = table / "p.yaml"
    path.write_text(f"name: p\nsources: {{s: {{path: s.parquet}}}}\nboxes: {{{boxes}}}\n")
    return path


@pytest.mark.parametrize(("boxes", "parts"), PIPELINES.values(), ids=PIPELINES.keys())
def test_a_pipeline_that_cannot_be_is_refused(
    ask: Ask, table: Path, boxes: str, parts: list[str]
) -> None:
    path = written(table, boxes)
    before = contents(table)
    assert_refused(ask("run", path, "-w", table / "w"), 2, *parts)
    assert contents(table) == before


ONLY = {
    "no predicate": ("g: x >", '--only "x >" is not a predicate'),
    "another type": ("g: s > 1", '--only "s > 1": 1 is not a value of "s" (string)'),
    "no column": ("g: xx > 1", 'no column "xx"; did you mean "x"?'),
}


@pytest.mark.parametrize(("only", "part"), ONLY.values(), ids=ONLY.keys())
def test_a_part_that_cannot_be_is_refused(ask: Ask, table: Path, only: str, part: str) -> None:
    path = written(table, filtered("x > 1"))
    before = contents(table)
    assert_refused(ask("run", path, "-w", table / "w", "--only", only), 2, part)
    assert contents(table) == before
