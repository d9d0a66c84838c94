"""Through a diamond of boxes, kept or not, a trace finds the same cells and reads few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.guarantees import EXACT, names, wish
from inverses.impact import impact
from inverses.inverting import inverted
from inverses.partial import run_only
from inverses.planner import plan
from inverses.proof import prove
from inverses.registry import Registry
from inverses.selection import select
from inverses.trace import trace, trace_each
from pipelines import arrays
from pipelines.datasets import Array, Table
from pipelines.errors import Refused
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import matching
from pipelines.workspace import Workspace
from tests.files import grid

HERE = cast(SparkSession, Here(2))
SHAPE = (96, 18, 36)
TEXT = """
name: diamond
sources: {{one: {{path: {one}}}, two: {{path: {two}}}}}
boxes:
  smooth: {{box: window_mean, inputs: {{field: one}}, keep: {smooth}}}
  peaks: {{box: window_extreme, inputs: {{field: two}}, keep: {peaks}}}
  mixed: {{box: combine, inputs: {{field: smooth, other: peaks}},
          params: {{formula: slp - 2 * other_slp, result: slp}}}}
  calm: {{box: rolling_mean, inputs: {{field: smooth}}, params: {{window: 3}}, keep: {calm}}}
  both: {{box: combine, inputs: {{field: mixed, other: calm}},
         params: {{formula: slp + other_slp, result: slp}}, keep: {both}}}
  found: {{box: extract_above, inputs: {{field: both}},
          params: {{variable: slp, threshold: -0.5}}}}
"""
ALL = dict.fromkeys(("smooth", "peaks", "calm", "both"), "true")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home, chance = tmp_path_factory.mktemp("sources"), np.random.default_rng(5)
    for name in ("one", "two"):
        stored = grid(chance.normal(0, 1, SHAPE), wind=())
        chunks = {"slp": {"chunks": (8, 18, 36)}}
        stored.to_zarr(home / name, encoding=chunks, consolidated=False)
    return {name: home / name for name in ("one", "two")}


@contextmanager
def reading() -> Iterator[Counter[str]]:
    """How many cells of files are read, by the name of their array."""
    read: Counter[str] = Counter()
    plainly = arrays._values

    def values(array: Array, variable: str, ranges: list[tuple[Any, Any]]) -> Any:
        found = plainly(array, variable, ranges)
        if array.content is None:
            read[array.name] += found.size
        return found

    with patch.object(arrays, "_values", values):
        yield read


def ran(sources: dict[str, Path], path: Path, **kept: str) -> Workspace:
    workspace = Workspace.create(path)
    run(Pipeline.from_text(TEXT.format(**sources, **{**ALL, **kept})), workspace, HERE)
    return workspace


def asked(workspace: Workspace, number: int) -> str:
    row = matching(cast(Table, workspace.dataset("found")), None).slice(number, 1).to_pylist()[0]
    return " and ".join(f"{n} = {row[n]}" for n in ("time_index", "lat_index", "lon_index"))


def told(answer: Answer) -> dict[str, Any]:
    return {
        name: (sorted(map(str, answer.cells(name).to_pylist())), answer.guarantee(name))
        for name in ("one", "two", "mixed")
    }


def test_what_is_not_kept_changes_no_answer_and_little_is_read(
    sources: dict[str, Path], tmp_path: Path
) -> None:
    kept = ran(sources, tmp_path / "kept")
    with reading() as again:
        few = ran(sources, tmp_path / "few", smooth="false", calm="false", both="false")
    where = asked(kept, 3)
    whole = trace(kept, "found", where, spark=HERE)
    with reading() as read:
        part = trace(few, "found", where, spark=HERE)
    assert told(part) == told(whole)
    assert part.guarantee("one") == EXACT
    assert part.guarantee("two") == EXACT
    assert sum(read.values()) * 20 <= sum(again[name] for name in ("one", "two"))
    assert prove(part, HERE).holds
    assert prove(whole, HERE).holds


def test_the_window_mean_behind_a_datum_is_found_by_both_ways_round(
    sources: dict[str, Path], tmp_path: Path
) -> None:
    workspace = ran(sources, tmp_path / "w", smooth="false", peaks="false")
    answer = trace(workspace, "found", asked(workspace, 200), spark=HERE)
    steps = {row["time_index"] for row in answer.cells("one").to_pylist()}
    assert len(steps) == 3
    assert all(len(found.links) == 2 for key, found in answer.found.items() if key[0] == "smooth")


def test_every_hop_is_gone_once_however_many_ways_lead_over_it(
    sources: dict[str, Path], tmp_path: Path
) -> None:
    workspace = ran(sources, tmp_path / "w")
    with patch("inverses.trace.inverted", side_effect=inverted) as gone:
        answer = trace(workspace, "found", asked(workspace, 3), spark=HERE)
    hops = Counter((h.image.name, h.source.name) for _, h, _ in (c.args for c in gone.mock_calls))
    assert hops == Counter([(h.image.name, h.source.name) for h in answer.plan.hops])
    assert len(hops) == 8 and set(hops.values()) == {1}


def test_each_source_may_have_a_wish_of_its_own(sources: dict[str, Path], tmp_path: Path) -> None:
    workspace = ran(sources, tmp_path / "w")
    where = asked(workspace, 3)
    wishes = {"one": "pure", "two": "complete"}
    answer = trace_each(workspace, "found", where, wishes, spark=HERE)
    exact = trace(workspace, "found", where, spark=HERE)
    assert set(answer.lineage) == set(exact.lineage)
    for name in exact.lineage:
        found, whole = (set(map(str, a.cells(name).to_pylist())) for a in (answer, exact))
        assert {"one": found <= whole, "two": found >= whole}.get(name, found == whole)
        assert wish(wishes.get(name, "exact")) <= answer.guarantee(name)
    assert answer.behind(0).keys() == exact.behind(0).keys()
    assert prove(answer, HERE).holds
    with pytest.raises(Refused, match="did you mean"):
        trace_each(workspace, "found", where, {"onne": "pure"}, spark=HERE)


def test_nobody_promises_what_is_behind_a_time_alone(
    sources: dict[str, Path], tmp_path: Path
) -> None:
    workspace = ran(sources, tmp_path / "w")
    selection = select(workspace, "calm", None, ["time"])
    planned = plan(workspace, selection, EXACT, Registry.of())
    assert names(planned.guarantee) == ["complete"]


def in_rungs(step: str, rungs: int, source: Path, keep: str) -> Pipeline:
    """So many of a step one after another, of which the last finds what is high."""
    text = f"name: rungs\nsources: {{made0: {{path: {source}}}}}\nboxes:\n"
    for n in range(rungs):
        text += f"  made{n + 1}: {{{step.format(n)}, keep: {keep}}}\n"
    last = f"inputs: {{field: made{rungs}}}, params: {{variable: slp, threshold: -9}}"
    return Pipeline.from_text(f"{text}  found: {{box: extract_above, {last}}}\n")


BY_ITSELF = (
    "box: combine, inputs: {{field: made{0}, other: made{0}}}, "
    "params: {{formula: slp + 0.5 * other_slp, result: slp}}"
)
OF_ALL_VARIABLES = "box: rolling_mean, inputs: {{field: made{}}}, params: {{window: 3}}"


@pytest.mark.parametrize("step, wind", [(BY_ITSELF, ()), (OF_ALL_VARIABLES, ("u10", "v10"))])
def test_what_many_ways_lead_to_is_made_again_once(
    step: str, wind: tuple[str, ...], tmp_path: Path
) -> None:
    field = np.random.default_rng(5).normal(0, 1, (8, 6, 12))
    grid(field, wind=wind).to_zarr(tmp_path / "field", consolidated=False)
    rungs, all_cells = 7, field.size * (1 + len(wind))
    few, part = (Workspace.create(tmp_path / name) for name in ("few", "part"))
    run(in_rungs(step, rungs, tmp_path / "field", "false"), few, HERE)
    with reading() as read:
        run_only(in_rungs(step, rungs, tmp_path / "field", "true"), part, HERE, "found: lat > 20")
    assert read["made0"] <= 2 * all_cells
    with reading() as read:
        trace(few, "found", "lat > 20 and time_index = 4", spark=HERE)
    assert read["made0"] <= 2 * rungs * all_cells
    with reading() as read:
        impact(few, "made0", "lat > 20", spark=HERE)
    assert read["made0"] <= 4 * rungs * all_cells
