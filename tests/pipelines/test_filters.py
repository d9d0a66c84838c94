"""Filters hold exactly what they say, alone and combined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.arrays import inside
from pipelines.contents import held_array
from pipelines.ends import least_and_greatest
from pipelines.filters import Filter, lattice, where, wrapped
from pipelines.spans import Span, span
from pipelines.tables import rows_in

KEYS = ("a", "b")
VALUES = list(range(6))
EVERYWHERE = [(owner, a, b) for owner in (0, 1) for a in VALUES for b in VALUES]

Held = set[tuple[int, int, int]]


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """A union of a few boxes for two owners, restricting the same keys in each."""
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True))
    ends = st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES))
    owners = draw(st.lists(st.integers(0, 1), min_size=1, max_size=4))
    spans = {}
    for key in keys:
        drawn = [draw(ends) for _ in owners]
        spans[key] = Span(np.array([a for a, _ in drawn]), np.array([b for _, b in drawn]))
    return Filter(np.array(owners), spans)


def held(filter_: Filter) -> Held:
    """What a filter holds, box by box and value by value."""
    found = set()
    for i, owner in enumerate(filter_.owner):
        for o, a, b in EVERYWHERE:
            row = {"a": a, "b": b}
            inside = all(s.low[i] <= row[k] <= s.high[i] for k, s in filter_.spans.items())
            if o == owner and inside:
                found.add((o, a, b))
    return found


@given(filters(), filters())
def test_and_holds_what_both_hold(one: Filter, other: Filter) -> None:
    assert held(one & other) == held(one) & held(other)


@given(filters(), filters())
def test_or_holds_what_either_holds(one: Filter, other: Filter) -> None:
    assert held(one | other) == held(one) | held(other)


@given(filters())
def test_a_loose_filter_holds_the_same_for_nobody_in_particular(one: Filter) -> None:
    loose = one.loose()
    assert len(set(loose.owner.tolist())) == len(loose)
    anybody = {(a, b) for _, a, b in held(one)}
    loosely = Filter(np.zeros(len(loose), np.int64), loose.spans)
    assert {(a, b) for _, a, b in held(loosely)} == anybody


@given(filters())
def test_rows_are_found_as_box_by_box(one: Filter) -> None:
    rows = pa.table({k: [place[1 + n] for place in EVERYWHERE[:36]] for n, k in enumerate(KEYS)})
    owner, position = rows_in(rows, one)
    a, b = (rows[k].to_numpy() for k in KEYS)
    found = set(zip(owner.tolist(), a[position].tolist(), b[position].tolist(), strict=True))
    assert found == held(one)
    assert len(found) == len(owner)


@given(st.integers(-9, 9), st.integers(0, 20), st.integers(3, 9))
def test_a_span_on_a_circle_is_cut_at_the_seam(low: int, width: int, period: int) -> None:
    cut = wrapped(where(lon=span(low, low + width)), "lon", period)
    held_ = {v for v in range(period) for s in [cut.spans["lon"]] if s.holds(np.array(v)).any()}
    if -period <= low and low + width < 2 * period:
        assert held_ >= {v % period for v in range(low, low + width + 1)}
    if width < period and low + width >= 0 and low < period:
        assert held_ == {v % period for v in range(low, low + width + 1)}


HOUR = np.timedelta64(1, "h")
WIDE = [("int64", 7), ("int64", np.array([7])), ("datetime64[us]", HOUR), ("float64", 7.0)]


@pytest.mark.parametrize("kind, by", WIDE)
def test_open_ends_stay_open_however_they_are_moved(kind: str, by: Any) -> None:
    least, greatest = (np.array(end, kind)[()] for end in least_and_greatest(np.dtype(kind)))
    for each in (span(least, greatest), span(least + by, greatest - by)):
        assert each.grown(by).grown(by).open.all()
    for each in (span(least, greatest).moved(by), span(least, greatest).moved(-by)):
        assert each.open.all()


WHOLE = st.integers(-(2**63), 2**63 - 1)


@given(WHOLE, WHOLE, WHOLE)
def test_no_end_goes_round(low: int, high: int, by: int) -> None:
    least, greatest = -(2**63), 2**63 - 1
    moved = span(np.array([low]), np.array([high])).moved(by)
    for end, found in ((low, int(moved.low[0])), (high, int(moved.high[0]))):
        truth = max(least, min(end + max(by, least + 1), greatest))
        assert found == (end if end in (least, greatest) else truth)


@pytest.mark.parametrize("kind", ["int8", "int32", "uint8", "uint16", "uint32", "uint64"])
def test_narrow_and_unsigned_ends_reach_as_far_as_wide_ones(kind: str) -> None:
    top = np.iinfo(kind).max
    near = span(np.array([1], kind), np.array([min(top, 2**63 - 1) - 1], kind)).grown(3)
    assert (near.low[0], near.high[0]) == (-2, min(top + 2, 2**63 - 1))
    assert not span(*np.array([[0, top]], kind).T).grown(3).moved(-2).moved(2).empty.any()


@pytest.mark.parametrize("kind", ["int64", "uint64", "int32", "float64"])
def test_open_ends_on_a_circle_or_an_array_hold_all_of_it(kind: str) -> None:
    least, greatest = least_and_greatest(np.dtype(kind))
    every = where(x=span(np.array([least], kind), np.array([greatest], kind)))
    some = where(x=span(np.array([3], kind), np.array([greatest], kind)))
    line = held_array("line", (), {"x": np.arange(10)}, {})
    assert inside(line, some).text() == "x 3..9"
    for each in (every, where(x=every.spans["x"].grown(2)), some):
        cut = wrapped(each, "x", 10)
        assert inside(line, cut).text() == "x 0..9"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3))
def test_a_lattice_lists_every_point_once(ends: list[tuple[int, int]]) -> None:
    low, high = np.array([[a for a, _ in ends]]), np.array([[b for _, b in ends]])
    _, points = lattice(low, high)
    sizes = [max(b - a + 1, 0) for a, b in ends]
    assert len(points) == len(set(map(tuple, points.tolist()))) == int(np.prod(sizes))


def test_what_is_not_restricted_may_be_missing() -> None:
    either = where(x=span(3.0)) | where(a=span(1, 2))
    rows = pa.table({"a": [0, 2], "x": [3.0, float("nan")]})
    assert rows_in(rows, either)[1].tolist() == [0, 1]


def test_what_holds_nothing_adds_nothing_to_another() -> None:
    nothing = where(x=span(3.0))[np.zeros(0, np.int64)]
    assert (nothing | where(a=span(1, 2))).text() == "a 1..2"
    assert (where(a=span(1, 2)) | nothing).text() == "a 1..2"


def test_filters_speak_spark_sql() -> None:
    both = where(lat=span(1.5, 2.5), name=span(np.array(["it's"])))
    assert both.sql() == (
        r"(lat between double('1.5') and double('2.5') and name between 'it\'s' and 'it\'s')"
    )
    assert where().sql() == "true"


def test_many_boxes_are_told_by_what_is_around_them() -> None:
    many = Filter(np.arange(50), {"a": span(np.arange(50))})
    assert many.text() == "50 boxes within a 0..49"


def test_merging_keeps_every_place_and_needs_no_more_boxes() -> None:
    chance = np.random.default_rng(0)
    for _ in range(300):
        count = int(chance.integers(1, 30))
        low = {k: chance.integers(-3, 5, count) for k in ("a", "b", "c")[: chance.integers(1, 4)]}
        spans = {k: Span(v, v + chance.integers(0, 3, count)) for k, v in low.items()}
        boxes = Filter(np.zeros(count, np.int64), spans)
        assert len(boxes.merged()) <= count
        assert _places(boxes.merged()) == _places(boxes)
    assert len(boxes[np.zeros(0, np.int64)].merged()) == 0


def _places(boxes: Filter) -> set[tuple[int, ...]]:
    low = np.column_stack([s.low for s in boxes.spans.values()])
    high = np.column_stack([s.high for s in boxes.spans.values()])
    return set(map(tuple, lattice(low, high)[1].tolist()))


def test_ranges_are_one_with_a_range_of_everything_but_make_up_none() -> None:
    every = where(x=span([-np.inf, 3.0], [np.inf, np.inf])).overlapped()
    assert len(every) == 1 and every.spans["x"].open.all()
    halves = where(x=span([-np.inf, 3.0], [5.0, np.inf])).overlapped()
    assert len(halves) == 2 and not halves.spans["x"].open.any()
    of_two = where(k=span([1, 2, 2]), x=span([-np.inf, -np.inf, 3.0], [np.inf, 5.0, np.inf]))
    assert of_two.overlapped().spans["x"].open.sum() == 1


def test_what_is_missing_is_told_as_one_value() -> None:
    assert str(where(x=span(np.nan))) == "x = nan"
    assert str(where(x=span([np.nan, 1.0], [np.nan, 2.0]))) == "(x = nan) or (x 1..2)"
