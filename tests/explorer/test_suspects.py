"""The faults that the demo hides are pointed at when what they made is asked about."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from explorer.state import about_cell, literal
from explorer.suspects import suspects
from inverses.trace import trace
from pipelines.datasets import Array
from pipelines.workspace import Workspace

FAULTS = {
    "stuck": (
        "tracks",
        "time_index = 65 and lat_index = 18 and lon_index = 129",
        "stuck: exactly 87,100",
    ),
    "corrupt": ("tracks", "time_index = 122 and lat_index = 55", "deviations below"),
    "shifted": ("minima", "time_index = 36 and lat > 0", "the whole step 2000-01-10T00:00 differs"),
}


@pytest.mark.parametrize(("dataset", "where", "said"), FAULTS.values(), ids=FAULTS)
def test_a_fault_among_the_contributing_cells_is_pointed_at(
    dataset: str, where: str, said: str, demo: Workspace, spark: SparkSession
) -> None:
    found = suspects(trace(demo, dataset, where, spark=spark))
    assert any(said in s.why for s in found), found


def test_few_sound_points_are_suspected(demo: Workspace, spark: SparkSession) -> None:
    answer = trace(demo, "tracks", "time_index = 200", spark=spark)
    assert len(suspects(answer)) <= 1


def test_a_cell_is_asked_for_by_coordinates_that_select_it_alone(
    demo: Workspace, spark: SparkSession
) -> None:
    array = demo.dataset("agcm")
    assert isinstance(array, Array)
    question = about_cell(array, "slp", {"time": 5, "lat": 70, "lon": 143})
    answer = trace(demo, question.dataset, question.where, question.attributes, spark=spark)
    (cell,) = answer.cells("agcm").to_pylist()
    assert (cell["time_index"], cell["lat_index"], cell["lon_index"]) == (5, 70, 143)


def test_a_quote_in_a_value_ends_nothing() -> None:
    assert literal("a' or 1 = 1 --") == "'a'' or 1 = 1 --'"
