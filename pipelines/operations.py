"""Operations: what each does to values, to the bounds of values, and to bounds backwards."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from math import inf, isnan, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.bounds import ANYTHING, NOTHING, Bounds

Values = NDArray[np.float64]
Narrowed = tuple[Bounds, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operator or function: how many operands, forwards, in bounds, and backwards.

    `narrowed` takes the bounds wanted of the result, which is not NaN, and those of each operand,
    and says where each operand then lies; ANYTHING where that is not known.
    """

    values: Callable[..., Any]
    bounds: Callable[..., Bounds]
    narrowed: Callable[..., Narrowed]
    least: int = 2
    most: int = 2


def _hull(ends: Iterable[float], nan: bool) -> Bounds:
    """The bounds around some ends; unknown if one of them is not a number."""
    found = list(ends)
    return ANYTHING if any(map(isnan, found)) else Bounds(min(found), max(found), nan)


def _corners(function: Callable[[Any, Any], Any], a: Bounds, b: Bounds) -> Bounds:
    pairs = product((a.low, a.high), (b.low, b.high))
    with np.errstate(all="ignore"):
        ends = [float(function(np.float64(x), np.float64(y))) for x, y in pairs]
    return _hull(ends, a.nan or b.nan)


def _sum(a: Bounds, b: Bounds) -> Bounds:
    return _corners(operator.add, a, b)


def _difference(a: Bounds, b: Bounds) -> Bounds:
    return _corners(operator.sub, a, b)


def _product(a: Bounds, b: Bounds) -> Bounds:
    if (a.endless and 0 in b) or (b.endless and 0 in a):
        return ANYTHING
    return _corners(operator.mul, a, b)


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    if 0 in b or (a.endless and b.endless):
        return ANYTHING
    return _corners(operator.truediv, a, b)


def _undo_sum(wanted: Bounds, a: Bounds, b: Bounds) -> Narrowed:
    exact = wanted.stepped()
    return _difference(exact, b).stepped(), _difference(exact, a).stepped()


def _undo_difference(wanted: Bounds, a: Bounds, b: Bounds) -> Narrowed:
    exact = wanted.stepped()
    return _sum(exact, b).stepped(), _difference(a, exact).stepped()


def _undo_product(wanted: Bounds, a: Bounds, b: Bounds) -> Narrowed:
    exact = wanted.stepped()
    return _quotient(exact, b).stepped(), _quotient(exact, a).stepped()


def _undo_quotient(wanted: Bounds, a: Bounds, b: Bounds) -> Narrowed:
    exact = wanted.stepped()
    numerator = ANYTHING if 0 in b else _product(exact, b)
    return numerator.stepped(), _quotient(a, exact).stepped()


def _power(a: Bounds, b: Bounds) -> Bounds:
    if b.low == b.high and not b.nan and float(b.low).is_integer() and b.low >= 0:
        return _whole_power(a, int(b.low))
    # A zero may be a negative one, of which a negative power is any infinity.
    known = a.low > 0 or (a.low == 0 and b.low >= 0)
    return _corners(np.power, a, b).loosened() if known else ANYTHING


def _whole_power(a: Bounds, times: int) -> Bounds:
    if times == 0:
        return Bounds(1, 1)
    with np.errstate(all="ignore"):
        ends = [float(e) for e in np.power([float(a.low), float(a.high)], float(times))]
    least = [0.0] if times % 2 == 0 and 0 in a else []
    return _hull([*ends, *least], a.nan).loosened()


def _undo_power(wanted: Bounds, a: Bounds, b: Bounds) -> Narrowed:
    if b.low != b.high or b.nan or not 0 < b.low < inf:
        return ANYTHING, ANYTHING
    root = _root(wanted.loosened(), float(b.low), a.low >= 0)
    return (ANYTHING if root is None else root.loosened()), ANYTHING


def _root(wanted: Bounds, times: float, positive: bool) -> Bounds | None:
    ends = np.array([wanted.low, wanted.high], np.float64)
    with np.errstate(all="ignore"):
        low, high = np.copysign(np.abs(ends) ** (1 / times), ends).tolist()
    if times % 2 == 1:
        return Bounds(low, high)
    if wanted.high < 0:
        return NOTHING if times % 2 == 0 or positive else None
    if positive:
        return Bounds(max(low, 0.0), high)
    return Bounds(-high, high) if times % 2 == 0 else None


def _negative(a: Bounds) -> Bounds:
    return Bounds(-a.high, -a.low, a.nan)


def _absolute(a: Bounds) -> Bounds:
    ends = abs(a.low), abs(a.high)
    return Bounds(0.0 if 0 in a else min(ends), max(ends), a.nan)


def _undo_absolute(wanted: Bounds, a: Bounds) -> Narrowed:
    if a.low >= 0:
        return (wanted,)
    return (_negative(wanted) if a.high <= 0 else Bounds(-wanted.high, wanted.high),)


def _square_root(a: Bounds) -> Bounds:
    if a.high < 0:
        return ANYTHING
    low, high = (float(np.sqrt(max(e, 0.0))) for e in (a.low, a.high))
    return Bounds(low, high, a.nan or a.low < 0)


def _undo_square_root(wanted: Bounds, a: Bounds) -> Narrowed:
    exact = wanted.stepped()
    low = max(exact.low, 0.0)
    squared = Bounds(low * low, exact.high * exact.high).stepped()
    return (Bounds(max(squared.low, 0.0), squared.high),)


def _exponential(a: Bounds) -> Bounds:
    with np.errstate(all="ignore"):
        return Bounds(float(np.exp(a.low)), float(np.exp(a.high)), a.nan).loosened()


def _logarithm(a: Bounds) -> Bounds:
    if a.high < 0:
        return ANYTHING
    with np.errstate(all="ignore"):
        low, high = (float(np.log(max(e, 0.0))) for e in (a.low, a.high))
    return Bounds(low, high, a.nan or a.low < 0).loosened()


def _undo_exponential(wanted: Bounds, a: Bounds) -> Narrowed:
    return (_logarithm(Bounds(max(wanted.loosened().low, 0.0), wanted.loosened().high)),)


def _undo_logarithm(wanted: Bounds, a: Bounds) -> Narrowed:
    return (_exponential(wanted.loosened()) & Bounds(0, inf),)


def _wave(a: Bounds) -> Bounds:
    return Bounds(-1, 1, a.nan or a.endless)


def _least(*operands: Bounds) -> Bounds:
    return Bounds(
        min(o.low for o in operands), min(o.high for o in operands), any(o.nan for o in operands)
    )


def _greatest(*operands: Bounds) -> Bounds:
    return _negative(_least(*map(_negative, operands)))


def _undo_greatest(wanted: Bounds, *operands: Bounds) -> Narrowed:
    """None is above what is wanted; one is as high if no other can be."""
    others = [[o for m, o in enumerate(operands) if m != n] for n in range(len(operands))]
    alone = [all(o.high < wanted.low for o in each) for each in others]
    return tuple(Bounds(wanted.low if only else -inf, wanted.high) for only in alone)


def _undo_least(wanted: Bounds, *operands: Bounds) -> Narrowed:
    return tuple(map(_negative, _undo_greatest(_negative(wanted), *map(_negative, operands))))


def _less(a: Bounds, b: Bounds, equal: bool) -> Bounds:
    """Where `a < b`, or `a <= b` if `equal`, lies; NaN is not less than anything."""
    surely = a.high < b.low or (equal and a.high <= b.low)
    never = a.low > b.high or (not equal and a.low >= b.high)
    return Bounds(float(surely and not (a.nan or b.nan)), float(not never))


def _undo_less(wanted: Bounds, a: Bounds, b: Bounds) -> Narrowed:
    if 0 not in wanted:
        return Bounds(-inf, b.high), Bounds(a.low, inf)
    if 1 in wanted or a.nan or b.nan:
        return ANYTHING, ANYTHING
    return Bounds(b.low, inf), Bounds(-inf, a.high)


def _turned(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same with its two operands, and what it finds of them, exchanged."""

    def turned(*given: Any) -> Any:
        found = function(*given[:-2], given[-1], given[-2])
        return found[::-1] if isinstance(found, tuple) else found

    return turned


def _same(a: Bounds, b: Bounds) -> Bounds:
    one = a.low == a.high == b.low == b.high and not (a.nan or b.nan)
    return Bounds(float(one), float(not (a & b).empty))


def _undo_same(wanted: Bounds, a: Bounds, b: Bounds) -> Narrowed:
    return (ANYTHING, ANYTHING) if 0 in wanted else (Bounds(b.low, b.high), Bounds(a.low, a.high))


def _other(a: Bounds, b: Bounds) -> Bounds:
    same = _same(a, b)
    return Bounds(1 - same.high, 1 - same.low)


def _undo_other(wanted: Bounds, a: Bounds, b: Bounds) -> Narrowed:
    return (ANYTHING, ANYTHING) if 1 in wanted else _undo_same(Bounds(1, 1), a, b)


def _chosen(when: Values, then: Values, otherwise: Values) -> Values:
    return np.where(np.isnan(when), np.nan, np.where(when != 0, then, otherwise))


def _choice(when: Bounds, then: Bounds, otherwise: Bounds) -> Bounds:
    never, always = when.low == when.high == 0, 0 not in when
    found = NOTHING if never else then
    found = found if always else found | otherwise
    return Bounds(found.low, found.high, found.nan or when.nan)


def _undo_choice(wanted: Bounds, when: Bounds, then: Bounds, otherwise: Bounds) -> Narrowed:
    if (wanted & then).empty or when.low == when.high == 0:
        return Bounds(0, 0), ANYTHING, wanted
    if (wanted & otherwise).empty or 0 not in when:
        some = Bounds(nextafter(0, 1), inf) if when.low >= 0 else Bounds(-inf, inf)
        return some, wanted, ANYTHING
    return ANYTHING, ANYTHING, ANYTHING


def _missing(a: Bounds) -> Bounds:
    return Bounds(0, float(a.nan))


def _unknown(wanted: Bounds, *operands: Bounds) -> Narrowed:
    return (ANYTHING,) * len(operands)


def _folded(function: Any) -> Callable[..., Any]:
    def folded(first: Values, *others: Values) -> Any:
        for each in others:
            first = function(first, each)
        return first

    return folded


def _at_most(a: Bounds, b: Bounds) -> Bounds:
    return _less(a, b, True)


def _below(a: Bounds, b: Bounds) -> Bounds:
    return _less(a, b, False)


OPERATIONS: Mapping[str, Operation] = {
    "+": Operation(np.add, _sum, _undo_sum),
    "-": Operation(np.subtract, _difference, _undo_difference),
    "*": Operation(np.multiply, _product, _undo_product),
    "/": Operation(np.divide, _quotient, _undo_quotient),
    "**": Operation(np.power, _power, _undo_power),
    "<": Operation(np.less, _below, _undo_less),
    "<=": Operation(np.less_equal, _at_most, _undo_less),
    ">": Operation(np.greater, _turned(_below), _turned(_undo_less)),
    ">=": Operation(np.greater_equal, _turned(_at_most), _turned(_undo_less)),
    "==": Operation(np.equal, _same, _undo_same),
    "!=": Operation(np.not_equal, _other, _undo_other),
    "negative": Operation(np.negative, _negative, lambda w, a: (_negative(w),), 1, 1),
    "abs": Operation(np.abs, _absolute, _undo_absolute, 1, 1),
    "sqrt": Operation(np.sqrt, _square_root, _undo_square_root, 1, 1),
    "exp": Operation(np.exp, _exponential, _undo_exponential, 1, 1),
    "log": Operation(np.log, _logarithm, _undo_logarithm, 1, 1),
    "sin": Operation(np.sin, _wave, _unknown, 1, 1),
    "cos": Operation(np.cos, _wave, _unknown, 1, 1),
    "min": Operation(_folded(np.minimum), _least, _undo_least, 2, 50),
    "max": Operation(_folded(np.maximum), _greatest, _undo_greatest, 2, 50),
    "where": Operation(_chosen, _choice, _undo_choice, 3, 3),
    "isnan": Operation(np.isnan, _missing, _unknown, 1, 1),
}
