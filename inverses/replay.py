"""Forward again over a filtered part: what was not kept is made again, where it is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import cast

import networkx as nx
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
Need = tuple[Table | Array, Filter]


def available(
    dataset: Table | Array, region: Filter, known: Recipes, spark: SparkSession
) -> Table | Array:
    """A dataset that can be read within a region: itself if it was kept, else made again there."""
    if _readable(dataset):
        return dataset
    return _made(needs(dataset, region, known), known, spark)[dataset.key]


def _readable(dataset: Table | Array) -> bool:
    return dataset.kept or not isinstance(dataset.content, NoCells | None)


def needs(dataset: Table | Array, region: Filter, known: Recipes) -> list[Need]:
    """A region of a dataset and what it needs of all behind it, as far back as what can be read.

    Each dataset comes once, after all that is made of it, with all that any of these needs.
    """
    graph = _unread(dataset, known)
    at, found = {dataset.key: region}, list[Need]()
    for key in nx.topological_sort(graph):
        each: Table | Array = graph.nodes[key]["dataset"]
        inputs = [*known[key].inputs.items()] if graph.out_degree(key) else []
        where = with_indices(at[key], each, known) if inputs else at[key]
        found.append((each, where))
        for port, source in inputs:
            part = known[key].region(port, where)
            at[source.key] = _either(at[source.key], part) if source.key in at else part
    return found


def _unread(dataset: Table | Array, known: Recipes) -> nx.DiGraph[Key]:
    """What a dataset is made of, with an arrow to each input of all that cannot be read."""
    graph: nx.DiGraph[Key] = nx.DiGraph()
    graph.add_node(dataset.key, dataset=dataset)
    waiting = [dataset]
    while waiting:
        image = waiting.pop()
        for source in known[image.key].inputs.values():
            if source.key not in graph:
                graph.add_node(source.key, dataset=source)
                waiting += [] if _readable(source) else [source]
            graph.add_edge(image.key, source.key)
    return graph


def _either(one: Filter, other: Filter) -> Filter:
    """All that either of two filters holds, and more where they tell a column by other types."""
    both = one.spans.keys() & other.spans.keys()
    unlike = {k for k in both if one.spans[k].low.dtype != other.spans[k].low.dtype}
    return (one.only(*one.spans.keys() - unlike) | other.only(*other.spans.keys() - unlike)).loose()


def _made(order: list[Need], known: Recipes, spark: SparkSession) -> dict[Key, Table | Array]:
    """All that is needed, each made once of what was made before it unless it can be read."""
    found: dict[Key, Table | Array] = {}
    for each, at in reversed(order):
        found[each.key] = each if _readable(each) else _again(each, at, found, known, spark)
    return found


def _again(
    dataset: Table | Array,
    at: Filter,
    made: Mapping[Key, Table | Array],
    known: Recipes,
    spark: SparkSession,
) -> Table | Array:
    """A dataset that can be read within a region, made again of inputs that can be."""
    recipe = known[dataset.key]
    inputs = {port: made[each.key] for port, each in recipe.inputs.items()}
    if isinstance(dataset, Array):
        return replace(dataset, content=_made_cells(dataset, cast(ArrayBox, recipe.box), inputs))
    box, parts = cast(TableBox, recipe.box), recipe.regions(at)
    rows = made_within(box, inputs, at, parts, spark).toArrow()
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
    """A region in all columns it can be told by, the parts of the inputs that it needs, and those.

    The inputs can be read in these parts.
    """
    (_, at), *order = needs(dataset, region, known)
    recipe, made = known[dataset.key], _made(order, known, spark)
    inputs = {port: made[each.key] for port, each in recipe.inputs.items()}
    return at, recipe.regions(at), inputs


def read_behind(dataset: Table | Array, region: Filter, known: Recipes) -> Iterator[Read]:
    """What of datasets that were kept is read, at most, to have a region of one."""
    if dataset.kept:
        yield _read(dataset, region)
    else:
        yield from read_beside(dataset, region, known)


def read_beside(image: Table | Array, region: Filter, known: Recipes) -> Iterator[Read]:
    """What of datasets that were kept is read, at most, to have all inputs behind a region."""
    _, *order = needs(image, region, known)
    return (_read(each, at) for each, at in order if each.kept)


def _read(dataset: Table | Array, region: Filter) -> Read:
    """What of a dataset that was kept is read to have a region of it."""
    if isinstance(dataset, Array):
        some = inside(dataset, region).loose()
        return dataset, [c for v in dataset.variables for c, _ in touched(dataset, v, some)]
    return dataset, [dataset.groups[n] for n, _ in groups_touched(dataset, region)]


def made_within(
    box: TableBox,
    inputs: Mapping[str, Table | Array],
    at: Filter,
    parts: Mapping[str, Filter],
    spark: SparkSession,
) -> DataFrame:
    """The rows of a region, with others maybe, that a box makes of the parts this needs."""
    if isinstance(box, CellBox):
        port = box.takes[0].name
        array = cast(Array, inputs[port])
        pieces = _told_of(array, at) if box.of_places else _touched(array, parts[port])
        return rows_of_chunks(spark, inputs, port, box.rows_in, box.schema(inputs), pieces)
    some = {
        port: restricted(each, parts[port]) if isinstance(each, Table) else each
        for port, each in inputs.items()
    }
    return box.run(some, spark)


def _touched(array: Array, where: Filter) -> list[Chunk]:
    """The chunks that hold some of a region of an array."""
    return [chunk for chunk, _ in touched(array, array.variables[0], inside(array, where))]


def _told_of(array: Array, at: Filter) -> list[Chunk]:
    """Of the chunks with cells that rows of a region tell of, no more than the box around these."""
    told = {d: at.spans[f"{d}_index"] for d in array.dims if f"{d}_index" in at.spans}
    cells = inside(array, Filter(at.owner, told))
    return [
        replace(chunk, ranges=_within(chunk, cells[boxes].hull(), array.dims))
        for chunk, boxes in touched(array, array.variables[0], cells)
    ]


def _within(chunk: Chunk, around: Filter, dims: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """The part of a chunk that lies in a box."""
    ends = [(around.spans[d].low[0], around.spans[d].high[0]) for d in dims]
    pairs = zip(chunk.ranges, ends, strict=True)
    return tuple((max(a, int(low)), min(b, int(high))) for (a, b), (low, high) in pairs)


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
