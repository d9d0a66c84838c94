"""By a condition: choices between formulas, thresholds, and masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges, block
from pipelines.boxes.box import ArrayBox, Grid, Port, param
from pipelines.datasets import Array, Dataset
from pipelines.expressions import Expression
from pipelines.grids import check_name, quantity, variable_of, with_variables
from pipelines.places import (
    Attributes,
    at_single_places,
    attributes_at,
    check_alike,
    check_formula,
    check_named,
    filled,
    formula_of,
    grid_of_first,
    result_of,
)


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
    flat: ClassVar = True
    formulas: ClassVar = ("condition", "then", "otherwise")
    examples: ClassVar = (
        {"condition": "a > 1", "then": "a", "otherwise": "b"},
        {"condition": "a", "then": "b + 1", "otherwise": "2"},
    )

    def __post_init__(self) -> None:
        for each in (self.condition, self.then, self.otherwise):
            check_formula(self, each)

    def read(self, attributes: Attributes) -> tuple[Expression, ...]:
        """The condition, the formula where it holds, and the other."""
        texts = (self.condition, self.then, self.otherwise)
        return tuple(formula_of(self, text, attributes) for text in texts)

    def named(self, attributes: Attributes) -> tuple[str, ...]:
        """The variables that any of the formulas names."""
        return tuple(dict.fromkeys(n for f in self.read(attributes) for n in f.names))

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        check_named(self.named(given["field"]), given["field"], self.name)
        check_name(self.result, (), self.name)
        return with_variables(given["field"], [result_of(self, given["field"])])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return self.named(source.attributes)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        return grid_of_first(inputs, self.attributes_of(attributes_at(inputs)))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field: Array = inputs["field"]
        values = {v: block(field, v, ranges) for v in self.named(field.attributes)}
        formulas = self.read(field.attributes)
        when, then, otherwise = (filled(each, values, ranges) for each in formulas)
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
    monotone: ClassVar = True
    flat: ClassVar = True
    examples: ClassVar = ({"low": 1.0}, {"variable": "a", "low": -1.0, "high": 2.0})

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        dims = variable_of(given["field"], self.variable, self.name).dims
        check_name(self.result, (), self.name)
        return with_variables(given["field"], [quantity(self.result, "1", dims)])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (variable_of(source.attributes, self.variable, self.name).name,)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        return grid_of_first(inputs, self.attributes_of(attributes_at(inputs)))

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
    monotone: ClassVar = True
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
        check_alike(inputs["field"], inputs["mask"], self.name)
        return grid_of_first(inputs, inputs["field"].attributes)

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field, mask = inputs["field"], inputs["mask"]
        named = variable_of(mask.attributes, self.variable, self.name).name
        said = block(mask, named, at_single_places(mask, ranges)).astype(np.float64)
        kept = (said == 0) if self.invert else (said != 0) & ~np.isnan(said)
        values = {v: block(field, v, ranges).astype(np.float64) for v in field.variables}
        return {v: np.where(kept, each, np.nan) for v, each in values.items()}
