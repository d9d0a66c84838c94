"""What is derived from some cells is what those cells are behind, asked the other way round."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from inverses.guarantees import EXACT
from inverses.impact import impact
from inverses.trace import trace
from pipelines.here import Here
from pipelines.workspace import Workspace

HERE = cast(SparkSession, Here(2))
PLACES = [
    "time = '2000-01-20' and lat between 40 and 50 and lon between 100 and 130",
    "time between '2000-01-05' and '2000-01-06' and lat > 70 and lon < 10",
    "time = '2000-01-03' and lat = 0 and lon = 357.5",
]


@pytest.fixture(scope="module")
def every(demo: Workspace) -> dict[str, Any]:
    """For every minimum and track point, the cells of slp behind it."""
    answers = {}
    for name in ("minima", "tracks"):
        answer = trace(demo, name, spark=HERE)
        cells = answer.cells("agcm").to_pylist()
        rows = answer.found[answer.plan.selection.dataset.key].rows.to_pylist()
        behind = [[cells[i] for i in answer.behind(n)["agcm"]] for n in range(len(rows))]
        answers[name] = list(zip(rows, behind, strict=True))
    return answers


@pytest.mark.parametrize("where", PLACES)
def test_what_is_derived_is_what_the_cells_are_behind(
    demo: Workspace, every: dict[str, Any], where: str
) -> None:
    found = impact(demo, "agcm", where, spark=HERE)
    cells = {_cell(c) for c in trace(demo, "agcm", where, spark=HERE).cells("agcm").to_pylist()}
    for name, pairs in every.items():
        derived = {_row(row) for row, behind in pairs if cells & {_cell(c) for c in behind}}
        mine = found.reached.get(demo.dataset(name).key)
        assert {_row(r) for r in mine.rows.to_pylist()} == derived if mine else not derived
        assert mine is None or mine.guarantee == EXACT


def _cell(cell: dict[str, Any]) -> tuple[Any, ...]:
    return cell["variable"], cell["time_index"], cell["lat_index"], cell["lon_index"]


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["time_index"], row["lat_index"], row["lon_index"]


def test_nothing_is_derived_from_the_last_dataset(demo: Workspace) -> None:
    assert not impact(demo, "tracks", "lat > 60", spark=HERE).reached
