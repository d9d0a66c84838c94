"""Small skies for hypothesis: a field, its minima and their tracks, made by both boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inverses.answer import Answer
from inverses.guarantees import wish
from inverses.planner import plan
from inverses.plans import Plan
from inverses.registry import Registry
from inverses.selection import Selection
from inverses.trace import carry_out
from pipelines.boxes.box import TableBox
from pipelines.boxes.cyclones import ExtractMinima, IdentifyTracks
from pipelines.datasets import Array, Made, Table
from pipelines.here import Here
from pipelines.tables import column
from tests import laws
from tests.laws import Item, Items
from tests.strategies import Cuts, chunk_grids, stored_field, stored_table, table_cuts

DEPTHS = st.sampled_from([-200.0, 0.0, 100.0, 300.0, np.nan])
WINDS = st.sampled_from([0.0, 100.0, -100.0, 200.0, np.nan])


@dataclass(frozen=True)
class Sky:
    """What is in the air, and the boxes that look at it."""

    air: Mapping[str, np.ndarray]
    circular: bool
    extract: ExtractMinima
    identify: IdentifyTracks


@dataclass(frozen=True)
class Story:
    """A sky laid out on disk and gone through by both boxes; stands in for a workspace."""

    sky: Sky
    datasets: Mapping[str, Array | Table]

    def dataset(self, name: str, version: str | None = None) -> Array | Table:
        return self.datasets[name]

    @cached_property
    def keys(self) -> list[tuple[int, int, int]]:
        """Step, row and column of each track point."""
        return laws.indices(self._tracks)

    @property
    def numbers(self) -> dict[tuple[int, int, int], int]:
        """The track number of each track point."""
        return dict(zip(self.keys, self._tracks["track"].to_pylist(), strict=True))

    @cached_property
    def _tracks(self) -> Any:
        table = self.datasets["tracks"]
        assert isinstance(table, Table)
        return laws.rows_of(table).sort_by([(n, "ascending") for n in laws.INDEX])

    def planned(
        self, attributes: tuple[str, ...], want: str, registry: Registry, only: int | None = None
    ) -> Plan:
        """The plan for all track points, or for one."""
        at = laws.selection_of(self._tracks)
        chosen = at if only is None else replace(at[[only]], owner=np.zeros(1, np.int64))
        about = Selection(self.datasets["tracks"], None, attributes, chosen)
        return plan(self, about, wish(want), registry)  # type: ignore[arg-type]

    def answer(self, attributes: tuple[str, ...], want: str, registry: Registry) -> Answer:
        """Where all track points came from."""
        return carry_out(self.planned(attributes, want, registry), Here())  # type: ignore[arg-type]


def behind(answer: Answer, row: int, dataset: str) -> Items:
    """What a trace of many found behind one of them, under the names that oracles use."""
    found = answer.lineage[dataset]
    rows = found.rows.take(answer.behind(row)[dataset])
    if isinstance(found.dataset, Table):
        return set(laws.indices(rows))
    names = [found.dataset.variables[v] for v in column(rows, "variable")]
    where = (column(rows, d).tolist() for d in found.dataset.dims)
    return set(zip(names, *where, strict=True))


def every(answer: Answer) -> dict[Item, dict[str, Items]]:
    """What a trace of many found behind each of them, in each dataset."""
    selected = answer.found[answer.plan.selection.dataset.key].rows
    keys = enumerate(laws.indices(selected))
    return {key: {name: behind(answer, row, name) for name in answer.lineage} for row, key in keys}


@st.composite
def pressures(draw: st.DrawFn) -> np.ndarray:
    """A flat field in which up to three lows wander for three or four steps."""
    steps, rows, columns = draw(st.integers(3, 4)), draw(st.integers(3, 5)), draw(st.integers(5, 7))
    slp = np.full((steps, rows, columns), 400.0)
    for _ in range(draw(st.integers(1, 3))):
        y, x = draw(st.integers(0, rows - 1)), draw(st.integers(0, columns - 1))
        for field in slp:
            field[y, x] = draw(DEPTHS)
            y = min(max(y + draw(st.integers(-1, 1)), 0), rows - 1)
            x = (x + draw(st.integers(-2, 2))) % columns
    return slp


@st.composite
def skies(draw: st.DrawFn) -> Sky:
    """Lows that come and go, and a wind that is the same over wide parts."""
    slp = draw(pressures())
    wind = arrays(np.float64, slp.shape, elements=WINDS, fill=WINDS)
    extract = ExtractMinima(margin=draw(st.sampled_from([50.0, 200.0, 1000.0])))
    near, far = draw(st.sampled_from([(3400.0, 1000.0), (2500.0, 7000.0), (5000.0, 9000.0)]))
    identify = IdentifyTracks(near_km=near, far_km=far, min_points=draw(st.integers(2, 3)))
    air = {"slp": slp, "u10": draw(wind), "v10": draw(wind)}
    return Sky(air, draw(st.booleans()), extract, identify)


@st.composite
def stories(draw: st.DrawFn, sky: Sky, home: Path) -> Story:
    """A sky gone through by both boxes, its chunks and row groups cut in some way."""
    slp, u10, v10 = sky.air.values()
    grid = draw(chunk_grids(slp.shape))
    field = stored_field(slp, grid, sky.circular, home, (u10, v10))
    minima = _made(draw, sky.extract, "minima", field, home)
    tracks = _made(draw, sky.identify, "tracks", minima, home)
    return Story(sky, {d.name: d for d in (field, minima, tracks)})


def _made(draw: st.DrawFn, box: TableBox, name: str, source: Array | Table, home: Path) -> Table:
    """What a box makes of the dataset before it."""
    port = box.takes[0].name
    rows = box.run({port: source}, Here()).toArrow()  # type: ignore[arg-type]
    made = Made(box.name, name, box.params(), {port: source.key}, "run", box.version)
    cuts: Cuts = draw(table_cuts(rows.num_rows))
    return stored_table(name, rows, cuts, home, attributes=box.makes, made=made)
