"""Suspects: values among traced cells that stand out against what is around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inverses.answer import Answer, Found
from pipelines.arrays import block, coordinate
from pipelines.datasets import Array
from pipelines.tables import column

FAR = 6.0  # robust deviations from the neighbourhood
LONG = 4  # steps without any change
MOST = 200  # cells looked at, worst first
AROUND = 6  # cells to each side
MOVED = 2.0  # times as unlike its neighbours in time as they are unlike each other


@dataclass(frozen=True, slots=True)
class Suspect:
    """One cell, or one whole step, that looks wrong: where it is, and why in words."""

    dataset: str
    variable: str
    at: dict[str, int]
    why: str
    weight: float


def suspects(answer: Answer, most: int = 5) -> list[Suspect]:
    """What stands out among the cells of an answer, worst first; around those that were kept."""
    arrays = [f for f in answer.lineage.values() if isinstance(f.dataset, Array)]
    every = [s for f in arrays if f.dataset.kept for s in _in(f)]
    return sorted(every, key=lambda s: -s.weight)[:most]


def _in(found: Found) -> Iterator[Suspect]:
    array = found.dataset
    assert isinstance(array, Array)
    for number, variable in enumerate(array.variables):
        mine = found.rows.filter(column(found.rows, "variable") == number)
        values = column(mine, "value").astype(float)
        cells = np.column_stack([column(mine, d) for d in array.dims])
        order = np.argsort(-abs(values - np.nanmedian(values)) if len(values) else values)[:MOST]
        for cell, value in zip(cells[order], values[order], strict=True):
            yield from _cell(array, variable, cell, value)
        for step in np.unique(cells[order][:, 0])[:10]:
            yield from _step(array, variable, int(step))


def _cell(array: Array, variable: str, cell: NDArray[np.int64], value: float) -> Iterator[Suspect]:
    at = dict(zip(array.dims, map(int, cell), strict=True))
    if np.isnan(value):
        yield Suspect(array.name, variable, at, "the value is missing (NaN)", 1e9)
        return
    far = _outlying(array, variable, at, value)
    if far is not None:
        weight, middle = far
        side = "below" if value < middle else "above"
        why = f"{value:,.6g} lies {weight:.0f} deviations {side} its surroundings ({middle:,.6g})"
        yield Suspect(array.name, variable, at, why, weight)
        same = _unchanged(array, variable, at, value)
        if same >= LONG:
            why = f"stuck: exactly {value:,.6g} in {same} steps on end"
            yield Suspect(array.name, variable, at, why, weight + same)


def _outlying(
    array: Array, variable: str, at: dict[str, int], value: float
) -> tuple[float, float] | None:
    """How many robust deviations a value is from those around it, and their middle."""
    record, *others = array.dims
    ranges = {record: (at[record], at[record] + 1)}
    for dim in others:
        low, high = at[dim] - AROUND, at[dim] + AROUND + 1
        circular = dim in array.circular
        ranges[dim] = (low, high) if circular else (max(low, 0), min(high, array.size[dim]))
    around = block(array, variable, ranges).astype(float).ravel()
    middle = float(np.nanmedian(around))
    spread = 1.4826 * float(np.nanmedian(abs(around - middle)))
    weight = abs(value - middle) / max(spread, 1e-12 + abs(middle) * 1e-6)
    return (weight, middle) if weight > FAR else None


def _unchanged(array: Array, variable: str, at: dict[str, int], value: float) -> int:
    """In how many steps on end, this one among them, a cell has the very same value."""
    record, *others = array.dims
    first = max(at[record] - 50, 0)
    ranges = {record: (first, min(at[record] + 51, array.shape[0]))}
    ranges |= {d: (at[d], at[d] + 1) for d in others}
    same = block(array, variable, ranges).ravel() == value
    here = at[record] - first
    before = np.argmin(np.append(same[here::-1], False))
    after = np.argmin(np.append(same[here:], False))
    return int(before + after - 1)


def _step(array: Array, variable: str, step: int) -> Iterator[Suspect]:
    """A whole step that is unlike both its neighbours, which are like their own."""
    record = array.dims[0]
    first, last = step - 2, step + 3
    if first < 0 or last > array.shape[0]:
        return
    steps = block(array, variable, {record: (first, last)}).astype(float)
    change = np.sqrt(np.nanmean(np.diff(steps, axis=0) ** 2, axis=tuple(range(1, steps.ndim))))
    usual = max(float(change[0]), float(change[3]))
    unlike = float(min(change[1], change[2])) / max(usual, 1e-12)
    if unlike > MOVED:
        when = _told(coordinate(array, record)[step])
        why = f"the whole step {when} differs {unlike:.0f} times as much as usual from those around"
        yield Suspect(array.name, variable, {record: step}, why, FAR + unlike)


def _told(value: Any) -> str:
    return str(value.astype("datetime64[m]")) if hasattr(value, "astype") else str(value)
