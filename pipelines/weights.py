"""Weights: of which places along a dimension a new place is made, and how much of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.grids import degrees, still_circular

Values = NDArray[np.float64]
Indices = NDArray[np.int64]
LEAST = 1e-9  # of a weight that counts; what is less comes of rounding


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """For each new place, the first and last old one it is made of, and what each weighs.

    `share[n, k]` is the weight of the old place `first[n] + k`. Old places go on past the ends
    of a circle.
    """

    first: Indices
    last: Indices
    share: Values

    def applied(self, values: Values, axis: int, origin: int, cut: tuple[int, int]) -> Values:
        """The weighted sums for a range of new places, of values that begin at an old place.

        They are summed up in the same order whatever the range is.
        """
        first, share = self.first[slice(*cut)], self.share[slice(*cut)]
        shape = [-1 if n == axis else 1 for n in range(values.ndim)]
        most = origin + values.shape[axis] - 1
        terms = (
            np.take(values, np.minimum(first + k, most) - origin, axis) * share[:, k].reshape(shape)
            for k in range(share.shape[1])
        )
        return np.asarray(sum(terms))


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A dimension in degrees that rise: places, the edges between them, and the turn to that."""

    places: Values
    edges: Values
    sign: int
    circular: bool


def axis_of(array: Array, dim: str, box: str) -> Axis:
    """A dimension of an array, turned so that it rises."""
    places = degrees(array, dim)
    sign = -1 if places[-1] < places[0] else 1
    rising = sign * places
    if (np.diff(rising) <= 0).any():
        raise Refused(f'box "{box}": the {dim} of "{array.name}" are not in order; sort them first')
    return Axis(rising, _edges(rising, dim), sign, still_circular(array, dim, array.size[dim]))


def _edges(places: Values, dim: str) -> Values:
    """Halfway between places; at the ends as far out, though not beyond a pole."""
    if len(places) == 1:
        return np.array([places[0], places[0]])
    between = (places[1:] + places[:-1]) / 2
    ends = 2 * places[0] - between[0], 2 * places[-1] - between[-1]
    edges = np.concatenate([[ends[0]], between, [ends[1]]])
    return np.clip(edges, -90, 90) if dim == "lat" else edges


def divided(axis: Axis, resolution: float) -> Values:
    """The edges of the equal cells, of about this resolution, that an axis is divided into."""
    extent = 360.0 if axis.circular else axis.edges[-1] - axis.edges[0]
    cells = max(1, round(extent / resolution)) if extent else 1
    return np.linspace(axis.edges[0], axis.edges[0] + extent, cells + 1)


def nearest(axis: Axis, edges: Values) -> Weights:
    """The old place that is nearest to the middle of each new cell; the first of two."""
    low, part = _between(axis, edges)
    chosen = np.where(part > 0.5 + LEAST, low + 1, low)
    return Weights(chosen, chosen, np.ones((len(chosen), 1)))


def bilinear(axis: Axis, edges: Values) -> Weights:
    """The old places before and after the middle of each new cell, the nearer weighing more."""
    low, part = _between(axis, edges)
    first, last = np.where(part > 1 - LEAST, low + 1, low), np.where(part < LEAST, low, low + 1)
    share = np.column_stack([np.where(first == low, 1 - part, 1.0), part])
    share[first == last] = (1.0, 0.0)
    return Weights(first, last, share)


def _between(axis: Axis, edges: Values) -> tuple[Indices, Values]:
    """The old place before the middle of each new cell, and which part of the way it is to the
    next; beyond the ends of what is no circle, the last place."""
    middles = (edges[1:] + edges[:-1]) / 2
    places = axis.places
    if not axis.circular:
        middles = np.clip(middles, places[0], places[-1])
    else:
        places = np.concatenate([[places[-1] - 360], places, [places[0] + 360]])
    low = np.clip(np.searchsorted(places, middles, "right") - 1, 0, max(len(places) - 2, 0))
    after = np.minimum(low + 1, len(places) - 1)
    width = np.where(after == low, 1.0, places[after] - places[low])
    return low - int(axis.circular), (middles - places[low]) / width


def overlapping(axis: Axis, edges: Values, dim: str) -> Weights:
    """The old cells that each new one overlaps, weighed by the area they share.

    >>> thirds = Axis(np.array([5.0, 15, 25]), np.array([0.0, 10, 20, 30]), 1, False)
    >>> halves = overlapping(thirds, np.array([0.0, 15, 30]), "lon")
    >>> halves.first.tolist(), halves.last.tolist(), halves.share.round(2).tolist()
    ([0, 1], [1, 2], [[0.67, 0.33], [0.33, 0.67]])
    """
    first = np.clip(np.searchsorted(axis.edges, edges[:-1], "right") - 1, 0, len(axis.places) - 1)
    last = np.clip(np.searchsorted(axis.edges, edges[1:], "left") - 1, first, len(axis.places) - 1)
    index = first[:, None] + np.arange((last - first).max() + 1)
    inside = np.minimum(index, len(axis.places) - 1)
    low = np.maximum(axis.edges[inside], edges[:-1, None])
    high = np.minimum(axis.edges[inside + 1], edges[1:, None])
    area = _area(low, high, dim)
    area[(index > last[:, None]) | (high <= low)] = 0
    return _trimmed(first, area)


def _area(low: Values, high: Values, dim: str) -> Values:
    """The size of a band of latitude, or of longitude, on a sphere."""
    return np.sin(np.radians(high)) - np.sin(np.radians(low)) if dim == "lat" else high - low


def _trimmed(first: Indices, area: Values) -> Weights:
    """Weights without those at either end that are nothing but rounding."""
    if not area.any():
        area = np.where(np.arange(area.shape[1]) == 0, 1.0, area)
    share = area / area.sum(axis=1, keepdims=True)
    counts = share > LEAST
    start = counts.argmax(axis=1)
    width = counts.shape[1] - counts[:, ::-1].argmax(axis=1) - start
    index = start[:, None] + np.arange(width.max())
    kept = np.take_along_axis(share, np.minimum(index, share.shape[1] - 1), axis=1)
    kept[np.arange(width.max()) >= width[:, None]] = 0
    return Weights(first + start, first + start + width - 1, kept)
