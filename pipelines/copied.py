"""A box that stands in for another when only what it copies is to be made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from pipelines.boxes.box import RowBox
from pipelines.datasets import Dataset, Table
from pipelines.filters import Filter
from pipelines.tables import schema_of


@dataclass(frozen=True, slots=True)
class Copied(RowBox):
    """Some columns of a table as they are, and zeros for those that are not asked about."""

    columns: tuple[str, ...]
    zeros: tuple[str, ...] = ()

    name: ClassVar = "copied"
    contributed: ClassVar = "The row that was copied."
    monotone: ClassVar = True

    def schema(self, inputs: Mapping[str, Dataset]) -> pa.Schema:
        (table,) = inputs.values()
        assert isinstance(table, Table)
        return self._schema(schema_of(table))

    def _schema(self, given: pa.Schema) -> pa.Schema:
        copied = [given.field(name) for name in self.columns]
        return pa.schema([*copied, *(pa.field(name, pa.int64()) for name in self.zeros)])

    def region(self, at: Filter) -> Filter:
        """Where the rows lie that are copied to a region."""
        return at.only(*self.columns)

    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        (table,) = inputs.values()
        zeros = pa.array([0] * table.num_rows, pa.int64())
        columns = [table[name] for name in self.columns] + [zeros for _ in self.zeros]
        return pa.table(columns, schema=self._schema(table.schema))
