"""Differences on the globe: the neighbours of a place, how far apart they are, what changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges, block
from pipelines.datasets import Array
from pipelines.grids import FULL_CIRCLE, degrees

EARTH = 6_371_000.0  # metres
NEAR_POLE = 1e-6  # degrees from a pole within which no direction is east

Indices = NDArray[np.int64]


def goes_round(array: Array, dim: str) -> bool:
    """Whether a dimension closes on itself with neighbours that differ."""
    return dim in array.circular and array.size[dim] >= FULL_CIRCLE


def neighbours(array: Array, dim: str) -> tuple[Indices, Indices]:
    """The neighbours before and after each place; at an edge, the place itself for the absent one.

    Where a dimension goes round they go on past its ends.
    """
    here = np.arange(array.size[dim])
    if goes_round(array, dim):
        return here - 1, here + 1
    return np.maximum(here - 1, 0), np.minimum(here + 1, len(here) - 1)


def spread(array: Array, dim: str) -> NDArray[np.float64]:
    """How many radians lie between the neighbours of each place; NaN where that is nothing."""
    before, after = neighbours(array, dim)
    at = degrees(array, dim)
    if goes_round(array, dim):
        last = (at[0] - at[-1] + 180) % 360 - 180
        at = np.concatenate([[at[0] - last], at, [at[-1] + last]])
        before, after = before + 1, after + 1
    apart = np.radians(at[after] - at[before])
    alone = dim in array.circular and not goes_round(array, dim)
    return np.where((apart == 0) | alone, np.nan, apart)


def narrowing(array: Array) -> NDArray[np.float64]:
    """The cosine of each latitude; NaN at the poles, where a circle of latitude is a point."""
    lat = degrees(array, "lat")
    return np.where(np.abs(lat) >= 90 - NEAR_POLE, np.nan, np.cos(np.radians(lat)))


def along(
    array: Array, dim: str, values: NDArray[np.float64], ranges: Ranges
) -> NDArray[np.float64]:
    """Values that belong to the places of a dimension, cut, and laid along it."""
    shape = [-1 if d == dim else 1 for d in array.dims]
    return values[slice(*ranges[dim])].reshape(shape)


def metres(array: Array, dim: str, ranges: Ranges) -> NDArray[np.float64]:
    """How far apart the neighbours of each place in index ranges are."""
    apart = along(array, dim, EARTH * spread(array, dim), ranges)
    return apart * along(array, "lat", narrowing(array), ranges) if dim == "lon" else apart


def difference(
    array: Array,
    variable: str,
    dim: str,
    ranges: Ranges,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """What a variable, times the weights of its places, is more after each place than before."""
    first, last = ranges[dim]
    before, after = (each[first:last] for each in neighbours(array, dim))
    low, high = int(before.min()), int(after.max())
    values = block(array, variable, {**ranges, dim: (low, high + 1)}).astype(np.float64)
    if weights is not None:
        values = values * along(array, dim, weights, {dim: (low, high + 1)})
    axis = array.dims.index(dim)
    return np.take(values, after - low, axis) - np.take(values, before - low, axis)
