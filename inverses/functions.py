"""Testing what authors state of functions: each law on generated numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import inf, isfinite, isnan

import numpy as np
from hypothesis import strategies as st

from inverses.check import TRIALS, Finding, Violation, broken_by, explore
from pipelines.bounds import ANYTHING, Bounds, float_at, place
from pipelines.functions import RISES, Ends, Function
from pipelines.operations import Values

POINTS = 200
USUAL = (0.0, *(sign * 10.0**n for sign in (1, -1) for n in range(-1, 9)))
Law = Callable[[Function, list[Ends]], str | None]


def check_function(stated: Function, trials: int = TRIALS) -> list[Finding]:
    """Test all that is stated of a function; what does not hold comes with numbers that show it."""
    return [_checked(stated, name, law, trials) for name, law in _laws(stated)]


def _laws(stated: Function) -> Iterator[tuple[str, Law]]:
    yield "alone", alone
    if stated.turn:
        yield stated.turn, turning
    if stated.limits is not None:
        yield "bounds", bounded
    if stated.turn or stated.limits is not None or stated.back is not None:
        yield "back", pushed_back


def _checked(stated: Function, name: str, law: Law, trials: int) -> Finding:
    """One law in many trials; what breaks it comes with the simplest numbers that were found."""
    held: list[bool] = []

    def said(ends: list[Ends]) -> str | None:
        found = broken_by(lambda: law(stated, ends))
        if all(held):
            held.append(found is None)
        return found

    def test(ends: list[Ends]) -> None:
        if found := said(ends):
            raise Violation(found)

    every = ([window] * len(stated.operands) for window in _windows(stated))
    broken = next(filter(None, map(said, every)), None)
    try:
        explore(_ends(stated), test, trials)
    except Violation as violation:
        broken = str(violation)
    return Finding(f"function {stated.name}", "pushed back", name, len(held), broken)


def _usual(stated: Function) -> list[float]:
    """The ends of the domain, and round numbers within it."""
    low, high = stated.within
    return sorted({low, high, *(each for each in USUAL if low <= each <= high)})


def _windows(stated: Function) -> list[Ends]:
    """Between round numbers, what data are like; it is always tried, and before all else."""
    usual = _usual(stated)
    return [*pairwise(usual), *zip(usual, usual[2:], strict=False)]


def _ends(stated: Function) -> st.SearchStrategy[list[Ends]]:
    """A lower and an upper end for each operand, within the domain."""
    number = st.sampled_from(_usual(stated)) | st.floats(*stated.within)
    pair = st.tuples(number, number).map(lambda two: (min(two), max(two)))
    return st.lists(pair, min_size=len(stated.operands), max_size=len(stated.operands))


def _points(ends: list[Ends]) -> list[Values]:
    """Numbers from end to end for each operand: by even steps, and by as many floats at a time.

    Of several operands each is in another order, so that all kinds of numbers meet.
    """
    order = np.random.default_rng(0)
    every = [_between(*each) for each in ends]
    return [every[0], *(order.permutation(each) for each in every[1:])]


def _between(low: float, high: float) -> Values:
    first, last = max(low, -1e300), min(high, 1e300)
    places = [place(low) + (place(high) - place(low)) * n // (POINTS - 1) for n in range(POINTS)]
    some = [float_at(n) for n in places]
    even = np.linspace(first, last, POINTS).clip(low, high).tolist() if first <= last else some
    return np.array(sorted([*some, *even]))


def alone(stated: Function, ends: list[Ends]) -> str | None:
    """Every value is made of the operands at its own place, whatever is asked for beside them."""
    points = _points(ends)
    together = stated.values(*points).tolist()
    for n in (0, POINTS, len(together) - 1):
        (itself,) = stated.values(*(each[n : n + 1] for each in points)).tolist()
        if not _same(itself, together[n]):
            return f"{_at(stated, points, n)} is {itself!r} alone, {together[n]!r} beside others"
    return None


def _same(value: float, other: float) -> bool:
    """Whether two values are the same, but for what libraries do with one and with many."""
    return (isnan(value) and isnan(other)) or value in Bounds(other, other).loosened()


def turning(stated: Function, ends: list[Ends]) -> str | None:
    """Of two numbers, the greater has no lesser value; or no greater one, if values fall."""
    points = _points(ends)
    values = stated.values(*points).tolist()
    for n in range(len(values)):
        if isnan(values[n]) and isfinite(points[0][n]):
            return f"{_at(stated, points, n)} is missing"
    for n, after in pairwise(n for n, value in enumerate(values) if not isnan(value)):
        less, more = (n, after) if stated.turn == RISES else (after, n)
        if values[more] < Bounds(values[less], values[less]).loosened().low:
            return f"{_told(stated, points, values, n)} and {_told(stated, points, values, after)}"
    return None


def bounded(stated: Function, ends: list[Ends]) -> str | None:
    """Between the ends of its operands, every value lies within the bounds that are stated."""
    points = _points(ends)
    values = stated.values(*points).tolist()
    found = stated.bounds(*(Bounds(*each) for each in ends))
    for n, value in enumerate(values):
        if not (found.nan if isnan(value) else value in found):
            where = ", ".join(f"{low!r}..{high!r}" for low, high in ends)
            within = f"{found.low!r}..{found.high!r}"
            return f"{_told(stated, points, values, n)}, not within {within} as for {where}"
    return None


def pushed_back(stated: Function, ends: list[Ends]) -> str | None:
    """No range of values is pushed back to where the number behind one of them is not."""
    points = _points(ends)
    values = stated.values(*points).tolist()
    for n in (0, POINTS):
        if isnan(values[n]):
            continue
        for wanted, known in _around(values[n], ends):
            if said := _lost(stated, wanted, known, [float(each[n]) for each in points]):
                return f"{_told(stated, points, values, n)}, but {said}"
    return None


def _around(value: float, ends: list[Ends]) -> Iterator[tuple[Bounds, list[Bounds]]]:
    """Ranges that hold a value, each with what is known of the operands."""
    nothing = [ANYTHING] * len(ends)
    yield Bounds(value, value), [Bounds(*each) for each in ends]
    yield Bounds(value, inf), nothing
    yield Bounds(-inf, value), nothing


def _lost(stated: Function, wanted: Bounds, known: list[Bounds], at: list[float]) -> str | None:
    """What is said of a value that is wanted, and not found within what is pushed back."""
    found = stated.narrowed(wanted, *known)
    for name, number, each in zip(stated.operands, at, found, strict=True):
        if number not in each:
            where = f"{each.low!r}..{each.high!r}"
            return f"{wanted.low!r}..{wanted.high!r} is pushed back to {name} {where}"
    return None


def _at(stated: Function, points: list[Values], n: int) -> str:
    return f"{stated.name}({', '.join(repr(float(each[n])) for each in points)})"


def _told(stated: Function, points: list[Values], values: list[float], n: int) -> str:
    return f"{_at(stated, points, n)} is {values[n]!r}"
