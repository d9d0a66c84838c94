"""Place by place: formulas of the variables of one array, or of two."""

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
from pipelines.grids import check_name, variable_of, variables_of, with_variables
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

OTHER = "other_"
Sides = Mapping[str, tuple[str, str]]  # from a name to a port and a variable there


@dataclass(frozen=True, slots=True)
class Calculate(ArrayBox):
    """A formula of the variables of an array, place by place.

    The formula has numbers, the names of variables, + - * / **, comparisons (1 or 0), and abs,
    cos, exp, isnan, log, max, min, sin, sqrt, or functions that authors registered; what depends
    on a condition is for the box `choose`. A missing value makes what is calculated of it missing,
    but in a comparison, where it is 0 (`!=`: 1), and `isnan`. Without a formula, it is the first
    variable as it is. The array's own variables are left out, unless `keep` says otherwise.
    """

    formula: str = param("", "what is calculated, like: sqrt(u10 ** 2 + v10 ** 2)")
    result: str = param("result", "the name of what is calculated")
    unit: str = param("", "its unit")
    keep: bool = param(False, "keep the array's own variables too")

    name: ClassVar = "calculate"
    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = "The cells at the same place of all variables that the formula names."
    flat: ClassVar = True
    formulas: ClassVar = ("formula",)
    examples: ClassVar = (
        {"formula": "a + 2 * b"},
        {"formula": "max(a, b) - abs(a)", "keep": True},
        {"formula": "(a > 1) * b", "result": "c"},
    )

    def __post_init__(self) -> None:
        check_formula(self, self.formula)

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        known = variables_of(given["field"])
        check_named(self.named(given["field"]), given["field"], self.name)
        check_name(self.result, known if self.keep else (), self.name)
        kept = known.values() if self.keep else ()
        return with_variables(given["field"], [*kept, result_of(self, given["field"])])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return self.named(source.attributes) if attribute == self.result else (attribute,)

    def named(self, attributes: Attributes) -> tuple[str, ...]:
        """The variables that the formula names."""
        return self.read(attributes).names

    def read(self, attributes: Attributes) -> Expression:
        """The formula, or the first variable if there is none."""
        return formula_of(self, self.formula, attributes)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        return grid_of_first(inputs, self.attributes_of(attributes_at(inputs)))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        field: Array = inputs["field"]
        formula = self.read(field.attributes)
        wanted = dict.fromkeys([*formula.names, *(field.variables if self.keep else ())])
        values = {v: block(field, v, ranges).astype(np.float64) for v in wanted}
        kept = {v: values[v] for v in field.variables} if self.keep else {}
        return {**kept, self.result: filled(formula, values, ranges)}


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
    formulas: ClassVar = ("formula",)
    examples: ClassVar = ({}, {"formula": "(a + 1) * other_a"}, {"formula": "max(a, other_a)"})

    def __post_init__(self) -> None:
        check_formula(self, self.formula)

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        sides = self.read(given["field"], given["other"])[1].values()
        for port in ("field", "other"):
            check_named([n for p, n in sides if p == port], given[port], self.name)
        check_name(self.result, (), self.name)
        return with_variables(given["field"], [result_of(self, given["field"])])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        if not self.formula:
            return (variable_of(source.attributes, "", self.name).name,)
        sides = [_side(n) for n in self.expression(self.formula).names]
        return tuple(name for side, name in sides if side == port)

    def read(self, field: Attributes, other: Attributes) -> tuple[Expression, Sides]:
        """The formula, or the difference of the first variables, and what its names mean."""
        if self.formula:
            formula = self.expression(self.formula)
            return formula, {n: _side(n) for n in formula.names}
        given = {"field": field, "other": other}
        firsts = {p: variable_of(each, "", self.name).name for p, each in given.items()}
        # Under the ports' names: one's own may begin like those of the other array's variables.
        return self.expression("field - other"), {p: (p, name) for p, name in firsts.items()}

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        check_alike(inputs["field"], inputs["other"], self.name)
        return grid_of_first(inputs, self.attributes_of(attributes_at(inputs)))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        formula, sides = self.read(inputs["field"].attributes, inputs["other"].attributes)
        values = {
            n: block(inputs[p], v, at_single_places(inputs[p], ranges))
            for n, (p, v) in sides.items()
        }
        return {self.result: filled(formula, values, ranges)}


def _side(name: str) -> tuple[str, str]:
    """The port and the variable that a name in a formula of two arrays means."""
    second = name.startswith(OTHER)
    return ("other", name.removeprefix(OTHER)) if second else ("field", name)
