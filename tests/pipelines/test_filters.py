"""Filters hold exactly what they say, alone and combined."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipelines.filters import Filter, Span, lattice, span, where, wrapped
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
