"""A selection: some rows or cells of one dataset, and which attributes are asked about."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.arrays import coordinate
from pipelines.datasets import Array, Attribute, Dataset, Table
from pipelines.errors import Refused, TooDear
from pipelines.filters import Filter, lattice
from pipelines.predicates import Predicate, parsed
from pipelines.sources import check_unchanged
from pipelines.spans import Span
from pipelines.tables import as_filter, matching, schema_of
from pipelines.workspace import Workspace

MOST_SELECTED = 5_000_000


@dataclass(frozen=True, slots=True)
class Selection:
    """What was clicked: `at` holds one owner per selected row or cell."""

    dataset: Table | Array
    where: str | None
    attributes: tuple[str, ...]
    at: Filter

    def __len__(self) -> int:
        return len(self.at)


def select(
    workspace: Workspace,
    name: str,
    where: str | None = None,
    attributes: Iterable[str] = (),
) -> Selection:
    """The rows or cells of a dataset that a predicate keeps; without one, all of them."""
    dataset = workspace.dataset(name)
    asked = _asked(dataset, list(attributes))
    predicate = parsed(where) if where else None
    if isinstance(dataset, Table):
        check_unchanged(dataset)
        kept = predicate.of(dataset).expression(schema_of(dataset)) if predicate else None
        at = as_filter(matching(dataset, kept))
    else:
        at = cells_where(dataset, predicate)
    _check_count(name, len(at))
    if not len(at):
        by = f'is selected by --where "{where}"' if where else "is there to be selected"
        raise Refused(f'nothing in "{name}" {by}{_meant(dataset, predicate)}')
    return Selection(dataset, where, asked, at)


def _meant(dataset: Table | Array, predicate: Predicate | None) -> str:
    """What a number that no row equals may have been meant to be: one that rows nearly equal."""
    if predicate is None or isinstance(dataset, Array):
        return ""
    for name, number, about in predicate.nearly(schema_of(dataset)):
        found = matching(dataset, about)[name].to_pylist()
        if found and number not in found:
            nearest = min(found, key=lambda value: abs(value - number))
            return f"; did you mean {name} = {nearest!r}?"
    return ""


def _asked(dataset: Dataset, named: list[str]) -> tuple[str, ...]:
    """The attributes named, all of them for `all`; none, to leave it to the box."""
    if named == ["all"]:
        return tuple(a.name for a in dataset.attributes)
    return tuple(dict.fromkeys(dataset.attribute(n).name for n in named))


def asked_of(
    dataset: Dataset, named: tuple[str, ...], by_default: Iterable[str]
) -> list[Attribute]:
    """The attributes a selection asks about: those named, else those its box says, else all."""
    names = named or tuple(by_default)
    return [dataset.attribute(n) for n in names] if names else list(dataset.attributes)


def indices_where(array: Array, predicate: Predicate | None) -> list[NDArray[np.int64]]:
    """The indices along each dimension that a conjunction of conditions on single ones keeps."""
    kept = [np.arange(n) for n in array.shape]
    for part in predicate.conjuncts() if predicate else []:
        axis = _axis(array, part)
        kept[axis] = np.intersect1d(kept[axis], _indices(array, array.dims[axis], part))
    return kept


def cells_where(array: Array, predicate: Predicate | None) -> Filter:
    """One owner per cell that a conjunction of conditions on single dimensions keeps."""
    kept = indices_where(array, predicate)
    _check_count(array.name, math.prod(len(k) for k in kept))
    last = np.array([[len(k) - 1 for k in kept]])
    _, points = lattice(np.zeros_like(last), last)
    spans = {d: k[points[:, i]] for i, (d, k) in enumerate(zip(array.dims, kept, strict=True))}
    return Filter(np.arange(len(points)), {d: Span(v, v) for d, v in spans.items()})


def _check_count(name: str, count: int) -> None:
    if count > MOST_SELECTED:
        raise TooDear(
            f'{count:,} of "{name}" are selected, over the limit of {MOST_SELECTED:,}; '
            "select fewer with --where"
        )


def _axis(array: Array, part: Predicate) -> int:
    names = sorted(part.columns)
    if len(names) != 1 or names[0] not in array.dims:
        raise Refused(
            f'--where "{part.text}": cells of "{array.name}" are selected by conditions on one of '
            f"{', '.join(array.dims)} each, joined by and"
        )
    return array.dims.index(names[0])


def _indices(array: Array, dim: str, part: Predicate) -> NDArray[np.int64]:
    values = coordinate(array, dim)
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]")
    stored = pa.array(values if values.dtype.kind != "O" else [str(v) for v in values])
    rows = pa.table({dim: stored, "index": np.arange(len(values))})
    part = part.dated({dim}) if values.dtype.kind == "O" else part
    found = rows.filter(part.expression(pa.schema([rows.schema.field(dim)])))
    return np.asarray(found["index"].to_numpy())
