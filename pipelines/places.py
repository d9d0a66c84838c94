"""Places: what boxes share that make a cell of the cells at its place, in one array or two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges, coordinate
from pipelines.boxes.box import Box, Grid
from pipelines.datasets import Array, Attribute, Dataset
from pipelines.errors import Refused, unknown
from pipelines.expressions import Expression
from pipelines.grids import grid_like, quantity, variable_of, variables_of
from pipelines.moments import same_places

Attributes = tuple[Attribute, ...]


def formula_of(box: Box, formula: str, attributes: Attributes) -> Expression:
    """A formula, or the first variable if there is none."""
    return box.expression(formula or f"`{variable_of(attributes, '', 'formula').name}`")


def check_formula(box: Box, formula: str) -> None:
    """Refuse what is no formula, and a choice in it, which would hide what it did not choose."""
    if formula and box.expression(formula).chooses:
        raise Refused(f'box "{box.name}": a formula has no where(...) here; use the box "choose"')


def check_named(names: Iterable[str], attributes: Attributes, box: str) -> None:
    """Refuse a formula that names no variable, or one that is not there."""
    found = [variable_of(attributes, name, box) for name in names]
    if not found:
        known = ", ".join(variables_of(attributes))
        raise Refused(f'box "{box}": its formula names none of the variables {known}')


def attributes_at(inputs: Mapping[str, Dataset]) -> dict[str, Attributes]:
    return {port: each.attributes for port, each in inputs.items()}


def result_of(box: Any, attributes: Attributes) -> Attribute:
    return quantity(box.result, box.unit, variable_of(attributes, "", box.name).dims)


def grid_of_first(inputs: Mapping[str, Dataset], attributes: Attributes) -> Grid:
    field = inputs["field"]
    assert isinstance(field, Array)
    return grid_like(field, attributes)


def filled(
    formula: Expression, values: Mapping[str, NDArray[Any]], ranges: Ranges
) -> NDArray[np.float64]:
    shape = tuple(b - a for a, b in ranges.values())
    found = formula.values({n: values[n] for n in formula.names})
    return np.array(np.broadcast_to(found, shape))


def at_single_places(array: Array, ranges: Ranges) -> Ranges:
    """The same index ranges, of which a dimension with a single place has but that."""
    return {d: (0, 1) if array.size[d] == 1 else cut for d, cut in ranges.items()}


def check_alike(field: Dataset, other: Dataset, box: str) -> None:
    """Refuse a second array that lies elsewhere than the first."""
    assert isinstance(field, Array) and isinstance(other, Array)
    if field.dims != other.dims:
        raise unknown("dimension", " ".join(other.dims), field.dims, f'at box "{box}"')
    for dim, size in other.size.items():
        if size != 1 and not _same_places(coordinate(field, dim), coordinate(other, dim)):
            raise Refused(
                f'box "{box}": "{field.name}" has {field.size[dim]} places along {dim}, and the '
                f'{size} of "{other.name}" are not the same; regrid or select one of them'
            )


def _same_places(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.dtype.kind in "iuf" and other.dtype.kind in "iuf":
        return one.shape == other.shape and np.allclose(one, other, rtol=0, atol=1e-6)
    return same_places(one, other)
