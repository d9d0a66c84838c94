"""What tests of boxes from arrays to arrays share: laws beyond those of `cases`, and worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from inverses.guarantees import PURE
from inverses.registry import Registry, Verification, WeakInverse
from inverses.trials import inversions
from pipelines.arrays import inside
from pipelines.boxes.box import ArrayBox
from pipelines.contents import held_array
from pipelines.datasets import Array, Attribute, Quantity, Time
from pipelines.filters import Filter, lattice, span
from tests.inverses.cases import Case, check, small_arrays

EXAMPLES = max(300, settings().max_examples)
A_FEW = settings(max_examples=EXAMPLES // 10)
MANY = settings(max_examples=EXAMPLES)
PATIENCE = pytest.mark.timeout(300 if EXAMPLES == 300 else 14_400)


def holds(case: Case, registry: Registry, data: st.DataObject, most: int = 4) -> None:
    """Every law, for a few data, a region and a way of cutting into chunks."""
    check(case, registry, most)
    sown = np.random.default_rng(data.draw(st.integers(0, 999), "block and region"))
    same_for_any_chunks(case, sown)
    regions_are_unions(case, registry, sown)


def same_for_any_chunks(case: Case, sown: np.random.Generator) -> None:
    """A block is the same part of what is made, wherever it is cut out."""
    assert isinstance(case.box, ArrayBox) and isinstance(case.made, Array)
    cut = _cut(case.made, sown)
    for variable, values in case.box.block(case.inputs, cut).items():
        whole = case.made.content.variables[variable]
        np.testing.assert_array_equal(values, whole[tuple(slice(*r) for r in cut.values())])


def _cut(array: Array, sown: np.random.Generator) -> dict[str, tuple[int, int]]:
    ends = {d: np.sort(sown.integers(0, n, 2)).tolist() for d, n in array.size.items()}
    return {d: (first, last + 1) for d, (first, last) in ends.items()}


def regions_are_unions(case: Case, registry: Registry, sown: np.random.Generator) -> None:
    """Asked about a region, a weak inverse says what it says of its points: no less, and no more
    if it is pure."""
    assert isinstance(case.made, Array)
    cut = _cut(case.made, sown)
    free = sown.choice(["", *cut])
    whole = {d: (0, case.made.size[d]) if d == free else r for d, r in cut.items()}
    region = Filter(
        np.zeros(1, np.int64), {d: span(a, b - 1) for d, (a, b) in cut.items() if d != free}
    )
    points = _points(whole)
    for port, source in case.inputs.items():
        assert isinstance(source, Array)
        for weak in _weak(case, registry, port):
            of_region = _cells(source, weak(case.box, region, source))
            of_points = _cells(source, weak(case.box, points, source))
            assert of_region >= of_points, f"{weak.name}: lost {of_points - of_region}"
            if PURE in weak.promises:
                assert of_region == of_points, f"{weak.name}: added {of_region - of_points}"


def _weak(case: Case, registry: Registry, port: str) -> Iterator[WeakInverse]:
    found = inversions(registry, case.box, port, case.made, case.inputs[port])
    yield from {s.name: s for s, _, _ in found if isinstance(s, WeakInverse)}.values()


def _points(ranges: dict[str, tuple[int, int]]) -> Filter:
    low, high = np.array(list(ranges.values())).T
    _, points = lattice(low[None], high[None] - 1)
    spans = {d: span(points[:, n]) for n, d in enumerate(ranges)}
    return Filter(np.arange(len(points)), spans)


def _cells(source: Array, filter_: Filter) -> set[tuple[int, ...]]:
    within = inside(source, filter_)
    low, high = (
        np.column_stack([getattr(within.spans[d], end) for d in source.dims])
        for end in ("low", "high")
    )
    return {tuple(p) for p in lattice(low, high)[1].tolist()}


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


def caught(case_of: Callable[[Array], Case], planted: Registry, *wrong: Any) -> None:
    """Wrong inverses, with those that they need, are found out."""
    stated = [r for each in wrong for r in each.registrations]
    weak = tuple(r for r in stated if isinstance(r, WeakInverse))
    verify = tuple(r for r in stated if isinstance(r, Verification))
    mixed = Registry({}, (*planted.weak, *weak), verify)

    @given(small_arrays(("a", "b"), most=(2, 3, 4)))
    @settings(phases=[Phase.generate], database=None, max_examples=300)
    def law(field: Array) -> None:
        check(case_of(field), mixed)

    with pytest.raises(AssertionError, match=r"missing|not behind it"):
        law()


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
