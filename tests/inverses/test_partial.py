"""Running in part makes exactly the rows that a full run would, from only the chunks they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest
from pyspark.sql import SparkSession

from explorer.cli import main
from explorer.glances import Glances
from inverses import words
from inverses.partial import run_only
from inverses.trace import trace
from pipelines import arrays
from pipelines.comparison import compare
from pipelines.datasets import Array, Table
from pipelines.errors import Refused
from pipelines.here import Here
from pipelines.history import History
from pipelines.pipeline import Pipeline
from pipelines.predicates import parsed
from pipelines.run import run
from pipelines.tables import matching, schema_of
from pipelines.workspace import Workspace
from tests.files import grid

HERE = cast(SparkSession, Here(2))


def over(demo: Workspace) -> Pipeline:
    """The demo's pipeline over its field as a file from outside."""
    field = demo.dataset("agcm").path
    return Pipeline.from_text(
        f"name: part\nsources: {{agcm: {{path: {field}}}}}\nboxes:\n"
        "  minima: {box: extract_minima, inputs: {field: agcm}}\n"
        "  tracks: {box: identify_tracks, inputs: {minima: minima}}\n"
    )


@contextmanager
def watching_steps() -> Iterator[set[tuple[str, int]]]:
    """Which steps of which variables are read."""
    read, plainly = set(), arrays._values

    def values(array: Array, variable: str, ranges: list[tuple[Any, Any]]) -> Any:
        if array.content is None:
            read.update((variable, step) for step in range(*map(int, ranges[0])))
        return plainly(array, variable, ranges)

    with patch.object(arrays, "_values", values):
        yield read


@contextmanager
def watching_chunks(*sizes: int) -> Iterator[set[tuple[int, ...]]]:
    """Which chunks of so many cells along each dimension are read."""
    read, plainly = set(), arrays._values

    def values(array: Array, variable: str, ranges: list[tuple[Any, Any]]) -> Any:
        if array.content is None:
            along = zip(ranges, sizes, strict=True)
            read.update(product(*(range(int(a) // n, -(-int(b) // n)) for (a, b), n in along)))
        return plainly(array, variable, ranges)

    with patch.object(arrays, "_values", values):
        yield read


def rows(workspace: Workspace, name: str, where: str | None = None) -> list[str]:
    table = workspace.dataset(name)
    assert isinstance(table, Table)
    kept = parsed(where).expression(schema_of(table)) if where else None
    return sorted(map(str, matching(table, kept).to_pylist()))


@pytest.mark.parametrize(
    "name, where, steps",
    [
        ("minima", "time between '2000-01-20' and '2000-01-22' and lat between 20 and 60", 24),
        ("minima", "time = '2000-01-20' and pressure < 100000", 24),
        ("tracks", "time < '2000-01-10' and lat > 30", 48),
        ("minima", "lon > 300 or lon < 3", 240),
    ],
)
def test_only_the_rows_asked_for_are_made_from_only_the_chunks_they_need(
    demo: Workspace, tmp_path: Path, name: str, where: str, steps: int
) -> None:
    workspace = Workspace.create(tmp_path / "w")
    with watching_steps() as read:
        run_only(over(demo), workspace, HERE, f"{name}: {where}")
    assert rows(workspace, name) == rows(demo, name, where)
    assert len({step for _, step in read}) <= steps


WIDE = """
name: wide
sources: {{field: {{path: {}}}}}
boxes:
  smooth: {{box: window_mean, inputs: {{field: field}}}}
  found: {{box: extract_above, inputs: {{field: smooth}}, params: {{variable: slp, threshold: 0}}}}
"""


@pytest.mark.parametrize(
    "where, t, y, x",
    [
        ("time_index = 1 and lat_index = 5 and lon_index = 7", (1, 1), (5, 5), (7, 7)),
        ("time_index <= 1 and lat_index = 5 and lon_index = 17", (0, 1), (5, 5), (17, 17)),
        ("lat_index = 3 and lon_index = 0", (0, 3), (3, 3), (0, 0)),
        ("time_index = 2 and lat_index between 4 and 7", (2, 2), (4, 7), (0, 17)),
        ("time_index = 3 and lon_index between 7 and 10", (3, 3), (0, 11), (7, 10)),
    ],
)
def test_a_part_of_what_is_around_is_made_of_the_chunks_that_hold_a_neighbour_and_no_others(
    tmp_path: Path, where: str, t: tuple[int, int], y: tuple[int, int], x: tuple[int, int]
) -> None:
    field = np.random.default_rng(3).normal(0, 1, (4, 12, 18))
    chunks = {"slp": {"chunks": (2, 4, 6)}}
    grid(field, wind=()).to_zarr(tmp_path / "field", encoding=chunks, consolidated=False)
    pipeline = Pipeline.from_text(WIDE.format(tmp_path / "field"))
    part, whole = (Workspace.create(tmp_path / name) for name in ("part", "whole"))
    run(pipeline, whole, HERE)
    with watching_chunks(2, 4, 6) as read:
        run_only(pipeline, part, HERE, f"found: {where}")
    assert rows(part, "found") == rows(whole, "found", where)
    around = product(range(t[0], t[1] + 1), range(y[0] - 1, y[1] + 2), range(x[0] - 1, x[1] + 2))
    assert read == {(i // 2, j // 4, k % 18 // 6) for i, j, k in around if 0 <= j < 12}


@pytest.mark.parametrize(
    "name, where",
    [
        ("minima", "lat_index > 5"),
        ("minima", "lon_index <= 3 and time > '2000-01-20'"),
        ("minima", "lat_index >= 9223372036854775807"),
        ("tracks", "time_index > 100 and lat_index < 60"),
        ("tracks", "track > 300000000000 and time_index > 50 and lat > 20 and lon < 90"),
        ("tracks", "track < 300000000000 and time_index < 50 and lat > 20 and lon < 90"),
        ("tracks", "track > 900000000000 and time_index < 5 and lat > 20 and lon < 90"),
    ],
)
def test_a_bound_of_whole_numbers_that_is_open_holds_all_the_rest(
    demo: Workspace, tmp_path: Path, name: str, where: str
) -> None:
    workspace = Workspace.create(tmp_path / "w")
    run_only(over(demo), workspace, HERE, f"{name}: {where}")
    assert rows(workspace, name) == rows(demo, name, where)


def test_what_was_made_in_part_can_be_traced(demo: Workspace, tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "w")
    run_only(over(demo), workspace, HERE, "tracks: time < '2000-01-10'")
    assert not workspace.dataset("minima").kept
    with pytest.raises(Refused, match="was not kept"):
        trace(workspace, "minima", "lat > 30", spark=HERE)
    tracks = cast(Table, workspace.dataset("tracks"))
    assert len(Glances().points(workspace, tracks)) == tracks.rows
    row = matching(cast(Table, workspace.dataset("tracks")), None).to_pylist()[7]
    where = f"track = {row['track']} and time = '{row['time']}'"
    here, there = (trace(w, "tracks", where, spark=HERE) for w in (workspace, demo))
    assert here.cells("agcm").to_pylist() == there.cells("agcm").to_pylist()
    assert here.guarantee("agcm") == there.guarantee("agcm")
    assert any(": minima, 1 row made again; within " in line for line in words.told(here))


def test_runs_that_were_bounded_differently_are_told_apart(
    demo: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace.create(tmp_path / "w")
    for bound in ("time = '2000-01-20'", " time = '2000-01-21'"):
        run_only(over(demo), workspace, HERE, f"minima:{bound}")
    history = History.asked_of(workspace)
    second, first = (run.run for run in history.runs("minima: TIME")[0])
    (only,) = compare(history, first, second)
    assert (only.what, only.where) == ("parameter", "--only")
    assert (only.before, only.after) == (
        "minima: time = '2000-01-20'",
        "minima: time = '2000-01-21'",
    )
    assert main(["runs", "-w", str(workspace.path)]) == 0
    assert f"part, only {only.after}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "only, says",
    [
        ("tracks", "say a table and a predicate"),
        ("trakcs: lat > 3", "did you mean"),
        ("tracks: latt > 3", "latt"),
        ("tracks: lat > open('x')", "cannot use"),
    ],
)
def test_a_wrong_bound_is_refused(demo: Workspace, tmp_path: Path, only: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        run_only(over(demo), Workspace.create(tmp_path / "w"), HERE, only)
