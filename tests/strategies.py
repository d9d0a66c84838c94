"""Small worlds for hypothesis: a box, its input on disk, and what it made of it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import xarray as xr
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipelines import tables
from pipelines.arrays import chunks_of
from pipelines.boxes.box import Box, Grid
from pipelines.boxes.cyclones import METADATA, ExtractMinima, IdentifyTracks, SimulateAgcm
from pipelines.datasets import Array, Table
from pipelines.linking import code, labelled, linked, points_of
from pipelines.minima import minima_schema
from pipelines.run import array_of
from pipelines.tables import column, matching, write_part
from tests.oracles import Point

PASCALS = st.sampled_from([np.nan, -200.0, 0.0, 100.0, 200.0, 300.0, 400.0, 1000.0])
MINIMA = minima_schema(np.dtype("datetime64[us]"))
Cuts = tuple[tuple[tuple[int, ...], int], ...]


@dataclass(frozen=True)
class World:
    """One box with its input, what it made, and the raw values for oracles to look at."""

    box: Box
    source: Array | Table
    made: pa.Table
    field: np.ndarray | None = None
    points: tuple[Point, ...] = ()


def stored_field(
    slp: np.ndarray,
    chunks: tuple[int, ...],
    circular: bool,
    home: Path,
    wind: tuple[np.ndarray, np.ndarray] | None = None,
) -> Array:
    """A field as an array on disk, by default with a wind that tells all cells apart."""
    t, y, x = slp.shape
    coordinates = {
        "time": np.datetime64("2000-01-01", "ns") + np.arange(t) * np.timedelta64(6, "h"),
        "lat": np.linspace(80, -80, y) if y > 1 else np.array([0.0]),
        "lon": np.arange(x) * (360 / x if circular else 1.0),
    }
    u10, v10 = blowing(slp) if wind is None else wind
    values = {"slp": slp, "u10": u10, "v10": v10}
    path = Path(tempfile.mkdtemp(dir=home)) / "field.nc"
    dims = tuple(coordinates)
    data = xr.Dataset({n: (dims, v) for n, v in values.items()}, coordinates)
    data.to_netcdf(path, engine="netcdf4", format="NETCDF3_64BIT")
    lon = ("lon",) if circular else ()
    grid = Grid(coordinates, chunks, METADATA, circular=lon, dtype=np.float64)
    array = array_of("field", grid, SimulateAgcm.makes)
    return replace(array, path=str(path), version=path.parent.name, engine="netcdf4")


def blowing(slp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two components of a wind that tells all cells of a field apart."""
    number = np.arange(slp.size, dtype=float).reshape(slp.shape)
    return number, -number


def minima_of(box: ExtractMinima, array: Array) -> pa.Table:
    """The rows that the box makes, chunk by chunk, as its workers do."""
    cuts = [dict(zip(array.dims, c.ranges, strict=True)) for c in chunks_of(array, "slp")]
    parts = [box.minima_in(array, {d: (a, b + 1) for d, (a, b) in c.items()}) for c in cuts]
    return pa.concat_tables(pa.table(p, schema=MINIMA) for p in parts)


@st.composite
def fields(draw: st.DrawFn) -> tuple[np.ndarray, bool]:
    """A small field with plateaus, deep cells and missing ones, on a circle or not."""
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 7)), draw(st.integers(3, 8)))
    return draw(arrays(np.float64, shape, elements=PASCALS)), draw(st.booleans())


@st.composite
def chunk_grids(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A way to cut a shape into a few chunks."""
    cuts = tuple(draw(st.integers((n + 1) // 2, n)) for n in shape)
    axis = draw(st.sampled_from(range(len(shape))))
    return tuple(
        draw(st.integers(1, n)) if i == axis else c
        for i, (n, c) in enumerate(zip(shape, cuts, strict=True))
    )


@st.composite
def extracting(draw: st.DrawFn) -> ExtractMinima:
    """`extract_minima` with some margin."""
    return ExtractMinima(margin=draw(st.sampled_from([0.0, 50.0, 100.0, 400.0])))


@st.composite
def minima_worlds(draw: st.DrawFn, home: Path) -> World:
    """`extract_minima` over a small field."""
    slp, circular = draw(fields())
    array = stored_field(slp, draw(chunk_grids(slp.shape)), circular, home)
    box = draw(extracting())
    return World(box, array, minima_of(box, array), field=slp)


@st.composite
def point_sets(draw: st.DrawFn) -> tuple[Point, ...]:
    """A few minima at each of a few steps, some with wind, on a coarse globe."""
    places = st.tuples(st.integers(0, 6), st.integers(0, 11))
    found = []
    for step in range(draw(st.integers(2, 5))):
        for y, x in sorted(draw(st.sets(places, max_size=4))):
            speed = draw(st.sampled_from([float("nan"), 0.0, 60.0, 120.0]))
            wind = draw(st.sampled_from([0.0, 90.0, 200.0, 270.0]))
            found.append(Point(step, 6.0 * step, 90.0 - 30 * y, 30.0 * x, y, x, speed, wind))
    return tuple(found)


@st.composite
def newcomers(draw: st.DrawFn, points: tuple[Point, ...], most: int = 8) -> list[Point]:
    """Minima that are none of some, anywhere and at any step."""
    places = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 11))
    new = sorted(draw(st.sets(places, min_size=most, max_size=most)) - {p.key for p in points})
    return [Point(t, 6.0 * t, 90.0 - 30 * y, 30.0 * x, y, x, 120.0, 270.0) for t, y, x in new]


@st.composite
def table_cuts(draw: st.DrawFn, rows: int) -> Cuts:
    """A way to write some rows: in which order, how many to a file, how many to a row group."""
    if not rows:
        return ()
    order = draw(st.just(list(range(rows))) | st.permutations(range(rows)))
    in_file = draw(st.integers(-(-rows // 3), rows))
    in_group = draw(st.integers(1, in_file))
    return tuple((tuple(order[i : i + in_file]), in_group) for i in range(0, rows, in_file))


def stored_table(name: str, rows: pa.Table, cuts: Cuts, home: Path, **about: Any) -> Table:
    """Rows as a table on disk, cut as asked."""
    folder = Path(tempfile.mkdtemp(dir=home))
    groups = []
    for number, (positions, in_group) in enumerate(cuts):
        mine = rows.take(pa.array(positions)).to_batches()
        with patch.object(tables, "GROUP_ROWS", in_group):
            groups += write_part(mine, folder / f"{number}.parquet", rows.schema)
    types = {f.name: str(f.type) for f in rows.schema}
    place = {"version": folder.name, "path": str(folder), "groups": tuple(groups)}
    return Table(name=name, types=types, **place, **about)


def rows_of(points: tuple[Point, ...]) -> pa.Table:
    """Minima as rows."""
    start = np.datetime64("2000-01-01", "us")
    columns = {
        "time": [start + np.timedelta64(int(p.hours), "h") for p in points],
        "pressure": [100000.0 for _ in points],
    }
    for name in set(MINIMA.names) - set(columns):
        columns[name] = [getattr(p, name) for p in points]
    return pa.table({n: columns[n] for n in MINIMA.names}, schema=MINIMA)


def stored_points(points: tuple[Point, ...], home: Path, cuts: Cuts | None = None) -> Table:
    """Minima as a table on disk; in one row group unless cut otherwise."""
    whole = ((tuple(range(len(points))), len(points)),) if points else ()
    cuts = whole if cuts is None else cuts
    return stored_table("minima", rows_of(points), cuts, home, attributes=ExtractMinima.makes)


def tracks_of(box: IdentifyTracks, rows: pa.Table) -> pa.Table:
    """The rows that the box makes of all minima at once."""
    before, after = linked(points_of(rows), box.near_km, box.far_km)
    point, track = labelled(before, after, box.min_points)
    codes = code(*(column(rows, n) for n in ("time_index", "lat_index", "lon_index")))
    chosen = rows.take(pa.array([int(np.flatnonzero(codes == p)[0]) for p in point], pa.int64()))
    kept = [c for a in IdentifyTracks.makes[:2] for c in a.columns]
    return chosen.select(kept).append_column("track", pa.array(track, pa.int64()))


@st.composite
def identifying(draw: st.DrawFn) -> IdentifyTracks:
    """`identify_tracks` with some reach."""
    near = draw(st.sampled_from([1500.0, 3400.0, 5000.0]))
    far = draw(st.sampled_from([1000.0, 5000.0, 7000.0]))
    return IdentifyTracks(near_km=near, far_km=far, min_points=draw(st.integers(2, 3)))


@st.composite
def tracks_worlds(draw: st.DrawFn, home: Path) -> World:
    """`identify_tracks` over a few minima."""
    points = draw(point_sets().filter(len))
    box = draw(identifying())
    table = stored_points(points, home, draw(table_cuts(len(points))))
    return World(box, table, tracks_of(box, matching(table, None)), points=points)
