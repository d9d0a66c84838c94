"""Rows that become cells hold every promise."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses.registry import Registry
from pipelines.boxes.gridding import GridRows, RasterizeTracks
from pipelines.contents import held_table
from pipelines.datasets import Attribute, Quantity, Table, Time
from tests.inverses.cases import VALUES, Case, Truth, check
from tests.laws import Items

REGISTRY = Registry.of()
MANY = settings(max_examples=max(300, settings().max_examples))
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


@MANY
@given(
    rows=points(),
    area=st.sampled_from(sorted(AREAS)),
    how=st.sampled_from(sorted(HOW)),
    by=st.sampled_from(sorted(STEPS)),
)
def test_grid_rows_holds_every_promise(rows: Table, area: str, how: str, by: str) -> None:
    params, step = STEPS[by]
    box = GridRows.from_params(
        {**AREAS[area], "lat": "y", "lon": "x", "how": how, "of": "v", **params}
    )
    name = "count" if how == "count" else "v"

    def forward(given: Given) -> dict[str, np.ndarray]:
        return {name: gridded(given["rows"], AREAS[area], box.steps, step, HOW[how])}

    besides = {"v": of_nothing(step, AREAS[area])}
    check(Case(box, {"rows": rows}, forward, besides=besides), REGISTRY, most=20)


@MANY
@given(rows=points(), area=st.sampled_from(sorted(AREAS)), count=st.booleans())
def test_rasterize_tracks_holds_every_promise(rows: Table, area: str, count: bool) -> None:
    box = RasterizeTracks.from_params(
        {**AREAS[area], "lat": "y", "lon": "x", "count": count, "track": "v", "step": "n",
         "steps": 2}
    )  # fmt: skip

    def forward(given: Given) -> dict[str, np.ndarray]:
        made = len if count else lambda inner: min(there(inner, "v"), default=np.nan)
        found = gridded(given["rows"], AREAS[area], 2, lambda r: r["n"], made)
        return {"count" if count else "v": found}

    besides = {"v": of_nothing(lambda r: r["n"], AREAS[area])}
    check(Case(box, {"rows": rows}, forward, besides=besides), REGISTRY, most=20)
