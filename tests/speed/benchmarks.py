"""The comparisons themselves: each a function from a bench and a scale to rows of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from inverses.answer import Answer, Found
from inverses.candidates import BEFORE_ROW
from inverses.trace import trace
from pipelines.datasets import Array
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import column
from pipelines.workspace import Workspace
from tests.speed import storms
from tests.speed.fields import Bench, Size, early_point
from tests.speed.plain import run_plainly
from tests.speed.rows import Aim, Row
from tests.speed.sides import Measured, Side, side_by_side

Run = Callable[[Pipeline, Workspace, SparkSession], object]


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the weather is, and how many turns a comparison takes, or one of close sides.

    Turns of short runs are spread by a tenth: it takes hundreds to tell a hundredth.
    """

    demo: Size
    longer: int
    fields: tuple[Size, ...]
    turns: int
    warm: int
    close: int

    @property
    def long(self) -> Size:
        return self.demo.longer(self.longer)

    @property
    def runs(self) -> int:
        """Turns of what takes seconds rather than a fraction of one."""
        return max(1, self.turns // 2)

    @property
    def long_runs(self) -> Scale:
        """For close sides that take seconds, of which fewer turns must do."""
        return replace(self, close=max(1, self.close // 5))

    @property
    def warm_runs(self) -> int:
        return min(2, self.warm)


FULL = Scale(Size(), 100, (Size(), Size(1.0), Size().longer(10)), turns=21, warm=8, close=315)
QUICK = Scale(Size(), 4, (Size(),), turns=4, warm=3, close=20)


def all_points(bench: Bench, scale: Scale) -> list[Row]:
    """Tracing every track point at once against tracing one."""
    workspace = bench.workspace(scale.demo)
    everything, one = tracing(bench, workspace, None), tracing(bench, workspace)
    measured = _in_turns(bench, scale.turns, scale.warm, everything, one)
    answer = trace(workspace, "tracks", None, spark=bench.spark)
    facts = tuple(_each_once(name, found) for name, found in answer.lineage.items())
    note = f"{len(answer.plan.selection):,} points against 1; {scale.demo}"
    return [Row("all points", Aim("<", 4), measured, facts, (note,))]


def _each_once(name: str, found: Found) -> tuple[str, bool]:
    """Whether the chunks read are the distinct chunks of what was found, and no more."""
    touched = chunks_touched(found)
    text = f'"{name}": {found.chunks_read} chunks read for {touched} distinct ones in the answer'
    return text, found.chunks_read == touched


def chunks_touched(found: Found) -> int:
    """How many chunks or row groups the rows or cells of an answer lie in."""
    if not isinstance(found.dataset, Array):
        return len(np.unique(column(found.rows, "row") >> BEFORE_ROW))
    sizes = zip(found.dataset.dims, found.dataset.chunks, strict=True)
    keys = [column(found.rows, dim) // size for dim, size in sizes]
    return len(np.unique(np.column_stack([column(found.rows, "variable"), *keys]), axis=0))


def longer_time(bench: Bench, scale: Scale) -> list[Row]:
    """Tracing one early point of a long series against the same point of a short one."""
    return [
        _longer(bench, scale, "simulated", bench.workspace),
        _longer(bench, scale, "from a file", bench.workspace_over_file),
    ]


def _longer(bench: Bench, scale: Scale, kind: str, made: Callable[[Size], Workspace]) -> Row:
    long, short = made(scale.long), made(scale.demo)
    where = early_point(short)
    sides = tracing(bench, long, where), tracing(bench, short, where)
    measured = _in_turns(bench, scale.turns, scale.warm, *sides)
    answers = [trace(w, "tracks", where, spark=bench.spark) for w in (long, short)]
    name, note = f"{scale.longer}x time, {kind}", f"{scale.long} against {scale.demo}"
    return Row(name, Aim("<=", 1.3), measured, _same_bytes(*answers), (note,))


def _same_bytes(long: Answer, short: Answer) -> tuple[tuple[str, bool], ...]:
    pairs = [(name, long.lineage[name], found) for name, found in short.lineage.items()]
    return tuple(
        (f'"{n}": {a.bytes_read:,} bytes read against {b.bytes_read:,}', _bytes(a) == _bytes(b))
        for n, a, b in pairs
    )


def _bytes(found: Found) -> tuple[int, int]:
    return found.bytes_read, found.chunks_read


def forward(bench: Bench, scale: Scale) -> list[Row]:
    """The forward run against one that leaves out all that lineage asks for."""
    short, long = scale.demo, scale.demo.longer(10)
    return [
        _forward(bench, scale, f"forward, simulated, {short}", short.pipeline()),
        _forward(
            bench, scale, f"forward, from a file, {short}", short.pipeline_over(bench.zarr(short))
        ),
        _forward(
            bench,
            scale.long_runs,
            f"forward, from a file, {long}",
            long.pipeline_over(bench.zarr(long)),
        ),
    ]


def _forward(bench: Bench, scale: Scale, name: str, pipeline: Pipeline) -> Row:
    measured = in_lasting_workspaces(bench, scale, pipeline, run, run_plainly)
    sides = running(bench, pipeline), running(bench, pipeline, run_plainly)
    facts = (("the same minima and tracks on both sides", _same_tables(bench, *sides)),)
    return Row(name, Aim("<=", 1.02), measured, facts)


def in_lasting_workspaces(
    bench: Bench, scale: Scale, pipeline: Pipeline, ours: Run, peer: Run
) -> Measured:
    """Two ways to run a pipeline, each again and again in a workspace of its own."""
    with bench.scratch() as mine, bench.scratch() as theirs:
        first, second = Workspace.create(mine), Workspace.create(theirs)
        return _in_turns(
            bench,
            scale.close,
            scale.warm_runs,
            lambda _: ours(pipeline, first, bench.spark),
            lambda _: peer(pipeline, second, bench.spark),
        )


def _same_tables(bench: Bench, *sides: Side) -> bool:
    """Whether all sides write the same rows, in the same files."""
    found = []
    for side in sides:
        with bench.scratch() as folder:
            side(folder)
            files = sorted(folder.glob("datasets/*/v1/table/*.parquet"))
            found.append({str(f.relative_to(folder)): pq.read_table(f) for f in files})
    return bool(found[0]) and all(each == found[0] for each in found[1:])


def again(bench: Bench, scale: Scale) -> list[Row]:
    """Tracing one point against running the whole pipeline again."""
    return [
        _again(bench, scale.demo, scale.runs, scale.warm_runs),
        _again(bench, scale.long, 1, 0),
    ]


def _again(bench: Bench, size: Size, turns: int, warm: int) -> Row:
    one = tracing(bench, bench.workspace(size))
    one(bench.folder)
    measured = _in_turns(bench, turns, warm, one, running(bench, size.pipeline()))
    return Row(f"re-run, {size.days:g} days", Aim(">=", 250), measured, notes=(str(size),))


def storm_tracker(bench: Bench, scale: Scale) -> list[Row]:
    """Minima and tracks of a field that exists, against PyStormTracker on the same field."""
    return [_beside_storm_tracker(bench, scale, size) for size in scale.fields]


def _beside_storm_tracker(bench: Bench, scale: Scale, size: Size) -> Row:
    name, aim = f"PyStormTracker, {size}", Aim("<=", 1.5)
    if not storms.installed():
        return Row(name, aim, None, missing="not installed")
    zarr, netcdf = bench.zarr(size), bench.netcdf(size)
    peer = storms.fastest([netcdf, zarr], bench.spark.sparkContext.defaultParallelism)
    ours = running(bench, size.pipeline_over(zarr))
    measured = _in_turns(bench, scale.runs, scale.warm_runs, ours, lambda _: peer.track())
    return Row(name, aim, measured, notes=(f"{peer}; ours on Zarr",))


def empty_job(bench: Bench, scale: Scale) -> list[Row]:
    """From click to verified cells, against an empty Spark job for each of its stages."""
    workspace = bench.workspace(scale.demo)
    jobs = jobs_of(bench, workspace)

    def empty(folder: Path) -> object:
        return [nothing(bench.spark) for _ in range(jobs)]

    measured = _in_turns(bench, scale.turns, scale.warm, tracing(bench, workspace), empty)
    note = f"{jobs} of one task, a mapInArrow that passes one row on, as the trace has {jobs}"
    return [Row("empty job", Aim("<=", 2), measured, notes=(note,))]


def jobs_of(bench: Bench, workspace: Workspace) -> int:
    """How many Spark jobs it takes to trace a track point."""
    return trace(workspace, "tracks", early_point(workspace), spark=bench.spark).spark["jobs"]


def nothing(spark: SparkSession) -> object:
    """The least that a Spark job with Python in it can do."""
    return spark.range(0, 1, 1, 1).mapInArrow(lambda batches: batches, "id long").toArrow()


def tracing(bench: Bench, workspace: Workspace, where: str | None = "") -> Side:
    """A side that traces track points: an early one, those of a predicate, or (None) all."""
    chosen = early_point(workspace) if where == "" else where
    return lambda _: trace(workspace, "tracks", chosen, spark=bench.spark)


def running(bench: Bench, pipeline: Pipeline, run: Run = run) -> Side:
    """A side that runs a pipeline into a workspace of its own."""
    return lambda folder: run(pipeline, Workspace.create(folder), bench.spark)


def _in_turns(bench: Bench, turns: int, warm: int, ours: Side, peer: Side) -> Measured:
    with bench.scratch() as folder:
        return side_by_side(ours, peer, turns, warm, folder)


BENCHMARKS: dict[str, Callable[[Bench, Scale], list[Row]]] = {
    "all points": all_points,
    "100x time": longer_time,
    "forward": forward,
    "re-run": again,
    "PyStormTracker": storm_tracker,
    "empty job": empty_job,
}
