"""Other inputs: a source with one cell, step or row otherwise, with only some, or cut otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inverses.samples import WORDS
from inverses.trials import Item, Items
from pipelines.boxes.box import CHANGE, INSTEAD, REMOVAL, STATED
from pipelines.contents import HeldCells, held_table
from pipelines.datasets import Array, Table
from pipelines.tables import matching

SLIGHT, FAR = 1e-3, 1234.5
LATER = timedelta(seconds=1)
Values = Mapping[str, NDArray[Any]]


def items_of(source: Table | Array, steps: bool) -> list[Item]:
    """All rows of a table; all cells of an array, or its steps."""
    if isinstance(source, Table) or steps:
        return [(n,) for n in range(source.rows)]
    return [(v, *cell) for v in source.variables for cell in np.ndindex(source.shape)]


def otherwise(
    source: Table | Array, item: Item, influence: str, loose: Set[str] = frozenset()
) -> Iterator[Table | Array]:
    """A source without one item, or with other values in it; other words only in loose columns."""
    if isinstance(source, Table):
        yield from _row_otherwise(source, item[0], influence, loose)
    elif len(item) == 1:
        yield from _step_otherwise(source, item[0])
    else:
        yield from _cell_otherwise(source, item, influence)


def _by(influence: str) -> list[float]:
    every = {CHANGE: [SLIGHT, -SLIGHT, FAR, -FAR], INSTEAD: [SLIGHT]}
    return every.get(influence, [SLIGHT, -SLIGHT])


def _cell_otherwise(source: Array, item: Item, influence: str) -> Iterator[Array]:
    variable, *cell = item
    by = _by(influence)
    was = source.content.variables[variable][tuple(cell)]
    for value in (np.nan, *(was + each for each in by), *by[2:]):
        yield with_values(source, {variable: _put(source, variable, tuple(cell), value)})


def _step_otherwise(source: Array, step: int) -> Iterator[Array]:
    """A step that is missing, one with a variable a little higher, one that is low in one place."""
    yield with_values(source, {v: _put(source, v, (step,), np.nan) for v in source.variables})
    for variable in source.variables:
        higher = source.content.variables[variable][step] + SLIGHT
        yield with_values(source, {variable: _put(source, variable, (step,), higher)})
    for place in np.ndindex(source.shape[1:]):
        low = np.zeros(source.shape[1:])
        low[place] = -FAR
        yield with_values(source, {v: _put(source, v, (step,), low) for v in source.variables})


def _put(source: Array, variable: str, where: tuple[int, ...], value: Any) -> NDArray[Any]:
    values = source.content.variables[variable].copy()
    values[where] = value
    return np.asarray(values)


def _row_otherwise(source: Table, number: int, influence: str, loose: Set[str]) -> Iterator[Table]:
    rows = matching(source, None).to_pylist()
    yield with_rows(source, [*rows[:number], *rows[number + 1 :]])
    if influence == STATED:
        return
    for name, value in rows[number].items():
        named = _other_names(value) if name in loose else ()
        for each in (*_other_values(value, influence), *named):
            other = {**rows[number], name: each}
            yield with_rows(source, [*rows[:number], other, *rows[number + 1 :]])


def _other_values(value: Any, influence: str) -> Iterator[Any]:
    """Other values for a column of a row; none for words and whole numbers."""
    if isinstance(value, float) and (influence != REMOVAL or value == value):
        yield from ((0.0 if value != value else value) + each for each in _by(influence))
    if isinstance(value, datetime) and influence == INSTEAD:
        yield value + LATER


def _other_names(value: Any) -> Iterator[Any]:
    """Other words, and the whole numbers next to one, for a column that does not name its row."""
    if isinstance(value, str):
        yield from (word for word in WORDS if word != value)
    if type(value) is int:
        yield from (value + 1, value - 1)


def slightly_otherwise(source: Table, numbers: Set[int]) -> Iterator[Table]:
    """A source in which one column of some rows is a little higher, or lower."""
    rows = matching(source, None).to_pylist()
    floats = [n for n, v in rows[0].items() if isinstance(v, float)]
    for name, by in product(floats, (SLIGHT, -SLIGHT)):
        moved = [{**r, name: r[name] + by * (n in numbers)} for n, r in enumerate(rows)]
        yield with_rows(source, moved)


def resown(source: Table | Array, sown: np.random.Generator, times: float) -> Table | Array:
    """A source with other numbers in all cells, none missing or equal."""
    if isinstance(source, Table):
        return source
    return with_values(
        source, {v: times * sown.uniform(0.5, 2.0, source.shape) for v in source.variables}
    )


def only(source: Table | Array, items: Items) -> Table | Array:
    """A source with only some of its rows, or with some of its cells or steps and no others."""
    if isinstance(source, Table):
        rows = matching(source, None).to_pylist()
        return with_rows(source, [rows[n] for n in sorted(n for (n,) in items)])
    kept = {v: np.full(source.shape, np.nan) for v in source.variables}
    for item in items:
        for variable in source.variables if len(item) == 1 else item[:1]:
            where = item if len(item) == 1 else item[1:]
            kept[variable][where] = source.content.variables[variable][where]
    return with_values(source, kept)


def within(source: Table | Array, kept: NDArray[np.bool_]) -> Table | Array:
    """A source without the rows that are not kept, or with no other cells."""
    if isinstance(source, Table):
        return with_rows(
            source, [r for r, k in zip(matching(source, None).to_pylist(), kept, strict=True) if k]
        )
    cells = source.content.variables
    return with_values(source, {v: np.where(kept, a, np.nan) for v, a in cells.items()})


def without(source: Table, items: Items) -> Table:
    """A table without some of its rows."""
    rows = matching(source, None).to_pylist()
    return with_rows(source, [row for n, row in enumerate(rows) if (n,) not in items])


def cut_otherwise(source: Table | Array) -> Table | Array:
    """The same source in one piece, or in the smallest ones if it is in one."""
    if isinstance(source, Table):
        rows = matching(source, None)
        in_group = 1 if len(source.groups) == 1 else max(1, rows.num_rows)
        return held_table(source.name, source.attributes, rows, in_group)
    whole = source.chunks == source.shape
    return replace(source, chunks=tuple(1 if whole else n for n in source.shape))


def with_values(source: Array, values: Values) -> Array:
    """An array with other values of some variables, in one chunk."""
    held = HeldCells(source.content.coordinates, {**source.content.variables, **values})
    return replace(source, content=held, chunks=source.shape)


def with_rows(source: Table, rows: Iterable[Mapping[str, Any]]) -> Table:
    """A table with other rows."""
    schema = matching(source, None).schema
    return held_table(source.name, source.attributes, pa.Table.from_pylist(list(rows), schema))
