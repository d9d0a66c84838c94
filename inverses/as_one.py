"""Very many data asked about as one: in the fewest boxes, or in one more pass over the inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inverses.candidates import Question
from inverses.guarantees import EXACT, FAITHFUL
from inverses.outline import MANY, Part, about, parts_of
from inverses.plans import Hop
from inverses.registry import WeakInverse
from inverses.sweeps import Swept
from pipelines.arrays import Ranges, inside, touched
from pipelines.boxes.box import Box
from pipelines.datasets import Array, Table
from pipelines.filters import Filter

CELLS = 100_000  # looked at for single data, past which all are asked about as one
MORE = 4  # data that may share their rows before all are asked about as one

Block = tuple[tuple[tuple[int, int], ...], Filter]
Gathering = Callable[[Hop, Filter, list[Part]], list[Part] | None]


def able(hop: Hop) -> bool:
    """Whether a hop can tell what is behind many cells as one, without saying behind which.

    A weak inverse can if it is made for whole regions, and alone, since what two say of a region
    is more than what they say of its cells; what has to be verified can if the box has a sweep.
    """
    every = [i for level in hop.levels for i in level.inversions]
    regions = all(len(i.weak) == 1 and _of_regions(i.weak[0]) for i in every)
    cells = isinstance(hop.image, Array) and hop.box.flat
    return cells and regions and (sweeping(hop) or not any(i.verify for i in every))


def many(hop: Hop, at: Filter) -> bool:
    """Whether asking about data one by one looks at very many cells, the same ones or not."""
    if len(at) > MANY or not isinstance(hop.source, Array):
        return len(at) > MANY
    found = [inside(hop.source, p.filter) for p in parts_of(hop, hop.levels[-1], at)]
    sizes = [[s.high - s.low + 1.0 for s in each.spans.values()] for each in found]
    return sum(float(np.prod(each, axis=0).sum()) for each in sizes) > CELLS


def _of_regions(weak: WeakInverse) -> bool:
    return weak.box is Box or FAITHFUL in weak.promises


def sweeping(hop: Hop) -> bool:
    """Whether what a hop must verify can be found by a sweep, which is exact or not at all."""
    every = [i for level in hop.levels for i in level.inversions]
    exact = all(i.verify and i.promises >= EXACT for i in every)
    return hop.sweep is not None and exact


def apart(hop: Hop, at: Filter, parts: list[Part]) -> list[Part] | None:
    """No parts as one: each datum is asked about by itself."""
    return None


def as_one(hop: Hop, at: Filter, parts: list[Part]) -> list[Part]:
    """Parts in which whatever is found is found for one datum, and so found once."""
    one = [Filter(np.zeros(len(p.filter), np.int64), p.filter.spans) for p in parts]
    return [replace(p, filter=f) for p, f in zip(parts, one, strict=True)]


def shared(hop: Hop, at: Filter, parts: list[Part]) -> list[Part] | None:
    """The parts of a hop into a table as one, if very many data share most of their rows.

    What is verified is so datum by datum, and scalar parts meet datum by datum.
    """
    apart = any(p.checks for p in parts) or sum(p.scalar for p in parts) > 1
    if len(at) <= MANY or apart or not isinstance(hop.source, Table):
        return None
    few = [replace(p, filter=p.filter.loose()) for p in parts]
    sharing = [len(p.filter) / len(f.filter) for p, f in zip(parts, few, strict=True)]
    return as_one(hop, at, few) if max(sharing) > MORE else None


def blocks_of(hop: Hop, at: Filter) -> list[Block]:
    """The chunks of what a box made in which cells are asked about, each with boxes of them."""
    image = hop.image
    assert isinstance(image, Array)
    found = touched(image, image.variables[0], inside(image, at))
    return [(chunk.ranges, at[boxes]) for chunk, boxes in found]


def swept(hop: Hop, question: Question, block: Block) -> Iterator[pa.RecordBatch]:
    """Every cell of a hop's source that is behind any of the cells asked about in a block."""
    image, (ends, boxes) = hop.image, block
    assert hop.sweep is not None and isinstance(image, Array)
    ranges = {d: (a, b + 1) for d, (a, b) in zip(image.dims, ends, strict=True)}
    names = [i.attribute for level in hop.levels for i in level.inversions]
    asked = {n: _asked(image, ranges, about(image, n, boxes)) for n in names}
    for each in hop.sweep.function(hop.box, asked, hop.port, question.inputs, ranges):
        yield from _cells(question, each).to_batches()


def _asked(image: Array, ranges: Ranges, boxes: Filter) -> NDArray[np.bool_]:
    """Which cells of a block some boxes hold."""
    within = inside(image, boxes)
    start, stop = np.array([ranges[d] for d in image.dims]).T
    low = np.column_stack([within.spans[d].low for d in image.dims])
    high = np.column_stack([within.spans[d].high for d in image.dims])
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
