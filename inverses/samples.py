"""Samples: small inputs in memory that fit a box's ports, to test its inverses on."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from pipelines.boxes.box import Box, Port
from pipelines.contents import held_array, held_table
from pipelines.datasets import (
    Array,
    Attribute,
    Location,
    Pressure,
    Quantity,
    Table,
    Text,
    Time,
    TrackId,
    Type,
    Wind,
    WindDirection,
    WindSpeed,
)

NUMBERS = st.sampled_from([1.0, 0.0, 2.0, 0.5, 2.5, 4.0, 7.0, -1.0, -1.5, -3.0, np.nan])
WORDS = ("p", "q")
SHAPES = (  # from so many to so many steps, rows and columns
    ((1, 2), (1, 3), (1, 4)),
    ((3, 6), (2, 2), (2, 3)),
    ((1, 2), (2, 2), (6, 10)),
    ((1, 1), (4, 8), (2, 3)),
)
LONG = (9, 12)  # of how many rows a table is, now and then
AIR = {"slp": Pressure, "u10": Wind, "v10": Wind}
PLAIN = {"a": Quantity, "b": Quantity}
UNITS = {"slp": "Pa", "u10": "m s-1", "v10": "m s-1"}
ROWS: Mapping[str, tuple[st.SearchStrategy[Any], pa.DataType, Type]] = {
    "k": (st.integers(0, 2), pa.int64(), Quantity),
    "s": (st.sampled_from(WORDS), pa.string(), Text),
    "x": (NUMBERS, pa.float64(), Quantity),
    "y": (NUMBERS, pa.float64(), Quantity),
}
PLACES = (
    Attribute("time", Time, ("time", "time_index", "hours")),
    Attribute("location", Location, ("lat", "lon", "lat_index", "lon_index")),
    Attribute("wind_speed", WindSpeed, ("wind_speed",), "m s-1"),
    Attribute("wind_direction", WindDirection, ("wind_direction",), "degrees"),
)
OTHERS = (Attribute("track", TrackId, ("track",)), Attribute("x", Quantity, ("x",)))
SOMEWHERE = {each.type for each in (*PLACES, *OTHERS)} - {Quantity}
Grid = tuple[Mapping[str, NDArray[Any]], tuple[str, ...]]
Place = tuple[int, int, int]
STARTS = [np.datetime64(day, "us") for day in ("2000-01-01", "1999-12-31T18")]
NORTHS = (60.0, 90.0, 30.0)  # the first row of a coarse field, from where it may reach a pole
WESTS = (0.0, float(np.float32(0.1)))  # its first column
START = STARTS[0]


@dataclass(frozen=True, slots=True)
class Sample:
    """A box with parameters, and inputs for its ports."""

    box: Box
    inputs: Mapping[str, Table | Array]


@st.composite
def samples(draw: st.DrawFn, kind: type[Box]) -> Sample:
    """A box with some of its example parameters, over small inputs."""
    box = kind.from_params(draw(st.sampled_from(kind.examples)))
    grid = draw(grids())
    return Sample(box, {port.name: draw(inputs_for(port, grid)) for port in box.takes})


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Some steps and places, on a circle or not; arrays at all ports of a box share them."""
    steps, rows, columns = (draw(st.integers(*ends)) for ends in draw(st.sampled_from(SHAPES)))
    circular = draw(st.booleans())
    start, north = draw(st.sampled_from(STARTS)), draw(st.sampled_from(NORTHS))
    west = draw(st.sampled_from(WESTS))
    coordinates = {
        "time": start.astype("datetime64[ns]") + np.arange(steps) * np.timedelta64(6, "h"),
        "lat": north - (60.0 if rows <= 3 else 15.0) * np.arange(rows) if rows > 1 else np.zeros(1),
        "lon": west + np.arange(columns) * (360 / columns if circular else 10.0),
    }
    return coordinates, ("lon",) if circular else ()


def inputs_for(port: Port, grid: Grid) -> st.SearchStrategy[Table | Array]:
    """Datasets that fit a port."""
    if port.kind == "array":
        return small_arrays(port, grid)
    return small_places(port) if SOMEWHERE & {*port.needs} else small_tables(port)


def variables_for(port: Port) -> dict[str, Type]:
    """The variables of an array for a port: air or numbers, and one for any other type it needs."""
    known = AIR if {*AIR.values()} & {*port.needs} else PLAIN
    return known | lacking(port, {Time, Location, *known.values()})


def lacking(port: Port, known: Set[Type]) -> dict[str, Type]:
    """What a port needs besides types that are known, each by a name of its own."""
    return {f"some_{each.name.lower()}": each for each in port.needs if each not in known}


@st.composite
def small_arrays(draw: st.DrawFn, port: Port, grid: Grid) -> Array:
    """A few steps of a coarse field, cut anyhow."""
    coordinates, circle = grid
    sizes, types = tuple(map(len, coordinates.values())), variables_for(port)
    described = (Attribute(v, t, (v,), UNITS.get(v, "1"), ("lat", "lon")) for v, t in types.items())
    values = {v: draw(arrays(np.float64, sizes, elements=NUMBERS)) for v in types}
    chunks = tuple(draw(st.integers(1, n)) for n in sizes)
    attributes = (Attribute("time", Time, ("time",)), *described)
    return held_array(port.name, attributes, coordinates, values, chunks, circle)


@st.composite
def small_tables(draw: st.DrawFn, port: Port) -> Table:
    """A few rows with equal ones among them, in groups of any size."""
    more = lacking(port, {each for *_, each in ROWS.values()})
    columns = {**ROWS, **{name: (NUMBERS, pa.float64(), each) for name, each in more.items()}}
    row = st.fixed_dictionaries({c: values for c, (values, _, _) in columns.items()})
    few, many = st.lists(row, max_size=6), st.lists(row, min_size=LONG[0], max_size=LONG[1])
    drawn = draw(st.one_of(*[few] * 5, many))
    schema = pa.schema([(c, kind) for c, (_, kind, _) in columns.items()])
    attributes = tuple(Attribute(c, meaning, (c,)) for c, (_, _, meaning) in columns.items())
    rows = pa.Table.from_pylist(drawn, schema)
    return held_table(port.name, attributes, rows, draw(st.integers(1, max(1, len(drawn)))))


def somewhere(least: int, most: int) -> st.SearchStrategy[set[Place]]:
    """Steps with rows and columns."""
    places = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 7))
    return st.sets(places, min_size=least, max_size=most)


@st.composite
def on_a_way(draw: st.DrawFn) -> set[Place]:
    """Places of which each is beside that of the step before, and a few others."""
    row, column = draw(st.integers(0, 4)), draw(st.integers(0, 7))
    rows = [min(4, max(0, row + draw(st.integers(-1, 1)))) for _ in range(4)]
    return {(step, each, column) for step, each in enumerate(rows)} | draw(somewhere(0, 4))


@st.composite
def small_places(draw: st.DrawFn, port: Port) -> Table:
    """A few rows that lie somewhere at some step, no two in one place at once."""
    found = sorted(draw(st.one_of(somewhere(1, 6), on_a_way())))
    step, row, column = (np.array(c, np.int64) for c in zip(*found, strict=True))
    numbers = st.lists(NUMBERS, min_size=len(found), max_size=len(found))
    more = lacking(port, {*SOMEWHERE, Quantity})
    rows = pa.table(
        {
            "time": START + step * np.timedelta64(6, "h"),
            "time_index": step,
            "hours": step * 6.0,
            "lat": 60.0 - 30.0 * row,
            "lon": 45.0 * column,
            "lat_index": row,
            "lon_index": column,
            "wind_speed": draw(numbers),
            "wind_direction": draw(numbers),
            "track": draw(st.lists(st.integers(0, 2), min_size=len(found), max_size=len(found))),
            "x": draw(numbers),
            **{name: draw(numbers) for name in more},
        }
    )
    known = (*PLACES, *OTHERS, *(Attribute(name, each, (name,)) for name, each in more.items()))
    return held_table(port.name, known, rows, draw(st.integers(1, len(found))))
