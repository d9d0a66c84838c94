"""A predicate: the text of a `--where`, parsed and checked, never evaluated as code."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from math import isfinite, isinf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.conditions import Comparison, Condition, Joined, Not, read, shortened
from pipelines.datasets import Table, Time
from pipelines.ends import least_and_greatest
from pipelines.errors import Refused, unknown
from pipelines.filters import Filter
from pipelines.spans import Span, span
from pipelines.tables import column

Join = Callable[[Any, Any], Any]
DATE = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2}(?:\.[0-9]{6})?))?)?)?"
)
NEARLY = 1e-6  # of a number: about what is lost where floats are stored in 4 bytes
COMPARISONS: Mapping[str, Join] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Predicate:
    """Comparisons of columns with constants, joined by and, or, not.

    >>> lows = parsed("pressure < 98000 and not lat between -20 and 20")
    >>> sorted(lows.columns)
    ['lat', 'pressure']
    >>> [part.text for part in lows.conjuncts()]
    ['pressure < 98000', 'not lat between -20 and 20']
    >>> parsed("len(name) = 3")
    Traceback (most recent call last):
    ...
    pipelines.errors.Refused: --where "len(name) = 3": cannot use len(name); a predicate \
compares columns with constants (=, <>, <, <=, >, >=, between, in, is null) by and, or, not
    """

    text: str
    condition: Condition
    asked: str = "--where"

    @property
    def columns(self) -> set[str]:
        return set(_columns(self.condition))

    def conjuncts(self) -> list[Predicate]:
        """The predicates that all have to hold."""
        if not (isinstance(self.condition, Joined) and self.condition.word == "and"):
            return [self]
        parts = [replace(self, text=text, condition=each) for text, each in self.condition.parts]
        return [inner for part in parts for inner in part.conjuncts()]

    def of(self, table: Table) -> Predicate:
        """What it asks of a table, in which dates of other calendars are texts."""
        times = {c for a in table.attributes if a.type == Time for c in a.columns}
        return self.dated({c for c in times if table.types.get(c) == "string"})

    def dated(self, columns: Set[str]) -> Predicate:
        """The same, where these columns have dates as texts, in order since all are in full.

        >>> parsed("time < '2001-02-30T06' and k = 1").dated({"time"}).conjuncts()[0].condition
        Comparison(column='time', sign='<', constants=('2001-02-30 06:00:00',))
        """
        return replace(self, condition=self._dated(self.condition, columns))

    def _dated(self, condition: Condition, columns: Set[str]) -> Condition:
        if isinstance(condition, Not):
            return Not(self._dated(condition.condition, columns))
        if isinstance(condition, Joined):
            parts = ((text, self._dated(part, columns)) for text, part in condition.parts)
            return replace(condition, parts=tuple(parts))
        if condition.column not in columns:
            return condition
        return replace(condition, constants=tuple(map(self._in_full, condition.constants)))

    def _in_full(self, date: Any) -> str:
        found = DATE.fullmatch(date) if isinstance(date, str) else None
        if found is None:
            raise Refused(
                f'{self.asked} "{shortened(self.text)}": {shortened(repr(date))} is no date like '
                "2000-01-14 or 2000-01-14T06:00:00"
            )
        day, *clock = found.groups("00")
        return f"{day} {':'.join(clock)}"

    def region(self, schema: pa.Schema) -> Filter:
        """A filter that holds every row this predicate keeps, and maybe more.

        >>> parsed("lat > 20 and (lon < 3 or lon > 9)").region(pa.schema({"lat": pa.float64()}))
        lat 20..inf
        """
        spans: dict[str, Span] = {}
        for part in self.conjuncts():
            found = _span(part.condition, self._in(schema))
            for name, each in found.items():
                spans[name] = spans[name] & each if name in spans else each
        return Filter(np.zeros(1, np.int64), spans)

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """This predicate for Arrow to apply, its constants cast to the columns' types.

        As in SQL, a null satisfies neither a comparison nor its opposite; as in floating point,
        NaN satisfies `<>` and the opposite of every comparison.
        """
        for name in sorted(self.columns - set(schema.names)):
            raise unknown("column", name, schema.names)
        return _expression(self.condition, self._in(schema))

    def nearly(self, schema: pa.Schema) -> Iterator[tuple[str, float, pc.Expression]]:
        """The columns of floats that have to equal a number, that, and what keeps those about it.

        >>> field = pa.schema({"lat": pa.float64()})
        >>> [(name, number) for name, number, _ in parsed("lat = 45.1").nearly(field)]
        [('lat', 45.1)]
        """
        columns = self._in(schema)
        for each in (part.condition for part in self.conjuncts()):
            if isinstance(each, Comparison) and each.sign == "=" and columns.floats(each.column):
                number = columns.cast(each.column, each.constants[0]).as_py()
                slack, field = NEARLY * abs(number), pc.field(each.column)
                about = (field >= number - slack) & (field <= number + slack)
                yield each.column, number, about

    def _in(self, schema: pa.Schema) -> _Columns:
        return _Columns(schema, f'{self.asked} "{shortened(self.text)}"')


def parsed(text: str, asked: str = "--where") -> Predicate:
    """Read a predicate; anything but comparisons of columns with constants is refused."""
    return Predicate(text, read(text, asked), asked)


def _columns(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Comparison):
        yield condition.column
    elif isinstance(condition, Not):
        yield from _columns(condition.condition)
    else:
        for _, part in condition.parts:
            yield from _columns(part)


def _span(condition: Condition, columns: _Columns) -> dict[str, Span]:
    """What a comparison restricts its column to; nothing for what is no single range."""
    if not isinstance(condition, Comparison) or not condition.constants:
        return {}
    name = condition.column
    constants = pa.array([columns.cast(name, c) for c in condition.constants])
    values = np.sort(column(pa.table({name: constants}), name))
    low, high = least_and_greatest(values.dtype)
    open_below, open_above = condition.sign in ("<", "<="), condition.sign in (">", ">=")
    ends = [low if open_below else values[0], high if open_above else values[-1]]
    return {name: span(*np.array(ends, values.dtype).reshape(2, 1))}


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns that a predicate is about, and what it is called in complaints."""

    schema: pa.Schema
    called: str

    def floats(self, name: str) -> bool:
        return bool(pa.types.is_floating(self.schema.field(name).type))

    def cast(self, name: str, value: Any) -> pa.Scalar:
        """A constant as a value of a column's type."""
        kind = self.schema.field(name).type
        try:
            found = _cast(value, kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, OverflowError):
            found = None
        if found is None or (self.floats(name) and not _as_said(found.as_py(), value)):
            raise Refused(
                f'{self.called}: {shortened(repr(value))} is not a value of "{name}" ({kind})'
            )
        return found


def _as_said(number: float, value: Any) -> bool:
    """Whether a float is what was written: an infinite one only where that says so, as 'inf'."""
    return isfinite(number) or (isinf(number) and isinstance(value, str) and "inf" in value.lower())


def _cast(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """Text is read as any type, a number only as a number: a year is no time, 1 is not true."""
    if isinstance(value, str):
        return pa.scalar(value).cast(kind)
    if isinstance(value, bool):
        return pa.scalar(value) if pa.types.is_boolean(kind) else None
    if pa.types.is_floating(kind):
        return pa.scalar(float(value), kind)
    if pa.types.is_integer(kind) and int(value) == value:
        return pa.scalar(int(value), kind)
    return pa.scalar(value).cast(kind) if pa.types.is_decimal(kind) else None


def _expression(condition: Condition, columns: _Columns) -> pc.Expression:
    if isinstance(condition, Not):
        return ~_expression(condition.condition, columns)
    if isinstance(condition, Comparison):
        return _compared(condition, columns)
    join = operator.and_ if condition.word == "and" else operator.or_
    return _together(join, [_expression(part, columns) for _, part in condition.parts])


def _together(join: Join, parts: list[pc.Expression]) -> pc.Expression:
    """Many expressions as one, halved rather than chained: Arrow recurses over their depth."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return join(_together(join, parts[:half]), _together(join, parts[half:]))


def _compared(comparison: Comparison, columns: _Columns) -> pc.Expression:
    field = pc.field(comparison.column)
    constants = [columns.cast(comparison.column, c) for c in comparison.constants]
    if comparison.sign == "is null":
        return field.is_null()
    if comparison.sign == "in":
        return _is_in(field, constants)
    if comparison.sign == "between":
        return (field >= constants[0]) & (field <= constants[1])
    return COMPARISONS[comparison.sign](field, constants[0])


def _is_in(column: pc.Expression, constants: list[pa.Scalar]) -> pc.Expression:
    """Arrow's `isin`, but of a null neither true nor false, and of 0.0 and -0.0 the same."""
    kind = constants[0].type
    has_zero = pa.types.is_floating(kind) and any(c.as_py() == 0 for c in constants)
    zeros = [pa.scalar(z, kind) for z in (0.0, -0.0) if has_zero]
    found = column.isin(pa.array([*constants, *zeros], kind))
    return pc.if_else(column.is_valid(), found, pa.scalar(None, pa.bool_()))
