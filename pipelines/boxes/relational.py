"""Relational: rows kept, cut, joined and put together, as tables are everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipelines.boxes.box import INSTEAD, REMOVAL, Besides, Port, RowBox, param
from pipelines.columns import (
    bearing,
    check_free,
    check_known,
    field_of,
    gathered,
    listed,
    names_in,
    narrowed,
    numbered,
)
from pipelines.datasets import Attribute, Dataset, Table
from pipelines.errors import Refused
from pipelines.filters import Filter
from pipelines.likeness import plain
from pipelines.predicates import Predicate, parsed
from pipelines.sharing import rows_together
from pipelines.tables import column, restricted, schema_of

Names = Mapping[str, Mapping[str, str]]
Given = Mapping[str, tuple[Attribute, ...]]
ROWS = (Port("rows", "table"),)


@dataclass(frozen=True, slots=True)
class FilterRows(RowBox):
    """The rows that satisfy a predicate, as they are.

    The predicate compares columns with constants, by and, or, not. A missing value (NaN)
    satisfies `<>` and the opposite of every comparison, and nothing else.
    """

    where: str = param("x > 0", "what a row must satisfy")

    name: ClassVar = "filter_rows"
    takes: ClassVar = ROWS
    contributed: ClassVar = "The row itself: every row of the input that equals it."
    influence: ClassVar = REMOVAL
    monotone: ClassVar = True
    flat: ClassVar = True
    examples: ClassVar = (
        {"where": "x > 0"},
        {"where": "not (k = 1 or x < 0.5)"},
        {"where": "s in ('a', 'b') and y <> 0"},
    )

    @property
    def predicate(self) -> Predicate:
        return parsed(self.where, f'box "{self.name}": where')

    def attributes_of(self, given: Given) -> tuple[Attribute, ...]:
        check_known(self.name, sorted(self.predicate.columns), given["rows"])
        return given["rows"]

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return tuple({attribute, *bearing(source, self.predicate.columns)})

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        whole = schema_of(inputs["rows"])
        self.predicate.expression(whole)
        if self.predicate.of(inputs["rows"]) != self.predicate:
            raise Refused(
                f'{self.predicate.asked} "{self.where:.60}": dates of another calendar are texts; '
                "write them in full, like 2000-01-14 06:00:00"
            )
        return whole

    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        rows = inputs["rows"]
        return rows.filter(self.predicate.expression(rows.schema))

    def region(self, rows: Table) -> Filter:
        """A filter that holds every row the predicate keeps, and maybe more."""
        return self.predicate.region(schema_of(rows))

    def run(self, inputs: Mapping[str, Any], spark: SparkSession) -> DataFrame:
        """Row groups that by their bounds hold nothing to be kept are not read."""
        some = restricted(inputs["rows"], self.region(inputs["rows"]))
        return rows_together(spark, {"rows": some}, {"rows": None}, self.rows, self.schema(inputs))


@dataclass(frozen=True, slots=True)
class SplitRows(FilterRows):
    """The rows that satisfy a predicate; and, besides, the `rest`, so that each row is in one."""

    name: ClassVar = "split_rows"

    def besides(self) -> Mapping[str, Besides]:
        return {"rest": Besides(FilterRows(f"not ({self.where})"), {"rows": "rows"})}


@dataclass(frozen=True, slots=True)
class Project(RowBox):
    """Every row, with only some of its columns; rows that become equal all stay."""

    columns: str = param("x", "the columns to keep, separated by commas")

    name: ClassVar = "project"
    takes: ClassVar = ROWS
    contributed: ClassVar = (
        "The row it was cut from: every row of the input that equals it in the columns kept."
    )
    influence: ClassVar = REMOVAL
    monotone: ClassVar = True
    flat: ClassVar = True
    examples: ClassVar = ({"columns": "k"}, {"columns": "x, s"}, {"columns": "y, x, k, s"})

    def attributes_of(self, given: Given) -> tuple[Attribute, ...]:
        if not listed(self.columns):
            raise Refused('box "project": columns is empty; name at least one')
        check_known(self.name, listed(self.columns), given["rows"])
        return narrowed(given["rows"], listed(self.columns))

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (attribute,)

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        whole = schema_of(inputs["rows"])
        return pa.schema([field_of(self.name, whole, name) for name in listed(self.columns)])

    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        return inputs["rows"].select(list(listed(self.columns)))


@dataclass(frozen=True, slots=True)
class Join(RowBox):
    """Every pair of a left and a right row that are equal in the key columns.

    The pair has the keys once, then the other left and the other right ones; where both
    sides have another column of the same name, each gets its side's suffix. Missing values are
    equal to one another. A row without a partner is left out.
    """

    keys: str = param("k", "the columns that must be equal, separated by commas")
    left_suffix: str = param("_left", "what is added to left names that the right has too")
    right_suffix: str = param("_right", "what is added to right names that the left has too")

    name: ClassVar = "join"
    takes: ClassVar = (Port("left", "table"), Port("right", "table"))
    contributed: ClassVar = (
        "At each side the row that was paired: every row there that equals its part of the pair."
    )
    influence: ClassVar = REMOVAL
    monotone: ClassVar = True
    flat: ClassVar = True
    examples: ClassVar = ({"keys": "k"}, {"keys": "s, k"}, {"keys": "x", "right_suffix": "2"})

    @property
    def on(self) -> tuple[str, ...]:
        return listed(self.keys)

    def suffix(self, port: str) -> str:
        return self.left_suffix if port == "left" else self.right_suffix

    def together(self, port: str) -> tuple[str, ...]:
        return self.on

    def attributes_of(self, given: Given) -> tuple[Attribute, ...]:
        if not self.on:
            raise Refused('box "join": keys is empty; name at least one column')
        for side in given.values():
            check_known(self.name, self.on, side)
        names = self.renamed({port: names_in(side) for port, side in given.items()})
        shared = {a.name for a in given["left"]} & {a.name for a in given["right"]}
        left = [self._moved(a, "left", names, shared) for a in given["left"]]
        others = narrowed(given["right"], set(names["right"]) - {*self.on})
        return (*left, *(self._moved(a, "right", names, shared) for a in others))

    def _moved(self, each: Attribute, port: str, names: Names, shared: set[str]) -> Attribute:
        """An attribute of one side as one of the pair; what it is joined on keeps its name."""
        alone = each.name not in shared or set(each.columns) <= {*self.on}
        name = each.name if alone else each.name + self.suffix(port)
        return replace(each, name=name, columns=tuple(names[port][c] for c in each.columns))

    def renamed(self, there: Mapping[str, Iterable[str]]) -> Names:
        """For each side, what its columns are called in a pair.

        No column may be taken for a suffixed one of the other side, even if it need not be: what
        a name in a pair stands for is told from one side alone.
        """
        shared = {*there["left"]} & {*there["right"]} - {*self.on}
        for port, other in (("left", "right"), ("right", "left")):
            for name in (n for n in there[port] if n not in self.on):
                taken = [*there[other], *(there[port] if name in shared else ())]
                check_free(self.name, name + self.suffix(port), taken, f"{port}_suffix")
        found = {
            port: {n: n + self.suffix(port) if n in shared else n for n in names}
            for port, names in there.items()
        }
        others = (name for n, name in found["right"].items() if n not in self.on)
        for name in others:
            check_free(self.name, name, found["left"].values(), "right_suffix")
        return found

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        own = (a.name for a in source.attributes)
        same = {n for n in own if attribute in (n, n + self.suffix(port))}
        return tuple({*bearing(source, self.on), *same})

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        left, right = schema_of(inputs["left"]), schema_of(inputs["right"])
        for key in self.on:
            mine, theirs = left.field(key).type, right.field(key).type
            if mine != theirs:
                raise Refused(f'box "join": "{key}" is {mine} on the left, {theirs} on the right')
        names = self.renamed({"left": left.names, "right": right.names})
        others = [f for f in right if f.name not in self.on]
        return pa.schema(
            [f.with_name(names["left"][f.name]) for f in left]
            + [f.with_name(names["right"][f.name]) for f in others]
        )

    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        names = self.renamed({port: rows.column_names for port, rows in inputs.items()})
        mine, theirs = _pairs(inputs["left"], inputs["right"], self.on)
        left, right = inputs["left"].take(mine), inputs["right"].take(theirs)
        others = [n for n in right.column_names if n not in self.on]
        return pa.table(
            {names["left"][n]: left[n] for n in left.column_names}
            | {names["right"][n]: right[n] for n in others}
        )


def _pairs(left: pa.Table, right: pa.Table, keys: tuple[str, ...]) -> tuple[pa.Array, pa.Array]:
    """The positions of every left and right row with equal keys."""
    both = pa.concat_tables([t.select(list(keys)) for t in (left, right)])
    mine, theirs = np.split(numbered(both, keys), [left.num_rows])
    order = np.argsort(theirs, kind="stable")
    first, last = (np.searchsorted(theirs, mine, s, sorter=order) for s in ("left", "right"))
    index = np.repeat(np.arange(len(mine)), last - first)
    step = np.arange(len(index)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    return pa.array(index), pa.array(order[first[index] + step])


@dataclass(frozen=True, slots=True)
class Distinct(RowBox):
    """Every different row once. Missing values are equal to one another, and so are both zeros."""

    name: ClassVar = "distinct"
    takes: ClassVar = ROWS
    contributed: ClassVar = "Every row that equals it, though one of them would have done."
    influence: ClassVar = INSTEAD
    monotone: ClassVar = True
    flat: ClassVar = True

    def together(self, port: str) -> tuple[str, ...]:
        return ()

    def attributes_of(self, given: Given) -> tuple[Attribute, ...]:
        return given["rows"]

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (attribute,)

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        return schema_of(inputs["rows"])

    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        rows = inputs["rows"]
        groups = gathered(numbered(rows, rows.column_names))
        first = rows.take(pa.array([g[0] for g in groups], pa.int64()))
        return pa.table([pa.array(plain(column(first, f.name)), f.type) for f in first.schema],
                        schema=first.schema)  # fmt: skip

    def run(self, inputs: Mapping[str, Any], spark: SparkSession) -> DataFrame:
        """Rows that are equal meet; there is no need for all to."""
        table: Table = inputs["rows"]
        keys = {"rows": tuple(table.columns)}
        return rows_together(spark, inputs, keys, self.rows, self.schema(inputs))


@dataclass(frozen=True, slots=True)
class Union(RowBox):
    """The rows of two tables with the same columns, all of both, in the first one's order."""

    name: ClassVar = "union"
    takes: ClassVar = (Port("first", "table"), Port("second", "table"))
    contributed: ClassVar = "The row itself: every row of either input that equals it."
    influence: ClassVar = REMOVAL
    monotone: ClassVar = True
    flat: ClassVar = True

    def attributes_of(self, given: Given) -> tuple[Attribute, ...]:
        first, second = (names_in(given[p]) for p in ("first", "second"))
        for odd in sorted({*first} ^ {*second}):
            side = "first" if odd in first else "second"
            raise Refused(f'box "union": only the {side} table has a column "{odd}"; project it')
        return given["first"]

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (attribute,)

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        first, second = schema_of(inputs["first"]), schema_of(inputs["second"])
        for each in first:
            other = second.field(each.name).type
            if each.type != other:
                raise Refused(
                    f'box "union": "{each.name}" is {each.type} in the first table, {other} in '
                    "the second"
                )
        return first

    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        first, second = inputs["first"], inputs["second"]
        return pa.concat_tables([first, second.select(first.column_names)])
