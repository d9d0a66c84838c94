"""Rows that become cells hold every promise."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses.registry import Registry
from pipelines.binning import numbers
from pipelines.boxes.box import Box
from pipelines.boxes.gridding import GridRows, RasterizeTracks, RowsOnGrid
from pipelines.contents import held_table
from pipelines.datasets import Attribute, Quantity, Table, Time
from pipelines.errors import Refused
from pipelines.filters import Filter
from tests.inverses.cases import VALUES, Case, Truth, check
from tests.inverses.families import MANY, PATIENCE
from tests.inverses.wrong import assert_caught, everything_passes, first_rows, registry_with
from tests.laws import Items

REGISTRY = Registry.of()
pytestmark = PATIENCE
Rows = list[dict[str, Any]]
Given = Mapping[str, Rows]
FIRST, HALF_A_DAY = datetime(2000, 1, 1), timedelta(hours=12)
SCHEMA = pa.schema(
    [
        ("t", pa.timestamp("us")),
        ("n", pa.int64()),
        ("y", pa.float64()),
        ("x", pa.float64()),
        ("v", pa.float64()),
    ]
)
ROW = st.fixed_dictionaries(
    {
        "t": st.sampled_from([FIRST + timedelta(hours=h) for h in (-1, 0, 5, 12, 30)]),
        "n": st.integers(-1, 2),
        "y": st.sampled_from([-100.0, -90.0, -31.0, 1.0, 44.0, 89.5, np.nan]),
        "x": st.sampled_from([-185.0, -100.0, -10.0, 10.0, 100.0, 190.0, 359.0, np.nan]),
        "v": VALUES,
    }
)


@st.composite
def points(draw: st.DrawFn) -> Table:
    rows = draw(st.lists(ROW, max_size=5))
    kinds = [Time, *[Quantity] * 4]
    attributes = tuple(Attribute(f.name, k, (f.name,)) for f, k in zip(SCHEMA, kinds, strict=True))
    in_group = draw(st.integers(1, max(1, len(rows))))
    return held_table("points", attributes, pa.Table.from_pylist(rows, SCHEMA), in_group)


AREAS = {
    "round": {"resolution": 90.0, "south": -90.0, "north": 90.0, "west": -180.0, "east": 180.0},
    "part": {"resolution": 60.0, "south": -60.0, "north": 60.0, "west": -30.0, "east": 150.0},
}


def cell_of(row: Mapping[str, Any], area: Mapping[str, float]) -> tuple[int, int] | None:
    """The row and column of the cell that a point is in, by arithmetic."""
    size, lat, lon = area["resolution"], row["y"], row["x"]
    if area["east"] - area["west"] == 360:
        lon = (lon - area["west"]) % 360 + area["west"]
    if not (area["south"] <= lat <= area["north"] and area["west"] <= lon < area["east"]):
        return None
    rows = round((area["north"] - area["south"]) / size)
    return min(int((lat - area["south"]) // size), rows - 1), int((lon - area["west"]) // size)


def gridded(rows: Rows, area: Mapping[str, float], steps: int, step: Any, made: Any) -> np.ndarray:
    """What is made of the rows in each cell."""
    tall = round((area["north"] - area["south"]) / area["resolution"])
    wide = round((area["east"] - area["west"]) / area["resolution"])
    found = np.empty((steps, tall, wide))
    for place in np.ndindex(found.shape):
        inner = [r for r in rows if cell_of(r, area) == place[1:] and step(r) == place[0]]
        found[place] = made(inner)
    return found


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else np.nan


def there(rows: Rows, name: str) -> list[float]:
    return [float(r[name]) for r in rows if r[name] == r[name]]


HOW = {
    "count": len,
    "mean": lambda rows: mean(there(rows, "v")),
    "max": lambda rows: max(there(rows, "v"), default=np.nan),
}


def of_nothing(step: Any, area: Mapping[str, float]) -> Truth:
    """Where no row in a cell has a value, all of them are behind its absence."""

    def stated(given: Given, port: str, datum: tuple[Any, ...]) -> Items:
        rows = list(enumerate(given[port]))
        inner = [(n, r) for n, r in rows if (step(r), cell_of(r, area)) == (datum[1], datum[2:])]
        return set() if there([r for _, r in inner], "v") else {(n,) for n, _ in inner}

    return stated


STEPS = {
    "t": ({"time": "t", "every": 12.0, "steps": 2}, lambda r: (r["t"] - FIRST) // HALF_A_DAY),
    "n": ({"time": "n", "start": "0", "every": 1.0, "steps": 2}, lambda r: r["n"]),
    "": ({"time": ""}, lambda r: 0),
}


@st.composite
def gridded_rows(draw: st.DrawFn) -> Case:
    area = AREAS[draw(st.sampled_from(sorted(AREAS)))]
    how = draw(st.sampled_from(sorted(HOW)))
    params, step = STEPS[draw(st.sampled_from(sorted(STEPS)))]
    box = GridRows.from_params({**area, **PLACE, "how": how, "of": "v", **params})
    name = "count" if how == "count" else f"v_{how}"

    def forward(given: Given) -> dict[str, np.ndarray]:
        return {name: gridded(given["rows"], area, box.steps, step, HOW[how])}

    besides = {} if how == "count" else {name: of_nothing(step, area)}
    return Case(box, {"rows": draw(points())}, forward, besides=besides)


def its_step(row: Mapping[str, Any]) -> int:
    return int(row["n"])


@st.composite
def rasterized(draw: st.DrawFn) -> Case:
    area, count = AREAS[draw(st.sampled_from(sorted(AREAS)))], draw(st.booleans())
    params = {"count": count, "track": "v", "step": "n", "steps": 2}

    def forward(given: Given) -> dict[str, np.ndarray]:
        made = len if count else lambda inner: min(there(inner, "v"), default=np.nan)
        found = gridded(given["rows"], area, 2, its_step, made)
        return {"count" if count else "track": found}

    box = RasterizeTracks.from_params({**area, **PLACE, **params})
    return Case(
        box, {"rows": draw(points())}, forward, besides={"track": of_nothing(its_step, area)}
    )


PLACE = {"lat": "y", "lon": "x"}
WORLDS = {GridRows: gridded_rows(), RasterizeTracks: rasterized()}


@pytest.mark.parametrize("kind", WORLDS)
def test_every_promise_holds(kind: type[Box]) -> None:
    @settings(max_examples=MANY)
    @given(case=WORLDS[kind])
    def holds(case: Case) -> None:
        check(case, REGISTRY, most=20)

    holds()


def no_turns(box: RowsOnGrid, at: Filter, source: Table) -> Filter:
    """It forgets that longitudes may be given from -180 and from 0."""
    name, bins = box.bins(source)["lon"]
    lat, rows = box.bins(source)["lat"]
    once = bins.spans(at.span("lon"), len(at))[-1]
    return at.to(**{name: once, lat: rows.spans(at.span("lat"), len(at))[0]})


WRONG = {
    "forgets the turns": (gridded_rows, "rows_in_cell", {"function": no_turns}),
    "tells of a part of a region": (gridded_rows, "rows_in_cell", {"function": first_rows}),
    "tells of a part of tracks": (rasterized, "rows_in_cell", {"function": first_rows}),
    "takes all for a max": (gridded_rows, "counted_in_cell", {"function": everything_passes}),
    "takes all for a track": (rasterized, "counted_in_cell", {"function": everything_passes}),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_inverse_is_caught(fault: str) -> None:
    cases, name, changed = WRONG[fault]
    registry = registry_with(name, **changed)
    saying = "missing|not behind it|unfaithful"
    assert_caught(lambda data: check(data.draw(cases()), registry, most=20), saying)


@given(rows=points(), first=st.integers(0, 1), area=st.sampled_from(sorted(AREAS)))
@settings(max_examples=50)
def test_a_block_is_the_same_by_itself(rows: Table, first: int, area: str) -> None:
    params = {"how": "mean", "of": "v", "time": "t", "every": 12.0, "steps": 2}
    box = GridRows.from_params({**AREAS[area], **PLACE, **params})
    shape = box.grid({"rows": rows}).shape
    whole = box.block({"rows": rows}, dict(zip(DIMS, [(0, n) for n in shape], strict=True)))[
        "v_mean"
    ]
    part = {"time": (first, 2), "lat": (0, 1), "lon": (first, shape[2])}
    np.testing.assert_array_equal(
        box.block({"rows": rows}, part)["v_mean"], whole[first:, :1, first:], strict=True
    )


DIMS = ("time", "lat", "lon")
ATTRIBUTES = {"rows": tuple(Attribute(c, Quantity, (c,)) for c in ("lat", "lon", "time", "v"))}
REFUSED = {
    "of which column is the mean": {"how": "mean"},
    "no way to put rows together": {"how": "median"},
    'no column "w"': {"how": "max", "of": "w"},
    "need a column each": {"lat": "lon"},
}


@pytest.mark.parametrize("saying", REFUSED)
def test_what_cannot_be_is_refused_when_a_pipeline_is_checked(saying: str) -> None:
    with pytest.raises(Refused, match=saying):
        GridRows.from_params(REFUSED[saying]).attributes_of(ATTRIBUTES)


def test_a_grid_that_is_too_fine_or_of_no_numbers_is_refused() -> None:
    columns = {"lat": ["a"], "lon": [1.0], "v": [1.0]}
    table = held_table("r", ATTRIBUTES["rows"], pa.table(columns))
    with pytest.raises(Refused, match='"lat" is string, not a number'):
        GridRows(time="").grid({"rows": table})
    with pytest.raises(Refused, match="64,800,000,000 cells"):
        GridRows(resolution=0.001, time="", lat="v").grid({"rows": table})


FAR_OFF: dict[str, dict[str, Any]] = {
    "before": {"start": "1500-06-01"},
    "after": {"start": "2290-06-01"},
    "reaches past": {"start": "1850-01-01", "every": 87_660.0, "steps": 45},
    "in long steps": {"every": 1e10, "steps": 2},
    "in steps without end": {"every": 1e308, "steps": 2},
    "farther than microseconds": {"start": "300000-01-01"},
}


@pytest.mark.parametrize("when", FAR_OFF)
def test_dates_that_nanoseconds_cannot_tell_are_refused(when: str) -> None:
    told = {("hours" if k == "every" else k): v for k, v in FAR_OFF[when].items()}
    rows = held_table("points", (), pa.Table.from_pylist([], SCHEMA))
    for box in (
        GridRows.from_params({**PLACE, "time": "t", **FAR_OFF[when]}),
        RasterizeTracks.from_params({**PLACE, "step": "n", "track": "v", "steps": 2, **told}),
    ):
        with pytest.raises(Refused, match="not all of the years 1678 to 2262"):
            box.grid({"rows": rows})


@pytest.mark.parametrize("start", ["NaT", "now", "today", "yesterday"])
def test_a_start_that_is_no_date_is_refused(start: str) -> None:
    rows = held_table("points", (), pa.Table.from_pylist([], SCHEMA))
    with pytest.raises(Refused, match=f'start is "{start}", not a time'):
        GridRows.from_params({**PLACE, "time": "t", "start": start}).grid({"rows": rows})


@pytest.mark.parametrize("start", ["nan", "inf", "first"])
def test_a_start_that_no_number_follows_is_refused(start: str) -> None:
    with pytest.raises(Refused, match="not a number to count from"):
        numbers(start, 1.0, 2)


def test_one_step_is_as_long_as_one_likes() -> None:
    rows = held_table("points", (), pa.Table.from_pylist([], SCHEMA))
    box = GridRows.from_params({**PLACE, "time": "", "start": "1700-01-01", "every": 1e308})
    found = box.grid({"rows": rows}).coordinates["time"]
    assert found.tolist() == np.array(["1700-01-01"], "datetime64[ns]").tolist()


def test_a_grid_that_does_not_come_out_even_is_refused() -> None:
    table = held_table("r", ATTRIBUTES["rows"], pa.table({c: [1.0] for c in ("lat", "lon", "v")}))
    with pytest.raises(Refused, match="cells of 7 degrees do not fill -90 to 90 evenly"):
        GridRows(resolution=7.0, time="").grid({"rows": table})
