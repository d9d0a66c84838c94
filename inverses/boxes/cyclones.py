"""Where minima and tracks came from: the inverses that face `pipelines/boxes/cyclones.py`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import AGGREGATE, Inputs, Mask, Row, Seen, verifies, weakly_inverts
from inverses.sweeps import Asked, Swept, start_of, sweeps
from pipelines.arrays import Ranges, block
from pipelines.boxes.cyclones import ExtractMinima, IdentifyTracks
from pipelines.datasets import (
    ELEMENT,
    Array,
    Location,
    Pressure,
    Table,
    Time,
    TrackId,
    Wind,
    WindDirection,
    WindSpeed,
)
from pipelines.ends import further
from pipelines.filters import Filter, wrapped
from pipelines.linking import EARTH_KM, code, linked, points_in, uncoded
from pipelines.minima import (
    REACH,
    distinct_columns,
    halo,
    is_lowest,
    lacking,
    pressure_of,
    with_edges,
)
from pipelines.spans import Span

MANY_STEPS = 1_000_000  # of all points, past which what a point may reach is not told step by step


@weakly_inverts(ExtractMinima, image=Time, yields=[Time], promises=[COMPLETE, PURE, FAITHFUL])
@weakly_inverts(ExtractMinima, image=Pressure, yields=[Time], promises=[COMPLETE, PURE])
@weakly_inverts(ExtractMinima, image=WindSpeed, yields=[Time], promises=[COMPLETE, PURE])
@weakly_inverts(ExtractMinima, image=WindDirection, yields=[Time], promises=[COMPLETE, PURE])
@weakly_inverts(ExtractMinima, image=Location, yields=[Time], promises=[COMPLETE])
def same_step(box: ExtractMinima, at: Filter, source: Array) -> Filter:
    """A minimum comes from the step that bears its time."""
    return at.to(time=at.span("time_index"))


@verifies(
    ExtractMinima,
    image=Location,
    yields=[Time],
    needs=[COMPLETE],
    promises=[COMPLETE, PURE],
    pointwise=True,
)
def holds_place(box: ExtractMinima, at: Row, seen: Seen, source: Array) -> Mask:
    """A step counts if its array has the minimum's cell."""
    inside = (at["lat_index"] < source.size["lat"]) & (at["lon_index"] < source.size["lon"])
    return np.broadcast_to(inside, len(seen["time"]))


@weakly_inverts(
    ExtractMinima,
    image=Location,
    yields=[Pressure],
    nature=AGGREGATE,
    promises=[COMPLETE, FAITHFUL],
    level=ELEMENT,
)
def neighbourhood(box: ExtractMinima, at: Filter, source: Array) -> Filter:
    """A cell was called a minimum by cells at most two away from it."""
    lat, lon = at.span("lat_index"), at.span("lon_index")
    around = at.to(lat=lat and lat.grown(REACH), lon=lon and lon.grown(REACH))
    return wrapped(around, "lon", source.size["lon"]) if "lon" in source.circular else around


@verifies(
    ExtractMinima,
    image=Location,
    yields=[Pressure],
    nature=AGGREGATE,
    needs=[COMPLETE],
    promises=[COMPLETE, PURE],
    level=ELEMENT,
    at_once=True,
)
def criterion(box: ExtractMinima, at: Row, seen: Seen, source: Array) -> Mask:
    """The cell and its eight neighbours if they alone decided, else the whole five by five."""
    rows, columns = _apart(at, seen, source)
    near = (rows <= 1) & (columns <= 1)
    centre = (rows == 0) & (columns == 0)
    _, datum = np.unique(seen["owner"], return_inverse=True)
    lowest = np.full(datum.max(initial=-1) + 1, np.nan)
    lowest[datum[centre]] = seen["value"][centre]
    higher = np.isfinite(seen["value"]) & (seen["value"] > lowest[datum])
    decided = np.bincount(datum[near & ~centre & ~higher], minlength=len(lowest)) == 0
    return np.asarray(near | ~decided[datum])


def _apart(at: Row, seen: Seen, source: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many rows and columns each cell is away, the short way round."""
    columns = np.abs(seen["lon"] - at["lon_index"])
    if "lon" in source.circular:
        columns = np.minimum(columns, source.size["lon"] - columns)
    return np.abs(seen["lat"] - at["lat_index"]), columns


@weakly_inverts(
    ExtractMinima, image=Pressure, yields=[Pressure], promises=[COMPLETE, PURE], level=ELEMENT
)
def own_cell(box: ExtractMinima, at: Filter, source: Array) -> Filter:
    """A minimum's pressure is that of its cell."""
    return at.to(lat=at.span("lat_index"), lon=at.span("lon_index"))


OF_WIND: dict[str, Any] = {
    "yields": [Wind],
    "nature": AGGREGATE,
    "promises": [COMPLETE, PURE],
    "level": ELEMENT,
}


@weakly_inverts(ExtractMinima, image=WindSpeed, **OF_WIND)
@weakly_inverts(ExtractMinima, image=WindDirection, **OF_WIND)
def both_components(box: ExtractMinima, at: Filter, source: Array) -> Filter:
    """Speed and direction are made of the two components at the minimum's cell."""
    return own_cell(box, at, source)


@sweeps(ExtractMinima)
def deciding(
    box: ExtractMinima, asked: Asked, port: str, inputs: Inputs, ranges: Ranges
) -> Iterator[Swept]:
    """The cells that decided around each place of a block, the cell there, and the wind there."""
    field: Any = inputs[port]
    nowhere = np.zeros([stop - start for start, stop in ranges.values()], bool)
    places, own, *blown = (
        asked.get(n, nowhere) for n in ("location", "pressure", "wind_speed", "wind_direction")
    )
    wide, variable = halo(field, ranges), pressure_of(field)
    values = block(field, variable, wide)
    lowest = is_lowest(with_edges(values, ranges, wide), distinct_columns(field))
    kept = _within(0, own) | _within(1, places & lowest) | _within(REACH, places & ~lowest)
    yield Swept(variable, start_of(field, wide), values, kept[_cells_of(ranges, wide)])
    if np.any(blown):
        for name in (a.name for a in field.attributes if a.type == Wind):
            wind = block(field, name, ranges)
            yield Swept(name, start_of(field, ranges), wind, np.logical_or(*blown))


def _within(reach: int, places: Mask) -> Mask:
    """The cells of a block with a halo of two that are at most so far away from some places."""
    steps, rows, columns = places.shape
    found = np.zeros((steps, rows + 2 * REACH, columns + 2 * REACH), bool)
    for down, right in product(range(REACH - reach, REACH + reach + 1), repeat=2):
        found[:, down : down + rows, right : right + columns] |= places
    return found


def _cells_of(ranges: Ranges, wide: Ranges) -> tuple[slice, ...]:
    """Where in a block with a halo of two there are cells."""
    (north, _), (west, _) = lacking(ranges, wide)
    (top, bottom), (left, right) = wide["lat"], wide["lon"]
    return slice(None), slice(north, north + bottom - top), slice(west, west + right - left)


@weakly_inverts(IdentifyTracks, image=Time, yields=[Time], promises=[COMPLETE, PURE])
def same_time(box: IdentifyTracks, at: Filter, source: Table) -> Filter:
    """A track point bears the time of its minimum, which lies where it lies."""
    return at.to(**{name: at.span(name) for name in ("time_index", "lat_index", "lon_index")})


@weakly_inverts(IdentifyTracks, image=Location, yields=[Location], promises=[COMPLETE, PURE])
def same_place(box: IdentifyTracks, at: Filter, source: Table) -> Filter:
    """A track point lies where its minimum lies, which bears its time."""
    return same_time(box, at, source)


@weakly_inverts(
    IdentifyTracks,
    image=TrackId,
    yields=[Time, Location, WindSpeed, WindDirection],
    nature=AGGREGATE,
    promises=[COMPLETE, FAITHFUL],
)
def cone(box: IdentifyTracks, at: Filter, source: Table) -> Filter:
    """Only minima that a row of links could reach can have a say in a point's track.

    Going back, as far as the step before the track began; going on, as far as the shortest
    track reaches. Two steps more than the links themselves, for the rivals of the first link
    and the rivals of those. For very many points no more is told than up to which step.
    """
    number, step = at.span("track"), at.span("time_index")
    lat, lon = at.span("lat"), at.span("lon")
    if number is None or step is None or lat is None or lon is None or _endless(box, number, step):
        return at.to(time_index=step and _up_to(step, box.min_points))
    first = uncoded(number.low)[0] - 1
    steps = np.maximum(step.high + box.min_points - first, 0)
    spread, nth = at.repeated(steps)
    each = np.repeat(first, steps) + nth
    away = np.maximum(np.abs(each - spread.spans["time_index"].low),
                      np.abs(each - spread.spans["time_index"].high))  # fmt: skip
    return _caps(spread, each, (away + 2) * box.reach_km)


def _endless(box: IdentifyTracks, number: Span, step: Span) -> bool:
    """Whether there are more steps than are worth a box each: always, where ends are open."""
    last = step.high.astype(float) + box.min_points
    steps = np.maximum(last - uncoded(number.low)[0] + 1, 0)
    return bool(steps.sum() > MANY_STEPS)


def _up_to(step: Span, points: int) -> Span:
    """All steps before, since a track is as old as it may be, and those it must go on for."""
    return Span(np.zeros_like(step.low), further(step.high, points))


def _caps(at: Filter, step: NDArray[np.int64], km: NDArray[np.float64]) -> Filter:
    """At each step, the box of latitudes and longitudes around all points within a distance."""
    arc = np.minimum((km + 1) / EARTH_KM, np.pi)
    lat = at.spans["lat"].grown(np.degrees(arc))
    steepest = np.maximum(np.abs(at.spans["lat"].low), np.abs(at.spans["lat"].high))
    with np.errstate(invalid="ignore"):
        ratio = np.sin(np.minimum(arc, np.pi / 2)) / np.cos(np.radians(steepest))
        half = np.where(
            np.radians(steepest) + arc >= np.pi / 2, 360.0, np.degrees(np.arcsin(ratio))
        )
    lon = at.spans["lon"].grown(np.nan_to_num(half, nan=360.0) + 0.01)
    turns = [at.to(time_index=Span(step, step), lat=lat, lon=lon.moved(t)) for t in (0, 360, -360)]
    return turns[0] | turns[1] | turns[2]


@verifies(
    IdentifyTracks,
    image=TrackId,
    yields=[Time, Location, WindSpeed, WindDirection],
    nature=AGGREGATE,
    needs=[COMPLETE],
    promises=[PURE],
)
def chain(box: IdentifyTracks, at: Row, seen: Seen, source: Table) -> Mask:
    """The minima linked one after another from the track's first point up to this one."""
    points = points_in(seen)
    before, after = linked(points, box.near_km, box.far_km)
    came_from = dict(zip(after.tolist(), before.tolist(), strict=True))
    here: int | None = code(int(at["time_index"]), int(at["lat_index"]), int(at["lon_index"]))
    members = []
    while here is not None:
        members.append(here)
        here = came_from.get(here)
    codes = code(seen["time_index"], seen["lat_index"], seen["lon_index"])
    return np.isin(codes, members)
