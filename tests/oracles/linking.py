"""Brute-force truth about tracks: which minima are linked, and which have a say in a number."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from tests.oracles.pressure import Cell

EARTH_RADIUS_KM = 6371
KM_PER_HOUR = 3.6  # of one metre per second


@dataclass(frozen=True)
class Point:
    """A minimum as tracking sees it; no two points of one tracking share a key.

    The wind comes *from* `wind_direction`, in degrees clockwise from north; NaN where unknown.

    >>> Point(3, 18.0, 45.0, 10.0, 18, 4, math.nan, math.nan).key
    (3, 18, 4)
    """

    time_index: int
    hours: float
    lat: float
    lon: float
    lat_index: int
    lon_index: int
    wind_speed: float
    wind_direction: float

    @property
    def key(self) -> Cell:
        """The cell the point was found in."""
        return (self.time_index, self.lat_index, self.lon_index)

    @property
    def has_wind(self) -> bool:
        """Whether both the speed and the direction of the wind are known."""
        return not (math.isnan(self.wind_speed) or math.isnan(self.wind_direction))


def _metres(km: float) -> int:
    return round(km * 1000)


@cache
def distance_m(lat1: float, lon1: float, lat2: float, lon2: float) -> int:
    """The great-circle distance between two places, by haversine, in whole metres.

    >>> distance_m(0, 0, 0, 1)
    111195
    >>> distance_m(0, 359, 0, 0) == distance_m(0, 0, 0, 1)
    True
    >>> distance_m(90, 0, 90, 135)
    0
    """
    south, north = math.radians(lat1), math.radians(lat2)
    across = math.radians(lon2) - math.radians(lon1)
    haversine = (
        math.sin((north - south) / 2) ** 2
        + math.cos(south) * math.cos(north) * math.sin(across / 2) ** 2
    )
    return _metres(2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, haversine))))


@cache
def moved(lat: float, lon: float, bearing: float, km: float) -> tuple[float, float]:
    """The latitude and longitude reached by leaving a place along a great circle.

    >>> quarter = EARTH_RADIUS_KM * math.pi / 2
    >>> [round(degrees, 6) for degrees in moved(0, 10, bearing=90, km=quarter)]
    [0.0, 100.0]
    >>> [round(degrees, 6) for degrees in moved(90, 10, bearing=180, km=quarter)]
    [0.0, 10.0]
    """
    phi, lam, course = math.radians(lat), math.radians(lon), math.radians(bearing)
    arc = float(km) / EARTH_RADIUS_KM
    # unit vectors rather than spherical trigonometry: these stay exact at the poles
    up = (math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi))
    north = (-math.sin(phi) * math.cos(lam), -math.sin(phi) * math.sin(lam), math.cos(phi))
    east = (-math.sin(lam), math.cos(lam), 0.0)
    x, y, z = (
        u * math.cos(arc) + (n * math.cos(course) + e * math.sin(course)) * math.sin(arc)
        for u, n, e in zip(up, north, east, strict=True)
    )
    return math.degrees(math.atan2(z, math.hypot(x, y))), math.degrees(math.atan2(y, x))


def drifted(point: Point, hours: float) -> tuple[float, float]:
    """Where its wind has carried the point after some hours.

    >>> westerly = Point(0, 0.0, 0.0, 0.0, 0, 0, wind_speed=10.0, wind_direction=270.0)
    >>> lat, lon = drifted(westerly, hours=6)
    >>> round(lat, 6), distance_m(0, 0, lat, lon)
    (0.0, 216000)
    """
    km = float(point.wind_speed) * float(hours) * KM_PER_HOUR
    return moved(point.lat, point.lon, float(point.wind_direction) + 180, km)


def cost(a: Point, b: Point, near_km: float, far_km: float) -> int | None:
    """What it costs, in metres, that `a` becomes `b`; None if `b` is no candidate.

    >>> still = Point(0, 0.0, 0.0, 0.0, 0, 0, math.nan, math.nan)
    >>> west_wind = Point(0, 0.0, 0.0, 0.0, 0, 0, 10.0, 270.0)
    >>> later = Point(1, 6.0, 0.0, 2.0, 0, 1, math.nan, math.nan)
    >>> cost(still, later, 300, 900), cost(west_wind, later, 300, 900)
    (222390, 6390)
    >>> cost(still, later, 100, 900), cost(west_wind, later, 100, 900)
    (None, 6390)
    """
    apart = distance_m(a.lat, a.lon, b.lat, b.lon)
    costs = [apart] if apart <= _metres(near_km) else []
    if a.has_wind and apart <= _metres(far_km):
        missed = distance_m(*drifted(a, b.hours - a.hours), b.lat, b.lon)
        costs += [missed] if missed <= _metres(near_km) else []
    return min(costs, default=None)


def links(points: Iterable[Point], near_km: float, far_km: float) -> dict[Cell, Cell]:
    """From each point to its successor: the pairs that are each other's best candidate.

    >>> a = Point(0, 0.0, 0.0, 0.0, 5, 0, math.nan, math.nan)
    >>> north = Point(1, 6.0, 1.0, 0.0, 4, 0, math.nan, math.nan)
    >>> south = Point(1, 6.0, -1.0, 0.0, 6, 0, math.nan, math.nan)
    >>> links([a, south, north], near_km=300, far_km=900)
    {(0, 5, 0): (1, 4, 0)}
    """
    step: dict[int, list[Point]] = defaultdict(list)
    for point in points:
        step[point.time_index].append(point)
    after: dict[Cell, list[tuple[int, Cell]]] = defaultdict(list)
    before: dict[Cell, list[tuple[int, Cell]]] = defaultdict(list)
    for a, b in ((a, b) for t in sorted(step) for a in step[t] for b in step.get(t + 1, [])):
        price = cost(a, b, near_km, far_km)
        if price is not None:
            after[a.key].append((price, b.key))
            before[b.key].append((price, a.key))
    # rivals share a time index, so the key settles equal costs by latitude, then longitude
    best_after = {key: min(candidates)[1] for key, candidates in after.items()}
    best_before = {key: min(candidates)[1] for key, candidates in before.items()}
    return {a: b for a, b in best_after.items() if best_before[b] == a}


def _chain(start: Cell, onward: dict[Cell, Cell]) -> list[Cell]:
    chain = [start]
    while chain[-1] in onward:
        chain.append(onward[chain[-1]])
    return chain


def track_number(first: Cell) -> int:
    """The number of the track that begins at a point.

    >>> track_number((12, 34, 56))
    120003400056
    """
    time_index, lat_index, lon_index = first
    return time_index * 10**10 + lat_index * 10**5 + lon_index


def tracks(
    points: Iterable[Point], near_km: float, far_km: float, min_points: int
) -> dict[Cell, int]:
    """The track number of every point whose track is long enough to be kept.

    >>> walk = [Point(t, 6.0 * t, 0.0, 1.0 * t, 0, t, math.nan, math.nan) for t in range(3)]
    >>> tracks(walk, near_km=300, far_km=900, min_points=3)
    {(0, 0, 0): 0, (1, 0, 1): 0, (2, 0, 2): 0}
    >>> tracks(walk[1:], near_km=300, far_km=900, min_points=3)
    {}
    """
    points = list(points)
    onward = links(points, near_km, far_km)
    starts = sorted({point.key for point in points} - set(onward.values()))
    chains = [_chain(start, onward) for start in starts]
    kept = [chain for chain in chains if len(chain) >= min_points]
    return {key: track_number(chain[0]) for chain in kept for key in chain}


def linked_predecessors(
    points: Iterable[Point], key: Cell, near_km: float, far_km: float
) -> set[Cell]:
    """The point and all points linked before it.

    >>> walk = [Point(t, 6.0 * t, 0.0, 1.0 * t, 0, t, math.nan, math.nan) for t in range(3)]
    >>> sorted(linked_predecessors(walk, (1, 0, 1), near_km=300, far_km=900))
    [(0, 0, 0), (1, 0, 1)]
    """
    backward = {b: a for a, b in links(points, near_km, far_km).items()}
    return set(_chain(key, backward))


def removals_that_matter(
    points: Iterable[Point], key: Cell, near_km: float, far_km: float, min_points: int
) -> set[Cell]:
    """Every point without which this one's track number would change or be gone.

    A link depends only on the points of its two steps, so nothing earlier than the step before
    the track, or later than the step after it, can matter.

    >>> walk = [Point(t, 6.0 * t, 0.0, 1.0 * t, 0, t, math.nan, math.nan) for t in range(3)]
    >>> sorted(removals_that_matter(walk, (1, 0, 1), 300, 900, min_points=2))
    [(0, 0, 0), (1, 0, 1)]
    >>> sorted(removals_that_matter(walk, (1, 0, 1), 300, 900, min_points=3))
    [(0, 0, 0), (1, 0, 1), (2, 0, 2)]
    """
    points = list(points)
    numbers = tracks(points, near_km, far_km, min_points)
    if key not in numbers:
        return set()
    steps = [time for (time, *_), number in numbers.items() if number == numbers[key]]
    near_track = [p.key for p in points if min(steps) - 1 <= p.time_index <= max(steps) + 1]

    def number_without(removed: Cell) -> int | None:
        kept = [point for point in points if point.key != removed]
        return tracks(kept, near_km, far_km, min_points).get(key)

    return {removed for removed in near_track if number_without(removed) != numbers[key]}
