"""Where means over time came from: the inverses that face `pipelines/boxes/times.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.registry import AGGREGATE, ANY, USED, weakly_inverts
from pipelines.boxes.times import Anomaly, Climatology, ResampleMean, RollingMean
from pipelines.datasets import ELEMENT, Array
from pipelines.filters import Filter
from pipelines.grouping import Groups
from pipelines.spans import Span, span

CELLS: dict[str, Any] = {"image": ANY, "yields": [USED], "nature": AGGREGATE, "level": ELEMENT}


@weakly_inverts(RollingMean, **CELLS, promises=[COMPLETE, PURE, FAITHFUL])
def window(box: RollingMean, at: Filter, source: Array) -> Filter:
    """The steps that the window reaches from the datum's, as far as there are any."""
    back, ahead = box.reach(source.shape[0])
    steps = _steps(at, source)
    low = np.maximum(steps.low - back, 0)
    return _moved(at, source, Span(low, np.minimum(steps.high + ahead, source.shape[0] - 1)))


@weakly_inverts(ResampleMean, **CELLS, promises=[COMPLETE, PURE, FAITHFUL])
def stretch(box: ResampleMean, at: Filter, source: Array) -> Filter:
    """The steps from the first of the datum's stretch to its last."""
    groups = box.groups(source)
    starts = np.flatnonzero(np.diff(groups.of_step, prepend=-1, append=len(groups)))
    asked = _steps(at, source, len(groups))
    return _moved(at, source, Span(starts[asked.low], starts[asked.high + 1] - 1))


@weakly_inverts(Climatology, **CELLS, promises=[COMPLETE, PURE, FAITHFUL])
def whole_cycle(box: Climatology, at: Filter, source: Array) -> Filter:
    """All steps of the datum's month, day or hour."""
    groups = box.groups(source)
    return _runs(at, source, groups, _steps(at, source, len(groups)))


@weakly_inverts(Anomaly, **CELLS, promises=[COMPLETE, PURE, FAITHFUL])
def own_cycle(box: Anomaly, at: Filter, source: Array) -> Filter:
    """All steps of the month, day or hour that the datum's step is of."""
    groups = box.groups(source)
    asked = _steps(at, source)
    ends, which = _distinct(asked)
    found = [np.unique(groups.of_step[a : b + 1]) for a, b in ends]
    spread, number = at.repeated(np.array([len(each) for each in found], np.int64)[which])
    each = _nth(found, which, number)
    return _runs(spread, source, groups, span(each))


def _steps(at: Filter, source: Array, places: int | None = None) -> Span:
    """The places in time that are asked about, within those there are."""
    last = (source.shape[0] if places is None else places) - 1
    asked = at.span(source.dims[0]) or Span(np.zeros(len(at)), np.full(len(at), last))
    return Span(_within(asked.low, last), _within(asked.high, last))


def _within(steps: NDArray[Any], last: int) -> NDArray[np.int64]:
    return np.asarray(np.clip(steps, 0, last)).astype(np.int64)


def _moved(at: Filter, source: Array, steps: Span) -> Filter:
    """The same places at other steps."""
    record, *inner = source.dims
    return at.to(**{d: at.span(d) for d in inner}, **{record: steps})


def _runs(at: Filter, source: Array, groups: Groups, asked: Span) -> Filter:
    """The same places at every step of the groups asked about, a box for each run of steps."""
    ends, which = _distinct(asked)
    found = [_runs_of((groups.of_step >= a) & (groups.of_step <= b)) for a, b in ends]
    spread, number = at.repeated(np.array([len(low) for low, _ in found], np.int64)[which])
    first, last = (_nth([each[n] for each in found], which, number) for n in (0, 1))
    return _moved(spread, source, Span(first, last))


def _runs_of(inside: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last positions of each run that is inside."""
    edges = np.flatnonzero(np.diff(inside.astype(np.int8), prepend=0, append=0))
    return edges[::2], edges[1::2] - 1


def _distinct(asked: Span) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different ranges of a span, and which of them each is."""
    ends, which = np.unique(np.column_stack([asked.low, asked.high]), axis=0, return_inverse=True)
    return ends, which.ravel()


def _nth(
    lists: list[NDArray[np.int64]], which: NDArray[np.int64], number: NDArray[np.int64]
) -> NDArray[np.int64]:
    """What repeated boxes get: each repetition of a box the next of the list that is its own."""
    sizes = np.array([len(each) for each in lists], np.int64)
    starts = np.cumsum(sizes) - sizes
    together = np.concatenate([np.zeros(0, np.int64), *lists])
    return np.asarray(together[np.repeat(starts[which], sizes[which]) + number])
