"""Groups: rows with equal keys, summed up, ranked among themselves, or the highest of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import fsum, inf
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.boxes.box import CHANGE, REMOVAL, Port, RowBox, param
from pipelines.columns import (
    absent,
    bearing,
    check_free,
    check_known,
    check_new,
    field_of,
    gathered,
    listed,
    narrowed,
    numbered,
    ranked,
)
from pipelines.datasets import Attribute, Dataset, Measure, Rank, Text, Time
from pipelines.errors import Refused, unknown
from pipelines.likeness import plain
from pipelines.tables import column, schema_of

Values = NDArray[Any]
Given = Mapping[str, tuple[Attribute, ...]]
ROWS = (Port("rows", "table"),)
LEAST_FLOAT = 1074  # of two, the power by which it is divided


def _total(values: Values, among: int = 1) -> float:
    """A sum, or its share `among` so many, that does not depend on the order of its terms."""
    if values.dtype.kind != "f":
        return float(sum(values.tolist()) / among)
    if not np.isfinite(values).all():
        with np.errstate(invalid="ignore"):
            return float(values[~np.isfinite(values)].sum())
    try:
        return fsum(values.tolist()) / among
    except OverflowError:
        return _total_beyond(values, among)


def _total_beyond(values: Values, among: int) -> float:
    """The same where floats overflow on the way: summed up as whole numbers of the least float."""
    ratios = (value.as_integer_ratio() for value in values.tolist())
    total = sum(up << (LEAST_FLOAT + 1 - down.bit_length()) for up, down in ratios)
    try:
        return float(total / (among << LEAST_FLOAT))
    except OverflowError:
        return inf if total > 0 else -inf


AGGREGATES: dict[str, Callable[[Values], Any]] = {
    "count": len,
    "sum": _total,
    "mean": lambda values: _total(values, len(values)),
    "min": lambda values: plain(values).min(),
    "max": lambda values: plain(values).max(),
}


@dataclass(frozen=True, slots=True)
class Aggregate(RowBox):
    """One row for each group of rows with equal keys; without keys, one for all rows there are.

    It has the keys, and for each `column:how` in `what` the count, sum, mean, min or max of a
    column, called `column_how`. A count is of rows. Of sums, means, min and max, missing values
    (NaN) are left out; where a group has no others these are missing too. Missing keys are equal
    to one another. Sums are rounded once, at the end, so that they do not depend on any order.
    """

    keys: str = param("", "the columns that are equal in a group, separated by commas")
    what: str = param("x:mean", "what to make, like: x:mean, y:max")

    name: ClassVar = "aggregate"
    takes: ClassVar = ROWS
    contributed: ClassVar = (
        "To a count, the whole group; to a sum or mean, the rows of it that have a value there; to "
        "a max or min, those that attain it; where none has a value, and to a key, all of them."
    )
    influence: ClassVar = REMOVAL
    flat: ClassVar = True
    examples: ClassVar = (
        {"keys": "k", "what": "x:mean"},
        {"keys": "k, s", "what": "x:max, y:min"},
        {"what": "x:sum, x:count, y:max"},
    )

    @property
    def asks(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.made)

    @property
    def made(self) -> dict[str, tuple[str, str]]:
        """The columns it makes: of which column each, and how."""
        pairs = [text.partition(":")[::2] for text in listed(self.what)]
        return {f"{c.strip()}_{h.strip()}": (c.strip(), h.strip()) for c, h in pairs}

    def identity(self, columns: Iterable[str]) -> tuple[str, ...]:
        return listed(self.keys)

    def together(self, port: str) -> tuple[str, ...]:
        return listed(self.keys)

    def attributes_of(self, given: Given) -> tuple[Attribute, ...]:
        rows = given["rows"]
        check_known(self.name, listed(self.keys), rows)
        if not self.made:
            raise Refused('box "aggregate": what is empty; say what to make, like: x:mean')
        for name, (of, how) in self.made.items():
            if how not in AGGREGATES:
                raise unknown("aggregate", how, AGGREGATES, f'for column "{of}"')
            check_known(self.name, [of], rows)
            check_free(self.name, name, listed(self.keys))
            _check_numbers(self.name, of, how, rows)
        return (*narrowed(rows, listed(self.keys)), *(_measure(n, rows) for n in self.made))

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        of = [self.made[attribute][0]] if attribute in self.made else []
        return bearing(source, [*listed(self.keys), *of])

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        whole = schema_of(inputs["rows"])
        named = [*listed(self.keys), *(of for of, _ in self.made.values())]
        kind = {n: field_of(self.name, whole, n).type for n in named}
        for of, how in self.made.values():
            _check_kind(self.name, of, how, kind[of])
        fixed = {"count": pa.int64(), "sum": pa.float64(), "mean": pa.float64()}
        made = [(n, fixed.get(how, kind[of])) for n, (of, how) in self.made.items()]
        return pa.schema([*(whole.field(k) for k in listed(self.keys)), *made])

    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        rows = inputs["rows"]
        groups = gathered(numbered(rows, listed(self.keys)))
        first = rows.take(pa.array([g[0] for g in groups], pa.int64()))
        found = {k: _stored(plain(column(first, k)), rows, k) for k in listed(self.keys)}
        for name, (of, how) in self.made.items():
            values = column(rows, of)
            made = [aggregated(values[g], how) for g in groups]
            kept = how in ("min", "max")
            found[name] = _stored(made, rows, of) if kept else pa.array(made, _kind(how))
        return pa.table(found)


def _check_numbers(box: str, of: str, how: str, attributes: tuple[Attribute, ...]) -> None:
    """Refuse to sum what is no number by what it means."""
    meant = next(a.type for a in attributes if of in a.columns)
    kinds = {Text: pa.string(), Time: pa.timestamp("us")}
    _check_kind(box, of, how, kinds.get(meant, pa.float64()))


def _check_kind(box: str, of: str, how: str, kind: pa.DataType) -> None:
    """Refuse to sum what is no number by how it is stored."""
    if how not in ("sum", "mean") or not (pa.types.is_string(kind) or pa.types.is_timestamp(kind)):
        return
    what = "text" if pa.types.is_string(kind) else "a time"
    raise Refused(f'box "{box}": "{of}" is {what}, which has no {how}; count it, or take the max')


def _measure(name: str, rows: tuple[Attribute, ...]) -> Attribute:
    return Attribute(name, Measure, (name,))


def _kind(how: str) -> pa.DataType:
    return pa.int64() if how == "count" else pa.float64()


def _stored(values: Any, rows: pa.Table, like: str) -> pa.Array:
    """Values as a column of the rows is stored."""
    return pa.array(values, rows.schema.field(like).type)


def aggregated(values: Values, how: str) -> Any:
    """One aggregate of one group; missing if nothing is there to be aggregated."""
    there = values if how == "count" else values[~absent(values)]
    return AGGREGATES[how](there) if len(there) else np.nan


@dataclass(frozen=True, slots=True)
class TopN(RowBox):
    """The rows with the highest values of a column: of all, or of each group with equal keys.

    A row is kept if fewer than `n` rows of its group are higher, so that those that tie with the
    last one are kept with it. With `least`, the lowest are. Rows whose value is missing are not.
    """

    by: str = param("x", "the column whose highest values count")
    n: int = param(10, "how many to keep", low=1)
    keys: str = param("", "the columns that are equal in a group, separated by commas")
    least: bool = param(False, "keep the lowest instead")

    name: ClassVar = "top_n"
    takes: ClassVar = ROWS
    contributed: ClassVar = (
        "The row itself: every row that equals it; and the others that tie with it, if together "
        "they would have put it out by being a little higher."
    )
    influence: ClassVar = REMOVAL
    flat: ClassVar = True
    examples: ClassVar = (
        {"by": "x", "n": 1},
        {"by": "y", "n": 2, "keys": "k"},
        {"by": "x", "n": 2, "keys": "s", "least": True},
        {"by": "y", "n": 3},
    )

    def together(self, port: str) -> tuple[str, ...]:
        return listed(self.keys)

    def attributes_of(self, given: Given) -> tuple[Attribute, ...]:
        check_known(self.name, [self.by, *listed(self.keys)], given["rows"])
        return given["rows"]

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return tuple({attribute, *bearing(source, [self.by, *listed(self.keys)])})

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        return schema_of(inputs["rows"])

    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        rows = inputs["rows"]
        values = column(rows, self.by)
        before = rank(numbered(rows, listed(self.keys)), values, self.least) - 1
        return rows.filter(pa.array((before < self.n) & ~absent(values)))


def rank(groups: NDArray[np.int64], values: Values, least: bool) -> NDArray[np.int64]:
    """One more than the rows of a row's group that come before it; missing values come last.

    >>> rank(np.zeros(4, int), np.array([5.0, 9.0, np.nan, 5.0]), least=False).tolist()
    [2, 1, 4, 2]
    """
    place = ranked(values) if least else -ranked(values)
    place[absent(values)] = len(values)
    order = np.lexsort([place, groups])
    pairs = np.column_stack([groups, place])[order]
    nth = np.arange(len(order))
    first_of_group = _first(pairs[:, :1], nth)
    found = np.empty(len(order), np.int64)
    found[order] = _first(pairs, nth) - first_of_group + 1
    return found


def _first(pairs: NDArray[np.int64], nth: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each of sorted pairs, the number of the first that equals it."""
    new = np.ones(len(pairs), bool)
    new[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    return np.maximum.accumulate(np.where(new, nth, 0))


@dataclass(frozen=True, slots=True)
class RankRows(RowBox):
    """Every row with its rank by a column: among all, or within its group with equal keys.

    The highest is 1, equal ones share a rank, and the next after two of rank 1 is 3. With
    `least`, the lowest is 1. Rows whose value is missing come last, together.
    """

    by: str = param("x", "the column to rank by")
    keys: str = param("", "the columns that are equal in a group, separated by commas")
    least: bool = param(False, "the lowest comes first")
    called: str = param("rank", "the name of the new column")

    name: ClassVar = "rank"
    takes: ClassVar = ROWS
    contributed: ClassVar = (
        "To its rank, every row of its group, for each was compared with it; to all else, the row "
        "itself."
    )
    influence: ClassVar = CHANGE
    flat: ClassVar = True
    examples: ClassVar = (
        {"by": "x"},
        {"by": "y", "keys": "k", "least": True},
        {"by": "x", "keys": "k, s", "called": "place"},
    )

    def identity(self, columns: Iterable[str]) -> tuple[str, ...]:
        return tuple(c for c in columns if c != self.called)

    def together(self, port: str) -> tuple[str, ...]:
        return listed(self.keys)

    def attributes_of(self, given: Given) -> tuple[Attribute, ...]:
        check_known(self.name, [self.by, *listed(self.keys)], given["rows"])
        check_new(self.name, self.called, given["rows"])
        return (*given["rows"], Attribute(self.called, Rank, (self.called,)))

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        deciding = bearing(source, [self.by, *listed(self.keys)])
        return deciding if attribute == self.called else (attribute,)

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        return pa.schema([*schema_of(inputs["rows"]), (self.called, pa.int64())])

    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        rows = inputs["rows"]
        groups, values = numbered(rows, listed(self.keys)), column(rows, self.by)
        return rows.append_column(self.called, pa.array(rank(groups, values, self.least)))
