"""The demo, from the weather to the cells behind every point of every track."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.guarantees import COMPLETE, EXACT, PURE
from inverses.trace import trace
from pipelines.arrays import block
from pipelines.datasets import Array
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import column, matching
from pipelines.workspace import Workspace
from tests import laws, oracles
from tests.opened import opened_below
from tests.oracles import Point

MARGIN, NEAR, FAR, SHORTEST = 1000.0, 450.0, 900.0, 8
INDEX = ("time_index", "lat_index", "lon_index")


@pytest.fixture(scope="module")
def field(demo: Workspace) -> np.ndarray:
    agcm = demo.dataset("agcm")
    assert isinstance(agcm, Array)
    return block(agcm, "slp", {})


@pytest.fixture(scope="module")
def everything(demo: Workspace, spark: SparkSession) -> Answer:
    return trace(demo, "tracks", spark=spark)


def cells_of(answer: Answer, row: int) -> set[tuple[int, ...]]:
    """The cells behind one selected row of a trace of many."""
    found = answer.lineage["agcm"].rows.take(answer.behind(row)["agcm"])
    return set(zip(*(column(found, d).tolist() for d in ("time", "lat", "lon")), strict=True))


def points_of(rows: pa.Table) -> list[Point]:
    names = ("time_index", "hours", "lat", "lon", "lat_index", "lon_index")
    names += ("wind_speed", "wind_direction")
    return [Point(**{n: row[n] for n in names}) for row in rows.to_pylist()]


def test_the_minima_are_those_of_the_rule(demo: Workspace, field: np.ndarray) -> None:
    steps = [0, 35, 36, 60, 120, 239]
    rows = matching(demo.dataset("minima"), None)
    found = {key for key in laws.indices(rows) if key[0] in steps}
    expected = oracles.minima(field[steps], MARGIN, wraps=True)
    assert found == {(steps[t], y, x) for t, y, x in expected}


def test_the_tracks_are_those_of_the_rule(demo: Workspace) -> None:
    points = points_of(matching(demo.dataset("minima"), None))
    tracks = matching(demo.dataset("tracks"), None)
    found = dict(zip(laws.indices(tracks), tracks["track"].to_pylist(), strict=True))
    assert found == oracles.tracks(points, NEAR, FAR, SHORTEST)


def test_every_point_of_every_track_comes_from_exactly_the_cells_of_the_oracle(
    everything: Answer, field: np.ndarray
) -> None:
    assert everything.guarantee("minima") == everything.guarantee("agcm") == EXACT
    selected = everything.found[everything.plan.selection.dataset.name, "v1"].rows
    sizes = set()
    for row, key in enumerate(laws.indices(selected)):
        cells = cells_of(everything, row)
        assert cells == oracles.cells_behind(field, *key, MARGIN, True)
        sizes.add(len(cells))
    assert {9, 25} <= sizes


@pytest.mark.parametrize("asked", ["time", "location"])
def test_a_time_or_a_place_asked_about_alone_comes_from_the_point_s_own_minimum(
    asked: str, demo: Workspace, spark: SparkSession
) -> None:
    where = "track = 600001800129"
    alone, both = (trace(demo, "tracks", where, each, spark=spark) for each in ([asked], []))
    assert alone.guarantee("minima") == EXACT
    assert alone.lineage["minima"].rows.equals(both.lineage["minima"].rows)


def test_a_place_asked_about_alone_comes_from_the_same_cells(
    everything: Answer, demo: Workspace, spark: SparkSession
) -> None:
    alone = trace(demo, "tracks", None, ["location"], spark=spark)
    assert alone.guarantee("agcm") == EXACT
    assert alone.lineage["agcm"].rows.equals(everything.lineage["agcm"].rows)


def test_a_chunk_is_read_once_however_many_rows_need_it(
    everything: Answer, demo: Workspace
) -> None:
    agcm, minima = demo.dataset("agcm"), demo.dataset("minima")
    assert isinstance(agcm, Array)
    found = everything.lineage
    assert found["agcm"].chunks_read == -(-agcm.shape[0] // agcm.chunks[0])
    assert found["minima"].chunks_read == len(minima.groups)  # type: ignore[union-attr]
    assert everything.spark["jobs"] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux tells what is opened")
@pytest.mark.parametrize(("where", "chunks"), [(None, 10), ("time_index = 60", 1)])
def test_the_chunks_that_are_told_are_those_that_processes_open_and_each_is_opened_once(
    where: str | None, chunks: int, demo: Workspace, spark: SparkSession
) -> None:
    home = Path(demo.dataset("agcm").path)
    with opened_below(home) as opened:
        answer = trace(demo, "tracks", where, spark=spark)
    read = {name: times for name, times in opened.items() if name.startswith("slp/c/")}
    assert set(read.values()) == {1} and len(read) == answer.lineage["agcm"].chunks_read == chunks
    sizes = sum((home / name).stat().st_size for name in read)
    assert sizes <= answer.lineage["agcm"].bytes_read


def test_what_needs_no_verification_is_the_same_read_here_or_by_spark(
    everything: Answer, demo: Workspace, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inverses.work.HERE", -1)
    by_spark = trace(demo, "tracks", None, spark=spark)
    assert by_spark.spark["jobs"] == 2
    for name, found in everything.lineage.items():
        other = by_spark.lineage[name]
        assert other.rows.equals(found.rows) and other.chunks_read == found.chunks_read


def test_a_trace_of_a_track_is_a_trace_of_its_minima(demo: Workspace, spark: SparkSession) -> None:
    at_once = trace(demo, "tracks", "track = 600001800129", spark=spark)
    times = at_once.cells("minima").to_pylist()
    by_hand: set[tuple[int, ...]] = set()
    for row in times[:3]:
        where = " and ".join(f"{n} = {row[n]}" for n in INDEX)
        by_hand |= cells_of(trace(demo, "minima", where, ["time", "location"], spark=spark), 0)
    rows = at_once.lineage["agcm"].rows
    all_cells = set(zip(*(column(rows, d).tolist() for d in ("time", "lat", "lon")), strict=True))
    assert all_cells >= by_hand


@pytest.fixture(scope="module")
def short(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two days of the demo, few enough minima to take each away in turn."""
    text = """
        name: short
        boxes:
          agcm: {box: simulate_agcm, params: {days: 2}}
          minima: {box: extract_minima, inputs: {field: agcm}}
          tracks: {box: identify_tracks, inputs: {minima: minima}, params: {min_points: 4}}
    """
    workspace = Workspace.create(tmp_path_factory.mktemp("short"))
    run(Pipeline.from_text(text), workspace, spark)
    return workspace


def test_a_track_number_is_answered_completely_and_purely(
    short: Workspace, spark: SparkSession, request: pytest.FixtureRequest
) -> None:
    points = points_of(matching(short.dataset("minima"), None))
    complete = trace(short, "tracks", None, ["track"], "complete", spark=spark)
    pure = trace(short, "tracks", None, ["track"], "pure", spark=spark)
    assert complete.guarantee("minima") == {COMPLETE} and pure.guarantee("minima") == {PURE}
    keys = laws.indices(complete.found["tracks", "v1"].rows)
    few = range(0, len(keys), 1 if request.config.getoption("--night") else len(keys) // 3)
    for row in few:
        matter = oracles.removals_that_matter(points, keys[row], NEAR, FAR, 4)
        linked = oracles.linked_predecessors(points, keys[row], NEAR, FAR)
        laws.complete(_minima_behind(complete, row), matter | linked)
        laws.pure(_minima_behind(pure, row), linked)


def _minima_behind(answer: Answer, row: int) -> set[tuple[int, ...]]:
    found = answer.lineage["minima"].rows.take(answer.behind(row)["minima"])
    return set(laws.indices(found))


def test_what_cannot_be_met_is_said(demo: Workspace, spark: SparkSession) -> None:
    answer = trace(demo, "tracks", "track = 600001800129", ["track"], spark=spark)
    assert answer.plan.unmet == {PURE}
    assert answer.to_json()["unmet"] == ["pure"]
    assert answer.guarantee("agcm") == {COMPLETE}


def test_a_whole_row_unites_what_its_attributes_came_from(
    demo: Workspace, spark: SparkSession
) -> None:
    where = "time_index = 60 and lat_index = 18 and lon_index = 129"
    answer = trace(demo, "minima", where, ["all"], spark=spark)
    cells = answer.cells("agcm").to_pandas()
    assert cells.variable.value_counts().to_dict() == {"slp": 9, "u10": 1, "v10": 1}
    assert answer.guarantee("agcm") == EXACT


def test_cells_of_the_source_are_a_selection_too(demo: Workspace, spark: SparkSession) -> None:
    where = "time = '2000-01-16' and lat = 45 and lon between 320 and 325"
    answer = trace(demo, "agcm", where, ["slp"], spark=spark)
    assert answer.plan.hops == ()
    assert answer.cells("agcm")["value"].to_pylist()[1] == 87100.0


def test_the_planted_defects_make_wrong_tracks(demo: Workspace) -> None:
    defects = {d["name"]: d for d in demo.dataset("agcm").notes["defects"]}
    rows = matching(demo.dataset("tracks"), None).to_pandas()
    stuck = defects["stuck cell"]
    still = rows[(rows.lat_index == stuck["lat"][0]) & (rows.lon_index == stuck["lon"][0])]
    assert (still.groupby("track").size() >= 8).any()
    block_ = defects["corrupt block"]
    marching = rows[rows.time_index.between(block_["first"], block_["last"])]
    marching = marching[marching.lat_index == block_["lat"][1]].sort_values("time_index")
    west = marching.groupby("track").lon_index.apply(lambda x: (np.diff(x) == -2).sum())
    assert west.max() >= 8


def test_the_command_line_gives_the_same_cells(
    demo: Workspace, field: np.ndarray, tmp_path: Path
) -> None:
    point = matching(demo.dataset("tracks"), None).to_pylist()[1234]
    where = f"track = {point['track']} and time = '{point['time']}'"
    command = [str(Path(sys.executable).parent / "whence"), "trace", "tracks", "--where", where]
    export = ["--json", "--export", "cells.parquet", "-w", str(demo.path)]
    done = subprocess.run([*command, *export], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert 0 < answer["seconds"]["plan"] < answer["seconds"]["total"]
    cells = pq.read_table(tmp_path / "cells.parquet").to_pandas()
    found = set(zip(*(cells[n] for n in INDEX), strict=True))
    key = tuple(point[n] for n in INDEX)
    assert found == oracles.cells_behind(field, *key, MARGIN, True)
    assert answer["lineage"]["agcm"]["guarantee"] == ["complete", "pure"]
    assert answer["lineage"]["agcm"]["cells"] == len(found)
    assert answer["spark"]["jobs"] == 1
