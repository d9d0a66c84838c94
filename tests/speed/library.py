"""What the library's boxes cost to trace: beside capturing every edge, and beside running again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import ndimage

from inverses.trace import trace
from pipelines.arrays import block, coordinate
from pipelines.datasets import Array, Table
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import column, matching
from pipelines.workspace import Workspace
from tests.speed.benchmarks import Scale
from tests.speed.every import (
    Asked,
    a_part,
    pipelines_of_every_box,
    pipelines_over_a_large_table,
)
from tests.speed.fields import Bench
from tests.speed.rows import Aim, Row
from tests.speed.sides import Measured, side_by_side

Edges = tuple[np.ndarray, np.ndarray]
FEW = 5  # turns of what takes long
LARGE = 200_000  # rows
SMALLER = Aim("<=", 0.001)


@dataclass(frozen=True, slots=True)
class Subject:
    """One box over the weather's pressure, and which of its outputs came from which inputs."""

    name: str
    box: str
    edges: Callable[[Workspace], Edges]
    where: str
    before: str = ""

    def pipeline(self, field: Path) -> Pipeline:
        return Pipeline.from_text(
            f'name: library\nsources: {{field: {{path: "{field}"}}}}\n'
            f"boxes:\n{self.before}  made: {{{self.box}}}\n"
        )


def _of_field(edges: Callable[[np.ndarray], Edges]) -> Callable[[Workspace], Edges]:
    """Edges that the values of the field tell."""
    return lambda workspace: edges(block(_array(workspace, "field"), "slp", {}))


def _array(workspace: Workspace, name: str) -> Array:
    return cast(Array, workspace.dataset(name))


def _neighbours(values: np.ndarray) -> Edges:
    """Every cell of a three by three window, by offsets; longitude wraps."""
    number = np.arange(values.size).reshape(values.shape)
    ends = []
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            rows = slice(max(-dy, 0), values.shape[1] - max(dy, 0))
            other = np.roll(number, -dx, axis=2)[:, max(dy, 0) :][:, : rows.stop - rows.start]
            ends.append((number[:, rows].ravel(), other.ravel()))
    return np.concatenate([a for a, _ in ends]), np.concatenate([b for _, b in ends])


def _regions(values: np.ndarray) -> Edges:
    """Each cell below the threshold, from its region and all next to it; others from themselves."""
    number = np.arange(values.size).reshape(values.shape)
    outs, ins = [], []
    for places, field in zip(number, values, strict=True):
        labels = _labels(field < LOW)
        outs.append(places[labels == 0])
        ins.append(places[labels == 0])
        for label in np.unique(labels[labels > 0]):
            cells, around = places[labels == label], places[_with_edge(labels == label)]
            outs.append(np.repeat(cells, len(around)))
            ins.append(np.tile(around, len(cells)))
    return np.concatenate(outs), np.concatenate(ins)


def _labels(inside: np.ndarray) -> np.ndarray:
    """Cells that hang together, across corners and round the circle too, by number."""
    labels, _ = ndimage.label(inside, np.ones((3, 3)))
    for y in range(len(labels)):
        for other in range(max(y - 1, 0), min(y + 2, len(labels))):
            one, joined = labels[y, 0], labels[other, -1]
            if one and joined:
                labels[labels == joined] = one
    return np.asarray(labels)


def _with_edge(inside: np.ndarray) -> np.ndarray:
    """A region and all cells next to it; longitude wraps."""
    round_ = np.pad(inside, ((0, 0), (1, 1)), mode="wrap")
    return np.asarray(ndimage.binary_dilation(round_, np.ones((3, 3)))[:, 1:-1])


def _coarser(values: np.ndarray) -> Edges:
    """Each cell of a day's mean, from the steps of that day."""
    number = np.arange(values.size).reshape(values.shape)
    days = np.arange(len(values)) // 4
    out = days[:, None, None] * values[0].size + number[0]
    return out.ravel(), number.ravel()


def _columns(values: np.ndarray) -> Edges:
    """Each place's mean, from all of its steps."""
    number = np.arange(values.size).reshape(values.shape)
    return np.broadcast_to(number[0], values.shape).ravel(), number.ravel()


def _corners(workspace: Workspace) -> Edges:
    """Each cell of another grid, from the four about its middle, in every step."""
    field, made = _array(workspace, "field"), _array(workspace, "made")
    lat, lon = (_about(coordinate(field, d), coordinate(made, d)) for d in ("lat", "lon"))
    steps, old, new = len(coordinate(field, "time")), field.shape[1:], made.shape[1:]
    out = np.arange(new[0] * new[1]).reshape(new)
    places = [(out, a[:, None] * old[1] + b[None, :]) for a in lat for b in lon]
    made_in = [np.add.outer(np.arange(steps) * out.size, o).ravel() for o, _ in places]
    used = [np.add.outer(np.arange(steps) * old[0] * old[1], i).ravel() for _, i in places]
    return np.concatenate(made_in), np.concatenate(used)


def _about(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two old places that are nearest to each new one."""
    order = np.argsort(abs(new[:, None] - old[None, :]), axis=1, kind="stable")
    return order[:, 0], order[:, 1]


def _groups(workspace: Workspace) -> Edges:
    """Each row of a table of groups, from the rows with its key."""
    keys = column(matching(cast(Table, workspace.dataset("minima")), None), "time_index")
    return np.unique(keys, return_inverse=True)[1], np.arange(len(keys))


LOW = 99_000.0
SUBJECTS = (
    Subject("window", "box: window_mean, inputs: {field: field}", _of_field(_neighbours),
            "time = '2000-01-02' and lat = 40 and lon = 100"),
    Subject("label", f"box: label, inputs: {{field: field}}, "
            f"params: {{variable: slp, threshold: {LOW}, side: below}}", _of_field(_regions),
            "time = '2000-01-02' and lat = 60 and lon = 180"),
    Subject("resample", "box: resample_mean, inputs: {field: field}, params: {every: 4}",
            _of_field(_coarser), "lat = 40 and lon = 100"),
    Subject("reduce", "box: reduce, inputs: {field: field}, params: {over: time}",
            _of_field(_columns), "lat = 40 and lon = 100"),
    Subject("regrid", "box: regrid, inputs: {field: field}, params: {resolution: 5.0}",
            _corners, "time = '2000-01-02' and lat between 41 and 44 and lon between 101 and 104"),
    Subject("aggregate", "box: aggregate, inputs: {rows: minima}, "
            "params: {keys: time_index, what: 'pressure:mean'}", _groups, "time_index = 40",
            before="  minima: {box: extract_minima, inputs: {field: field}}\n"),
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
        kept.append(_written(subject.edges(workspace), folder / "edges.parquet"))
        return kept[-1]

    turns = min(FEW, scale.turns)
    with bench.scratch() as folder:
        measured = side_by_side(plainly, capturing, turns, scale.warm_runs, folder)
    ours = _described(bench, pipeline)
    stored = Measured((float(ours),), (float(kept[-1]),))
    note = f"{ours:,} bytes say how it was made; {kept[-1]:,} bytes hold the edges"
    return [
        Row(f"forward against edges, {subject.name}", Aim("<=", 1), measured),
        Row(f"storage against edges, {subject.name}", SMALLER, stored, (), (note,), unit="bytes"),
    ]


def _written(edges: Edges, path: Path) -> int:
    """The bytes of edges in their best form: sorted, as differences, compressed."""
    order = np.lexsort(edges[::-1])
    rows = pa.table({"made": edges[0][order], "used": edges[1][order]})
    pq.write_table(
        rows,
        path,
        compression="zstd",
        use_dictionary=False,
        column_encoding={"made": "DELTA_BINARY_PACKED", "used": "DELTA_BINARY_PACKED"},
    )
    return path.stat().st_size


def _described(bench: Bench, pipeline: Pipeline) -> int:
    """The bytes that say how a dataset was made."""
    with bench.scratch() as folder:
        workspace = Workspace.create(folder / "w")
        run(pipeline, workspace, bench.spark)
        return (workspace.path / "datasets/made/v1/dataset.json").stat().st_size


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
    first = coordinate(_array(workspace, "made"), "time")[0].astype("datetime64[us]")
    return f"{where} and time = '{first}'"


def worst(bench: Bench, scale: Scale) -> list[Row]:
    """The dearest traces of one datum, of a part and of all, against running boxes again."""
    found: dict[str, dict[str, Measured]] = defaultdict(dict)
    with bench.scratch() as home, bench.scratch() as folder:
        for name, pipeline, asked in pipelines_of_every_box(home):
            workspace = Workspace.create(home / name)
            run(pipeline, workspace, bench.spark)
            for of, where in _selections(workspace, asked):
                found[of][name] = _compared(bench, pipeline, workspace, where, folder)
    return [*(_dearest(of, each) for of, each in found.items()), _of_large_table(bench)]


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
    notes = (f"{slowest} is the slowest of {len(found)} boxes", listed)
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
