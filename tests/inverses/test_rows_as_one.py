"""Very many rows asked about as one, or looked for anywhere, cost about what a re-run would."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from inverses import candidates, words
from inverses.limits import Limits
from inverses.sweeps import Sweep
from pipelines.boxes.gridding import GridRows, RowsOnGrid
from pipelines.boxes.groups import TopN
from pipelines.errors import Refused, TooDear
from tests.inverses.asked_as_one import REGISTRY, assert_caught_as_one, sweep_of, traced
from tests.inverses.families import PATIENCE

pytestmark = PATIENCE


def themselves_alone(box: TopN, asked: Any, seen: Any, source: Any) -> np.ndarray:
    """It forgets the rows that tie with those asked about."""
    return sweep_of(TopN)(replace(box, n=len(seen["owner"]) + 1), asked, seen, source)


def all_groups_alike(box: TopN, asked: Any, seen: Any, source: Any) -> np.ndarray:
    """It takes all that were asked about for one group."""
    one = ({**each, "owner": each["owner"] * 0} for each in (asked, seen))
    return sweep_of(TopN)(box, *one, source)


def in_any_cell(box: RowsOnGrid, asked: Any, seen: Any, source: Any) -> np.ndarray:
    """It takes all cells for one."""
    (counted,) = [v for v in REGISTRY.verifications if v.box is RowsOnGrid]
    return counted.function(box, {}, seen, source)


WRONG = {
    "forgets ties": (TopN, replace(REGISTRY, sweeps=(Sweep("", TopN, themselves_alone),))),
    "mixes groups": (TopN, replace(REGISTRY, sweeps=(Sweep("", TopN, all_groups_alike),))),
    "mixes cells": (GridRows, replace(REGISTRY, sweeps=(Sweep("", RowsOnGrid, in_any_cell),))),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_sweep_over_rows_is_caught(case: str) -> None:
    assert_caught_as_one(*WRONG[case])


def test_rows_that_very_many_share_are_looked_at_once(tmp_path: Path, spark: SparkSession) -> None:
    rows = pa.table({"k": np.arange(12_000) % 3, "x": np.arange(12_000.0)})
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=2048)
    text = f"""
name: x
sources: {{rows: {{path: {tmp_path / "rows.parquet"}, kind: table}}}}
boxes: {{made: {{box: rank, inputs: {{rows: rows}}, params: {{by: x, keys: k}}}}}}
"""
    answer = traced(text, tmp_path, spark, "k < 2 or x < 9000")
    assert sorted(answer.cells("rows")["x"].to_pylist()) == rows["x"].to_pylist()
    of_one = traced(text, tmp_path, spark, "k = 2 and x < 9000", attributes=["x"])
    assert len(of_one.cells("rows")) == 3000


def highest(folder: Path, rows: int, params: str) -> str:
    """A pipeline of the highest of so many rows, few of which tie."""
    values = np.random.default_rng(3).permutation(rows) // 2
    table = pa.table({"k": np.arange(rows) % 3, "x": values.astype(float), "y": np.arange(rows)})
    pq.write_table(table, folder / "rows.parquet", row_group_size=2048)
    return f"""
name: x
sources: {{rows: {{path: {folder / "rows.parquet"}, kind: table}}}}
boxes: {{made: {{box: top_n, inputs: {{rows: rows}}, params: {{by: x, {params}}}}}}}
"""


@pytest.mark.parametrize("params", ["n: 4001", "n: 1501, keys: k"])
@pytest.mark.parametrize("here", [True, False])
def test_the_whole_of_a_large_top_n_looks_at_each_row_once_and_finds_what_its_rows_find(
    params: str, here: bool, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = highest(tmp_path, 20_000, params)
    monkeypatch.setattr("inverses.work.HERE", 2**24 if here else -1)
    whole = traced(text, tmp_path, spark, limits=Limits(cells=20_000))
    assert (whole.spark["jobs"] == 0) == here
    with pytest.raises(Refused, match="asked about as one"):
        whole.behind(0)
    assert words.asked_as_one(whole.plan)[0].startswith("asked about as one, by one more pass")
    found = set(whole.cells("rows")["y"].to_pylist())
    assert len(found) == len(whole.plan.selection)
    few = "y < 600"
    some = traced(text, tmp_path, spark, few)
    assert some.behind(0)
    assert set(some.cells("rows")["y"].to_pylist()) <= found
    monkeypatch.setattr("inverses.as_one.PAIRS", 0)
    monkeypatch.setattr("inverses.as_one.MORE", 0)
    again = traced(text, tmp_path, spark, few)
    assert again.cells("rows").equals(some.cells("rows"))
    assert again.guarantee("rows") == some.guarantee("rows")


def test_what_very_many_share_and_no_sweep_verifies_is_refused_before_it_is_read(
    tmp_path: Path, spark: SparkSession
) -> None:
    text = highest(tmp_path, 9000, "n: 9000, keys: k")
    unswept = replace(REGISTRY, sweeps=())
    with pytest.raises(TooDear, match=r"look at up to .* rows"):
        traced(text, tmp_path, spark, limits=Limits(cells=1_000_000), registry=unswept)


def test_rows_that_may_be_anywhere_are_looked_for_in_few_and_long_stretches(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[int] = []
    read = candidates.read
    monkeypatch.setattr(
        "inverses.work.read", lambda *given: pieces.append(len(given[1][1])) or read(*given)
    )
    values = np.random.default_rng(0).permutation(20_480)
    rows = pa.table({"a": values // 160, "b": values % 160, "c": values})
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=1024)
    text = f"""
name: x
sources: {{rows: {{path: {tmp_path / "rows.parquet"}, kind: table}}}}
boxes: {{made: {{box: project, inputs: {{rows: rows}}, params: {{columns: 'a, b'}}}}}}
"""
    answer = traced(text, tmp_path, spark)
    assert answer.lineage["rows"].chunks_read == 20
    assert sum(pieces) == 20_480 == len(answer.cells("rows"))
    assert all(len(answer.behind(n)["rows"]) == 1 for n in (0, 20_479))


def test_so_many_points_that_their_tracks_are_not_told_step_by_step_lose_nothing_behind_them(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
name: x
boxes:
  sky: {box: simulate_agcm, params: {resolution: 10, days: 8}}
  lows: {box: extract_minima, inputs: {field: sky}, params: {margin: 300}}
  made: {box: identify_tracks, inputs: {minima: lows}, params: {min_points: 3, near_km: 900}}
"""
    asked: dict[str, Any] = {"where": "time_index > 20", "attributes": ["track"]}
    one_by_one = traced(text, tmp_path, spark, **asked)
    for name, most in (("as_one.PAIRS", 0), ("as_one.MORE", 0), ("boxes.cyclones.MANY_STEPS", 10)):
        monkeypatch.setattr(f"inverses.{name}", most)
    many = traced(text, tmp_path, spark, **asked, limits=Limits(cells=70_000))
    for dataset in ("lows", "sky"):
        assert len(one_by_one.cells(dataset)) > 0
        found = set(map(str, many.cells(dataset).to_pylist()))
        assert found >= set(map(str, one_by_one.cells(dataset).to_pylist()))
        assert many.guarantee(dataset) == one_by_one.guarantee(dataset)
