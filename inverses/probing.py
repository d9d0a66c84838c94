"""Probing a box that has no inverses: what its data were seen to depend on, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from inverses.making import made_by
from pipelines.boxes.box import ArrayBox, Box
from pipelines.contents import HeldCells, held_array
from pipelines.datasets import Array, Attribute, Quantity, Time

SIDE = 7
FAR = 1234.5
CALLS = 60


Reach = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Inferred:
    """How far from a datum the cells lay that changed it, along each dimension, and of what.

    Seen in so many probes, and never a guarantee: what was not seen may still matter. Where the
    field that was probed was not wide enough to see an end, the reach along it is None.
    """

    port: str
    reach: Mapping[str, Reach]
    probes: int
    variables: tuple[str, ...] = ()

    def text(self) -> str:
        """In words.

        >>> Inferred("field", {"lat": (-1, 1), "time": (0, 0)}, 120).text()
        'field: lat -1 to 1, time 0 (inferred from 120 probes; no guarantee)'
        """
        parts = ", ".join(f"{dim} {_ends(each)}" for dim, each in self.reach.items())
        return f"{self.port}: {parts} (inferred from {self.probes} probes; no guarantee)"


def _ends(reach: Reach) -> str:
    if reach is None:
        return "anywhere"
    low, high = reach
    return f"{low} to {high}" if low != high else str(low)


def can_be_probed(box: Box | type[Box]) -> bool:
    """Whether a box is from arrays to an array, of which cells can be changed and compared."""
    kind = box if isinstance(box, type) else type(box)
    return issubclass(kind, ArrayBox) and all(p.kind == "array" for p in kind.takes)


def probe(kind: type[Box]) -> list[Inferred]:
    """What was seen of a kind of box, with parameters that its author gives as an example."""
    if not can_be_probed(kind):
        return []
    fields = {port.name: _field(port.name) for port in kind.takes}
    return probed(kind.from_params(kind.examples[0]), fields)


def probed(box: Box, inputs: Mapping[str, Array]) -> list[Inferred]:
    """What was seen, port by port, of a box that makes an array of the same shape of small ones.

    An author's box may not take these at all: then nothing is seen.
    """
    try:
        made = made_by(box, inputs)
        found = [_probed(box, inputs, made, port) for port in inputs]
    except Exception:
        return []
    return [each for each in found if each is not None]


def _field(name: str) -> Array:
    """A field whose cells all differ, also from those of other ports, away from any seam."""
    shape = (SIDE, SIDE, SIDE)
    sown = np.random.default_rng(list(name.encode()))
    coordinates = {
        "time": np.datetime64("2000-01-01", "ns") + np.arange(SIDE) * np.timedelta64(6, "h"),
        "lat": np.linspace(30, -30, SIDE),
        "lon": np.arange(SIDE) * 10.0,
    }
    cells = ("lat", "lon")
    attributes = (
        Attribute("time", Time, ("time",)),
        *(Attribute(v, Quantity, (v,), "1", cells) for v in ("a", "b")),
    )
    values = {v: sown.uniform(0.5, 2.0, shape) for v in ("a", "b")}
    return held_array(name, attributes, coordinates, values)


def _probed(box: Box, inputs: Mapping[str, Any], made: Any, port: str) -> Inferred | None:
    source = inputs[port]
    if not isinstance(made, Array) or made.size != source.size:
        return None
    places = list(_places(source))
    seen: dict[str, list[np.ndarray[Any, Any]]] = {}
    for variable, cell in places:
        for by in (FAR, -FAR, np.nan):
            other = made_by(box, {**inputs, port: _changed(source, variable, cell, by)})
            away = [cell - np.array(where) for where in _differing(made, other)]
            seen.setdefault(variable, []).extend(away)
    counted = {variable: away for variable, away in seen.items() if away}
    if not counted:
        return None
    reach = _reach(source, np.concatenate(list(counted.values())))
    return Inferred(port, reach, len(places), tuple(counted))


def _reach(source: Array, away: np.ndarray[Any, Any]) -> dict[str, Reach]:
    """From the nearest to the farthest along each dimension; None if that is all there was."""
    ends = zip(source.size.items(), away.min(axis=0), away.max(axis=0), strict=True)
    return {
        dim: None if max(-low, high) >= size - 1 > 0 else (int(low), int(high))
        for (dim, size), low, high in ends
    }


def _places(source: Array) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Cells to probe: of each variable the corners, the middle, and others anywhere."""
    corners = list(product(*({0, n - 1} for n in source.shape)))
    middle = tuple(n // 2 for n in source.shape)
    sown = np.random.default_rng(0)
    more = max(0, CALLS // len(source.variables) - len(corners) - 1)
    others = [tuple(map(int, sown.integers(source.shape))) for _ in range(more)]
    return product(source.variables, dict.fromkeys([*corners, middle, *others]))


def _changed(source: Array, variable: str, cell: tuple[int, ...], by: float) -> Array:
    values = source.content.variables[variable].copy()
    values[cell] += by
    variables = {**source.content.variables, variable: values}
    return replace(source, content=HeldCells(source.content.coordinates, variables))


def _differing(before: Array, after: Any) -> Iterator[tuple[int, ...]]:
    for variable, was in before.content.variables.items():
        now = after.content.variables[variable]
        same = (was == now) | (np.isnan(was) & np.isnan(now))
        yield from zip(*np.nonzero(~same), strict=True)
