"""Expressions: small formulas over names, read from text, never evaluated as code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isnan
from types import MappingProxyType
from typing import Any

import numpy as np

from pipelines.bounds import ANYTHING, NOTHING, Bounds
from pipelines.formulas import Call, Name, Number, Part, read
from pipelines.operations import Operation, Values

EXACT_WHOLE = 2.0**53
OURS: Mapping[str, Operation] = MappingProxyType({})
Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Expression:
    """A formula that was read from text; all numbers in it are 64-bit floats.

    It says what it is made of, and what its values are. A comparison is 1 or 0, and 0 if a side
    is NaN (but `!=` is 1); `where(c, a, b)` is `a` where `c` is not 0, and NaN where `c` is; of
    NaN all else makes NaN, except `isnan`. NaN itself is written `nan`.

    >>> tax = expression("max(0.42 * salary - 8000, 0)")
    >>> tax.names
    ('salary',)
    >>> tax.values({"salary": [10_000, 100_000]}).tolist()
    [0.0, 34000.0]

    It says where its values lie if names lie within bounds, and where a name lies if its value
    does. Bounds include both ends. What is not known is `(-inf, inf)`, which alone allows NaN.

    >>> tax.bounds({"salary": (50_000, 100_000)})
    (13000.0, 34000.0)
    >>> low, high = tax.narrowed("salary", 30_000, inf)
    >>> round(low, 6), high
    (90476.190476, inf)
    """

    root: Part

    def __str__(self) -> str:
        return str(self.root)

    @property
    def names(self) -> tuple[str, ...]:
        """The names it has, each once, as they first come."""
        return tuple(dict.fromkeys(_names(self.root)))

    @property
    def chooses(self) -> bool:
        """Whether there is a `where` in it, so that it may use a name at one place only."""
        return "where" in _called(self.root)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions and operators it has, each once, as they first come."""
        return tuple(dict.fromkeys(_called(self.root)))

    def values(self, given: Mapping[str, Any]) -> Values:
        """Its values, where names have these, which may be arrays that broadcast."""
        held = {n: np.asarray(given[n], np.float64, order="C") for n in self.names}
        shape = np.broadcast_shapes(*(np.shape(v) for v in given.values()))
        with np.errstate(all="ignore"):
            found = np.asarray(_values(self.root, held), np.float64)
        return found if found.shape == shape else np.array(np.broadcast_to(found, shape))

    def bounds(self, given: Mapping[str, Ends]) -> Ends:
        """Where its values lie if each name lies within its bounds."""
        found = _bounds(self.root, _held(given))
        return (-inf, inf) if found.nan else (found.low, found.high)

    def narrowed(
        self, name: str, low: float, high: float, given: Mapping[str, Ends] | None = None
    ) -> Ends:
        """Where a name lies if the value lies from `low` to `high`; `(inf, -inf)` if nowhere.

        What is `given` of the bounds of names, this one too, makes the answer narrower.
        """
        if (low, high) == (-inf, inf):
            return (given or {}).get(name, (-inf, inf))
        held = _held(given or {})
        found = _narrowed(self.root, name, Bounds(low, high), held) & held.get(name, ANYTHING)
        if found.empty:
            return (inf, -inf)
        return (-inf, inf) if found.nan else (found.low, found.high)


def _held(given: Mapping[str, Ends]) -> dict[str, Bounds]:
    ends = {n: (float(low), float(high)) for n, (low, high) in given.items()}
    return {n: Bounds(*each, nan=each == (-inf, inf)) for n, each in ends.items()}


def _names(part: Part) -> list[str]:
    if isinstance(part, Call):
        return [name for operand in part.operands for name in _names(operand)]
    return [part.name] if isinstance(part, Name) else []


def _called(part: Part) -> list[str]:
    if not isinstance(part, Call):
        return []
    return [part.name, *(each for o in part.operands for each in _called(o))]


def _values(part: Part, given: Mapping[str, Values]) -> Values:
    if isinstance(part, Call):
        operands = [_values(o, given) for o in part.operands]
        return np.asarray(part.operation.values(*operands), np.float64)
    return given[part.name] if isinstance(part, Name) else np.asarray(part.value)


def _bounds(part: Part, given: Mapping[str, Bounds]) -> Bounds:
    if isinstance(part, Number):
        return ANYTHING if isnan(part.value) else Bounds(part.value, part.value)
    if isinstance(part, Name):
        return given.get(part.name, ANYTHING)
    return part.operation.bounds(*(_bounds(o, given) for o in part.operands))


def _narrowed(part: Part, name: str, wanted: Bounds, given: Mapping[str, Bounds]) -> Bounds:
    """Where a name lies if a part of the expression lies where it is wanted.

    Every place of the name says something of its own, and all of it is true.
    """
    if wanted.nan or name not in _names(part):
        return ANYTHING
    if isinstance(part, Name):
        return _as_read(wanted)
    assert isinstance(part, Call)
    operands = [_bounds(o, given) for o in part.operands]
    wanted = wanted & part.operation.bounds(*operands)
    if wanted.empty:
        return NOTHING
    found = ANYTHING
    within = part.operation.narrowed(wanted, *operands)
    for operand, each in zip(part.operands, within, strict=True):
        found &= NOTHING if each.empty else _narrowed(operand, name, each, given)
    return found


def _as_read(wanted: Bounds) -> Bounds:
    """Bounds of what is stored, where large whole numbers were rounded as they were read."""
    rounded = any(EXACT_WHOLE <= abs(end) < inf for end in (wanted.low, wanted.high))
    return wanted.stepped() if rounded else wanted


def expression(text: str, functions: Mapping[str, Operation] = OURS) -> Expression:
    """The expression that a text says; beside our own, it may name these functions.

    >>> expression("2 * (a - b) ** 2").names
    ('a', 'b')
    >>> expression("a.real")
    Traceback (most recent call last):
    ...
    pipelines.errors.Refused: expression "a.real": cannot use ".real"; it has numbers, names, \
+ - * / **, comparisons, brackets and abs, cos, exp, isnan, log, max, min, sin, sqrt, where
    """
    return Expression(read(text, functions))
