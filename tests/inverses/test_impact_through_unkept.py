"""What was not kept hides nothing that was derived: it is made again where it may have been."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from pyspark.sql import SparkSession

from inverses import touching
from inverses.guarantees import EXACT
from inverses.impact import Impact, impact
from inverses.inverting import invert
from inverses.limits import Limits
from inverses.selection import select
from pipelines import tables
from pipelines.datasets import Group, Table
from pipelines.errors import SourceChanged, TooDear
from pipelines.filters import Filter
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.files import grid
from tests.inverses.test_diamonds import reading

HERE = cast(SparkSession, Here(2))
DIAMOND = """
name: diamond
sources: {one: {path: one}, two: {path: two}}
boxes:
  smooth: {box: window_mean, inputs: {field: one}, keep: KEPT}
  peaks: {box: window_extreme, inputs: {field: two}, keep: KEPT}
  mixed: {box: combine, inputs: {field: smooth, other: peaks},
          params: {formula: slp - 2 * other_slp, result: slp}, keep: KEPT}
  calm: {box: rolling_mean, inputs: {field: smooth}, params: {window: 3}}
  both: {box: combine, inputs: {field: mixed, other: calm},
         params: {formula: slp + other_slp, result: slp}, keep: KEPT}
  found: {box: extract_above, inputs: {field: both},
          params: {variable: slp, threshold: -0.5}, keep: KEPT}
  steps: {box: aggregate, inputs: {rows: found}, params: {keys: time_index, what: "value:count"}}
"""
ROWS = """
name: rows
sources: {staff: {path: staff.parquet, kind: table}}
boxes:
  paid: {box: filter_rows, inputs: {rows: staff}, params: {where: x > -0.8}, keep: KEPT}
  doubled: {box: map_rows, inputs: {rows: paid},
            params: {column: z, formula: 2 * x - y}, keep: KEPT}
  groups: {box: aggregate, inputs: {rows: doubled}, params: {keys: k, what: "z:max, x:count"}}
  best: {box: top_n, inputs: {rows: groups}, params: {by: z_max, n: 3}, keep: KEPT}
  pairs: {box: join, inputs: {left: doubled, right: best}, params: {keys: k}, keep: KEPT}
  last: {box: project, inputs: {rows: pairs}, params: {columns: "k, z_max"}}
"""
CYCLONES = """
name: cyclones
boxes:
  agcm: {box: simulate_agcm, params: {days: 10.0, resolution: 5.0}, keep: KEPT}
  minima: {box: extract_minima, inputs: {field: agcm}, keep: KEPT}
  tracks: {box: identify_tracks, inputs: {minima: minima}, params: {min_points: 4}, keep: KEPT}
"""
PLACES = [
    "time = '2001-03-05' and lat between -30 and 60 and lon between 200 and 355",
    "time = '2001-03-20' and lat = 90",
    "time between '2001-03-01' and '2001-03-02' and lon < 15",
]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home, chance = tmp_path_factory.mktemp("sources"), np.random.default_rng(5)
    for name in ("one", "two"):
        stored = grid(chance.normal(0, 1, (96, 18, 36)), wind=())
        chunks = {"slp": {"chunks": (8, 18, 36)}}
        stored.to_zarr(home / name, encoding=chunks, consolidated=False)
    rows = {"k": np.arange(4000) // 100, "x": chance.normal(0, 1, 4000), "y": np.arange(4000) % 7.0}
    pq.write_table(pa.table(rows), home / "staff.parquet", row_group_size=200)
    return home


def ran(text: str, sources: Path, kept: str, path: Path) -> Workspace:
    workspace = Workspace.create(path)
    run(Pipeline.from_text(text.replace("KEPT", kept), base=sources), workspace, HERE)
    return workspace


@pytest.fixture(scope="module")
def worlds(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Workspace]:
    """Each pipeline with everything kept, and with little kept."""
    home = tmp_path_factory.mktemp("worlds")
    return {
        f"{name} {kept}": ran(text, sources, kept, home / f"{name} {kept}")
        for name, text in {"diamond": DIAMOND, "rows": ROWS, "cyclones": CYCLONES}.items()
        for kept in ("true", "false")
    }


@contextmanager
def reading_groups() -> Iterator[Counter[str]]:
    """How many row groups of files are read, by the name of their table."""
    read: Counter[str] = Counter()
    plainly = tables.read_group

    def group(table: Table, which: Group) -> pa.Table:
        read[table.name] += table.content is None
        return plainly(table, which)

    with patch.object(tables, "read_group", group), patch("pipelines.sharing.read_group", group):
        yield read


def told(found: Impact) -> dict[str, Any]:
    return {
        key[0]: (sorted(map(str, each.table().to_pylist())), each.guarantee)
        for key, each in found.reached.items()
    }


@pytest.mark.parametrize("where", PLACES)
def test_cells_lead_through_an_unkept_diamond_to_what_they_lead_to_anyway(
    worlds: dict[str, Workspace], where: str
) -> None:
    whole = impact(worlds["diamond true"], "one", where, spark=HERE)
    with reading() as read:
        part = impact(worlds["diamond false"], "one", where, spark=HERE)
    assert told(part) == told(whole)
    assert {"smooth", "mixed", "calm", "both", "found", "steps"} == set(told(part))
    exact = {key[0] for key, each in part.reached.items() if each.guarantee == EXACT}
    assert exact == {*told(part)} - {"steps"}, "nothing tells which rows a group's key is from"
    assert read["one"] < 96 * 18 * 36, "less than all of it, though by many boxes, for each of six"


@pytest.mark.parametrize("want", ["exact", "complete", "pure"])
@pytest.mark.parametrize("where", ["k = 11 and x > 0", "y = 3 and k between 5 and 6", "x > 2.2"])
def test_rows_lead_through_unkept_tables_to_what_they_lead_to_anyway(
    worlds: dict[str, Workspace], where: str, want: str
) -> None:
    whole = impact(worlds["rows true"], "staff", where, want, spark=HERE)
    part = impact(worlds["rows false"], "staff", where, want, spark=HERE)
    assert told(part) == told(whole)
    assert {"paid", "doubled", "groups"} <= set(told(part))


@pytest.mark.parametrize("where", ["lon < 10 and lat > 30", "time = '2000-01-03'"])
def test_cells_that_were_not_kept_themselves_lead_to_tracks_that_were_not_either(
    worlds: dict[str, Workspace], where: str
) -> None:
    whole = impact(worlds["cyclones true"], "agcm", where, spark=HERE)
    part = impact(worlds["cyclones false"], "agcm", where, spark=HERE)
    assert told(part) == told(whole)
    assert set(told(part)) == {"minima", "tracks"}


def test_only_row_groups_that_rows_may_have_led_to_are_read(worlds: dict[str, Workspace]) -> None:
    where = "k = 11 and y = 3"
    with reading_groups() as selected:
        select(worlds["rows false"], "staff", where)
    with reading_groups() as read:
        impact(worlds["rows false"], "staff", where, spark=HERE)
    assert 0 < read["staff"] - selected["staff"] < 20, "for each of six datasets, of 20 groups"


def test_an_unkept_dataset_says_so(worlds: dict[str, Workspace]) -> None:
    found = impact(worlds["rows false"], "staff", "k = 11", spark=HERE).to_json()["impact"]
    assert {name: each["kept"] for name, each in found.items()} == {
        "paid": False, "doubled": False, "groups": True,
    } | {n: n == "last" for n in ("best", "pairs", "last") if n in found}  # fmt: skip


def test_what_would_be_dear_to_make_again_is_refused(worlds: dict[str, Workspace]) -> None:
    with pytest.raises(TooDear, match=r'"paid" was not kept, and to make again.*--limit-bytes'):
        impact(worlds["rows false"], "staff", "k = 11", spark=HERE, limits=Limits(bytes=10))


@pytest.mark.parametrize("kept", ["true", "false"])
def test_what_would_be_dear_to_look_at_is_refused(worlds: dict[str, Workspace], kept: str) -> None:
    world, few = worlds[f"diamond {kept}"], Limits(bytes=10)
    with pytest.raises(TooDear, match=r'to look behind .* of "smooth" would read.*--limit-bytes'):
        impact(world, "one", PLACES[0], spark=HERE, limits=few)
    with pytest.raises(
        TooDear, match=r'to look behind .* of "(calm|mixed)" would read.*--limit-bytes'
    ):
        impact(world, "smooth", PLACES[0], spark=HERE, limits=few)


def test_what_takes_longer_than_it_may_is_refused(worlds: dict[str, Workspace]) -> None:
    with pytest.raises(TooDear, match="--limit-seconds"):
        impact(worlds["diamond false"], "one", PLACES[0], spark=HERE, limits=Limits(seconds=0))


def test_each_hop_may_take_what_is_left_of_the_time(worlds: dict[str, Workspace]) -> None:
    given: list[float] = []

    def inverting(*asked: Any) -> Any:
        given.append(asked[-1].seconds)
        return invert(*asked)

    with patch("inverses.forward.invert", inverting):
        impact(worlds["rows false"], "staff", "k = 11", spark=HERE, limits=Limits(seconds=99))
    assert given[0] < 99 and given == sorted(given, reverse=True)


@pytest.mark.parametrize(
    "text, dataset, where, changed",
    [
        (DIAMOND, "one", PLACES[0], "one"),
        (DIAMOND, "one", PLACES[0], "two"),
        (DIAMOND, "smooth", PLACES[0], "one"),
        (DIAMOND, "mixed", PLACES[0], "two"),
        (ROWS, "staff", "k = 11", "staff.parquet"),
        (ROWS, "groups", "k < 40", "staff.parquet"),
    ],
)
def test_nothing_is_made_again_of_a_source_that_has_changed(
    text: str, dataset: str, where: str, changed: str, sources: Path, tmp_path: Path
) -> None:
    home = tmp_path / "sources"
    shutil.copytree(sources, home)
    workspace = ran(text, home, "false", tmp_path / "w")
    impact(workspace, dataset, where, spark=HERE)
    overwritten(home / changed)
    with pytest.raises(SourceChanged, match="run again"):
        impact(workspace, dataset, where, spark=HERE)


def overwritten(path: Path) -> None:
    """Put other values into a source."""
    if path.suffix == ".parquet":
        rows = pq.read_table(path)
        x = pa.array(rows["x"].to_numpy() + 1)
        pq.write_table(rows.set_column(1, "x", x), path, row_group_size=200)
    else:
        zarr.open_group(path, mode="r+")["slp"][:] = 0.0


def test_where_nothing_narrows_all_is_made_again(worlds: dict[str, Workspace]) -> None:
    whole = impact(worlds["rows true"], "staff", "k = 11", spark=HERE)
    everything = Filter(np.zeros(1, np.int64), {})
    with patch("inverses.forward.derivable", lambda *_: everything):
        part = impact(worlds["rows false"], "staff", "k = 11", spark=HERE)
    assert told(part) == told(whole)


def test_the_range_of_a_column_is_kept_to_only_where_nothing_is_beyond_it(
    worlds: dict[str, Workspace],
) -> None:
    seen = []
    plainly = touching.derivable

    def derivable(*given: Any) -> Any:
        seen.append(plainly(*given))
        return seen[-1]

    with patch("inverses.forward.derivable", derivable):
        impact(worlds["rows false"], "staff", "k = 11 and x > 0", spark=HERE)
    spans = seen[0].spans
    assert (spans["k"].low, spans["k"].high) == (11, 11)
    assert spans["x"].low > 0
