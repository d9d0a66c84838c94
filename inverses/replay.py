"""Forward again over a filtered part: what was not kept is made again, where it is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import cast

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from inverses.outline import outline
from inverses.plans import Hop, Plan
from inverses.recipes import Recipes
from inverses.registry import Inputs
from pipelines.arrays import Chunk, coordinate, inside, touched
from pipelines.boxes.box import ArrayBox, CellBox, TableBox
from pipelines.contents import MadeCells, NoCells, held_table
from pipelines.datasets import Array, Group, Key, Table
from pipelines.errors import Failed
from pipelines.filters import Filter
from pipelines.sharing import rows_of_chunks
from pipelines.spans import Span
from pipelines.tables import GROUP_ROWS, restricted, rows_in
from pipelines.tables import touched as groups_touched

Read = tuple[Table | Array, list[Chunk] | list[Group]]


def available(
    dataset: Table | Array, region: Filter, known: Recipes, spark: SparkSession
) -> Table | Array:
    """A dataset that can be read within a region: itself if it was kept, else made again there."""
    if dataset.kept or not isinstance(dataset.content, NoCells | None):
        return dataset
    recipe = known[dataset.key]
    at, parts, inputs = needed(dataset, region, known, spark)
    if isinstance(dataset, Array):
        return replace(dataset, content=_made_cells(dataset, cast(ArrayBox, recipe.box), inputs))
    rows = made_within(cast(TableBox, recipe.box), inputs, parts, spark).toArrow()
    mine = rows.take(np.unique(rows_in(rows, at)[1]))
    remade = held_table(dataset.name, dataset.attributes, mine, GROUP_ROWS)
    return replace(dataset, groups=remade.groups, content=remade.content)


def _made_cells(array: Array, box: ArrayBox, inputs: Inputs) -> MadeCells:
    """The cells of an array, each made when it is read."""
    grid = box.grid(inputs)
    if grid.shape != array.shape:
        raise Failed(f'box "{box.name}" lays out another "{array.name}" of a part of its inputs')
    return MadeCells(box, inputs, {d: coordinate(array, d) for d in array.dims}, grid.dtype)


def needed(
    dataset: Table | Array, region: Filter, known: Recipes, spark: SparkSession
) -> tuple[Filter, dict[str, Filter], dict[str, Table | Array]]:
    """The region in all columns it can be told by, and the parts of the inputs that it needs."""
    recipe = known[dataset.key]
    at = with_indices(region, dataset, known)
    parts = {port: recipe.region(port, at) for port in recipe.inputs}
    found = {
        port: available(each, parts[port], known, spark) for port, each in recipe.inputs.items()
    }
    return at, parts, found


def read_behind(dataset: Table | Array, region: Filter, known: Recipes) -> Iterator[Read]:
    """What of datasets that were kept is read, at most, to have a region of one."""
    if isinstance(dataset, Array) and dataset.kept:
        some = inside(dataset, region).loose()
        yield dataset, [c for v in dataset.variables for c, _ in touched(dataset, v, some)]
    elif isinstance(dataset, Table) and dataset.kept:
        yield dataset, [dataset.groups[n] for n, _ in groups_touched(dataset, region)]
    else:
        yield from read_beside(dataset, region, known)


def read_beside(image: Table | Array, region: Filter, known: Recipes) -> Iterator[Read]:
    """What of datasets that were kept is read, at most, to have all inputs behind a region."""
    at, recipe = with_indices(region, image, known), known[image.key]
    for port, each in recipe.inputs.items():
        yield from read_behind(each, recipe.region(port, at), known)


def made_within(
    box: TableBox,
    inputs: Mapping[str, Table | Array],
    parts: Mapping[str, Filter],
    spark: SparkSession,
) -> DataFrame:
    """The rows that a box makes of parts of its inputs; what lies outside them is not read."""
    if isinstance(box, CellBox):
        port = box.takes[0].name
        array = cast(Array, inputs[port])
        found = touched(array, array.variables[0], inside(array, parts[port]))
        chunks = [chunk for chunk, _ in found]
        schema = box.schema(inputs)
        return rows_of_chunks(spark, inputs, port, box.rows_in, schema, chunks)
    some = {
        port: restricted(each, parts[port]) if isinstance(each, Table) else each
        for port, each in inputs.items()
    }
    return box.run(some, spark)


def with_indices(region: Filter, image: Table | Array, known: Recipes) -> Filter:
    """A region in coordinates, with the indices that these have in the array rows came from."""
    spans = dict(region.spans)
    for dim in [c for c in region.spans if f"{c}_index" not in spans]:
        array = _array_of(image, dim, known)
        if array is not None:
            spans[f"{dim}_index"] = _indices(array, dim, region.spans[dim])
    return Filter(region.owner, spans)


def _array_of(image: Table | Array, dim: str, known: Recipes) -> Array | None:
    """The array that rows were found in, however many tables ago, if they still tell where.

    They do as long as one attribute has the coordinate and its index: else a box on the way may
    have given either name to something else.
    """
    inputs = list(known[image.key].inputs.values()) if image.key in known else []
    if isinstance(image, Array) or len(inputs) != 1 or not _tells_index(image, dim):
        return None
    (source,) = inputs
    if isinstance(source, Array):
        return source if dim in source.dims else None
    return _array_of(source, dim, known)


def _tells_index(table: Table, dim: str) -> bool:
    """Whether an attribute of a table has the coordinate along a dimension, and its index."""
    return any({dim, f"{dim}_index"} <= set(each.columns) for each in table.attributes)


def _indices(array: Array, dim: str, where: Span) -> Span:
    """The indices of all coordinates in each range, from the first to the last of them."""
    values = coordinate(array, dim)
    values = values.astype("datetime64[us]") if values.dtype.kind == "M" else values
    # Times of other calendars are in tables as texts that are in order.
    values = np.array([str(v) for v in values]) if values.dtype.kind == "O" else values
    inside_ = (values >= where.low[:, None]) & (values <= where.high[:, None])
    first = inside_.argmax(axis=1)
    last = len(values) - 1 - inside_[:, ::-1].argmax(axis=1)
    none = ~inside_.any(axis=1)
    return Span(np.where(none, 1, first), np.where(none, 0, last))


class Again:
    """What a trace has made again of datasets that were not kept, each once."""

    def __init__(self, planned: Plan, spark: SparkSession) -> None:
        self.recipes = planned.recipes
        self.times = Counter(hop.source.key for hop in planned.hops)
        self.outline = cache(lambda: outline(planned))
        self.spark = spark
        self.made: dict[Key, Table | Array] = {}

    def source(self, hop: Hop, region: Filter) -> Table | Array:
        """The source of a hop, readable in a region; where other hops lead to it, in theirs too."""
        dataset = hop.source
        if dataset.kept:
            return dataset
        if dataset.key not in self.made:
            whole = self.outline()[dataset.key] if self.times[dataset.key] > 1 else region
            self.made[dataset.key] = available(dataset, whole, self.recipes, self.spark)
        return self.made[dataset.key]

    def inputs(self, hop: Hop, region: Filter) -> Inputs:
        """All inputs of a hop's box, readable where they are behind a region."""
        return needed(hop.image, region, self.recipes, self.spark)[2]
