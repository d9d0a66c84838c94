"""What can change a minimum or a track point, found by changing and dropping everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np

from inverses.registry import Registration
from pipelines.boxes.cyclones import ExtractMinima
from pipelines.datasets import TUPLE
from tests import laws, oracles
from tests.laws import Items
from tests.oracles import Point, same
from tests.strategies import World, blowing

ATTRIBUTES = {
    "Time": "time",
    "Location": "location",
    "Pressure": "pressure",
    "WindSpeed": "wind_speed",
    "WindDirection": "wind_direction",
}
TRIES = (-1e6, 1e6, nan)
WINDS = ((nan, 0.0), (0.0, 0.0), (60.0, 90.0), (120.0, 270.0))


def changed(world: World, stated: Registration, row: int) -> tuple[Items, Items]:
    """What can change an attribute of a row, and what does by the sentence of its box."""
    if isinstance(world.box, ExtractMinima):
        cells = _changing(world, row)[ATTRIBUTES[stated.image.name]]
        found = {(t,) for _, t, *_ in cells} if stated.level == TUPLE else cells
        return found, found
    key = laws.indices(world.made)[row]
    if stated.image.name == "TrackId":
        return _with_a_say(world, key), _linked(world, key)
    found = _bearing(world, key, ATTRIBUTES[stated.image.name])
    return found, found


def fields_of(world: World) -> dict[str, Any]:
    """Pressure and wind, as plain lists."""
    assert world.field is not None
    u10, v10 = blowing(world.field)
    return {"slp": world.field.tolist(), "u10": u10.tolist(), "v10": v10.tolist()}


def _changing(world: World, row: int) -> dict[str, Items]:
    """For each attribute of a minimum, the cells of which another value changes what it says."""
    known = world.__dict__.setdefault("changing", {})
    if row not in known:
        fields, key = fields_of(world), laws.indices(world.made)[row]
        was = _minimum(world, fields, key)
        assert was is not None
        known[row] = {name: set() for name in was}
        for cell in _changed_in_turn(fields):
            for name in _differing(was, _minimum(world, fields, key)):
                known[row][name].add(cell)
    found: dict[str, Items] = known[row]
    return found


def _minimum(world: World, fields: dict[str, Any], key: Any) -> dict[str, Any] | None:
    return oracles.minimum(fields, key, world.box.margin, bool(world.source.circular))


def _changed_in_turn(fields: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The cells, while each has other values."""
    for variable, steps in fields.items():
        for t, y, x in np.ndindex(np.shape(steps)):
            own = steps[t][y][x]
            for value in TRIES:
                steps[t][y][x] = value
                yield variable, t, y, x
            steps[t][y][x] = own


def _differing(was: dict[str, Any], now: dict[str, Any] | None) -> list[str]:
    """What a row says else; that it is gone is a matter of where and when it was."""
    if now is None:
        return ["time", "location"]
    return [name for name in was if not same(was[name], now[name])]


def _with_a_say(world: World, key: Any) -> Items:
    """The minima that, dropped or under another wind, change the number of a point's track."""
    number = _numbers(world, world.points)[key]
    return {item for item, made in _remade(world) if any(m.get(key) != number for m in made)}


def _remade(world: World) -> list[tuple[Any, list[dict[Any, int]]]]:
    """Each minimum, with the tracks that there are without it and with other winds there."""
    known = world.__dict__.setdefault("remade", [])
    if not known:
        for each in world.points:
            others = tuple(p for p in world.points if p != each)
            blown = [replace(each, wind_speed=s, wind_direction=d) for s, d in WINDS]
            worlds = [others, *((*others, b) for b in blown)]
            known.append((each.key, [_numbers(world, w) for w in worlds]))
    found: list[tuple[Any, list[dict[Any, int]]]] = known
    return found


def _numbers(world: World, points: Iterable[Point]) -> dict[Any, int]:
    box = world.box
    return oracles.tracks(points, box.near_km, box.far_km, box.min_points)


def _linked(world: World, key: Any) -> Items:
    """The minima of a track without which, were there no others, a point's number would change."""
    numbers = _numbers(world, world.points)
    track = [p for p in world.points if numbers.get(p.key) == numbers[key]]
    near_km, far_km = world.box.near_km, world.box.far_km

    def without(each: Point) -> int | None:
        rest = [p for p in track if p != each]
        return oracles.tracks(rest, near_km, far_km, min_points=1).get(key)

    return {each.key for each in track if without(each) != numbers[key]}


def _bearing(world: World, key: Any, name: str) -> Items:
    """The minima that, dropped or changed, change when or where a point says it was."""
    was = _told(world, world.points)[key][name]
    found = set()
    for each in world.points:
        others = tuple(p for p in world.points if p != each)
        late = replace(each, hours=each.hours + 1, lat=each.lat / 2 - 1, lon=each.lon / 2 + 1)
        told = [_told(world, w).get(key) for w in (others, (*others, late))]
        # That its track is too short for a point to be there is a matter of its track.
        if each.key == key or any(row and row[name] != was for row in told):
            found.add(each.key)
    return found


def _told(world: World, points: Iterable[Point]) -> dict[Any, dict[str, Any]]:
    """What the points that are of tracks say of when and where they were."""
    numbers = _numbers(world, points)
    there = [p for p in points if p.key in numbers]
    return {p.key: {"time": p.hours, "location": (p.lat, p.lon)} for p in there}
