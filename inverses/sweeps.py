"""Sweeps: what is behind very many cells or rows, found by going over their inputs once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges
from pipelines.boxes.box import Box
from pipelines.datasets import Array
from pipelines.modules import Stating, stating

Asked = Mapping[str, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class Swept:
    """A block of one variable: the indices it starts at, its values, and which of them are `kept`.

    It may reach past the seam of a circle; past an edge, nothing of it may be kept.
    """

    variable: str
    first: tuple[int, ...]
    values: NDArray[Any]
    kept: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sweep:
    """How exactly what is behind any of the data asked about is told, as one.

    Over an array, its function is given the box, which cells of a block are asked about (by
    variable of what the box made, or by attribute of rows that tell of cells), the port, all
    inputs, and the block's index ranges. It does again what the run did there, and yields what
    was used of the array at the port.

    Over a table, it is given the box, the data asked about (rows by their columns, or cells by
    their indices), the rows that weak inverses found for any of them, and the table these are in.
    Both have an `owner`, the number of the group that the box sees together. It tells which rows
    count.
    """

    name: str
    box: type[Box]
    function: Callable[..., Any]


def sweeps(box: type[Box]) -> Callable[[Stating], Stating]:
    """Register a function as the sweep of `box`.

    It is `function(box, asked, port, inputs, ranges)` over arrays, and
    `function(box, asked, seen, source) -> mask` over tables.
    """

    def register(function: Stating) -> Stating:
        return stating(function, Sweep(function.__name__, box, function))

    return register


def start_of(array: Array, ranges: Ranges) -> tuple[int, ...]:
    """The first index of some ranges along each dimension; 0 where there is none."""
    return tuple(ranges.get(d, (0, 0))[0] for d in array.dims)
