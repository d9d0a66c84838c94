"""Regions, composites and mosaics are those of plain loops, and so are the cells behind them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.guarantees import EXACT
from inverses.trials import Items
from pipelines.boxes.landcover import Composite, Label, Mosaic, MosaicOfThree
from pipelines.datasets import Array, Attribute, Quantity
from pipelines.errors import Refused
from pipelines.filters import Filter
from tests.files import pressures
from tests.inverses import wrong
from tests.inverses.cases import Case, Plain, check, small_arrays
from tests.inverses.families import FEW, MANY, cells, in_blocks, of_ranges, params_of, traced
from tests.inverses.wrong import REGISTRY

Cell = tuple[int, int]
PORTS = ("first", "second", "third")


def flooded(within: np.ndarray, start: Cell, neighbours: int, wraps: bool) -> set[Cell]:
    """The cells that water poured on one reaches, step by step to the next."""
    rows, columns = within.shape
    reached, waiting = {start}, [start]
    while waiting:
        y, x = waiting.pop()
        for down, right in [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]:
            there = (y + down, (x + right) % columns if wraps else x + right)
            near = neighbours == 8 or 0 in (down, right)
            inside = 0 <= there[0] < rows and 0 <= there[1] < columns
            if near and inside and there not in reached and within[there]:
                reached.add(there)
                waiting.append(there)
    return reached


def chosen_cells(box: Label, field: np.ndarray) -> np.ndarray:
    return field > box.threshold if box.side == "above" else field < box.threshold


def labels(box: Label, array: Array) -> Callable[[Plain], Any]:
    name, wraps = box.variable or array.variables[0], "lon" in array.circular

    def make(given: Plain) -> Any:
        within = chosen_cells(box, given["field"][name])
        made = np.zeros(within.shape)
        for t, y, x in zip(*np.nonzero(within), strict=True):
            first = min(flooded(within[t], (y, x), box.neighbours, wraps))
            made[t, y, x] = 1 + first[0] * within.shape[2] + first[1]
        return {"label": made}

    return make


def region_behind(box: Label, array: Array) -> Callable[[Plain, str, Any], Items]:
    name, wraps = box.variable or array.variables[0], "lon" in array.circular

    def behind(given: Plain, port: str, datum: Any) -> Items:
        _, t, y, x = datum
        within = chosen_cells(box, given["field"][name])[t]
        alone = not within[y, x]
        found = {(y, x)} if alone else flooded(within, (y, x), box.neighbours, wraps)
        return {(name, t, int(a), int(b)) for a, b in found}

    return behind


@st.composite
def labelled(draw: st.DrawFn, kind: Any = Label) -> Case:
    box = draw(params_of(Label))
    array = draw(small_arrays(("a", "b"), values=st.sampled_from([-1.0, 1.0, np.nan])))
    truth = region_behind(box, array)
    return Case(box, {"field": array}, labels(box, array), truth=truth)


def composed(box: Composite) -> Callable[[Plain], Any]:
    def make(given: Plain) -> Any:
        made = {}
        for name, values in given["field"].items():
            made[name] = np.full((1, *values.shape[1:]), np.nan)
            for t in range(len(values)) if box.how == "latest" else reversed(range(len(values))):
                for y, x in np.ndindex(values.shape[1:]):
                    if values[t, y, x] == values[t, y, x]:
                        made[name][0, y, x] = values[t, y, x]
        return made

    return make


@st.composite
def composites(draw: st.DrawFn, kind: Any = Composite) -> Case:
    box = draw(params_of(Composite))
    names = draw(st.sampled_from([("a",), ("a", "b")]))
    return Case(box, {"field": draw(small_arrays(names, most=(5, 2, 2)))}, composed(box))


def laid_over(box: Mosaic) -> Callable[[Plain], Any]:
    rules: dict[str, Callable[[list[float]], float]] = {
        "first": lambda there: there[0],
        "latest": lambda there: there[-1],
        "max": max,
        "mean": lambda there: sum(there) / len(there),
    }

    def make(given: Plain) -> Any:
        rasters = [given[port] for port in PORTS if port in given]
        made = {}
        for name in set.intersection(*(set(r) for r in rasters)):
            made[name] = np.full(rasters[0][name].shape, np.nan)
            for place in np.ndindex(made[name].shape):
                there = [float(r[name][place]) for r in rasters if not np.isnan(r[name][place])]
                if there:
                    made[name][place] = rules[box.how](there)
        return made

    return make


@st.composite
def mosaics(draw: st.DrawFn, kind: Any) -> Case:
    box = draw(params_of(kind))
    shape = draw(st.tuples(*[st.integers(1, n) for n in (2, 2, 3)]))
    round_ = draw(st.booleans())
    names = draw(st.permutations([("a",), ("a", "b"), ("b", "a")]))
    given = {
        port.name: draw(small_arrays(which, shape, circular=round_))
        for port, which in zip(box.takes, names, strict=False)
    }
    return Case(box, given, laid_over(box))


WORLDS: dict[Any, Callable[[Any], st.SearchStrategy[Case]]] = {
    Label: labelled,
    Composite: composites,
    Mosaic: mosaics,
    MosaicOfThree: mosaics,
}


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_land_cover_holds_what_it_promises(kind: Any, data: st.DataObject) -> None:
    check(data.draw(WORLDS[kind](kind)), REGISTRY)


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=FEW)
def test_land_cover_does_not_depend_on_chunks_and_is_inverted_over_ranges(
    kind: Any, data: st.DataObject
) -> None:
    case = data.draw(WORLDS[kind](kind))
    in_blocks(case, data)
    of_ranges(case, REGISTRY, data)
