"""Every edge from what a box made to what it was made of, and all of them written down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import ndimage

from pipelines.arrays import block, coordinate
from pipelines.datasets import Array, Table
from pipelines.tables import column, matching
from pipelines.workspace import Workspace

Edges = tuple[np.ndarray, np.ndarray]
LOW = 99_000.0


def of_field(edges: Callable[[np.ndarray], Edges]) -> Callable[[Workspace], Edges]:
    """Edges that the values of the field tell."""
    return lambda workspace: edges(block(array_of(workspace, "field"), "slp", {}))


def array_of(workspace: Workspace, name: str) -> Array:
    return cast(Array, workspace.dataset(name))


def neighbours(values: np.ndarray) -> Edges:
    """Every cell of a three by three window, by offsets; longitude wraps."""
    number = np.arange(values.size).reshape(values.shape)
    ends = []
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            rows = slice(max(-dy, 0), values.shape[1] - max(dy, 0))
            other = np.roll(number, -dx, axis=2)[:, max(dy, 0) :][:, : rows.stop - rows.start]
            ends.append((number[:, rows].ravel(), other.ravel()))
    return np.concatenate([a for a, _ in ends]), np.concatenate([b for _, b in ends])


def regions(values: np.ndarray) -> Edges:
    """Each cell below the threshold, from its region and all next to it; others from themselves."""
    number = np.arange(values.size).reshape(values.shape)
    outs, ins = [], []
    for places, field in zip(number, values, strict=True):
        labels = _labels(field < LOW)
        outs.append(places[labels == 0])
        ins.append(places[labels == 0])
        for label in np.unique(labels[labels > 0]):
            cells, around = places[labels == label], places[_with_edge(labels == label)]
            outs.append(np.repeat(cells, len(around)))
            ins.append(np.tile(around, len(cells)))
    return np.concatenate(outs), np.concatenate(ins)


def _labels(inside: np.ndarray) -> np.ndarray:
    """Cells that hang together, across corners and round the circle too, by number."""
    labels, _ = ndimage.label(inside, np.ones((3, 3)))
    for y in range(len(labels)):
        for other in range(max(y - 1, 0), min(y + 2, len(labels))):
            one, joined = labels[y, 0], labels[other, -1]
            if one and joined:
                labels[labels == joined] = one
    return np.asarray(labels)


def _with_edge(inside: np.ndarray) -> np.ndarray:
    """A region and all cells next to it; longitude wraps."""
    round_ = np.pad(inside, ((0, 0), (1, 1)), mode="wrap")
    return np.asarray(ndimage.binary_dilation(round_, np.ones((3, 3)))[:, 1:-1])


def coarser(values: np.ndarray) -> Edges:
    """Each cell of a day's mean, from the steps of that day."""
    number = np.arange(values.size).reshape(values.shape)
    days = np.arange(len(values)) // 4
    out = days[:, None, None] * values[0].size + number[0]
    return out.ravel(), number.ravel()


def columns(values: np.ndarray) -> Edges:
    """Each place's mean, from all of its steps."""
    number = np.arange(values.size).reshape(values.shape)
    return np.broadcast_to(number[0], values.shape).ravel(), number.ravel()


def corners(workspace: Workspace) -> Edges:
    """Each cell of another grid, from the four about its middle, in every step."""
    field, made = array_of(workspace, "field"), array_of(workspace, "made")
    lat, lon = (_about(coordinate(field, d), coordinate(made, d)) for d in ("lat", "lon"))
    steps, old, new = len(coordinate(field, "time")), field.shape[1:], made.shape[1:]
    out = np.arange(new[0] * new[1]).reshape(new)
    places = [(out, a[:, None] * old[1] + b[None, :]) for a in lat for b in lon]
    made_in = [np.add.outer(np.arange(steps) * out.size, o).ravel() for o, _ in places]
    used = [np.add.outer(np.arange(steps) * old[0] * old[1], i).ravel() for _, i in places]
    return np.concatenate(made_in), np.concatenate(used)


def _about(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two old places that are nearest to each new one."""
    order = np.argsort(abs(new[:, None] - old[None, :]), axis=1, kind="stable")
    return order[:, 0], order[:, 1]


def groups(workspace: Workspace) -> Edges:
    """Each row of a table of groups, from the rows with its key."""
    keys = column(matching(cast(Table, workspace.dataset("minima")), None), "time_index")
    return np.unique(keys, return_inverse=True)[1], np.arange(len(keys))


def storms(workspace: Workspace) -> Edges:
    """Minima from the cells around them, track points from the minima of their track up to them.

    The fewest edges that there can be: three by three cells and the wind in the middle for each
    minimum, and for a track's number nothing but what was linked.
    """
    shape = array_of(workspace, "field").shape
    cells, minima = int(np.prod(shape)), _places(workspace, "minima", shape)
    around = _around(minima, shape)
    order = np.argsort(minima)
    own = order[np.searchsorted(minima, _places(workspace, "made", shape), sorter=order)]
    points, earlier = _so_far(workspace)
    used = [*around, minima + cells, minima + 2 * cells, own[earlier] + 3 * cells]
    made = [np.tile(np.arange(len(minima)), 11), points + len(minima)]
    return np.concatenate(made), np.concatenate(used)


def _places(workspace: Workspace, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The cell of each row, as one number."""
    rows = matching(cast(Table, workspace.dataset(name)), None)
    index = [column(rows, f"{d}_index") for d in ("time", "lat", "lon")]
    return np.asarray(np.ravel_multi_index(index, shape))


def _around(places: np.ndarray, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Three by three cells about each; longitude wraps."""
    t, y, x = np.unravel_index(places, shape)
    return [
        np.ravel_multi_index((t, y + dy, x + dx), shape, mode=("raise", "clip", "wrap"))
        for dy in (-1, 0, 1)
        for dx in (-1, 0, 1)
    ]


def _so_far(workspace: Workspace) -> Edges:
    """Each track point with itself and with each of its track before it."""
    rows = matching(cast(Table, workspace.dataset("made")), None)
    order = np.lexsort((column(rows, "time_index"), column(rows, "track")))
    starts = np.unique(column(rows, "track")[order], return_index=True)[1]
    every = [track[np.array(np.tril_indices(len(track)))] for track in np.split(order, starts[1:])]
    points, earlier = np.concatenate(every, axis=1)
    return points, earlier


def written(edges: Edges, path: Path) -> int:
    """The bytes of edges in their best form: sorted, as differences, compressed."""
    order = np.lexsort(edges[::-1])
    rows = pa.table({"made": edges[0][order], "used": edges[1][order]})
    pq.write_table(
        rows,
        path,
        compression="zstd",
        use_dictionary=False,
        column_encoding={"made": "DELTA_BINARY_PACKED", "used": "DELTA_BINARY_PACKED"},
    )
    return path.stat().st_size
