"""What tests of boxes from arrays to arrays share: other arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pipelines.contents import held_array
from pipelines.datasets import Array, Attribute, Quantity, Time


def plain_array(
    shape: tuple[int, int, int], variables: tuple[str, ...] = ("a",), circular: bool = False
) -> Array:
    """An array whose cells are numbered, at even places."""
    t, y, x = shape
    places = {
        "time": np.datetime64("2000-01-01", "ns") + np.arange(t) * np.timedelta64(6, "h"),
        "lat": np.linspace(60, -60, y) if y > 1 else np.zeros(1),
        "lon": np.arange(x) * (360 / x if circular else 10.0),
    }
    described = tuple(Attribute(v, Quantity, (v,), "1", ("lat", "lon")) for v in variables)
    held = {v: np.arange(t * y * x, dtype=float).reshape(shape) for v in variables}
    attributes = (Attribute("time", Time, ("time",)), *described)
    return held_array("field", attributes, places, held, None, ("lon",) if circular else ())


def changed(array: Array, coordinates: Any = None, variables: Any = None) -> Array:
    """An array in memory with some of its coordinates or variables changed."""
    held = array.content
    places = {**held.coordinates, **(coordinates or {})}
    cells = {**held.variables, **(variables or {})}
    return replace(array, content=replace(held, coordinates=places, variables=cells))


@st.composite
def beside(draw: st.DrawFn, field: Array, name: str = "other") -> Array:
    """An array on the grid of another, or with a single place along some dimensions."""
    sizes = {d: draw(st.sampled_from([1, n])) for d, n in field.size.items()}
    numbers = st.sampled_from([np.nan, -2.0, 0.0, 0.0, 1.0, 3.0])
    count = int(np.prod(list(sizes.values())))
    values = np.array(draw(st.lists(numbers, min_size=count, max_size=count)))
    places = {d: field.content.coordinate(d)[: sizes[d]] for d in field.dims}
    attributes = (field.attributes[0], field.attribute("a"))
    held = {"a": values.reshape(list(sizes.values()))}
    round_ = tuple(d for d in field.circular if sizes[d] == field.size[d])
    return held_array(name, attributes, places, held, None, round_)
