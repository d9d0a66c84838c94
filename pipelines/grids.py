"""Grids: what boxes from arrays to arrays share: which variable is meant, what shape is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import coordinate
from pipelines.boxes.box import Grid
from pipelines.datasets import Array, Attribute, Quantity
from pipelines.errors import Refused, unknown

AXES: Mapping[str, Mapping[str, str]] = {
    "time": {"standard_name": "time", "axis": "T"},
    "lat": {"standard_name": "latitude", "units": "degrees_north", "axis": "Y"},
    "lon": {"standard_name": "longitude", "units": "degrees_east", "axis": "X"},
}
HANDY = 2**22  # cells in a chunk that need not be made smaller
FULL_CIRCLE = 3  # places that a circle has at least; fewer are their own neighbours


def variables_of(attributes: Iterable[Attribute]) -> dict[str, Attribute]:
    """The attributes that have cells, by name."""
    return {a.name: a for a in attributes if a.dims}


def variable_of(attributes: Iterable[Attribute], named: str, box: str) -> Attribute:
    """The variable of this name; the first one for no name."""
    known = variables_of(attributes)
    if named and named not in known:
        raise unknown("variable", named, known, f'for box "{box}"')
    if not known:
        raise Refused(f'box "{box}" needs an array with a variable')
    return known[named] if named else next(iter(known.values()))


def with_variables(
    attributes: Iterable[Attribute], variables: Iterable[Attribute]
) -> tuple[Attribute, ...]:
    """What says when a cell is, and these variables."""
    return (*(a for a in attributes if not a.dims), *variables)


def quantity(name: str, unit: str, dims: tuple[str, ...]) -> Attribute:
    """A variable of no special meaning."""
    return Attribute(name, Quantity, (name,), unit or None, dims)


def check_name(name: str, taken: Iterable[str], box: str) -> None:
    """Refuse a name that a new variable cannot have."""
    plain = name.replace("-", "_").replace(".", "_")
    # A store has files of its own beside what is called so.
    taken_by_store = name.startswith(".") or name == "zarr.json"
    if not plain.isidentifier() or len(name) > 80 or taken_by_store:
        raise Refused(f'box "{box}": {name!r:.60} is not a name for a variable, like: anomaly')
    if name in {*taken, *AXES}:
        raise Refused(f'box "{box}": there is a "{name}" already; give the result another name')


def grid_like(
    array: Array,
    variables: Iterable[Attribute],
    coordinates: Mapping[str, NDArray[Any]] | None = None,
    circular: tuple[str, ...] | None = None,
) -> Grid:
    """A grid like an array's, with other coordinates where these are given."""
    found = {**{d: coordinate(array, d) for d in array.dims}, **(coordinates or {})}
    units = {a.name: {"units": a.unit} if a.unit else {} for a in variables if a.dims}
    return Grid(
        found,
        _chunks(array, [len(found[d]) for d in array.dims]),
        {"": {"Conventions": "CF-1.11"}, **{d: AXES.get(d, {}) for d in array.dims}, **units},
        array.circular if circular is None else circular,
        np.float64,
    )


def _chunks(array: Array, shape: Sequence[int]) -> tuple[int, ...]:
    """Chunks that cover about what the array's cover, though not many more cells than those."""
    sizes = zip(array.chunks, shape, array.shape, strict=True)
    chunks = [max(1, min(n, -(-c * n // max(old, 1)))) for c, n, old in sizes]
    while prod(chunks) > max(HANDY, prod(array.chunks)):
        largest = chunks.index(max(chunks))
        chunks[largest] = -(-chunks[largest] // 2)
    return tuple(chunks)


def degrees(array: Array, dim: str) -> NDArray[np.float64]:
    """Coordinates in degrees; longitudes go on where they would jump by a whole turn.

    >>> from pipelines.contents import held_array
    >>> degrees(held_array("a", (), {"lon": np.array([90, 180, -90])}, {}), "lon").tolist()
    [90.0, 180.0, 270.0]
    """
    found = coordinate(array, dim).astype(np.float64)
    if dim != "lon":
        return found
    steps = np.diff(found)
    # Half a turn is none too many, whichever way it goes.
    steps = np.where(np.abs(steps) > 180, (steps + 180) % 360 - 180, steps)
    return np.asarray(np.concatenate([found[:1], found[:1] + np.cumsum(steps)]))


def places_along(array: Array, dim: str) -> NDArray[Any]:
    """Coordinates that a mean can be taken of: in degrees that go on, or as they are."""
    return degrees(array, dim) if dim in ("lat", "lon") else coordinate(array, dim)


def still_circular(array: Array, dim: str, size: int) -> bool:
    """Whether a dimension that went round still does with this many places."""
    return dim in array.circular and size >= FULL_CIRCLE


def names_in(text: str) -> list[str]:
    """The names in a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def one_of(value: str, known: Sequence[str], what: str, box: str) -> None:
    """Refuse a word that is none of those known."""
    if value not in known:
        raise unknown(what, value, known, f'for box "{box}"')
