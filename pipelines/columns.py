"""Columns: naming some of those a table has, and telling which rows are equal in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.datasets import Attribute, Dataset
from pipelines.errors import Refused, unknown
from pipelines.likeness import plain
from pipelines.tables import column

RESERVED = {"owner", "part", "row"}


def listed(text: str) -> tuple[str, ...]:
    """The names in a list separated by commas.

    >>> listed("lat, lon")
    ('lat', 'lon')
    >>> listed("")
    ()
    """
    names = tuple(name.strip() for name in text.split(",")) if text.strip() else ()
    if "" in names or len(set(names)) < len(names):
        raise Refused(f'"{text:.90}" is not a list of different names, like: lat, lon')
    return names


def names_in(attributes: Iterable[Attribute]) -> list[str]:
    """The columns that attributes have."""
    return [c for a in attributes for c in a.columns]


def check_known(box: str, names: Iterable[str], attributes: Iterable[Attribute]) -> None:
    """Refuse a column that none of the attributes has."""
    there = names_in(attributes)
    for name in names:
        if name not in there:
            raise unknown("column", name, there, f'for box "{box}"')


def field_of(box: str, table: pa.Schema, name: str) -> pa.Field:
    """A column of a table, which may lack one that its attributes can have."""
    if name not in table.names:
        raise unknown("column", name, table.names, f'for box "{box}"')
    return table.field(name)


def check_new(box: str, name: str, there: tuple[Attribute, ...]) -> None:
    """Refuse a name for a new column that is none, or that a column or an attribute has."""
    if not name.isidentifier() or name in RESERVED:
        raise Refused(f'box "{box}": {name!r:.60} is no name for a column, like: mean_speed')
    check_free(box, name, names_in(there))
    for has in (", ".join(a.columns) for a in there if a.name == name):
        raise Refused(
            f'box "{box}": there is an attribute "{name}" already, which has {has}; choose another '
            "name"
        )


def check_free(box: str, name: str, there: Iterable[str], instead: str = "name") -> None:
    """Refuse a name, made of that of a column, that a column has already, or that we use."""
    if name in RESERVED or name in set(there):
        raise Refused(f'box "{box}": there is a column "{name}" already; choose another {instead}')


def narrowed(attributes: Iterable[Attribute], names: Iterable[str]) -> tuple[Attribute, ...]:
    """The attributes with only some of their columns, those without any left out."""
    kept = set(names)
    cut = (replace(a, columns=tuple(c for c in a.columns if c in kept)) for a in attributes)
    return tuple(a for a in cut if a.columns)


def bearing(source: Dataset, names: Iterable[str]) -> tuple[str, ...]:
    """The attributes of a dataset that have any of these columns."""
    wanted = set(names)
    return tuple(a.name for a in source.attributes if wanted & set(a.columns))


def absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are missing: NaN."""
    return np.asarray(np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool))


def ranked(values: NDArray[Any]) -> NDArray[np.int64]:
    """Each value's place among the different ones, from the least; NaN is one, and the last.

    >>> ranked(np.array([0.5, np.nan, -0.0, 0.0, np.nan])).tolist()
    [1, 2, 0, 0, 2]
    """
    return np.unique(plain(values), return_inverse=True)[1].astype(np.int64).ravel()


def ordered(rows: pa.Table, names: Iterable[str]) -> NDArray[np.int64]:
    """The positions of rows sorted by some columns, the first one foremost."""
    places = [ranked(column(rows, name)) for name in names]
    return np.lexsort(places[::-1]) if places else np.arange(rows.num_rows)


def numbered(rows: pa.Table, names: Iterable[str]) -> NDArray[np.int64]:
    """The number of the group of each row, where rows equal in some columns are a group."""
    places = [ranked(column(rows, name)) for name in names]
    if not places or not rows.num_rows:
        return np.zeros(rows.num_rows, np.int64)
    return np.unique(np.column_stack(places), axis=0, return_inverse=True)[1].ravel()


def gathered(groups: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The positions of each group's rows, group by group."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1) if len(order) else []
