"""Influence: what else a box makes when one cell or row of an input is otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from inverses.making import made_by
from inverses.samples import Sample
from inverses.trials import Item, Items
from pipelines.boxes.box import CHANGE, REMOVAL, STATED, Box
from pipelines.contents import HeldCells, held_table
from pipelines.datasets import Array, Attribute, Table
from pipelines.tables import matching

AT_MOST = 12  # items looked at in one trial
SLIGHT, FAR = 1e-3, 1234.5


class Influences:
    """What a box makes when one item of an input is otherwise, tried once and remembered."""

    def __init__(self, sample: Sample, port: str, made: Table | Array) -> None:
        self.sample, self.port, self.made = sample, port, made
        self.known: dict[tuple[Item, int], list[Table | Array]] = {}

    def contradicting(
        self, pure: bool, attribute: Attribute, datum: int, items: Items
    ) -> str | None:
        """An item that is found and cannot matter, or that is not found and matters."""
        if pure and self._missing(attribute, datum):
            return None  # what is missing because others are shows no difference
        every = _items(self.sample.inputs[self.port])
        looked_at = sorted(items, key=str) if pure else [i for i in every if i not in items]
        step = max(1, len(looked_at) // AT_MOST)
        some = looked_at[::step]
        odd = [i for i in some if self.matters(i, attribute, datum, elsewhere=pure) != pure]
        if pure and odd:
            odd = self._idle(odd, looked_at, attribute, datum)
        if not odd:
            return None
        what = "cannot change it" if pure else "can change it and is not in the answer"
        return f"{odd[0]} of {self.port} {what}: datum {datum}, {attribute.name}"

    def _idle(
        self, odd: list[Item], found: list[Item], attribute: Attribute, datum: int
    ) -> list[Item]:
        """Those of some items that cannot matter, not even together with others that are found."""
        source = self.sample.inputs[self.port]
        if isinstance(source, Array):
            return odd
        alone = {n for (n,) in found if not self.matters((n,), attribute, datum, elsewhere=True)}
        ties = _Ties(self, source, _told(self.sample.box, self.made, attribute, datum))
        return [item for item in odd if not ties.turn_on(item[0], alone)]

    def _missing(self, attribute: Attribute, datum: int) -> bool:
        if isinstance(self.made, Array):
            return bool(np.isnan(self.made.content.variables[attribute.name].ravel()[datum]))
        rows = matching(self.made, None)
        return any(rows[c][datum].as_py() != rows[c][datum].as_py() for c in attribute.columns)

    def matters(self, item: Item, attribute: Attribute, datum: int, elsewhere: bool) -> bool:
        """Whether an item can change a datum; if need be, with other numbers in all cells.

        There, no NaN or zero is in the way of seeing a difference.
        """
        regular = isinstance(self.made, Array) and self.sample.box.influence == CHANGE
        here = self._changes(item, attribute, datum, self.sample.inputs, self.made)
        if here or not (elsewhere and regular):
            return here
        return any(self._changes(item, attribute, datum, *world) for world in self.elsewhere)

    def _changes(
        self,
        item: Item,
        attribute: Attribute,
        datum: int,
        inputs: Mapping[str, Table | Array],
        made: Table | Array,
    ) -> bool:
        box, key = self.sample.box, (item, id(made))
        if key not in self.known:
            others = _otherwise(inputs[self.port], item, box.influence)
            self.known[key] = [made_by(box, {**inputs, self.port: each}) for each in others]
        told = _told(box, made, attribute, datum)
        return any(not told.holds_in(after) for after in self.known[key])

    @cached_property
    def elsewhere(self) -> list[tuple[Mapping[str, Table | Array], Table | Array]]:
        """Other numbers in all cells, none missing or equal, and what they make.

        At the other ports, once with zeros, once without: they may say what counts.
        """
        sown = np.random.default_rng(0)
        given_ = self.sample.inputs
        worlds = [
            {p: _resown(each, sown, 0.0 if p != self.port and zero else 1.0)
             for p, each in given_.items()}
            for zero in (False, True)
        ]  # fmt: skip
        return [(inputs, made_by(self.sample.box, inputs)) for inputs in worlds]


class _Ties:
    """Whether rows of which none alone can change a datum do so when they rise together."""

    def __init__(self, influences: Influences, source: Table, told: _Told) -> None:
        self.sample, self.port, self.source = influences.sample, influences.port, source
        self.told = told
        self.known: dict[frozenset[int], bool] = {}

    def turn_on(self, row: int, among: Set[int]) -> bool:
        """Whether a row is in a set that matters together, and would not matter without it.

        Which rows are left out first decides which set is found, so two orders are tried.
        """
        others = sorted(among - {row})
        smallest = (self._smallest(row, among, order) for order in (others, others[::-1]))
        return self._matter(among) and any(not self._matter(s - {row}) for s in smallest)

    def _smallest(self, row: int, among: Set[int], order: Iterable[int]) -> Set[int]:
        """What is left if others than a row are left out while the rest still matters."""
        left = among
        for other in order:
            left = left - {other} if self._matter(left - {other}) else left
        return left

    def _matter(self, rows: Set[int]) -> bool:
        key = frozenset(rows)
        if key not in self.known:
            box, inputs = self.sample.box, self.sample.inputs
            others = _slightly_otherwise(self.source, key)
            made = (made_by(box, {**inputs, self.port: each}) for each in others)
            self.known[key] = any(not self.told.holds_in(after) for after in made)
        return self.known[key]


def _resown(source: Table | Array, sown: np.random.Generator, times: float) -> Table | Array:
    if isinstance(source, Table):
        return source
    values = {v: times * sown.uniform(0.5, 2.0, source.shape) for v in source.variables}
    return replace(source, content=HeldCells(source.content.coordinates, values))


@dataclass(frozen=True, slots=True)
class _Told:
    """What a datum says of an attribute, to be looked for in what else was made."""

    box: Box
    attribute: Attribute
    datum: int
    value: Any
    names: tuple[str, ...] = ()
    times: int = 1

    def holds_in(self, made: Table | Array) -> bool:
        if isinstance(made, Array):
            values = made.content.variables[self.attribute.name]
            return _same(values.ravel()[self.datum], self.value)
        times = Counter(_keys(made, self.names))[self.value]
        gone = self.box.influence == STATED and times == 0
        return times >= self.times or gone


def _told(box: Box, made: Table | Array, attribute: Attribute, datum: int) -> _Told:
    if isinstance(made, Array):
        value = made.content.variables[attribute.name].ravel()[datum]
        return _Told(box, attribute, datum, value)
    names = tuple(dict.fromkeys([*box.identity(made.columns), *attribute.columns]))
    keys = _keys(made, names)
    return _Told(box, attribute, datum, keys[datum], names, keys.count(keys[datum]))


def _keys(table: Table, names: Iterable[str]) -> list[Any]:
    columns = [matching(table, None)[n].to_pylist() for n in names]
    return [tuple(plain(v) for v in row) for row in zip(*columns, strict=True)]


def plain(value: Any) -> Any:
    """A value that equals itself: NaN as a word, numbers without their last digits."""
    if isinstance(value, float):
        return "nan" if value != value else round(value, 9) + 0.0
    return value


def _same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


def _items(source: Table | Array) -> list[Item]:
    if isinstance(source, Table):
        return [(n,) for n in range(source.rows)]
    return [(v, *cell) for v in source.variables for cell in np.ndindex(source.shape)]


def _otherwise(source: Table | Array, item: Item, influence: str) -> Iterator[Table | Array]:
    """A source without one item, or with other values in it."""
    by = [SLIGHT, -SLIGHT] if influence != CHANGE else [SLIGHT, -SLIGHT, FAR, -FAR]
    if isinstance(source, Array):
        variable, *cell = item
        was = source.content.variables[variable][tuple(cell)]
        for value in (np.nan, *(was + each for each in by), *by[2:]):
            yield _with_cell(source, variable, tuple(cell), value)
        return
    rows = matching(source, None).to_pylist()
    (number,) = item
    yield _with_rows(source, [*rows[:number], *rows[number + 1 :]])
    if influence == STATED:
        return
    for name, value in rows[number].items():
        changeable = isinstance(value, float) and (influence != REMOVAL or value == value)
        for each in by if changeable else ():
            other = {**rows[number], name: (0.0 if value != value else value) + each}
            yield _with_rows(source, [*rows[:number], other, *rows[number + 1 :]])


def _slightly_otherwise(source: Table, numbers: Set[int]) -> Iterator[Table]:
    """A source in which one column of some rows is a little higher, or lower."""
    rows = matching(source, None).to_pylist()
    floats = [n for n, v in rows[0].items() if isinstance(v, float)]
    for name, by in product(floats, (SLIGHT, -SLIGHT)):
        moved = [{**r, name: r[name] + by * (n in numbers)} for n, r in enumerate(rows)]
        yield _with_rows(source, moved)


def _with_cell(source: Array, variable: str, cell: tuple[int, ...], value: float) -> Array:
    values = source.content.variables[variable].copy()
    values[cell] = value
    variables = {**source.content.variables, variable: values}
    return replace(source, content=HeldCells(source.content.coordinates, variables))


def _with_rows(source: Table, rows: list[dict[str, Any]]) -> Table:
    schema = matching(source, None).schema
    return held_table(source.name, source.attributes, pa.Table.from_pylist(rows, schema))
