"""Rows that tell of one cell each of the array they were found in, and those cells."""

from __future__ import annotations

from inverses.plans import Hop
from pipelines.boxes.box import CellBox
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter


def tells_of_cells(hop: Hop) -> bool:
    """Whether the rows of a hop's image tell of one cell each of its source."""
    places = isinstance(hop.box, CellBox) and hop.box.of_places
    there = places and hop.port == hop.box.takes[0].name
    return there and hop.levels[-1].name == ELEMENT


def grid_of(hop: Hop) -> Array:
    """The array of whose cells data are asked about: those they are, or those they tell of."""
    grid = hop.image if isinstance(hop.image, Array) else hop.source
    assert isinstance(grid, Array)
    return grid


def cells_of(hop: Hop, at: Filter) -> Filter:
    """The cells that data are, or that rows tell of."""
    if isinstance(hop.image, Array):
        return at
    return Filter(at.owner, {d: at.spans[f"{d}_index"] for d in grid_of(hop).dims})


def as_data(hop: Hop, cells: Filter) -> Filter:
    """Cells by the columns of the rows that tell of them, where data are such rows."""
    if isinstance(hop.image, Array):
        return cells
    return Filter(cells.owner, {f"{d}_index": s for d, s in cells.spans.items()})
