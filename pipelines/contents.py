"""Contents: data that a dataset has without files, held in memory or made when they are read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.datasets import Array, Attribute, Dataset, Group, Table
from pipelines.errors import Failed


class Cells(Protocol):
    """What an array can be read from."""

    def coordinate(self, dim: str) -> NDArray[Any]:
        """The coordinate values along a dimension."""

    def values(self, variable: str, ranges: Mapping[str, tuple[int, int]]) -> NDArray[Any]:
        """The values in index ranges, last excluded, that lie within the array."""


class Rows(Protocol):
    """What a table can be read from."""

    def group(self, index: int) -> pa.Table:
        """The rows of one group."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldCells:
    """Cells held in memory: coordinates and variables by name."""

    coordinates: Mapping[str, NDArray[Any]]
    variables: Mapping[str, NDArray[Any]]

    def coordinate(self, dim: str) -> NDArray[Any]:
        return self.coordinates[dim]

    def values(self, variable: str, ranges: Mapping[str, tuple[int, int]]) -> NDArray[Any]:
        return self.variables[variable][tuple(slice(*ranges[d]) for d in self.coordinates)]


@dataclass(frozen=True, slots=True, eq=False)
class HeldRows:
    """Rows held in memory, a fixed number to a group."""

    rows: pa.Table
    in_group: int

    def group(self, index: int) -> pa.Table:
        return self.rows.slice(index * self.in_group, self.in_group)


class Recent(OrderedDict[Any, Any]):
    """The last few of what was made, at hand where it was made and nowhere else.

    >>> few = Recent()
    >>> [few.made(n % 5, lambda: print("made", n) or n) for n in (0, 1, 5)]
    made 0
    made 1
    [0, 1, 0]
    """

    FEW = 4

    def made(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made by a name, made now if it is not at hand."""
        if key not in self:
            self[key] = make()
        self.move_to_end(key)
        if len(self) > self.FEW:
            self.popitem(last=False)
        return self[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return Recent, ()


@dataclass(frozen=True, slots=True, eq=False)
class MadeCells:
    """Cells that a box makes of its inputs when they are read, as a run would write them."""

    box: Any
    inputs: Mapping[str, Dataset]
    coordinates: Mapping[str, NDArray[Any]]
    dtype: Any
    blocks: Recent = field(default_factory=Recent)

    def coordinate(self, dim: str) -> NDArray[Any]:
        return self.coordinates[dim]

    def values(self, variable: str, ranges: Mapping[str, tuple[int, int]]) -> NDArray[Any]:
        where = tuple(ranges.items())
        made = self.blocks.made(where, lambda: self.box.block(self.inputs, ranges))
        found = np.array(made[variable], self.dtype)
        if found.shape != tuple(stop - start for start, stop in ranges.values()):
            raise Failed(f'box "{self.box.name}" made another block than the one asked for')
        return found


@dataclass(frozen=True, slots=True, eq=False)
class NoCells:
    """Where the cells of an array lie that are yet to be made again."""

    coordinates: Mapping[str, NDArray[Any]]

    def coordinate(self, dim: str) -> NDArray[Any]:
        return self.coordinates[dim]

    def values(self, variable: str, ranges: Mapping[str, tuple[int, int]]) -> NDArray[Any]:
        raise Failed(f'the cells of "{variable}" have to be made again before they are read')


@dataclass(frozen=True, slots=True, eq=False)
class FewCells:
    """An array of which only some cells are there, each a row of indices; others are missing."""

    cells: Mapping[str, NDArray[np.int64]]
    found: Mapping[str, NDArray[Any]]
    coordinates: Mapping[str, NDArray[Any]]

    def coordinate(self, dim: str) -> NDArray[Any]:
        return self.coordinates[dim]

    def values(self, variable: str, ranges: Mapping[str, tuple[int, int]]) -> NDArray[Any]:
        low, high = np.array(list(ranges.values())).T
        made = np.full(high - low, np.nan)
        cells = self.cells.get(variable, np.zeros((0, len(low)), np.int64))
        inside = ((cells >= low) & (cells < high)).all(axis=1)
        made[tuple((cells[inside] - low).T)] = self.found.get(variable, np.zeros(0))[inside]
        return made


def held_array(
    name: str,
    attributes: tuple[Attribute, ...],
    coordinates: Mapping[str, NDArray[Any]],
    variables: Mapping[str, NDArray[Any]],
    chunks: tuple[int, ...] | None = None,
    circular: tuple[str, ...] = (),
) -> Array:
    """An array in memory.

    >>> from pipelines.datasets import Quantity
    >>> depth = Attribute("depth", Quantity, ("depth",), "m", ("x",))
    >>> sea = held_array("sea", (depth,), {"t": np.arange(2), "x": np.arange(3)},
    ...                  {"depth": np.ones((2, 3))})
    >>> sea.shape, sea.variables
    ((2, 3), ['depth'])
    """
    shape = tuple(len(c) for c in coordinates.values())
    return Array(
        name=name,
        version="held",
        path="",
        attributes=attributes,
        dims=tuple(coordinates),
        shape=shape,
        chunks=chunks or tuple(max(n, 1) for n in shape),
        itemsize=8,
        stored={n: n for n in (*coordinates, *variables)},
        circular=circular,
        content=HeldCells(coordinates, variables),
    )


def held_table(
    name: str, attributes: tuple[Attribute, ...], rows: pa.Table, in_group: int = 2048
) -> Table:
    """A table in memory, in groups whose bounds are known.

    >>> from pipelines.datasets import Quantity
    >>> held_table("few", (Attribute("n", Quantity, ("n",)),), pa.table({"n": [3, 1]})).rows
    2
    """
    starts = range(0, rows.num_rows, in_group)
    parts = [rows.slice(start, in_group) for start in starts]
    return Table(
        name=name,
        version="held",
        path="",
        attributes=attributes,
        types={f.name: str(f.type) for f in rows.schema},
        groups=tuple(
            Group("", n, part.num_rows, part.nbytes, {c: ends(part[c]) for c in part.column_names})
            for n, part in enumerate(parts)
        ),
        content=HeldRows(rows, in_group),
    )


def ends(values: pa.ChunkedArray) -> tuple[Any, Any]:
    """The least and greatest of a column as JSON can hold them; None where there is none."""
    found = pc.min_max(values)
    return _plain(found["min"].as_py()), _plain(found["max"].as_py())


def _plain(value: Any) -> Any:
    """A bound as JSON can hold it; NaN, which bounds nothing, as None."""
    if value != value:
        return None
    return value.isoformat() if hasattr(value, "isoformat") else value
