"""Forward through hops: from data of a source to those of an image that they are behind."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from inverses.inverting import invert
from inverses.limits import Limits
from inverses.outline import VARIABLE
from inverses.plans import Hop, Inversion, Plan
from inverses.replay import Again, Read, available, read_behind, read_beside
from inverses.touching import candidates, derivable, weakly_behind
from pipelines.arrays import Chunk
from pipelines.datasets import Array, Key, Table
from pipelines.errors import TooDear
from pipelines.filters import Filter
from pipelines.sources import check_unchanged
from pipelines.spark import watched
from pipelines.tables import column, schema_of

Way = tuple[Any, ...]


@dataclass(slots=True)
class Forward:
    """The way from a selection through hops of plans, of which each is gone once."""

    origin: Table | Array
    rows: pa.Table
    spark: SparkSession
    limits: Limits
    began: float
    gone: dict[Way, pa.Table] = field(default_factory=dict)

    def reached(self, planned: Plan) -> pa.Table | None:
        """The rows or cells that a plan begins at which lead back to the selection."""
        ways: dict[Key, Way] = {self.origin.key: ()}
        self.gone[()] = self.rows
        for hop in reversed(planned.hops):
            before = ways.get(hop.source.key)
            if before is None or not self.gone[before].num_rows:
                continue
            way = (before, _signature(hop))
            if way not in self.gone:
                arrow = replace(planned, hops=(hop,))
                left = _left(self.limits, self.began)
                self.gone[way] = _through(arrow, self.gone[before], self.spark, left)
            ways[hop.image.key] = self._with(way, ways.get(hop.image.key))
        last = ways.get(planned.selection.dataset.key)
        return None if last is None else self.gone[last]

    def _with(self, way: Way, other: Way | None) -> Way:
        """Two ways to the same dataset as one, if there are two."""
        if other is None:
            return way
        both = (other, way)
        if both not in self.gone:
            self.gone[both] = _united(self.gone[other], self.gone[way])
        return both


def _signature(hop: Hop) -> Way:
    """What tells a hop from others between the same datasets: what it finds, and by what."""
    ways = [(level.name, *_by(hop, each)) for level in hop.levels for each in level.inversions]
    return (hop.image.key, hop.port, *dict.fromkeys(ways))


def _by(hop: Hop, each: Inversion) -> Way:
    """How an attribute is inverted; that of a row by its name only if its functions are told it."""
    functions = [f.function for f in (*each.weak, *each.verify)]
    stated = [getattr(f, "func", f) for f in functions]
    named = isinstance(hop.image, Array) or stated != functions
    finds = tuple(a.name for a in hop.finds(each))
    unites = (each.weak_unites, each.verified_unites)
    return (each.attribute if named else "", each.nature, finds, unites, *stated)


def _left(limits: Limits, began: float) -> Limits:
    """What is left of some limits for the next hop."""
    seconds = limits.seconds - (time.monotonic() - began)
    if seconds <= 0:
        raise TooDear(
            f"not done after {limits.seconds:,.0f} s; select fewer, or raise --limit-seconds"
        )
    return replace(limits, seconds=seconds)


def _through(arrow: Plan, reached: pa.Table, spark: SparkSession, limits: Limits) -> pa.Table:
    """The data of a hop's image that some of what was reached in its source is behind."""
    (hop,) = arrow.hops
    near = candidates(hop, _readable(arrow, reached, spark, limits), reached)
    if len(near) > limits.cells:
        raise TooDear(
            f'{len(near):,} of "{hop.image.name}" may be derived from these, over the limit of '
            f"{limits.cells:,}; select fewer, or raise --limit-cells"
        )
    if not len(near):
        return _rows(hop.image, near)
    at = Filter(np.arange(len(near)), near.spans)
    _check_hop(arrow, at, limits)
    found = invert(hop, at, spark, Again(arrow, spark), limits)
    derived = np.unique(column(found, "owner")[_among(hop.source, found, reached)])
    return _rows(hop.image, at[derived])


def _readable(arrow: Plan, reached: pa.Table, spark: SparkSession, limits: Limits) -> Table | Array:
    """A hop's image, of which rows can be read that may be derived from what was reached.

    The cells of an array need not be: where they lie is known without them.
    """
    (hop,) = arrow.hops
    image = hop.image
    if image.kept or isinstance(image, Array):
        return image
    region = derivable(hop, image, reached)
    again = f'"{image.name}" was not kept, and to make again what may be derived from these'
    _check(again, read_behind(image, region, arrow.recipes), limits)
    if not len(region):
        return image
    with watched(spark, f"{image.name} again", seconds=limits.seconds):
        return available(image, region, arrow.recipes, spark)


def _check_hop(arrow: Plan, at: Filter, limits: Limits) -> None:
    """Refuse to look behind data of a hop's image if that is dear, or not what it was."""
    (hop,) = arrow.hops
    read = list(read_behind(hop.source, weakly_behind(hop, at), arrow.recipes))
    if hop.beside:
        read += read_beside(hop.image, at, arrow.recipes)
    _check(f'to look behind {len(at):,} of "{hop.image.name}"', read, limits)


def _check(why: str, read: Iterable[Read], limits: Limits) -> None:
    """Refuse to read more than the limit, or of sources that are not what the run read."""
    found = list(read)
    dear = sum(piece.bytes for _, pieces in found for piece in pieces)
    if dear > limits.bytes:
        raise TooDear(
            f"{why} would read {dear / 2**20:,.0f} MiB, over the limit of "
            f"{limits.bytes / 2**20:,.0f} MiB; select fewer, or raise --limit-bytes"
        )
    for dataset, pieces in found:
        check_unchanged(dataset, [each for each in pieces if isinstance(each, Chunk)])


def _rows(image: Table | Array, at: Filter) -> pa.Table:
    names_ = image.columns if isinstance(image, Table) else (VARIABLE, *image.dims)
    # None of a column does not tell of what it is.
    schema = schema_of(image) if isinstance(image, Table) else None
    return pa.table({n: at.spans[n].low if n in at.spans else [] for n in names_}, schema=schema)


def _among(source: Table | Array, found: pa.Table, reached: pa.Table) -> NDArray[np.bool_]:
    """Which of what was found is among what was reached."""
    names_ = source.columns if isinstance(source, Table) else [VARIABLE, *source.dims]
    there = set(_keys(reached, names_))
    return np.array([key in there for key in _keys(found, names_)], bool)


def _keys(rows: pa.Table, names_: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    columns = [rows[n].to_pylist() for n in names_]
    return (tuple("nan" if v != v else v for v in row) for row in zip(*columns, strict=True))


def _united(one: pa.Table, other: pa.Table) -> pa.Table:
    """What two ports or paths lead to, each row or cell once."""
    rows = pa.concat_tables([one, other])
    keys = list(_keys(rows, rows.column_names))
    first = sorted({key: n for n, key in reversed(list(enumerate(keys)))}.values())
    return rows.take(pa.array(first, pa.int64()))
