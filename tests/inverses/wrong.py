"""Inverses that are wrong on purpose, and seeing that a law catches them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses.registry import Registry
from pipelines.boxes.cyclones import ExtractMinima, IdentifyTracks
from pipelines.datasets import Array, Table
from pipelines.filters import Filter
from pipelines.spans import Span, span
from tests.laws import INDEX

REGISTRY = Registry.of()
Seen = Mapping[str, np.ndarray]


def registry_with(name: str, **changed: Any) -> Registry:
    """The shipped registry with one registration made wrong."""
    weak = tuple(replace(w, **changed) if w.name == name else w for w in REGISTRY.weak)
    verify = tuple(replace(v, **changed) if v.name == name else v for v in REGISTRY.verifications)
    assert name in [r.name for r in (*weak, *verify)]
    return Registry(REGISTRY.boxes, weak, verify)


def assert_caught(law: Callable[[st.DataObject], None], saying: str) -> None:
    """Some example breaks a law, which says so in its own words."""

    @given(data=st.data())
    @settings(database=None, phases=list(settings().phases)[:3], max_examples=300)
    def lawful(data: st.DataObject) -> None:
        law(data)

    with pytest.raises(AssertionError, match=saying):
        lawful()


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
