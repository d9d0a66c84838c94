"""Very many data asked about as one: in the fewest boxes, or in one more pass over the inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inverses.candidates import Question
from inverses.guarantees import EXACT
from inverses.limits import pairs_about
from inverses.outline import MANY, Part, about, combined, fewest, last_parts
from inverses.places import grid_of, tells_of_cells
from inverses.plans import Hop
from inverses.sweeps import Swept
from pipelines.arrays import Ranges, inside, touched
from pipelines.boxes.box import RowBox
from pipelines.datasets import Array, Table
from pipelines.filters import Filter
from pipelines.likeness import alike
from pipelines.spans import Span, span

CELLS = 100_000  # looked at for single data, past which all are asked about as one
PAIRS = 1_000_000  # of a row and what is behind it, looked at before rows are asked about so too
SOME = 1_000  # rows by which all are judged
MORE = 4  # data that may share their rows, however many these are

Block = tuple[Ranges, Filter]


def able(hop: Hop) -> bool:
    """Whether a hop can tell what is behind many data as one, without saying behind which.

    What has to be verified can if the box has a sweep. Weak inverses are asked about rows one by
    one even then, but about regions of cells, or of the cells that rows tell of: one can if it is
    made for those, and alone, since what two say of a region is more than of each of its cells.
    """
    if not sweeping(hop) and any(i.verify for i in hop.inversions):
        return False
    if isinstance(hop.image, Table) and isinstance(hop.source, Table):
        return True
    alone = all(len(i.weak) == 1 for i in hop.inversions)
    return alone and (tells_of_cells(hop) or _of_regions(hop))


def _of_regions(hop: Hop) -> bool:
    regions = all(w.of_regions for i in hop.inversions for w in i.weak)
    return isinstance(hop.image, Array) and hop.box.flat and regions


def sweeping(hop: Hop) -> bool:
    """Whether what a hop must verify can be found by a sweep, which is exact or not at all."""
    found = hop.levels[-1].inversions
    exact = all(i.promises >= EXACT for i in found)
    # Only a sweep behind rows that tell of cells learns which of their attributes is asked about.
    enough = any if tells_of_cells(hop) else all
    return hop.sweep is not None and exact and enough(bool(i.verify) for i in found)


def very_many(hop: Hop, at: Filter) -> bool:
    """Whether asking about data one by one looks at very many cells, or at rows again and again."""
    if isinstance(hop.image, Table) and isinstance(hop.source, Table):
        return _again_and_again(hop, hop.source, at)
    if isinstance(hop.image, Table):
        return len(at) > 1 and _looked_at_about(hop, at) > PAIRS
    if not 1 < len(at) <= MANY or not isinstance(hop.source, Array):
        return len(at) > MANY
    return _looked_at(hop, at) > CELLS


def _looked_at(hop: Hop, at: Filter) -> float:
    """How many cells are looked at for single data."""
    assert isinstance(hop.source, Array)
    return sum(inside(hop.source, p.filter).points for p in last_parts(hop, at))


def _looked_at_about(hop: Hop, at: Filter) -> float:
    """About how many that is, by some of the data: rows of a box look at about as many each."""
    some = at[np.arange(0, len(at), 1 + len(at) // SOME)]
    return _looked_at(hop, some) * len(at) / len(some)


def _again_and_again(hop: Hop, source: Table, at: Filter) -> bool:
    """Whether data share most of the very many rows that they look at, one by one."""
    rows = source.rows or len(at)  # as many, at least about, if it was not kept
    enough = max(PAIRS, MORE * rows)
    if rows * len(at) <= enough:
        return False
    parts = last_parts(hop, at)
    return sum(pairs_about(source.groups, rows, p.filter) for p in parts) > enough


def as_one(source: Table | Array, parts: list[Part]) -> list[Part]:
    """Parts in which whatever is found is found for one datum, and so looked at once."""
    rows = isinstance(source, Table)
    few = [p.filter.overlapped() if rows else fewest(source, p.filter) for p in parts]
    one = [Filter(np.zeros(len(f), np.int64), f.spans) for f in few]
    return [replace(p, filter=f) for p, f in zip(parts, one, strict=True)]


def in_groups(hop: Hop, at: Filter) -> Filter:
    """Data of which those that the box of a hop sees together have one owner."""
    keys = hop.box.together(hop.port) if isinstance(hop.box, RowBox) else None
    values = [at.spans[key].low for key in keys or ()]
    return Filter(alike(values) if values else np.zeros(len(at), np.int64), at.spans)


def shared(groups: Filter, parts: list[Part]) -> list[Part]:
    """One part, in which whatever parts find is found once for each group of data."""
    found = combined([replace(p, scalar=False) for p in parts])
    told = span(groups.owner[found.owner])
    few = Filter(found.owner, {**found.spans, "owner": told}).overlapped()
    return [Part(Filter(few.spans["owner"].low, few.only(*found.spans).spans), (), False)]


def blocks_of(image: Array, at: Filter) -> list[Block]:
    """Where in each chunk of what a box made cells are asked about, and the boxes of them there."""
    within = inside(image, at)
    return [
        (_around(image, chunk.ranges, within[boxes]), within[boxes])
        for chunk, boxes in touched(image, image.variables[0], within)
    ]


def _around(image: Array, ends: tuple[tuple[int, int], ...], boxes: Filter) -> Ranges:
    """The index ranges around all that some boxes hold of a chunk."""
    found = {}
    for dim, (first, last) in zip(image.dims, ends, strict=True):
        each = boxes.spans[dim]
        low, high = max(first, int(each.low.min())), min(last, int(each.high.max()))
        found[dim] = (low, high + 1)
    return found


def around(image: Array, blocks: list[Block]) -> Filter:
    """All that a sweep over some blocks does again, as a filter."""
    ends = {d: np.array([ranges[d] for ranges, _ in blocks]) for d in image.dims}
    every = np.arange(len(blocks))
    return Filter(every, {d: Span(e[:, 0], e[:, 1] - 1) for d, e in ends.items()})


def swept(hop: Hop, question: Question, block: Block) -> Iterator[pa.RecordBatch]:
    """Every cell of a hop's source that is behind any of the cells asked about in a block."""
    grid, (ranges, boxes) = grid_of(hop), block
    assert hop.sweep is not None
    names = [i.attribute for i in hop.levels[-1].inversions]
    if isinstance(hop.image, Table):
        asked = dict.fromkeys(names, _asked(grid, ranges, boxes))
    else:
        asked = {n: _asked(grid, ranges, about(grid, n, boxes)) for n in names}
    for each in hop.sweep.function(hop.box, asked, hop.port, question.inputs, ranges):
        yield from _cells(question, each).to_batches()


def _asked(image: Array, ranges: Ranges, boxes: Filter) -> NDArray[np.bool_]:
    """Which cells of a block some boxes hold."""
    start, stop = np.array([ranges[d] for d in image.dims]).T
    low = np.column_stack([boxes.spans[d].low for d in image.dims])
    high = np.column_stack([boxes.spans[d].high for d in image.dims])
    asked = np.zeros(stop - start, bool)
    for first, last in zip(np.maximum(low - start, 0), high - start + 1, strict=True):
        asked[tuple(map(slice, first, last))] = True
    return asked


def _cells(question: Question, block: Swept) -> pa.Table:
    """The cells of a block that were kept, as candidates of one datum."""
    source = question.source
    assert isinstance(source, Array)
    index = [n + first for n, first in zip(np.nonzero(block.kept), block.first, strict=True)]
    rounds = zip(index, source.dims, strict=True)
    placed = [i % source.size[d] if d in source.circular else i for i, d in rounds]
    zero = np.zeros(len(placed[0]), np.int64)
    number = zero + source.variables.index(block.variable)
    values = block.values[block.kept].astype(float)
    return pa.table([zero, zero, number, *placed, values], schema=question.schema)
