"""Where reduced cells came from: the inverses that face `pipelines/boxes/reduce.py`."""

from __future__ import annotations

import numpy as np

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import (
    AGGREGATE,
    ANY,
    USED,
    Mask,
    Row,
    Seen,
    verifies,
    weakly_inverts,
)
from pipelines.boxes.reduce import Reduce, ReduceExtreme, Reducing
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter


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
    pairs = np.column_stack([seen["owner"], seen["variable"]])
    _, group = np.unique(pairs, axis=0, return_inverse=True)
    values = box.sign * seen["value"]
    best = np.full(len(values), -np.inf)
    np.fmax.at(best, group.ravel(), values)
    return np.asarray(values == best[group.ravel()])
