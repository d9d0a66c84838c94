"""Inferring: what was seen of a box that nobody wrote inverses for, in place of everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inverses.guarantees import NOTHING
from inverses.planner import behind
from inverses.plans import Plan
from inverses.probing import SIDE, Inferred, can_be_probed, probed
from inverses.registry import AGGREGATE, ANY, INFERRED, Registry, WeakInverse
from pipelines.arrays import coordinate
from pipelines.boxes.box import Box
from pipelines.contents import held_array
from pipelines.datasets import TUPLE, Array, Attribute, Key, Table
from pipelines.filters import Filter, wrapped
from pipelines.spans import Span
from pipelines.workspace import Workspace


def inferring(registry: Registry, workspace: Workspace, dataset: Table | Array) -> Registry:
    """A registry that knows windows for the boxes behind a dataset that have no inverse at all.

    They promise nothing. Where none is seen, the default stays: everything, which is complete.
    """
    found = {}
    ancestry = behind(workspace, dataset)
    datasets: dict[Key, Table | Array] = {key: ancestry.nodes[key]["dataset"] for key in ancestry}
    for image in datasets.values():
        if image.made is None or registry.inverts(box := registry.box_of(image.made)):
            continue
        inputs = {port: datasets[key] for port, key in image.made.inputs.items()}
        for seen in _seen(box, inputs):
            source = inputs[seen.port]
            if isinstance(image, Array) and isinstance(source, Array) and image.size == source.size:
                found[box, seen.port, source.key] = _window(box, seen)
    return replace(registry, inferred=found)


def inferable(plans: Iterable[Plan], registry: Registry) -> list[str]:
    """The boxes of plans that could be probed, and for which these have nothing but defaults."""
    bare = {
        hop.box.name: None
        for plan in plans
        for hop in plan.hops
        if can_be_probed(hop.box) and not registry.inverts(hop.box)
        if all(i.by_default for level in hop.levels for i in level.inversions)
    }
    return list(bare)


@dataclass(frozen=True, slots=True)
class Likeness:
    """What a field must have to be taken for another: its attributes, and places of its grid."""

    port: str
    attributes: tuple[Attribute, ...]
    coordinates: tuple[tuple[str, tuple[Any, ...]], ...]

    @classmethod
    def of(cls, port: str, array: Array) -> Likeness:
        places = {dim: tuple(_middle(coordinate(array, dim))) for dim in array.dims}
        return cls(port, array.attributes, tuple(places.items()))

    def field(self) -> Array:
        """A small field whose cells all differ, also from those of other ports."""
        coordinates = {dim: np.array(places) for dim, places in self.coordinates}
        shape = tuple(len(places) for places in coordinates.values())
        sown = np.random.default_rng(list(self.port.encode()))
        cells = [a.name for a in self.attributes if a.dims]
        values = {name: sown.uniform(0.5, 2.0, shape) for name in cells}
        return held_array(self.port, self.attributes, coordinates, values)


def _middle(places: NDArray[Any]) -> NDArray[Any]:
    """As many places as are probed, from the middle of all."""
    first = max(0, (len(places) - SIDE) // 2)
    return places[first : first + SIDE]


def _seen(box: Box, inputs: Mapping[str, Table | Array]) -> Iterator[Inferred]:
    arrays = {port: each for port, each in inputs.items() if isinstance(each, Array)}
    if can_be_probed(box) and len(arrays) == len(inputs):
        yield from _probed_once(box, tuple(Likeness.of(p, each) for p, each in arrays.items()))


@cache
def _probed_once(box: Box, likenesses: tuple[Likeness, ...]) -> list[Inferred]:
    """What was seen of a box with its parameters, which is the same whenever it is looked at."""
    return probed(box, {each.port: each.field() for each in likenesses})


def _window(box: Box, seen: Inferred) -> WeakInverse:
    """A weak inverse that finds the cells as far away as some were seen to matter."""

    def inferred_window(box: Box, at: Filter, source: Array) -> Filter:
        within = {d: _reached(at, d, reach, source.size[d]) for d, reach in seen.reach.items()}
        around = at.to(**within)
        for dim in source.circular:
            around = wrapped(around, dim, source.size[dim])
        return around

    inferred_window.__doc__ = seen.text()
    return WeakInverse(
        INFERRED, type(box), ANY, AGGREGATE, seen.variables, NOTHING, TUPLE, inferred_window,
        seen.port,
    )  # fmt: skip


def _reached(at: Filter, dim: str, reach: tuple[int, int] | None, size: int) -> Span | None:
    own = at.span(dim)
    if own is None or reach is None:
        return None
    return own.grown(0, 0, size - 1).stretched(*reach)
