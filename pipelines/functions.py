"""Functions of authors: named in formulas, with what is known of their values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf, isnan
from types import ModuleType
from typing import Any

import numpy as np

from pipelines.bounds import ANYTHING, Bounds, trimmed
from pipelines.errors import Failed, Refused, ended
from pipelines.formulas import FUNCTIONS
from pipelines.modules import Stating, stated_in, stating
from pipelines.operations import OPERATIONS, Narrowed, Operation, Values

Ends = tuple[float, float]
RISES, FALLS = "rises", "falls"
EVERYWHERE = (-inf, inf)


@dataclass(frozen=True, slots=True)
class Function:
    """A function that formulas may name, and what its author states of it.

    It is given arrays of numbers within its domain, one for each of its operands, and makes an
    array of as many numbers, each of the operands at its own place alone. It is never asked about
    other numbers, nor about what is missing: the result is missing there.

    A range of its values is pushed back by what is stated: to where `back` says; else to what is
    left when all is cut off that, by its bounds, has no value in the range. If nothing is stated,
    every number may be behind every value.
    """

    name: str
    function: Callable[..., Any]
    operands: tuple[str, ...]
    turn: str = ""
    within: Ends = EVERYWHERE
    limits: Callable[..., Ends] | None = None
    back: Callable[[Ends], Ends] | None = None
    version: str = "1"

    @property
    def about(self) -> str:
        """What it does, in the words of its author."""
        return (self.function.__doc__ or "").strip().split("\n")[0]

    @property
    def stated(self) -> str:
        """What is known of its values, in words."""
        known = [self.turn, self.limits and "has bounds", self.back and "is pushed back"]
        words = " and ".join(filter(None, known)) or "nothing is known of its values"
        return words if self.within == EVERYWHERE else f"{words}, within {self.within}"

    @property
    def operation(self) -> Operation:
        """What an expression does with it."""
        count = len(self.operands)
        return Operation(self.values, self.bounds, self.narrowed, count, count)

    def values(self, *operands: Values) -> Values:
        """Its values, missing where an operand is, or lies outside of the domain."""
        given = np.broadcast_arrays(*operands)
        inside = [(each >= self.within[0]) & (each <= self.within[1]) for each in given]
        asked = np.logical_and.reduce(inside)
        found = np.full(given[0].shape, np.nan)
        if asked.any():
            found[asked] = self._called(*(each[asked] for each in given))
        return found

    def bounds(self, *operands: Bounds) -> Bounds:
        """Where its values lie if its operands lie within these bounds.

        Of an infinite number there may be none, whatever is stated.
        """
        domain = Bounds(*self.within)
        inside = [each & domain for each in operands]
        if any(each.empty for each in inside):
            return ANYTHING
        found = self._known(inside).loosened()
        missing = any(o.nan or o.endless or o & domain != o for o in operands)
        return replace(found, nan=found.nan or missing)

    def narrowed(self, wanted: Bounds, *operands: Bounds) -> Narrowed:
        """Where each operand lies if the result lies where it is wanted."""
        inside = [each & Bounds(*self.within) for each in operands]
        if self.back is not None:
            loose = wanted.loosened()
            found = self._ends(self.back, (loose.low, loose.high)).loosened()
            return (inside[0] & found,)
        return tuple(self._trimmed(wanted, inside, number) for number in range(len(inside)))

    def _trimmed(self, wanted: Bounds, inside: list[Bounds], number: int) -> Bounds:
        """What is left of one operand, cut off where the bounds of the result are not wanted."""

        def missed(low: float, high: float) -> bool:
            given = [*inside[:number], Bounds(low, high), *inside[number + 1 :]]
            return (self._known(given).loosened() & wanted).empty

        known = self.turn or self.limits is not None
        return trimmed(inside[number], missed) if known else inside[number]

    def _known(self, inside: list[Bounds]) -> Bounds:
        """Where its values lie by what is stated, if its operands lie within these bounds."""
        ends = [(each.low, each.high) for each in inside]
        if self.limits is not None:
            return self._ends(self.limits, *ends)
        return self._between(*ends) if self.turn else ANYTHING

    def _between(self, ends: Ends) -> Bounds:
        """Where values lie that rise or fall; how far is not known where one is missing."""
        first, last = self._called(np.array(ends, np.float64)).tolist()
        low, high = (first, last) if self.turn == RISES else (last, first)
        return Bounds(-inf if isnan(low) else low, inf if isnan(high) else high)

    def _ends(self, function: Callable[..., Ends], *given: Ends) -> Bounds:
        """What an author's function makes of ends, which are floats that may grow to infinity."""
        said = self._asked(function, *((np.float64(low), np.float64(high)) for low, high in given))
        try:
            return _hull(said)
        except (TypeError, ValueError):
            raise Failed(
                f'function "{self.name}": what is stated of {given} is {said!r:.60}, not two ends'
            ) from None

    def _called(self, *given: Values) -> Values:
        # Both zeros are one number to whoever compares, so functions are given one alone.
        found = np.asarray(self._asked(self.function, *(each + 0.0 for each in given)))
        if found.shape != given[0].shape or found.dtype.kind not in "fiub":
            raise Failed(
                f'function "{self.name}" made {found.dtype} of shape {found.shape} of '
                f"{len(given[0])} values; it has to make a number of each"
            )
        return found.astype(np.float64)

    def _asked(self, function: Callable[..., Any], *given: Any) -> Any:
        """What an author's function says; why it says nothing, in one line."""
        try:
            with np.errstate(all="ignore"):
                return function(*given)
        except Exception as error:
            raise ended(f'function "{self.name}"', error) from error


def _hull(ends: Ends) -> Bounds:
    """The bounds between two ends in any order; unknown if both are infinite, or one is no number.

    >>> _hull((3, 1))
    Bounds(low=1.0, high=3.0, nan=False)
    """
    low, high = sorted(map(float, ends))
    unknown = isnan(low) or isnan(high) or (low, high) == EVERYWHERE
    return ANYTHING if unknown else Bounds(low, high)


Functions = Mapping[str, Function]


def function(
    *,
    rises: bool = False,
    falls: bool = False,
    within: Ends = EVERYWHERE,
    bounds: Callable[..., Ends] | None = None,
    back: Callable[[Ends], Ends] | None = None,
    version: str = "1",
) -> Callable[[Stating], Stating]:
    """Register a function of arrays of 64-bit floats, so that formulas may name it.

    State what is known of its values: that they rise or fall with the operand `within` its domain,
    both ends included, outside of which there are none; or `bounds`, a function from the ends of
    each operand to those of the result. For a function of one operand, `back` may say where the
    operand lies if the result lies between two ends.

    >>> @function(rises=True)
    ... def tax(salary):
    ...     return np.maximum(0.42 * salary - 8000, 0)

    Change the `version` with the rule: what was made by another version is not traced by this one.
    """

    def register(given: Stating) -> Stating:
        turn = RISES if rises else FALLS if falls else ""
        stated = Function(
            given.__name__, given, _operands(given), turn, within, bounds, back, version
        )
        _check(stated, rises and falls)
        return stating(given, stated)

    return register


def _operands(given: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's operands; all must always be given, by their place."""
    found = inspect.signature(given).parameters.values()
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not found or any(p.kind not in places or p.default is not p.empty for p in found):
        raise Refused(f'function "{given.__name__}": a fixed number of values, without defaults')
    return tuple(p.name for p in found)


def _check(stated: Function, both: bool) -> None:
    """Refuse a name that means another thing, and statements that contradict each other."""
    what = f'function "{stated.name}"'
    if not stated.name.isidentifier() or stated.name in {*FUNCTIONS, *OPERATIONS, "nan"}:
        raise Refused(f"{what}: give it a name of its own, not one that formulas have already")
    if both:
        raise Refused(f"{what}: it rises or it falls, not both")
    alone = stated.turn or stated.back is not None or stated.within != EVERYWHERE
    if alone and len(stated.operands) > 1:
        raise Refused(f"{what} has {len(stated.operands)} operands; state its bounds alone")
    if not stated.within[0] <= stated.within[1]:
        raise Refused(f"{what}: within is from a number to one that is not below it")


def functions_in(found: Iterable[ModuleType]) -> dict[str, Function]:
    """The functions that modules register, by name."""
    named: dict[str, Function] = {}
    for each in stated_in(found):
        if isinstance(each, Function) and named.setdefault(each.name, each) is not each:
            places = [f.function.__module__ for f in (named[each.name], each)]
            raise Refused(f'two functions are called "{each.name}", in {" and ".join(places)}')
    return named
