"""Very many data asked about as one have behind them what they have behind them one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.limits import Limits
from inverses.outline import fewest
from inverses.samples import Sample, samples
from inverses.sweeps import Sweep, Swept
from pipelines.boxes.box import ArrayBox, Box, CellBox, RowBox
from pipelines.boxes.cyclones import ExtractMinima
from pipelines.boxes.landcover import FindRegions, Label
from pipelines.boxes.window import WindowMean
from pipelines.contents import held_array
from pipelines.errors import Refused, TooDear
from pipelines.filters import Filter, where
from pipelines.spans import Span, span
from tests.inverses.asked_as_one import (
    REGISTRY,
    assert_caught_as_one,
    cells_of,
    holds,
    sweep_of,
    traced,
)
from tests.inverses.families import PATIENCE
from tests.speed.every import smooth_field

KINDS = [
    k
    for k in REGISTRY.boxes.values()
    if issubclass(k, ArrayBox | RowBox | CellBox) and k.takes and (k.flat or k is ExtractMinima)
]
SWEPT = [k for k in KINDS if any(issubclass(k, s.box) for s in REGISTRY.sweeps)]
pytestmark = PATIENCE
MANY = settings().max_examples


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_as_one_or_one_by_one_the_same_is_found(kind: type[Box]) -> None:
    ways: list[int] = []

    @given(sample=samples(kind), some=st.data())
    @settings(max_examples=MANY // (1 if kind in SWEPT and len(kind.takes) == 1 else 3))
    def each(sample: Sample, some: st.DataObject) -> None:
        ways.append(holds(sample, some))

    each()
    assert sum(ways) >= len(ways)


def test_boxes_that_must_verify_what_windows_regions_or_groups_share_have_sweeps() -> None:
    names = {"window_extreme", "vorticity", "label", "find_regions", "mosaic", "mosaic_of_three"}
    of_cells = {*names, "choose", "composite", "reduce_extreme"}
    of_rows = {"top_n", "grid_rows", "rasterize_tracks", "extract_minima"}
    assert {k.name for k in SWEPT} == of_cells | of_rows


def all_that_was_read(
    box: Label, asked: Any, port: str, inputs: Any, ranges: Any
) -> Iterator[Swept]:
    """It takes all for what was asked."""
    (found,) = _right(box, asked, port, inputs, ranges)
    yield replace(found, kept=np.ones_like(found.kept))


def one_too_few(box: Label, asked: Any, port: str, inputs: Any, ranges: Any) -> Iterator[Swept]:
    """It forgets the last cell that it found."""
    for found in _right(box, asked, port, inputs, ranges):
        kept = found.kept.copy()
        kept.flat[np.flatnonzero(kept)[-1:]] = False
        yield replace(found, kept=kept)


def _right(*given: Any) -> Iterator[Swept]:
    found: Iterator[Swept] = sweep_of(Label)(*given)
    return found


def only_where_it_starts(box: WindowMean, at: Filter, source: Any) -> Filter:
    """It says of a region what is right of its first cell."""
    (around,) = [w for w in REGISTRY.weak if w.box is WindowMean]
    first = {d: Span(s.low, s.low) for d, s in at.spans.items()}
    return around.function(box, Filter(at.owner, first), source)


WRONG = {
    "takes everything": (Label, replace(REGISTRY, sweeps=(Sweep("", Label, all_that_was_read),))),
    "forgets a cell": (Label, replace(REGISTRY, sweeps=(Sweep("", Label, one_too_few),))),
    "knows no regions": (
        WindowMean,
        replace(
            REGISTRY,
            weak=tuple(
                replace(w, function=only_where_it_starts) if w.box is WindowMean else w
                for w in REGISTRY.weak
            ),
        ),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_as_one_is_caught(case: str) -> None:
    assert_caught_as_one(*WRONG[case])


BOXES = {
    "label": "{box: label, inputs: {field: field}, params: {variable: a}}",
    "extreme": "{box: window_extreme, inputs: {field: field}, params: {lon: 5}}",
    "mean": "{box: window_mean, inputs: {field: field}}",
    "two steps": "{box: window_extreme, inputs: {field: smooth}}",
}


@pytest.mark.parametrize("name", BOXES)
def test_on_spark_and_here_a_whole_array_has_behind_it_what_its_cells_have(
    name: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = smooth_field(tmp_path / "field.zarr", (4, 7, 12), (3, 4, 5))
    kept = "  smooth: {box: window_mean, inputs: {field: field}, keep: false}\n"
    before = kept if "smooth" in BOXES[name] else ""
    text = (
        f"name: x\nsources: {{field: {{path: {field}}}}}\nboxes:\n{before}  made: {BOXES[name]}\n"
    )
    asked = "lat > -70 and time < '2000-01-01T18:00'"
    one_by_one = traced(text, tmp_path, spark, asked)
    assert one_by_one.behind(0)
    for module in ("inverses.outline", "inverses.as_one"):
        monkeypatch.setattr(f"{module}.MANY", 0)
    here = traced(text, tmp_path, spark, asked)
    monkeypatch.setattr("inverses.work.HERE", -1)
    on_spark = traced(text, tmp_path, spark, asked)
    assert on_spark.spark["jobs"] > 0
    for answer in (here, on_spark):
        assert cells_of(answer, "field") == cells_of(one_by_one, "field")
        assert answer.guarantee("field") == one_by_one.guarantee("field")
        with pytest.raises(Refused, match="asked about as one"):
            answer.behind(0)


def test_one_datum_with_very_many_cells_behind_it_is_not_many_data(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inverses.as_one.CELLS", 10)
    field = smooth_field(tmp_path / "field.zarr", (4, 7, 12), (3, 4, 5))
    box = "{box: reduce, inputs: {field: field}, params: {over: 'time,lat,lon'}}"
    text = f"name: x\nsources: {{field: {{path: {field}}}}}\nboxes:\n  made: {box}\n"
    answer = traced(text, tmp_path, spark, attributes=["a"])
    assert len(answer.behind(0)["field"]) == 4 * 7 * 12


def test_scattered_cells_that_share_a_step_count_that_step_once(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("inverses.outline", "inverses.as_one"):
        monkeypatch.setattr(f"{module}.MANY", 5)
    field = smooth_field(tmp_path / "field.zarr", (2, 6, 8), (2, 6, 8))
    made = "{box: label, inputs: {field: field}, params: {variable: a}}"
    text = f"name: x\nsources: {{field: {{path: {field}}}}}\nboxes:\n  made: {made}\n"
    asked = "lat not between -40 and 40 and lon not between 80 and 100"
    answer = traced(text, tmp_path, spark, asked, limits=Limits(cells=2 * 6 * 8))
    assert answer.lineage["field"].links[answer.plan.selection.dataset.key] is None
    monkeypatch.setattr("inverses.limits.estimated_seconds", lambda prices: 0.0)
    with pytest.raises(TooDear, match="not done after"):
        traced(text, tmp_path, spark, asked, limits=Limits(seconds=0.0))


def test_the_sweep_of_the_box_itself_comes_before_that_of_what_it_is_like() -> None:
    own = Sweep("own", FindRegions, one_too_few)
    registry = replace(REGISTRY, sweeps=(*REGISTRY.sweeps, own))
    assert registry.sweep_of(FindRegions()) == own
    assert registry.sweep_of(Label()) != own


def test_boxes_that_leave_a_dimension_open_are_merged_with_others_and_lose_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("inverses.outline.MANY", 0)
    places = {d: np.arange(9) for d in ("time", "lat", "lon")}
    array = held_array("field", (), places, {})
    some = where(time=span([0, 0, 3]), lat=span([1, 2, 5]))
    both = fewest(array, some | where(time=span([1, 7])))
    assert both.points == 3 + 2 * 9
