"""Probing a box that has no inverses: what its data were seen to depend on, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from inverses.trials import made_by
from pipelines.boxes.box import ArrayBox, Box
from pipelines.contents import HeldCells, held_array
from pipelines.datasets import Array, Attribute, Quantity, Time
from pipelines.errors import WhenceError

SIDE = 7
FAR = 1234.5
CALLS = 60


@dataclass(frozen=True, slots=True)
class Inferred:
    """How far from a datum the cells lay that changed it, along each dimension.

    Seen in so many probes, and never a guarantee: what was not seen may still matter.
    """

    port: str
    reach: Mapping[str, tuple[int, int]]
    probes: int

    def text(self) -> str:
        """In words.

        >>> Inferred("field", {"lat": (-1, 1), "time": (0, 0)}, 120).text()
        'field: lat -1 to 1, time 0 (inferred from 120 probes; no guarantee)'
        """
        parts = [f"{d} {a} to {b}" if a != b else f"{d} {a}" for d, (a, b) in self.reach.items()]
        return f"{self.port}: {', '.join(parts)} (inferred from {self.probes} probes; no guarantee)"


def probe(kind: type[Box]) -> list[Inferred]:
    """What was seen, port by port, for a box from arrays to an array of the same shape."""
    if not issubclass(kind, ArrayBox) or any(p.kind != "array" for p in kind.takes):
        return []
    box = kind.from_params(kind.examples[0])
    inputs = {port.name: _field(port.name) for port in box.takes}
    try:
        made = made_by(box, inputs)
        found = [_probed(box, inputs, made, port.name) for port in box.takes]
    except WhenceError:
        return []
    return [each for each in found if each is not None]


def _field(name: str) -> Array:
    """A field whose cells all differ, away from any seam."""
    shape = (SIDE, SIDE, SIDE)
    sown = np.random.default_rng(len(name))
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
    if not isinstance(made, Array) or made.shape != source.shape:
        return None
    seen: list[np.ndarray[Any, Any]] = []
    probes = 0
    for variable, cell in _places(source):
        probes += 1
        for by in (FAR, np.nan):
            other = made_by(box, {**inputs, port: _changed(source, variable, cell, by)})
            seen += [np.array(where) - cell for where in _differing(made, other)]
    if not seen:
        return None
    away = -np.array(seen)
    ends = zip(source.dims, away.min(axis=0), away.max(axis=0), strict=True)
    return Inferred(port, {d: (int(a), int(b)) for d, a, b in ends}, probes)


def _places(source: Array) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Cells to probe: the middle, and others spread over the field."""
    every = list(product(*(range(0, n, 2) for n in source.shape)))
    step = max(1, len(every) * len(source.variables) // CALLS)
    both = [(v, cell) for v in source.variables for cell in every]
    return iter(both[::step])


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
