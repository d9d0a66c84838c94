"""What the library's boxes cost to trace: beside capturing every edge, and beside running again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from inverses.trace import trace
from pipelines.arrays import coordinate
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.speed.benchmarks import Scale
from tests.speed.edges import (
    LOW,
    Edges,
    array_of,
    coarser,
    columns,
    corners,
    groups,
    neighbours,
    of_field,
    regions,
    storms,
    written,
)
from tests.speed.every import (
    Asked,
    a_part,
    pipelines_of_every_box,
    pipelines_over_a_large_table,
    pipelines_that_keep_nothing_between,
)
from tests.speed.fields import Bench
from tests.speed.rows import Aim, Row
from tests.speed.sides import Measured, side_by_side

Pipelines = Callable[[Path], Iterator[tuple[str, Pipeline, Asked]]]
FEW = 5  # turns of what takes long
LARGE = 200_000  # rows
SMALLER = Aim("<=", 0.001)


@dataclass(frozen=True, slots=True)
class Subject:
    """One box over the weather, and which of its outputs came from which inputs.

    Edges are those of the box alone, or of all that were `captured`, where it is one of several.
    """

    name: str
    box: str
    edges: Callable[[Workspace], Edges]
    where: str
    before: str = ""
    captured: tuple[str, ...] = ("made",)

    def pipeline(self, field: Path) -> Pipeline:
        return Pipeline.from_text(
            f'name: library\nsources: {{field: {{path: "{field}"}}}}\n'
            f"boxes:\n{self.before}  made: {{{self.box}}}\n"
        )


MINIMA = "  minima: {box: extract_minima, inputs: {field: field}}\n"
SUBJECTS = (
    Subject("window", "box: window_mean, inputs: {field: field}", of_field(neighbours),
            "time = '2000-01-02' and lat = 40 and lon = 100"),
    Subject("label", f"box: label, inputs: {{field: field}}, "
            f"params: {{variable: slp, threshold: {LOW}, side: below}}", of_field(regions),
            "time = '2000-01-02' and lat = 60 and lon = 180"),
    Subject("resample", "box: resample_mean, inputs: {field: field}, params: {every: 4}",
            of_field(coarser), "lat = 40 and lon = 100"),
    Subject("reduce", "box: reduce, inputs: {field: field}, params: {over: time}",
            of_field(columns), "lat = 40 and lon = 100"),
    Subject("regrid", "box: regrid, inputs: {field: field}, params: {resolution: 5.0}",
            corners, "time = '2000-01-02' and lat between 41 and 44 and lon between 101 and 104"),
    Subject("aggregate", "box: aggregate, inputs: {rows: minima}, "
            "params: {keys: time_index, what: 'pressure:mean'}", groups, "time_index = 40",
            before=MINIMA),
    Subject("cyclones", "box: identify_tracks, inputs: {minima: minima}", storms,
            "time_index = 40", before=MINIMA, captured=("minima", "made")),
)  # fmt: skip


def eager(bench: Bench, scale: Scale) -> list[Row]:
    """Forward time and storage against writing down every edge, sorted and compressed."""
    return [row for subject in SUBJECTS for row in _eager(bench, scale, subject)]


def _eager(bench: Bench, scale: Scale, subject: Subject) -> list[Row]:
    field = bench.zarr(scale.demo)
    pipeline = subject.pipeline(field)
    kept: list[int] = []

    def plainly(folder: Path) -> object:
        return run(pipeline, Workspace.create(folder), bench.spark)

    def capturing(folder: Path) -> object:
        workspace = Workspace.create(folder)
        run(pipeline, workspace, bench.spark)
        kept.append(written(subject.edges(workspace), folder / "edges.parquet"))
        return kept[-1]

    turns = min(FEW, scale.turns)
    with bench.scratch() as folder:
        measured = side_by_side(plainly, capturing, turns, scale.warm_runs, folder)
    ours = _described(bench, subject, pipeline)
    stored = Measured((float(ours),), (float(kept[-1]),))
    note = f"{ours:,} bytes say how it was made; {kept[-1]:,} bytes hold the edges"
    return [
        Row(f"forward against edges, {subject.name}", Aim("<=", 1), measured),
        Row(f"storage against edges, {subject.name}", SMALLER, stored, (), (note,), unit="bytes"),
    ]


def _described(bench: Bench, subject: Subject, pipeline: Pipeline) -> int:
    """The bytes that say how what has edges was made."""
    with bench.scratch() as folder:
        workspace = Workspace.create(folder / "w")
        run(pipeline, workspace, bench.spark)
        made = [workspace.path / f"datasets/{name}/v1" for name in subject.captured]
        return sum((each / "dataset.json").stat().st_size for each in made)


def again(bench: Bench, scale: Scale) -> list[Row]:
    """Tracing one datum of each against running its pipeline again."""
    return [_again(bench, scale, subject) for subject in SUBJECTS]


def _again(bench: Bench, scale: Scale, subject: Subject) -> Row:
    pipeline = subject.pipeline(bench.zarr(scale.demo))
    with bench.scratch() as home, bench.scratch() as folder:
        workspace = Workspace.create(home / "w")
        run(pipeline, workspace, bench.spark)
        where = _first(workspace, subject.where)
        measured = side_by_side(
            lambda _: trace(workspace, "made", where, spark=bench.spark),
            lambda each: run(pipeline, Workspace.create(each), bench.spark),
            min(FEW, scale.turns),
            scale.warm_runs,
            folder,
        )
    return Row(f"trace against re-run, {subject.name}", Aim("<=", 2), measured)


def _first(workspace: Workspace, where: str) -> str:
    """A predicate that selects one cell, whatever times the array has."""
    if "time" in where:
        return where
    first = coordinate(array_of(workspace, "made"), "time")[0].astype("datetime64[us]")
    return f"{where} and time = '{first}'"


def worst(bench: Bench, scale: Scale) -> list[Row]:
    """The dearest traces of one datum, of a part and of all, against running boxes again."""
    kept = _worst(bench, pipelines_of_every_box)
    unkept = _worst(bench, pipelines_that_keep_nothing_between, ", nothing kept between")
    return [*kept, *unkept, _of_large_table(bench)]


def _worst(bench: Bench, pipelines: Pipelines, how: str = "") -> Iterator[Row]:
    """The dearest trace through some pipelines of one datum, of a part and of all."""
    found: dict[str, dict[str, Measured]] = defaultdict(dict)
    with bench.scratch() as home, bench.scratch() as folder:
        for name, pipeline, asked in pipelines(home):
            workspace = Workspace.create(home / name)
            run(pipeline, workspace, bench.spark)
            for of, where in _selections(workspace, asked):
                found[of][name] = _compared(bench, pipeline, workspace, where, folder)
    return (_dearest(of + how, each) for of, each in found.items())


def _selections(workspace: Workspace, asked: Asked) -> Iterator[tuple[str, str | None]]:
    """What to ask of what a box made, if it made anything: a predicate, or none for all."""
    one, part = asked(workspace), a_part(workspace)
    if one is not None:
        yield "one datum", one
        yield "all of it", None
    if part is not None:
        yield "a part of it", part


def _of_large_table(bench: Bench) -> Row:
    """The dearest trace of all that boxes over a large table made, against running them again."""
    found: dict[str, Measured] = {}
    with bench.scratch() as home, bench.scratch() as folder:
        for name, pipeline in pipelines_over_a_large_table(home, LARGE):
            workspace = Workspace.create(home / name)
            run(pipeline, workspace, bench.spark)
            found[name] = _compared(bench, pipeline, workspace, None, folder)
    return _dearest("all of a large table", found)


def _dearest(of: str, found: Mapping[str, Measured]) -> Row:
    slowest = max(found, key=lambda name: found[name].ratio)
    listed = ", ".join(f"{name} {m.ratio:.2g}x" for name, m in found.items())
    notes = (f"{slowest} is the slowest of {len(found)}", listed)
    return Row(f"worst trace, {of}, against re-run", Aim("<=", 2), found[slowest], notes=notes)


def _compared(
    bench: Bench, pipeline: Pipeline, workspace: Workspace, where: str | None, folder: Path
) -> Measured:
    def tracing(_: Path) -> object:
        return trace(workspace, "made", where, spark=bench.spark)

    def running(each: Path) -> object:
        return run(pipeline, Workspace.create(each), bench.spark)

    return side_by_side(tracing, running, FEW - 2, 1, folder)


BENCHMARKS = {"eager edges": eager, "library": again, "worst": worst}
