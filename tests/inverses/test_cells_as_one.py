"""Very many rows that tell of one cell each are asked about as one, as their cells are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from inverses import words
from inverses.outline import outline
from inverses.sweeps import Sweep, Swept
from pipelines.arrays import inside
from pipelines.boxes.cyclones import ExtractMinima
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.filters import Filter
from tests.inverses.asked_as_one import REGISTRY, assert_caught_as_one, cells_of, sweep_of, traced

WEATHER = "{box: simulate_agcm, params: {resolution: 10, days: 3, chunk: 5}}"
BOXES = {
    "minima": "{box: extract_minima, inputs: {field: sky}, params: {margin: 10}}",
    "above": "{box: extract_above, inputs: {field: sky}, params: {variable: u10}}",
    "extrema": "{box: extract_extrema, inputs: {field: sky}, params: {variable: slp, size: 5}}",
}
ASKED: dict[str, list[list[str]]] = {
    "minima": [
        [],
        ["pressure"],
        ["time", "location"],
        ["pressure", "wind_speed"],
        ["time", "location", "pressure", "wind_speed", "wind_direction"],
    ],
    "above": [[], ["value"]],
    "extrema": [[]],
}


@pytest.mark.parametrize("keep", ["true", "false"])
@pytest.mark.parametrize("name", BOXES)
def test_all_that_rows_tell_of_has_behind_it_what_they_have_one_by_one(
    name: str, keep: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sky = f"sky: {WEATHER}".replace("}}", f"}}, keep: {keep}}}")
    text = f"name: x\nboxes:\n  {sky}\n  made: {BOXES[name]}\n"
    where = "lat > -60 and time_index between 2 and 8"
    for attributes in ASKED[name]:
        asked: dict[str, Any] = {"where": where, "attributes": attributes}
        one_by_one = traced(text, tmp_path, spark, **asked)
        assert one_by_one.behind(0)
        with monkeypatch.context() as many:
            many.setattr("inverses.as_one.PAIRS", 0)
            here = traced(text, tmp_path, spark, **asked)
            many.setattr("inverses.work.HERE", -1)
            on_spark = traced(text, tmp_path, spark, **asked)
            (told,) = words.asked_as_one(here.plan)
        verified = name == "minima" and "location" in one_by_one.plan.attributes
        assert ("one more pass over sky" in told) == verified
        assert on_spark.spark["jobs"] > here.spark["jobs"]
        for answer in (here, on_spark):
            assert cells_of(answer, "sky") == cells_of(one_by_one, "sky")
            assert answer.guarantee("sky") == one_by_one.guarantee("sky")
            assert answer.cells("sky")["value"].equals(one_by_one.cells("sky")["value"])
            with pytest.raises(Refused, match="asked about as one"):
                answer.behind(0)


def test_rows_that_may_tell_of_any_cell_are_outlined_by_all_of_them(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lows = BOXES["minima"].replace("10", "300")
    tracks = "{box: identify_tracks, inputs: {minima: lows}, params: {min_points: 3}}"
    text = f"name: x\nboxes:\n  sky: {WEATHER}\n  lows: {lows}\n  made: {tracks}\n"
    plan = traced(text, tmp_path, spark, attributes=["track", "location"]).plan
    before = outline(plan)
    monkeypatch.setattr("inverses.outline.MANY", 0)
    after = outline(plan)
    sky = plan.hops[-1].source
    assert isinstance(sky, Array)
    found = [_held(sky, each[sky.key]) for each in (before, after)]
    assert found[0].any() and (found[0] == found[1]).all()


def _held(array: Array, filter_: Filter) -> np.ndarray:
    """Which cells of an array a filter holds."""
    held = np.zeros(array.shape, bool)
    within = inside(array, filter_)
    low, high = (np.column_stack([getattr(within.spans[d], end) for d in array.dims])
                 for end in ("low", "high"))  # fmt: skip
    for first, last in zip(low, high, strict=True):
        held[tuple(map(slice, first, last + 1))] = True
    return held


def one_row_more(box: ExtractMinima, *given: Any) -> Iterator[Swept]:
    """It takes the row below for part of what was used."""
    for found in sweep_of(ExtractMinima)(box, *given):
        kept = found.kept.copy()
        kept[:, 1:] |= found.kept[:, :-1]
        yield replace(found, kept=kept)


def nothing_beside_a_seam(box: ExtractMinima, *given: Any) -> Iterator[Swept]:
    """It forgets what lies past a seam."""
    for found in sweep_of(ExtractMinima)(box, *given):
        columns = np.arange(found.kept.shape[2]) + found.first[2]
        yield replace(found, kept=found.kept & (columns >= 0))


@pytest.mark.parametrize("wrong", [one_row_more, nothing_beside_a_seam])
def test_a_wrong_sweep_from_rows_to_cells_is_caught(wrong: Any) -> None:
    sweeps = (Sweep("", ExtractMinima, wrong),)
    assert_caught_as_one(ExtractMinima, replace(REGISTRY, sweeps=sweeps))
