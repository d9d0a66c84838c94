"""A predicate: the text of a `--where`, parsed and checked, never evaluated as code."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from pipelines.errors import Refused, unknown

COMPARISONS: Mapping[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Predicate:
    """Comparisons of columns with constants, joined by and, or, not.

    >>> lows = parsed("pressure < 98000 and not lat between -20 and 20")
    >>> sorted(lows.columns)
    ['lat', 'pressure']
    >>> parsed("len(name) = 3")
    Traceback (most recent call last):
    ...
    pipelines.errors.Refused: --where "len(name) = 3": cannot use LENGTH(name); a predicate \
compares columns with constants (=, <>, <, <=, >, >=, between, in, is null) by and, or, not
    """

    text: str
    tree: exp.Expr

    @property
    def columns(self) -> set[str]:
        return {c.name for c in self.tree.find_all(exp.Column)}

    def conjuncts(self) -> list[Predicate]:
        """The predicates that all have to hold."""
        parts = self.tree.flatten() if isinstance(self.tree, exp.And) else [self.tree]
        return [Predicate(p.sql(), p.unnest()) for p in parts]

    def expression(self, schema: pa.Schema) -> pc.Expression:
        """This predicate for Arrow to apply, its constants cast to the columns' types."""
        for name in sorted(self.columns - set(schema.names)):
            raise unknown("column", name, schema.names)
        return _expression(self.tree, schema, self.text)


def parsed(text: str) -> Predicate:
    """Read a predicate; anything but comparisons of columns with constants is refused."""
    try:
        tree = sqlglot.parse_one(f"SELECT 1 WHERE {text}", dialect="spark")
    except sqlglot.errors.SqlglotError:
        raise Refused(f"--where \"{text}\" is not a predicate, like: time = '2000-01-14'") from None
    condition = tree.args.get("where")
    extra = [k for k, v in tree.args.items() if v and k not in ("expressions", "where", "kind")]
    if not isinstance(tree, exp.Select) or condition is None or extra:
        raise Refused(f'--where "{text}" is more than a predicate; give only the condition')
    checked = condition.this.unnest()
    _check(checked, text)
    return Predicate(text, checked)


def _check(node: exp.Expr, text: str) -> None:
    """Refuse every node that is not a comparison of a column with constants."""
    if isinstance(node, exp.And | exp.Or | exp.Not | exp.Paren):
        for child in node.iter_expressions():
            _check(child, text)
    elif not (_compares(node) or _lists(node) or _ranges(node) or _asks_null(node)):
        raise Refused(
            f'--where "{text}": cannot use {node.sql()}; a predicate compares columns with '
            "constants (=, <>, <, <=, >, >=, between, in, is null) by and, or, not"
        )


def _is_column(node: Any) -> bool:
    return isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier)


def _is_constant(node: Any) -> bool:
    if isinstance(node, exp.Neg):
        return isinstance(node.this, exp.Literal) and not node.this.is_string
    return isinstance(node, exp.Literal | exp.Boolean)


def _compares(node: exp.Expr) -> bool:
    if type(node) not in COMPARISONS:
        return False
    sides = (node.this, node.expression)
    return any(map(_is_column, sides)) and any(map(_is_constant, sides))


def _ranges(node: exp.Expr) -> bool:
    ends = (node.args.get("low"), node.args.get("high"))
    return isinstance(node, exp.Between) and _is_column(node.this) and all(map(_is_constant, ends))


def _lists(node: exp.Expr) -> bool:
    plain = isinstance(node, exp.In) and not node.args.get("query") and _is_column(node.this)
    return plain and all(map(_is_constant, node.expressions))


def _asks_null(node: exp.Expr) -> bool:
    return (
        isinstance(node, exp.Is) and _is_column(node.this) and isinstance(node.expression, exp.Null)
    )


def _expression(node: exp.Expr, schema: pa.Schema, text: str) -> pc.Expression:
    if isinstance(node, exp.And | exp.Or):
        join = operator.and_ if isinstance(node, exp.And) else operator.or_
        return reduce(join, [_expression(p, schema, text) for p in node.flatten()])
    if isinstance(node, exp.Not):
        return ~_expression(node.this, schema, text)
    if isinstance(node, exp.Paren):
        return _expression(node.this, schema, text)
    return _atom(node, schema, text)


def _atom(node: exp.Expr, schema: pa.Schema, text: str) -> pc.Expression:
    turned = not _is_column(node.this)
    name = (node.expression if turned else node.this).name
    column, constant = pc.field(name), _Caster(schema.field(name), text)
    if isinstance(node, exp.Is):
        return column.is_null()
    if isinstance(node, exp.In):
        return column.isin(pa.array([constant(v) for v in node.expressions]))
    if isinstance(node, exp.Between):
        return (column >= constant(node.args["low"])) & (column <= constant(node.args["high"]))
    compare = COMPARISONS[type(node)]
    if turned:
        return compare(constant(node.this), column)
    return compare(column, constant(node.expression))


@dataclass(frozen=True, slots=True)
class _Caster:
    """Turns a constant of the text into a value of one column's type."""

    field: pa.Field
    text: str

    def __call__(self, node: exp.Expr) -> pa.Scalar:
        value = _constant(node)
        try:
            if pa.types.is_floating(self.field.type) and not isinstance(value, str):
                return pa.scalar(float(value), self.field.type)
            return pa.scalar(value).cast(self.field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
            raise Refused(
                f'--where "{self.text}": {value!r} is not a value of "{self.field.name}" '
                f"({self.field.type})"
            ) from None


def _constant(node: exp.Expr) -> Any:
    if isinstance(node, exp.Neg):
        return -_constant(node.this)
    if isinstance(node, exp.Boolean):
        return node.this
    if node.is_string:
        return node.this
    return int(node.this) if node.is_int else float(node.this)
