"""Where cells under a condition came from: the inverses that face `pipelines/boxes/masks.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from pipelines.boxes import masks
from pipelines.boxes.masks import Choose, Threshold
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter
from pipelines.places import filled

CELLS: dict[str, Any] = {"image": ANY, "yields": [USED], "nature": AGGREGATE, "level": ELEMENT}


@weakly_inverts(Choose, promises=[COMPLETE, FAITHFUL], **CELLS)
@weakly_inverts(Threshold, promises=[COMPLETE, PURE, FAITHFUL], **CELLS)
@weakly_inverts(masks.Mask, promises=[COMPLETE, PURE, FAITHFUL], **CELLS)
def cell_there(box: Any, at: Filter, source: Array) -> Filter:
    """A cell is made of those at its place, or of the only one where there is but one."""
    return at.only(*(d for d in source.dims if source.size[d] > 1))


@verifies(Choose, needs=[COMPLETE], promises=[COMPLETE, PURE], at_once=True, **CELLS)
def chosen(box: Choose, at: Row, seen: Seen, source: Array) -> Mask:
    """The condition's variables, and those of the formula that it chose."""
    _, datum = np.unique(seen["owner"], return_inverse=True)
    when, then, otherwise = box.read(source.attributes)
    names = np.array(source.variables)[seen["variable"]]
    decided = when.values({n: _values_of(n, names, datum, seen) for n in when.names})
    holds = np.broadcast_to(decided, datum.max(initial=-1) + 1)[datum]
    by_first = (holds != 0) & ~np.isnan(holds) & np.isin(names, then.names)
    by_other = (holds == 0) & np.isin(names, otherwise.names)
    return np.asarray(np.isin(names, when.names) | by_first | by_other)


def _values_of(
    name: str, names: NDArray[Any], datum: NDArray[np.int64], seen: Seen
) -> NDArray[np.float64]:
    """The value of a variable at the place of each datum."""
    found = np.full(datum.max(initial=-1) + 1, np.nan)
    found[datum[names == name]] = seen["value"][names == name]
    return found


@sweeps(Choose)
def chosen_there(
    box: Choose, asked: Asked, port: str, inputs: Inputs, ranges: Ranges
) -> Iterator[Swept]:
    """Place by place of a block, the condition's variables, and those of the formula it chose."""
    field: Any = inputs[port]
    wanted = asked[box.result]
    when, then, otherwise = box.read(field.attributes)
    values = {v: block(field, v, ranges) for v in box.named(field.attributes)}
    holds = filled(when, values, ranges)
    for variable, cells in values.items():
        by_first = (variable in then.names) & (holds != 0) & ~np.isnan(holds)
        by_other = (variable in otherwise.names) & (holds == 0)
        kept = wanted & ((variable in when.names) | by_first | by_other)
        yield Swept(variable, start_of(field, ranges), cells, kept)
