"""Mapping: a new column, worked out of the others row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from pipelines.boxes.box import REMOVAL, Port, RowBox, param
from pipelines.columns import bearing, check_known, check_new, field_of
from pipelines.datasets import Attribute, Dataset, Quantity
from pipelines.errors import Refused
from pipelines.expressions import Expression
from pipelines.tables import column, schema_of


@dataclass(frozen=True, slots=True)
class MapRows(RowBox):
    """Every row with one more column, whose value is a formula over the row's other columns.

    The formula has numbers, the names of columns that hold numbers, arithmetic, comparisons and
    functions like `max` and `sqrt`, or those that authors registered; it is worked out in 64-bit
    floats. Of a missing value it makes a missing one, unless it asks for that with `isnan` or
    `where`.
    """

    column: str = param("z", "the name of the new column")
    formula: str = param("2 * x", "what it holds, like: max(0.42 * salary - 8000, 0)")

    name: ClassVar = "map_rows"
    takes: ClassVar = (Port("rows", "table"),)
    contributed: ClassVar = "The row itself: every row of the input that equals it in all else."
    influence: ClassVar = REMOVAL
    monotone: ClassVar = True
    flat: ClassVar = True
    formulas: ClassVar = ("formula",)
    examples: ClassVar = (
        {"formula": "2 * x - 1"},
        {"formula": "x * y + k"},
        {"column": "size", "formula": "sqrt(x ** 2 + y ** 2)"},
    )

    @property
    def parsed(self) -> Expression:
        return self.expression(self.formula)

    def attributes_of(self, given: Mapping[str, tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
        check_known(self.name, self.parsed.names, given["rows"])
        check_new(self.name, self.column, given["rows"])
        return (*given["rows"], Attribute(self.column, Quantity, (self.column,)))

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        if attribute != self.column:
            return (attribute,)
        # Where the formula names nothing, the row is asked about: why it is there at all.
        return bearing(source, self.parsed.names) or tuple(a.name for a in source.attributes)

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        whole = schema_of(inputs["rows"])
        for name in self.parsed.names:
            kind = field_of(self.name, whole, name).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise Refused(f'box "{self.name}": "{name}" is {kind}; a formula takes numbers')
        return pa.schema([*whole, (self.column, pa.float64())])

    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        rows = inputs["rows"]
        given = {name: column(rows, name) for name in rows.column_names}
        return rows.append_column(self.column, pa.array(self.parsed.values(given)))
