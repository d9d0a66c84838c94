"""What a datum says of an attribute, to be looked for in what else was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.boxes.box import Box
from pipelines.contents import HeldRows
from pipelines.datasets import Array, Attribute, Table


@dataclass(frozen=True, slots=True)
class Told:
    """A value of an attribute, with that by which its row is known; or that of a cell."""

    attribute: Attribute
    datum: int
    value: Any
    names: tuple[str, ...] = ()
    times: int = 1
    row: Any = None
    known_by: tuple[str, ...] = ()
    alike: bool = False

    def holds_in(self, made: Table | Array) -> bool:
        """Whether it is said as often as it was, or there is no such row and that is no matter."""
        if isinstance(made, Array):
            return _same(self._cell(made), self.value)
        times = self.times_in(made)
        gone = bool(self.known_by) and self.row not in keys(made, self.known_by)
        return gone or times == self.times or (times > self.times and not self.alike)

    def is_in(self, made: Table | Array) -> bool:
        """Whether it is said at all, or nearly."""
        if isinstance(made, Table):
            return self.times_in(made) > 0
        cells = made.content.variables[self.attribute.name].ravel()
        return close(cells, self.value, self.datum)

    def times_in(self, made: Table) -> int:
        """How often it is said."""
        return keys(made, self.names).count(self.value)

    def _cell(self, made: Array) -> Any:
        return made.content.variables[self.attribute.name].ravel()[self.datum]


def told(box: Box, made: Table | Array, attribute: Attribute, datum: int) -> Told:
    """What a datum says, by that which its box knows rows by."""
    if isinstance(made, Array):
        return Told(attribute, datum, made.content.variables[attribute.name].ravel()[datum])
    identity = box.identity(made.columns)
    lost = box.lost is None or attribute.name in box.lost
    names = tuple(dict.fromkeys([*identity, *attribute.columns]))
    values = keys(made, names)
    known_by = () if lost else identity
    row = keys(made, known_by)[datum] if known_by else None
    return Told(attribute, datum, values[datum], names, values.count(values[datum]), row, known_by)


def told_alike(made: Table, attribute: Attribute, datum: int) -> Told:
    """What a datum says of an attribute alone, whichever row it is."""
    values = keys(made, attribute.columns)
    times = values.count(values[datum])
    return Told(attribute, datum, values[datum], attribute.columns, times, alike=True)


def says_anything(made: Table | Array) -> bool:
    """Whether there is a row in what was made, or a cell that is not missing."""
    if isinstance(made, Table):
        return made.rows > 0
    return any(not np.isnan(values).all() for values in made.content.variables.values())


def new_in(made: Table | Array, before: Table | Array) -> str:
    """What was made and was not before, one of it, in words; nothing if there is none."""
    if isinstance(made, Table) and isinstance(before, Table):
        rows = Counter(keys(made, made.columns)) - Counter(keys(before, made.columns))
        return next((f"the row {row}" for row in rows), "")
    for name, values in made.content.variables.items():
        new = ~np.isnan(values) & (values != before.content.variables[name])
        if new.any():
            return f"{name} of {values[new][0]} at {tuple(np.argwhere(new)[0].tolist())}"
    return ""


def keys(table: Table, names: Iterable[str]) -> list[Any]:
    """Some columns of all rows of a table in memory, to be compared."""
    assert isinstance(table.content, HeldRows)
    return _keys(table.content, tuple(names))


@lru_cache(4096)
def _keys(held: HeldRows, names: tuple[str, ...]) -> list[Any]:
    columns = [held.rows[n].to_pylist() for n in names]
    return [tuple(plain(v) for v in row) for row in zip(*columns, strict=True)]


def plain(value: Any) -> Any:
    """A value that equals itself: NaN as a word, numbers without their last digits."""
    if isinstance(value, float):
        return "nan" if value != value else round(value, 9) + 0.0
    return value


def close(values: NDArray[Any], wanted: Any, at: Any) -> bool:
    """Whether values somewhere are those wanted, but for the last digits of what is around them.

    >>> close(np.array([1e-12, 3e-12]), 1.5e-12, 0)
    False
    >>> close(np.array([0.0, 1e9]), 1e-3, 0)
    True
    """
    known = np.abs(values[np.isfinite(values)])
    least = 1e-9 * float(known.max(initial=0.0))
    return bool(np.all(np.isclose(values[at], wanted, 1e-9, least, equal_nan=True)))


def _same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))
