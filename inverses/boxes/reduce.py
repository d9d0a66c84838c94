"""Where reduced cells came from: the inverses that face `pipelines/boxes/reduce.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import (
    AGGREGATE,
    ANY,
    USED,
    Inputs,
    Mask,
    Row,
    Seen,
    verifies,
    weakly_inverts,
)
from inverses.sweeps import Asked, Swept, start_of, sweeps
from pipelines.arrays import Ranges, block
from pipelines.boxes.reduce import Reduce, ReduceExtreme, Reducing
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter
from pipelines.tables import numbered


@weakly_inverts(
    Reduce,
    image=ANY,
    yields=[USED],
    nature=AGGREGATE,
    promises=[COMPLETE, PURE, FAITHFUL],
    level=ELEMENT,
)
@weakly_inverts(
    ReduceExtreme,
    image=ANY,
    yields=[USED],
    nature=AGGREGATE,
    promises=[COMPLETE, FAITHFUL],
    level=ELEMENT,
)
def whole_group(box: Reducing, at: Filter, source: Array) -> Filter:
    """All cells along the dimensions that were drawn together, at the datum's place in others."""
    return at.to(**{d: at.span(d) for d in source.dims if d not in box.dims})


@verifies(
    ReduceExtreme,
    image=ANY,
    yields=[USED],
    nature=AGGREGATE,
    needs=[COMPLETE],
    promises=[COMPLETE, PURE],
    level=ELEMENT,
    at_once=True,
)
def attains(box: ReduceExtreme, at: Row, seen: Seen, source: Array) -> Mask:
    """The cells of the group that are as great, or as small, as any in it."""
    group = numbered([seen["owner"], seen["variable"]])
    values = box.sign * seen["value"]
    best = np.full(group.max(initial=-1) + 1, -np.inf)
    np.fmax.at(best, group, values)
    return np.asarray(values == best[group])


@sweeps(ReduceExtreme)
def extreme(
    box: ReduceExtreme, asked: Asked, port: str, inputs: Inputs, ranges: Ranges
) -> Iterator[Swept]:
    """Group by group of a block, the cells that are as great, or as small, as any."""
    field: Any = inputs[port]
    kept = {d: ends for d, ends in ranges.items() if d not in box.dims}
    axes = tuple(field.dims.index(d) for d in box.dims)
    for variable, wanted in asked.items():
        cells = block(field, variable, kept)
        values = box.sign * cells.astype(np.float64)
        best = np.where(np.isnan(values), -np.inf, values).max(axis=axes, keepdims=True)
        yield Swept(variable, start_of(field, kept), cells, wanted & (values == best))
