"""Place by place: formulas, choices, thresholds and masks, of the cells at one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges, block, coordinate
from pipelines.boxes.box import STATED, ArrayBox, Grid, Port, param
from pipelines.datasets import Array, Attribute, Dataset
from pipelines.errors import Refused, unknown
from pipelines.expressions import Expression, expression
from pipelines.grids import (
    check_name,
    grid_like,
    quantity,
    variable_of,
    variables_of,
    with_variables,
)

Attributes = tuple[Attribute, ...]
OTHER = "other_"


@dataclass(frozen=True, slots=True)
class Calculate(ArrayBox):
    """A formula of the variables of an array, place by place.

    The formula has numbers, the names of variables, + - * / **, comparisons (1 or 0), and abs,
    cos, exp, isnan, log, max, min, sin, sqrt; what depends on a condition is for the box
    `choose`. A missing value makes what is calculated of it missing, but in a comparison, where
    it is 0 (`!=`: 1), and `isnan`. Without a formula, it is the first variable as it is. The
    array's own variables are left out, unless `keep` says otherwise.
    """

    formula: str = param("", "what is calculated, like: sqrt(u10 ** 2 + v10 ** 2)")
    result: str = param("result", "the name of what is calculated")
    unit: str = param("", "its unit")
    keep: bool = param(False, "keep the array's own variables too")

    name: ClassVar = "calculate"
    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = "The cells at the same place of all variables that the formula names."
    flat: ClassVar = True
    examples: ClassVar = (
        {"formula": "a + 2 * b"},
        {"formula": "max(a, b) - abs(a)", "keep": True},
        {"formula": "(a > 1) * b", "result": "c"},
    )

    def __post_init__(self) -> None:
        _check_formula(self.formula, self.name)

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        known = variables_of(given["field"])
        _check_named(self.named(given["field"]), given["field"], self.name)
        check_name(self.result, known if self.keep else (), self.name)
        kept = known.values() if self.keep else ()
        return with_variables(given["field"], [*kept, _result(self, given["field"])])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return self.named(source.attributes) if attribute == self.result else (attribute,)

    def named(self, attributes: Attributes) -> tuple[str, ...]:
        """The variables that the formula names."""
        return self.read(attributes).names

    def read(self, attributes: Attributes) -> Expression:
        """The formula, or the first variable if there is none."""
        return _read(self.formula, attributes)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        return _grid(inputs, self.attributes_of(_attributes(inputs)))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field: Array = inputs["field"]
        formula = self.read(field.attributes)
        wanted = dict.fromkeys([*formula.names, *(field.variables if self.keep else ())])
        values = {v: block(field, v, ranges).astype(np.float64) for v in wanted}
        kept = {v: values[v] for v in field.variables} if self.keep else {}
        return {**kept, self.result: _filled(formula, values, ranges)}


@dataclass(frozen=True, slots=True)
class Combine(ArrayBox):
    """A formula of the variables of two arrays, place by place.

    The names of the second array's variables are written with `other_` before them: an anomaly
    is `t - other_t`. The second array lies on the same grid as the first, or has a single place
    along a dimension, which then stands for all places there. Formulas are those of `calculate`;
    without one, the first variable of the second array is taken from that of the first.
    """

    formula: str = param("", "what is calculated, like: t - other_t")
    result: str = param("result", "the name of what is calculated")
    unit: str = param("", "its unit")

    name: ClassVar = "combine"
    takes: ClassVar = (Port("field", "array"), Port("other", "array"))
    contributed: ClassVar = (
        "The cells at the same place, in both arrays, of all variables that the formula names."
    )
    flat: ClassVar = True
    examples: ClassVar = ({}, {"formula": "(a + 1) * other_a"}, {"formula": "max(a, other_a)"})

    def __post_init__(self) -> None:
        _check_formula(self.formula, self.name)

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        sides = [_side(n) for n in self.read(given["field"], given["other"]).names]
        for port in ("field", "other"):
            _check_named([n for p, n in sides if p == port], given[port], self.name)
        check_name(self.result, (), self.name)
        return with_variables(given["field"], [_result(self, given["field"])])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        if not self.formula:
            return (variable_of(source.attributes, "", self.name).name,)
        sides = [_side(n) for n in expression(self.formula).names]
        return tuple(name for side, name in sides if side == port)

    def read(self, field: Attributes, other: Attributes) -> Expression:
        """The formula, or the difference of the first variables if there is none."""
        if self.formula:
            return expression(self.formula)
        first, second = (variable_of(each, "", self.name).name for each in (field, other))
        return expression(f"`{first}` - `{OTHER}{second}`")

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        _check_alike(inputs["field"], inputs["other"], self.name)
        return _grid(inputs, self.attributes_of(_attributes(inputs)))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        formula = self.read(inputs["field"].attributes, inputs["other"].attributes)
        sides = {n: _side(n) for n in formula.names}
        values = {n: block(inputs[p], v, _there(inputs[p], ranges)) for n, (p, v) in sides.items()}
        return {self.result: _filled(formula, values, ranges)}


@dataclass(frozen=True, slots=True)
class Choose(ArrayBox):
    """One formula where a condition holds and another where it does not, place by place.

    The condition holds where it is not 0; where it is missing, so is the result. All three are
    formulas of the variables of the array, as in `calculate`; `nan` is what is missing. An empty
    one is the first variable.
    """

    condition: str = param("", "where the first formula counts, like: lsm > 0.5")
    then: str = param("", "the formula there")
    otherwise: str = param("nan", "the formula elsewhere")
    result: str = param("result", "the name of what is chosen")
    unit: str = param("", "its unit")

    name: ClassVar = "choose"
    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = (
        "The cells at the same place of all variables that the condition names, and of those that "
        "the formula it chose there names."
    )
    influence: ClassVar = STATED
    flat: ClassVar = True
    examples: ClassVar = (
        {"condition": "a > 1", "then": "a", "otherwise": "b"},
        {"condition": "a", "then": "b + 1", "otherwise": "2"},
    )

    def __post_init__(self) -> None:
        for each in (self.condition, self.then, self.otherwise):
            _check_formula(each, self.name)

    def formulas(self, attributes: Attributes) -> tuple[Expression, ...]:
        """The condition, the formula where it holds, and the other."""
        return tuple(_read(f, attributes) for f in (self.condition, self.then, self.otherwise))

    def named(self, attributes: Attributes) -> tuple[str, ...]:
        """The variables that any of the formulas names."""
        return tuple(dict.fromkeys(n for f in self.formulas(attributes) for n in f.names))

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        _check_named(self.named(given["field"]), given["field"], self.name)
        check_name(self.result, (), self.name)
        return with_variables(given["field"], [_result(self, given["field"])])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return self.named(source.attributes)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        return _grid(inputs, self.attributes_of(_attributes(inputs)))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field: Array = inputs["field"]
        values = {v: block(field, v, ranges) for v in self.named(field.attributes)}
        formulas = self.formulas(field.attributes)
        when, then, otherwise = (_filled(each, values, ranges) for each in formulas)
        chosen = np.where(when != 0, then, otherwise)
        return {self.result: np.where(np.isnan(when), np.nan, chosen)}


@dataclass(frozen=True, slots=True)
class Threshold(ArrayBox):
    """1 where a variable lies from `low` to `high`, both included, and 0 where it does not.

    What is missing stays missing.
    """

    variable: str = param("", "which variable; the first if empty")
    low: float = param(0.0, "the least that counts")
    high: float = param(1e300, "the most that counts")
    result: str = param("inside", "the name of what is made")

    name: ClassVar = "threshold"
    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = "The cell at the same place."
    flat: ClassVar = True
    examples: ClassVar = ({"low": 1.0}, {"variable": "a", "low": -1.0, "high": 2.0})

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        dims = variable_of(given["field"], self.variable, self.name).dims
        check_name(self.result, (), self.name)
        return with_variables(given["field"], [quantity(self.result, "1", dims)])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (variable_of(source.attributes, self.variable, self.name).name,)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        return _grid(inputs, self.attributes_of(_attributes(inputs)))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field: Array = inputs["field"]
        named = variable_of(field.attributes, self.variable, self.name).name
        values = block(field, named, ranges).astype(np.float64)
        inside = ((values >= self.low) & (values <= self.high)).astype(np.float64)
        return {self.result: np.where(np.isnan(values), np.nan, inside)}


@dataclass(frozen=True, slots=True)
class Mask(ArrayBox):
    """An array where another says so, and nothing elsewhere.

    A cell is kept where the mask is there and not 0, or with `invert` where it is 0; elsewhere
    it is missing. The mask lies on the same grid, or has a single place along a dimension, which
    then stands for all places there.
    """

    variable: str = param("", "which variable of the mask; the first if empty")
    invert: bool = param(False, "keep what the mask leaves out")

    name: ClassVar = "mask"
    takes: ClassVar = (Port("field", "array"), Port("mask", "array"))
    contributed: ClassVar = "The cell at the same place, and the mask's cell there."
    flat: ClassVar = True
    examples: ClassVar = ({}, {"variable": "a", "invert": True})

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        variable_of(given["mask"], self.variable, self.name)
        return given["field"]

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        if port == "field":
            return (attribute,)
        return (variable_of(source.attributes, self.variable, self.name).name,)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        _check_alike(inputs["field"], inputs["mask"], self.name)
        return _grid(inputs, inputs["field"].attributes)

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field, mask = inputs["field"], inputs["mask"]
        named = variable_of(mask.attributes, self.variable, self.name).name
        said = block(mask, named, _there(mask, ranges)).astype(np.float64)
        kept = (said == 0) if self.invert else (said != 0) & ~np.isnan(said)
        values = {v: block(field, v, ranges).astype(np.float64) for v in field.variables}
        return {v: np.where(kept, each, np.nan) for v, each in values.items()}


def _read(formula: str, attributes: Attributes) -> Expression:
    """A formula, or the first variable if there is none."""
    return expression(formula or f"`{variable_of(attributes, '', 'formula').name}`")


def _check_formula(formula: str, box: str) -> None:
    """Refuse what is no formula, and a choice in it, which would hide what it did not choose."""
    if formula and expression(formula).chooses:
        raise Refused(f'box "{box}": a formula has no where(...) here; use the box "choose"')


def _check_named(names: Iterable[str], attributes: Attributes, box: str) -> None:
    """Refuse a formula that names no variable, or one that is not there."""
    found = [variable_of(attributes, name, box) for name in names]
    if not found:
        known = ", ".join(variables_of(attributes))
        raise Refused(f'box "{box}": its formula names none of the variables {known}')


def _side(name: str) -> tuple[str, str]:
    """The port and the variable that a name in a formula of two arrays means."""
    second = name.startswith(OTHER)
    return ("other", name.removeprefix(OTHER)) if second else ("field", name)


def _attributes(inputs: Mapping[str, Dataset]) -> dict[str, Attributes]:
    return {port: each.attributes for port, each in inputs.items()}


def _result(box: Any, attributes: Attributes) -> Attribute:
    return quantity(box.result, box.unit, variable_of(attributes, "", box.name).dims)


def _grid(inputs: Mapping[str, Dataset], attributes: Attributes) -> Grid:
    field = inputs["field"]
    assert isinstance(field, Array)
    return grid_like(field, attributes)


def _filled(
    formula: Expression, values: Mapping[str, NDArray[Any]], ranges: Ranges
) -> NDArray[np.float64]:
    shape = tuple(b - a for a, b in ranges.values())
    found = formula.values({n: values[n] for n in formula.names})
    return np.array(np.broadcast_to(found, shape))


def _there(array: Array, ranges: Ranges) -> Ranges:
    """The same index ranges, of which a dimension with a single place has but that."""
    return {d: (0, 1) if array.size[d] == 1 else cut for d, cut in ranges.items()}


def _check_alike(field: Dataset, other: Dataset, box: str) -> None:
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
    return bool(np.array_equal(one, other))
