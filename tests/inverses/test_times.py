"""Means over time are those of plain loops, and their inverses find the steps that count."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import cftime
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.guarantees import EXACT
from inverses.making import made_by
from inverses.trials import found_by, inversions
from pipelines.boxes.times import Anomaly, Climatology, ResampleMean, RollingMean
from pipelines.contents import held_array
from pipelines.datasets import Array
from pipelines.errors import Refused
from pipelines.filters import Filter
from pipelines.spans import Span, span
from tests.files import pressures
from tests.inverses import wrong
from tests.inverses.cases import Case, Plain, check, small_arrays
from tests.inverses.families import (
    MANY,
    PATIENCE,
    at_times,
    cells,
    in_parts,
    params_of,
    proves_itself,
    traced,
)
from tests.inverses.grids import plain_array
from tests.inverses.wrong import REGISTRY

pytestmark = PATIENCE
BOXES: tuple[Any, ...] = (RollingMean, ResampleMean, Climatology, Anomaly)


def moments() -> st.SearchStrategy[datetime]:
    """Dates of few enough months, days and hours that those of different years fall together."""
    return st.sampled_from([1999, 2000, 2004]).flatmap(_within_year)


def _within_year(year: int) -> st.SearchStrategy[datetime]:
    days = [(1, 1), (1, 28), (2, 1), (2, 28), *([(2, 29)] if year % 4 == 0 else [])]
    return st.builds(
        lambda day, hour, minute: datetime(year, *day, hour, minute),
        st.sampled_from(days),
        st.sampled_from([0, 6, 23]),
        st.sampled_from([0, 30]),
    )


def mark(moment: Any, by: str) -> tuple[int, ...]:
    """What tells one month, day of the year or hour from another."""
    whole = {"month": (moment.month,), "day": (moment.month, moment.day), "hour": (moment.hour,)}
    return whole[by]


def members(box: Any, moments: list[Any]) -> list[list[int]]:
    """For each place in time that is made, the steps that are averaged."""
    steps = range(len(moments))
    if isinstance(box, RollingMean):
        before = box.window - 1 if box.align == "trailing" else box.window // 2
        after = box.window - 1 - before
        return [[s for s in steps if t - before <= s <= t + after] for t in steps]
    if isinstance(box, ResampleMean) and box.by == "steps":
        return [list(steps[a : a + box.every]) for a in steps[:: box.every]]
    if isinstance(box, ResampleMean):
        days = [m.strftime("%Y-%m-%d") for m in moments]
        return [[s for s in steps if days[s] == day] for day in sorted(set(days))]
    marks = [mark(m, box.by) for m in moments]
    if isinstance(box, Climatology):
        return [[s for s in steps if marks[s] == each] for each in sorted(set(marks))]
    return [[s for s in steps if marks[s] == marks[t]] for t in steps]


def forward(box: Any, moments: list[Any]) -> Callable[[Plain], Any]:
    averaged = members(box, moments)

    def make(given: Plain) -> Any:
        made = {}
        for name, values in given["field"].items():
            made[name] = np.empty((len(averaged), *values.shape[1:]))
            for t, y, x in np.ndindex(made[name].shape):
                there = [v for v in (float(values[s, y, x]) for s in averaged[t]) if v == v]
                mean = sum(there) / len(there) if there else np.nan
                own = float(values[t, y, x]) if isinstance(box, Anomaly) else None
                made[name][t, y, x] = mean if own is None else own - mean
        return made

    return make


@st.composite
def over_time(draw: st.DrawFn, kind: Any) -> Case:
    box = draw(params_of(kind))
    array = draw(small_arrays(draw(st.sampled_from([("a",)] * 4 + [("a", "b")])), most=(5, 1, 2)))
    found = sorted(draw(st.lists(moments(), min_size=array.shape[0], max_size=array.shape[0])))
    times: Any = np.array(found, "datetime64[ns]")
    if draw(st.booleans()):
        times = np.array([cftime.DatetimeJulian(*m.timetuple()[:5]) for m in found], object)
    return Case(box, {"field": at_times(array, times)}, forward(box, found), regular=True)


WORLDS = {kind: over_time(kind) for kind in BOXES}


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_every_inverse_of_a_mean_over_time_holds_what_it_promises(
    kind: Any, data: st.DataObject
) -> None:
    check(data.draw(WORLDS[kind]), REGISTRY)


@pytest.mark.parametrize("kind", WORLDS)
@given(data=st.data())
@settings(max_examples=MANY)
def test_means_over_time_are_made_and_inverted_in_parts_of_any_shape(
    kind: Any, data: st.DataObject
) -> None:
    in_parts(data.draw(WORLDS[kind]), REGISTRY, data)


def one_short(box: RollingMean, at: Filter, source: Array) -> Filter:
    """It forgets the last step of the window."""
    steps = at.spans["time"]
    back, ahead = box.reach(source.shape[0])
    low, high = steps.low - back, steps.high + ahead - 1
    return at.to(time=Span(low, high), lat=at.span("lat"), lon=at.span("lon"))


def as_if_even(box: ResampleMean, at: Filter, source: Array) -> Filter:
    """It takes every stretch for as long as the first."""
    steps = at.spans["time"]
    length = int((box.groups(source).of_step == 0).sum())
    found = Span(steps.low * length, steps.high * length + length - 1)
    return at.to(time=found, lat=at.span("lat"), lon=at.span("lon"))


def from_first_to_last(box: Climatology, at: Filter, source: Array) -> Filter:
    """It takes what lies between two Januaries for January."""
    return at.to(lat=at.span("lat"), lon=at.span("lon"))


def own_step(box: Anomaly, at: Filter, source: Array) -> Filter:
    """It forgets what the cell is compared with."""
    return at.only(*source.dims)


WRONG: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "forgets a step": (RollingMean, "window", {"function": one_short}),
    "takes stretches for even": (ResampleMean, "stretch", {"function": as_if_even}),
    "takes all time": (Climatology, "whole_cycle", {"function": from_first_to_last}),
    "forgets the climate": (Anomaly, "own_cycle", {"function": own_step}),
    "takes any time for its own": (Anomaly, "own_cycle", {"function": from_first_to_last}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_inverse_of_a_mean_over_time_is_caught(case: str) -> None:
    kind, name, changed = WRONG[case]
    registry = wrong.registry_with(name, **changed)
    law = "missing|not behind it"
    wrong.assert_caught(lambda data: check(data.draw(WORLDS[kind]), registry), law)


def test_an_anomaly_of_hours_smoothed_by_days_is_traced_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    field = np.concatenate([pressures(n) for n in range(2)])[:6]
    boxes = """
  strange: {box: anomaly, inputs: {field: world}, params: {by: hour}}
  daily: {box: resample_mean, inputs: {field: strange}, params: {by: day}}
"""
    where = "time > '2001-03-02' and lat = 22.5 and lon = 67.5"
    answer = traced({"world": field}, boxes, "daily", where, spark, tmp_path)
    # Six-hourly steps from midnight: the second day has steps 4 and 5, of the hours of 0 and 1.
    assert cells(answer, "world") == {(t, 3, 3) for t in (0, 1, 4, 5)}
    assert answer.guarantee("world") == EXACT
    assert proves_itself(answer)


def times(*given: str) -> Array:
    dates = np.array(given, "datetime64[ns]")
    coordinates = {"time": dates, "lat": np.zeros(1), "lon": np.zeros(1)}
    return held_array("field", (), coordinates, {})


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("month", ["2000-02-01", "2000-03-01"]),
        ("day", ["2000-02-29", "2000-03-01"]),
        ("hour", ["2000-01-01T06", "2000-01-01T18"]),
    ],
)
def test_a_climatology_bears_times_of_the_year_2000(by: str, expected: list[str]) -> None:
    array = times("2003-03-01T06:00", "2004-02-29T18:30", "2004-03-01T06:10")
    found = Climatology(by).grid({"field": array}).coordinates["time"]
    assert found.tolist() == np.array(expected, "datetime64[ns]").tolist()


def test_a_stretch_bears_the_mean_of_its_times() -> None:
    array = times("2003-03-01T06", "2003-03-01T18", "2003-03-02T06")
    found = ResampleMean(by="day").grid({"field": array}).coordinates["time"]
    assert (
        found.tolist()
        == times("2003-03-01T12", "2003-03-02T06").content.coordinate("time").tolist()
    )


@pytest.mark.parametrize(
    ("kind", "given", "saying"),
    [
        (RollingMean, {"window": 4}, "a centred one has an odd number of steps"),
        (RollingMean, {"align": "left"}, 'no alignment "left"'),
        (ResampleMean, {"by": "dya"}, 'did you mean "day"'),
        (Climatology, {"by": "year"}, 'no cycle "year" for box "climatology"'),
        (Anomaly, {"by": "mnth"}, 'did you mean "month"'),
    ],
)
def test_what_cannot_be_averaged_is_refused(kind: Any, given: Any, saying: str) -> None:
    with pytest.raises(Refused, match=saying):
        kind.from_params(given)


LONG = 10**30


@pytest.mark.parametrize(
    ("box", "as_long"),
    [
        (RollingMean(LONG, "trailing"), RollingMean(3, "trailing")),
        (RollingMean(LONG + 1), RollingMean(5)),
        (ResampleMean(LONG), ResampleMean(3)),
    ],
)
def test_no_window_is_longer_than_time(box: Any, as_long: Any) -> None:
    field = plain_array((3, 2, 2))
    made, expected = made_by(box, {"field": field}), made_by(as_long, {"field": field})
    assert isinstance(made, Array) and isinstance(expected, Array)
    for kind in ("coordinates", "variables"):
        np.testing.assert_equal(getattr(made.content, kind), getattr(expected.content, kind))
    last = {"time": made.shape[0] - 1, "lat": 0, "lon": 0}
    at = Filter(np.zeros(1, np.int64), {d: span(n, n) for d, n in last.items()})
    for stated, _, hop in inversions(REGISTRY, box, "field", made, field):
        assert found_by(hop, at) == [{("a", t, 0, 0) for t in range(3)}], stated.name


def test_times_that_are_no_dates_have_no_months() -> None:
    array = at_times(times("2003-03-01"), np.arange(1))
    with pytest.raises(Refused, match="have no months, days or hours; give dates"):
        Climatology().grid({"field": array})
