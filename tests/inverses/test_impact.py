"""What is derived from some cells is what those cells are behind, asked the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from inverses.guarantees import COMPLETE, EXACT, names
from inverses.impact import Impact, impact
from inverses.registry import Registry
from inverses.trace import trace
from pipelines.arrays import block, coordinate
from pipelines.datasets import Array, Table, TrackId
from pipelines.errors import Refused
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import matching
from pipelines.workspace import Workspace
from tests.files import cmip
from tests.oracles.linking import Point, links, tracks
from tests.oracles.pressure import Cell, cells_behind

HERE = cast(SparkSession, Here(2))
LINKED = (900.0, 1500.0, 3)
SMALL = """
name: small
boxes:
  agcm: {box: simulate_agcm, params: {days: 3.0, resolution: 10.0}}
  minima: {box: extract_minima, inputs: {field: agcm}}
  tracks: {box: identify_tracks, inputs: {minima: minima},
           params: {near_km: 900, far_km: 1500, min_points: 3}}
"""
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
    asked = ["time", "location", "pressure"]
    found = impact(demo, "agcm", where, attributes=asked, spark=HERE)
    cells = {_cell(c) for c in trace(demo, "agcm", where, spark=HERE).cells("agcm").to_pylist()}
    for name, pairs in every.items():
        derived = {_row(row) for row, behind in pairs if cells & {_cell(c) for c in behind}}
        mine = found.reached.get(demo.dataset(name).key)
        assert {_row(r) for r in mine.rows.to_pylist()} == derived if mine else not derived
        assert mine is None or (mine.guarantee == EXACT and set(mine.attributes) <= {*asked})


def _cell(cell: dict[str, Any]) -> tuple[Any, ...]:
    return cell["variable"], cell["time_index"], cell["lat_index"], cell["lon_index"]


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["time_index"], row["lat_index"], row["lon_index"]


def test_nothing_is_derived_from_the_last_dataset(demo: Workspace) -> None:
    found = impact(demo, "tracks", "lat > 60", spark=HERE)
    assert not found.reached and not found.elsewhere


def test_where_nothing_was_derived_that_is_promised_too(demo: Workspace) -> None:
    high = "time = '2000-01-16' and lat = 90 and lon = 0"
    found = impact(demo, "agcm", high, attributes=["location"], spark=HERE)
    assert not found.reached
    assert {key[0]: names(held) for key, held in found.elsewhere.items()} == {
        "minima": ["complete", "pure"],
        "tracks": ["complete", "pure"],
    }


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A few days of coarse weather with short tracks."""
    workspace = Workspace.create(tmp_path_factory.mktemp("small"))
    run(Pipeline.from_text(SMALL), workspace, HERE)
    return workspace


@pytest.fixture(scope="module")
def points(small: Workspace) -> list[Point]:
    columns = [f.name for f in fields(Point)]
    rows = matching(cast(Table, small.dataset("minima")), None).select(columns).to_pylist()
    return [Point(**row) for row in rows]


def depending(points: list[Point], gone: set[Cell]) -> set[Cell]:
    """The track points whose number is another, or that are none, without each of some minima."""
    before, onward = tracks(points, *LINKED), links(points, *LINKED[:2])
    found = {key for cell in gone for key in [*chained(cell, onward)] if key in before}
    for cell in gone:
        after = tracks([p for p in points if p.key != cell], *LINKED)
        found |= {key for key, number in before.items() if after.get(key) != number}
    return found


def chained(cell: Cell, onward: dict[Cell, Cell]) -> Iterator[Cell]:
    """A minimum and all that are linked after it."""
    yield cell
    while cell in onward:
        cell = onward[cell]
        yield cell


def rows_of(found: Impact, name: str) -> set[tuple[Any, ...]]:
    return {_row(r) for k, each in found.reached.items() if k[0] == name
            for r in each.rows.to_pylist()}  # fmt: skip


def test_track_points_whose_number_depends_on_a_minimum_are_derived_from_it(
    small: Workspace, points: list[Point]
) -> None:
    others = 0
    for point in points[::23]:
        t, y, x = point.key
        where = f"time_index = {t} and lat_index = {y} and lon_index = {x}"
        expected = depending(points, {point.key})
        found = impact(small, "minima", where, spark=HERE)
        assert expected <= rows_of(found, "tracks")
        others += len(expected - {point.key})
        for each in found.reached.values():
            assert each.attributes == ("time", "location", "track")
            assert COMPLETE in each.guarantee
    assert others > 20, "too little to be found beside the minima's own points"


def test_cells_lead_to_all_minima_and_track_points_that_brute_force_finds(
    small: Workspace, points: list[Point]
) -> None:
    field = cast(Array, small.dataset("agcm"))
    slp = block(field, "slp", {})
    behind = {p.key: cells_behind(slp, *p.key, 1000.0, wraps=True) for p in points}
    for t, y, x in [p.key for p in points[10::47]]:
        cell = (t, y, min(x + 1, field.shape[2] - 1))
        found = impact(small, "agcm", at_cell(field, cell), spark=HERE)
        minima = {key for key, cells in behind.items() if cell in cells}
        assert rows_of(found, "minima") == minima
        assert depending(points, minima) <= rows_of(found, "tracks")


def at_cell(field: Array, cell: Cell) -> str:
    values = [coordinate(field, d)[n] for d, n in zip(field.dims, cell, strict=True)]
    time, lat, lon = values
    return f"time = '{time.astype('datetime64[us]')}' and lat = {lat} and lon = {lon}"


def test_only_datasets_with_the_attributes_named_are_asked_about(small: Workspace) -> None:
    found = impact(small, "agcm", "time = '2000-01-02'", attributes=["track"], spark=HERE)
    assert {key[0]: each.attributes for key, each in found.reached.items()} == {
        "tracks": ("track",)
    }
    told = found.to_json()["impact"]["tracks"]
    assert told["attributes"] == ["track"] and told["guarantee"] == ["complete"]


def test_cells_that_were_derived_on_dates_of_another_calendar_are_told_with_them(
    tmp_path: Path,
) -> None:
    cmip(tmp_path / "cmip.nc")
    text = f"name: n\nsources: {{sky: {{path: {tmp_path / 'cmip.nc'}}}}}\nboxes:\n"
    workspace = Workspace.create(tmp_path / "w")
    smooth = "  smooth: {box: window_mean, inputs: {field: sky}}\n"
    run(Pipeline.from_text(text + smooth), workspace, HERE)
    found = impact(workspace, "sky", "time = '1850-02-28 06:00:00' and lat > 80", spark=HERE)
    (derived,) = found.reached.values()
    times = set(derived.table()["time"].to_pylist())
    assert times == {"1850-02-28 06:00:00"}
    assert {cell["time"] for cell in derived.to_json()["sample"]} == times


def test_an_attribute_that_nothing_derived_has_is_refused(small: Workspace) -> None:
    with pytest.raises(Refused, match='no attribute "trak" in what was derived; did you mean'):
        impact(small, "agcm", "lat > 80", attributes=["trak"], spark=HERE)
    with pytest.raises(Refused, match='no attribute "track" in what was derived'):
        impact(small, "tracks", attributes=["track"], spark=HERE)


def test_an_attribute_without_an_inverse_may_come_from_anything(small: Workspace) -> None:
    known = Registry.of()
    weak = tuple(w for w in known.weak if w.image is not TrackId)
    bare = replace(known, weak=weak, verifications=())
    every = matching(cast(Table, small.dataset("tracks")), None).num_rows
    found = impact(small, "minima", "time_index = 2", spark=HERE, registry=bare)
    (each,) = found.reached.values()
    assert each.rows.num_rows == every and "track" in each.attributes
