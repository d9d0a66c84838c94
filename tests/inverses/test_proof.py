"""An answer proves itself by replay, and a wrong one does not."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from inverses.proof import prove
from inverses.trace import trace
from pipelines.datasets import Table
from pipelines.here import Here
from pipelines.tables import matching
from pipelines.workspace import Workspace

HERE = cast(SparkSession, Here(2))


def point(demo: Workspace, number: int) -> str:
    row = matching(cast(Table, demo.dataset("tracks")), None).slice(number, 1).to_pylist()[0]
    return f"track = {row['track']} and time = '{row['time']}'"


@pytest.mark.parametrize("number", [0, 1234, 5000])
def test_the_cells_behind_a_track_point_give_it_back(demo: Workspace, number: int) -> None:
    proof = prove(trace(demo, "tracks", point(demo, number), spark=HERE), HERE)
    assert proof.holds, proof.text()


def test_the_cone_behind_a_track_number_gives_it_back(demo: Workspace) -> None:
    answer = trace(demo, "tracks", point(demo, 99), ["track"], "complete", spark=HERE)
    assert prove(answer, HERE).holds


def test_an_answer_that_lacks_a_cell_does_not_prove_itself(demo: Workspace) -> None:
    answer = trace(demo, "tracks", point(demo, 1234), spark=HERE)
    (key,) = [k for k in answer.found if k[0] == "agcm"]
    found = answer.found[key]
    for gone in range(found.rows.num_rows):
        rows = found.rows.take([n for n in range(found.rows.num_rows) if n != gone])
        lacking = replace(answer, found={**answer.found, key: replace(found, rows=rows)})
        verdict = prove(lacking, HERE)
        assert found.rows.num_rows > 9 or not verdict.holds
