"""Inverses that are wrong on purpose, and seeing that a law catches them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from inverses.boxes.groups import none_below
from inverses.check import violations
from inverses.registry import Registration, Registry
from inverses.samples import Sample, samples
from pipelines.boxes.box import Box
from pipelines.boxes.cyclones import ExtractMinima, IdentifyTracks
from pipelines.boxes.gridding import GridRows
from pipelines.boxes.groups import TopN
from pipelines.boxes.landcover import Label
from pipelines.boxes.times import RollingMean
from pipelines.datasets import Array, Table
from pipelines.filters import Filter
from pipelines.spans import Span, span
from tests.laws import INDEX

REGISTRY = Registry.of()
Seen = Mapping[str, np.ndarray]
Stated = TypeVar("Stated", bound=Registration)


def registry_with(name: str, kind: type[Box] | None = None, **changed: Any) -> Registry:
    """The shipped registry with one registration, maybe only that of a kind of box, made wrong."""

    def wrong(stated: Stated) -> Stated:
        meant = stated.name == name and (kind is None or issubclass(kind, stated.box))
        return replace(stated, **changed) if meant else stated

    weak, verify = tuple(map(wrong, REGISTRY.weak)), tuple(map(wrong, REGISTRY.verifications))
    assert (weak, verify) != (REGISTRY.weak, REGISTRY.verifications)
    return Registry(REGISTRY.boxes, weak, verify)


def assert_caught(law: Callable[[st.DataObject], None], saying: str) -> None:
    """Some example breaks a law, which says so in its own words; by night those of the day."""
    phases = list(settings().phases)[:3]

    @given(data=st.data())
    @settings(derandomize=True, database=None, phases=phases, max_examples=300)
    def lawful(data: st.DataObject) -> None:
        law(data)

    with pytest.raises(AssertionError, match=saying):
        lawful()


def is_caught(registry: Registry, kind: type[Box], name: str, law: str, trials: int = 100) -> bool:
    """Whether some sample shows that a law of an inverse does not hold."""

    def shows(sample: Sample) -> bool:
        return any(said is not None for _, _, said in violations(registry, sample, (name, law)))

    quick = settings(derandomize=True, database=None, phases=[Phase.generate], max_examples=trials)
    try:
        find(samples(kind), shows, settings=quick)
    except NoSuchExample:
        return False
    return True


def too_near(box: ExtractMinima, at: Filter, source: Array) -> Filter:
    """It forgets the outer ring."""
    lat, lon = at.spans["lat_index"], at.spans["lon_index"]
    return at.to(lat=lat.grown(1), lon=lon.grown(1))


def never_wraps(box: ExtractMinima, at: Filter, source: Array) -> Filter:
    """It forgets that the earth is round."""
    lat, lon = at.spans["lat_index"], at.spans["lon_index"]
    return at.to(lat=lat.grown(2), lon=lon.grown(2))


def only_the_point(box: IdentifyTracks, at: Filter, source: object) -> Filter:
    """It takes a track for one point."""
    return at.to(**{n: at.spans[n] for n in INDEX})


def any_time(box: ExtractMinima, at: Filter, source: Array) -> Filter:
    """It takes any time for this time."""
    return at.to()


def between_all(box: IdentifyTracks, at: Filter, source: Table) -> Filter:
    """It looks where others are asked about as well."""
    rows, columns = (_hull(at.spans[n]) for n in INDEX[1:])
    return at.to(lat_index=rows, lon_index=columns)


def around_all(box: ExtractMinima, at: Filter, source: Array) -> Filter:
    """It looks around all that is asked about at once."""
    rows, columns = (_hull(at.spans[n]).grown(2) for n in INDEX[1:])
    return at.to(lat=rows, lon=columns)


def _hull(each: Span) -> Span:
    return Span(np.full_like(each.low, each.low.min()), np.full_like(each.high, each.high.max()))


def whole_chunk(box: ExtractMinima, at: Filter, source: Array) -> Filter:
    """It takes all that is read anyway."""
    size = dict(zip(source.dims, source.chunks, strict=True))
    first = {d: at.spans[f"{d}_index"].low // size[d] * size[d] for d in ("lat", "lon")}
    around = {d: span(low, low + size[d] - 1).grown(2) for d, low in first.items()}
    return at.to(**around)


def whole_groups(box: IdentifyTracks, at: Filter, source: Table) -> Filter:
    """It takes the steps of the row groups that hold this one."""
    ends = np.array([g.bounds["time_index"] for g in source.groups])
    steps = at.spans["time_index"].low[:, None]
    mine = (ends[:, 0] <= steps) & (steps <= ends[:, 1])
    low = np.where(mine, ends[:, 0], steps).min(axis=1)
    return at.to(time_index=span(low, np.where(mine, ends[:, 1], steps).max(axis=1)))


def first_row(box: object, at: object, seen: Seen, source: object) -> np.ndarray:
    """It keeps only what lies in the first row it sees."""
    return np.asarray(seen["lat"] == seen["lat"].min())


def everything_passes(box: object, at: object, seen: Seen, source: object) -> np.ndarray:
    """It checks nothing and promises purity."""
    return np.ones(len(seen["owner"]), bool)


def first_half(box: object, at: object, seen: Seen, source: object) -> np.ndarray:
    """It does not tell one datum's candidates from another's."""
    return np.arange(len(seen["owner"])) < len(seen["owner"]) / 2


def own_place(box: object, at: Filter, source: object) -> Filter:
    """It forgets all around."""
    return at.only("time", "lat", "lon")


def next_step(box: object, at: Filter, source: object) -> Filter:
    """It takes the step after for this one."""
    step = at.spans["time_index"]
    return at.to(time=Span(step.low + 1, step.high + 1))


def first_step(box: object, at: Filter, source: object) -> Filter:
    """Of steps from one to another, it takes the first for all."""
    step = at.span("time_index")
    return at.to(time=step and Span(step.low, step.low))


def next_steps(box: RollingMean, at: Filter, source: Array) -> Filter:
    """Of the steps around one, it takes those next to it."""
    return at.only("lat", "lon") & at.to(time=at.spans["time"].grown(1, 0, source.shape[0] - 1))


def in_range(box: TopN, at: Filter, source: Table) -> Filter:
    """Of a range of the lowest values, it forgets those that come before all of it."""
    place, right = at.span(box.by), none_below(box, at, source)
    if not box.least or place is None or place.single:
        return right
    return at.only(*right.spans)


def both_ends(box: object, at: Filter, source: Array) -> Filter:
    """Of a region of cells, it tells of the outer ones alone."""
    lon = at.spans["lon"]
    return at.to(lon=Span(lon.low, lon.low)) | at.to(lon=Span(lon.high, lon.high))


def more_of_regions(box: object, at: Filter, source: Array) -> Filter:
    """Of a cell it tells what is so, and of more of them everything."""
    own = {dim: at.span(f"{dim}_index") for dim in source.dims}
    alone = all(each is not None and each.single for each in own.values())
    return at.to(**own) if alone else at.to()


def first_rows(box: GridRows, at: Filter, source: Table) -> Filter:
    """Of a region of cells, it tells of the rows in the first of each row of cells."""
    lon = at.spans["lon"]
    return box.within(source, Filter(at.owner, {**at.spans, "lon": Span(lon.low, lon.low)}))


def nothing(box: object, at: Filter, source: Array) -> Filter:
    """It finds a cell where there is none."""
    return at.to(time=Span(np.full(len(at), 99), np.full(len(at), 99)))


def centre(box: object, at: Mapping[str, Any], seen: Mapping[str, Any], source: object) -> Any:
    """It forgets all cells around the minimum."""
    here = (seen["lat"] == at["lat_index"]) & (seen["lon"] == at["lon_index"])
    return np.asarray(here)


def not_named_p(box: object, at: Filter, source: object) -> Filter:
    """It forgets rows of one name."""
    return at.only("k", "x", "y") & at.to(s=Span(np.full(len(at), "q"), np.full(len(at), "q")))


def alike_in_part(box: object, at: Filter, source: object) -> Filter:
    """It takes rows that are equal in one column for equal."""
    return at.only("k")


def region_alone(box: Label, at: Any, seen: Mapping[str, Any], source: Array) -> Any:
    """It forgets the cells at which a region ends."""
    field = np.full(source.shape[1:], np.nan)
    field[seen["lat"], seen["lon"]] = seen["value"]
    inside = box.within(field)[seen["lat"], seen["lon"]]
    here = (seen["lat"] == at["lat"]) & (seen["lon"] == at["lon"])
    return np.asarray(inside | here)


def of_condition(box: object, at: object, seen: Mapping[str, Any], source: object) -> Any:
    """It forgets the formula that was chosen."""
    return np.asarray(seen["variable"] == 0)


def before(box: object, at: Filter, source: object) -> Filter:
    """It takes the minima of the step before for those of this one."""
    step = at.spans["time_index"]
    return at.to(time_index=Span(step.low - 1, step.high - 1))
