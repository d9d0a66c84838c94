"""The rule for tracks: which minima of consecutive steps are linked, and which track each is in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.tables import column

EARTH_KM = 6371.0


def code(time: Any, lat: Any, lon: Any) -> Any:
    """A point's step, row and column in one number.

    >>> code(12, 34, 71)
    120003400071
    """
    return time * 10**10 + lat * 10**5 + lon


def uncoded(number: Any) -> tuple[Any, Any, Any]:
    """The step, row and column in a track's number.

    >>> uncoded(120003400071)
    (12, 34, 71)
    """
    return number // 10**10, number // 10**5 % 10**5, number % 10**5


@dataclass(frozen=True, slots=True)
class Points:
    """Minima by columns, in the order of step, row and column."""

    code: NDArray[np.int64]
    step: NDArray[np.int64]
    hours: NDArray[np.float64]
    lat: NDArray[np.float64]
    lon: NDArray[np.float64]
    speed: NDArray[np.float64]
    direction: NDArray[np.float64]

    def __getitem__(self, index: Any) -> Points:
        return Points(*(getattr(self, n)[index] for n in self.__slots__))


def points_of(rows: pa.Table) -> Points:
    """The minima in the rows of a table."""
    return points_in({n: column(rows, n) for n in rows.column_names})


def points_in(columns: Mapping[str, NDArray[Any]]) -> Points:
    """The minima in columns of the minima table, which may have no wind."""
    step, y, x = (columns[n] for n in ("time_index", "lat_index", "lon_index"))
    unknown = np.full(len(step), np.nan)
    names = ("hours", "lat", "lon", "wind_speed", "wind_direction")
    values = [columns.get(n, unknown).astype(float) for n in names]
    points = Points(code(step, y, x), step, *values)
    return points[np.argsort(points.code)]


def linked(points: Points, near_km: float, far_km: float) -> tuple[NDArray[np.int64], ...]:
    """Every link between consecutive steps, as the codes of its two points."""
    before: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    after: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    steps, starts = np.unique(points.step, return_index=True)
    ends = [*starts[1:], len(points.step)]
    for i in np.flatnonzero(np.diff(steps) == 1):
        here, there = points[starts[i] : ends[i]], points[starts[i + 1] : ends[i + 1]]
        a, b = mutual_best(costs(here, there, near_km, far_km))
        before.append(here.code[a])
        after.append(there.code[b])
    return np.concatenate(before), np.concatenate(after)


def costs(here: Points, there: Points, near_km: float, far_km: float) -> NDArray[np.float64]:
    """How well each point may be followed by each other, in metres; infinite if it may not."""
    apart = metres(here.lat, here.lon, there.lat, there.lon)
    drifted = drift(here, there.hours[0] - here.hours[0])
    off = metres(*drifted, there.lat, there.lon)
    by_wind = (apart <= far_km * 1000) & (off <= near_km * 1000)
    near = np.where(apart <= near_km * 1000, apart, np.inf)
    return np.minimum(near, np.where(by_wind, off, np.inf))


def mutual_best(cost: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of which each is the other's cheapest, the first among equals."""
    forth, back = cost.argmin(axis=1), cost.argmin(axis=0)
    rows = np.arange(len(cost))
    mutual = (back[forth] == rows) & np.isfinite(cost[rows, forth])
    return rows[mutual], forth[mutual]


def metres(lat1: Any, lon1: Any, lat2: Any, lon2: Any) -> NDArray[np.float64]:
    """Great-circle distances from each first point to each second, in whole metres."""
    phi1, phi2 = np.radians(lat1)[:, None], np.radians(lat2)[None, :]
    turn = np.radians(np.asarray(lon2)[None, :] - np.asarray(lon1)[:, None])
    height = np.sin((phi2 - phi1) / 2) ** 2
    chord = height + np.cos(phi1) * np.cos(phi2) * np.sin(turn / 2) ** 2
    return np.asarray(np.rint(2 * EARTH_KM * 1000 * np.arcsin(np.sqrt(np.clip(chord, 0, 1)))))


def drift(points: Points, hours: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where the wind at each point would carry it; NaN without wind."""
    phi, bearing = np.radians(points.lat), np.radians(points.direction + 180)
    arc = points.speed * hours * 3.6 / EARTH_KM
    up = np.sin(phi) * np.cos(arc) + np.cos(phi) * np.sin(arc) * np.cos(bearing)
    ahead = np.cos(phi) * np.cos(arc) - np.sin(phi) * np.sin(arc) * np.cos(bearing)
    turn = np.arctan2(np.sin(bearing) * np.sin(arc), ahead)
    return np.degrees(np.arcsin(np.clip(up, -1, 1))), points.lon + np.degrees(turn)


def labelled(
    before: NDArray[np.int64], after: NDArray[np.int64], min_points: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each point of a track that is long enough, in order, with the track's number."""
    track: dict[int, int] = {}
    for a, b in sorted(zip(before.tolist(), after.tolist(), strict=True)):
        track[b] = track.setdefault(a, a)
    point = np.array(sorted(track), np.int64)
    number = np.array([track[p] for p in point.tolist()], np.int64)
    _, which, count = np.unique(number, return_inverse=True, return_counts=True)
    kept = count[which] >= min_points if len(point) else np.zeros(0, bool)
    return point[kept], number[kept]
