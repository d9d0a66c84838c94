"""What lies under a click: a point of a table or a cell of a field, and what to say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from explorer.asking import Question
from explorer.glances import ranked
from explorer.state import about_cell, about_row
from explorer.text import moment, number, place
from pipelines.arrays import coordinate
from pipelines.datasets import Array, Table


@dataclass(frozen=True, slots=True)
class Clicked:
    """The question that a click stands for, and what a card says of it."""

    question: Question
    title: str
    lines: tuple[str, ...]
    row: dict[str, Any] | None = None


def on_point(table: Table, rows: pd.DataFrame, position: int) -> Clicked:
    """A point, by the position of its row."""
    row = {str(k): v for k, v in rows.iloc[position].items()}
    row["time"] = np.datetime64(row["time"])
    where = f"{place(row['lat'], row['lon'])}, {moment(row['time'])}"
    title, rank = table.name, ""
    if "pressure" in rows:
        title = number(row["pressure"], "Pa")
        rank = ranked(rows["pressure"].to_numpy(), position)
    standing = f"{rank} points of {table.name}" if rank else f"a point of {table.name}"
    return Clicked(about_row(table, row), title, (where, standing), row)


def on_cell(array: Array, variable: str, at: dict[str, int], values: NDArray[Any]) -> Clicked:
    """A cell of one step, given the values (lat, lon) of that step."""
    here = at["lat"], at["lon"]
    lat, lon, when = (coordinate(array, d)[at[d]] for d in ("lat", "lon", array.dims[0]))
    numbers = " ".join(f"{d} {i}" for d, i in at.items())
    lines = (
        f"{place(float(lat), float(lon))}, {moment(when)}",
        f"{variable} of {array.name}, cell {numbers}",
        ranked(values.ravel(), int(np.ravel_multi_index(here, values.shape))),
    )
    title = number(float(values[here]), array.attribute(variable).unit)
    return Clicked(about_cell(array, variable, at), title, tuple(x for x in lines if x))
