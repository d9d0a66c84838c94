"""A small pipeline for every box there is, over one field and one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr
import yaml

from inverses.registry import Registry
from pipelines.arrays import coordinate
from pipelines.boxes.box import Box
from pipelines.columns import listed
from pipelines.datasets import Location, Pressure, Table
from pipelines.pipeline import Pipeline
from pipelines.tables import column, matching
from pipelines.workspace import Workspace

SHAPE, CHUNKS = (48, 37, 72), (12, 37, 72)
PART = 0.07  # of what a box made
Asked = Callable[[Workspace], str | None]


def pipelines_of_every_box(home: Path) -> Iterator[tuple[str, Pipeline, Asked]]:
    """The name of each box, a pipeline that ends with it, and what to ask of what it made."""
    field, rows = smooth_field(home / "field.zarr"), _rows(home / "rows.parquet")
    for name, box in Registry.of().boxes.items():
        if box.takes:
            yield name, Pipeline.from_text(_text(box, field, rows)), asked


SHARED = "a, b, c"  # no column of these tells few rows apart, nor are they in any order
NASTY: dict[str, dict[str, object]] = {
    "top_n": {"by": "x", "n": 20_000},
    "rank": {"by": "x"},
    "aggregate": {"keys": SHARED, "what": "x:max, y:mean"},
    "project": {"columns": SHARED},
    "grid_rows": {"how": "mean", "of": "x", "time": "", "resolution": 0.5},
}


def pipelines_over_a_large_table(home: Path, count: int) -> Iterator[tuple[str, Pipeline]]:
    """Boxes over rows in no order, of which very many share others or may be anywhere."""
    chance = np.random.default_rng(2)
    rows = {n: chance.integers(0, 60, count) for n in listed(SHARED)}
    rows |= {n: chance.normal(0, 1, count) for n in ("x", "y")}
    rows |= {"lat": chance.uniform(-90, 90, count), "lon": chance.uniform(0, 360, count)}
    path = home / "large.parquet"
    pq.write_table(pa.table(rows), path, row_group_size=2048)
    for name, params in NASTY.items():
        made = {"box": name, "inputs": {"rows": "rows"}, "params": params}
        sources = {"rows": {"path": str(path), "kind": "table"}}
        text = yaml.safe_dump({"name": "large", "sources": sources, "boxes": {"made": made}})
        yield name, Pipeline.from_text(text)


UNKEPT = {
    "arrays": """
  smooth: {box: window_mean, inputs: {field: field}, keep: false}
  calm: {box: rolling_mean, inputs: {field: smooth}, params: {window: 3}, keep: false}
  steep: {box: window_extreme, inputs: {field: calm}, keep: false}
  made: {box: extract_above, inputs: {field: steep}, params: {variable: a, threshold: 1.0}}
""",
    "tables": """
  twice: {box: map_rows, inputs: {rows: rows}, params: {column: z, formula: x + y}, keep: false}
  few: {box: filter_rows, inputs: {rows: twice}, params: {where: z > 1}, keep: false}
  first: {box: rank, inputs: {rows: few}, params: {by: z, keys: k}, keep: false}
  made: {box: filter_rows, inputs: {rows: first}, params: {where: rank <= 3}}
""",
}


def pipelines_that_keep_nothing_between(home: Path) -> Iterator[tuple[str, Pipeline, Asked]]:
    """Boxes one after the other, over arrays or tables, of which only the last one's is kept."""
    field, rows = smooth_field(home / "field.zarr"), _rows(home / "rows.parquet")
    sources = {"field": {"path": str(field)}, "rows": {"path": str(rows), "kind": "table"}}
    for name, boxes in UNKEPT.items():
        text = yaml.safe_dump({"name": "unkept", "sources": sources})
        yield name, Pipeline.from_text(f"{text}boxes:{boxes}"), asked


def asked(workspace: Workspace) -> str | None:
    """One datum in the middle of what was made."""
    made = workspace.dataset("made")
    if isinstance(made, Table):
        return one_row(made)
    middle = {d: coordinate(made, d)[n // 2] for d, n in made.size.items()}
    return " and ".join(f"{d} = {_literal(v)}" for d, v in middle.items())


def a_part(workspace: Workspace) -> str | None:
    """Data around the middle of what was made, about as many as are still asked one by one."""
    made = workspace.dataset("made")
    if isinstance(made, Table):
        rows = matching(made, None)
        columns = {n: column(rows, n) for n in rows.column_names}
        told = [n for n, c in columns.items() if c.dtype.kind in "if" and len(np.unique(c)) > 3]
        return _middle(told[0], columns[told[0]], PART) if told else None
    each = PART ** (1 / len(made.dims))
    return " and ".join(_middle(d, coordinate(made, d), each) for d in made.dims)


def _middle(name: str, values: np.ndarray, share: float) -> str:
    """A predicate for the middle share of some values."""
    count = max(1, round(len(values) * share))
    first = (len(values) - count) // 2
    part = np.sort(values)[first : first + count]
    return f"{name} between {_literal(part[0])} and {_literal(part[-1])}"


def one_row(table: Table) -> str | None:
    """A predicate for one row in the middle of a table, by its whole numbers and words."""
    rows = matching(table, None)
    if not rows.num_rows:
        return None
    row: dict[str, Any] = rows.slice(rows.num_rows // 2, 1).to_pylist()[0]
    told = {n: v for n, v in row.items() if column(rows, n).dtype.kind in "iO" and v == v}
    some = told or {n: v for n, v in row.items() if isinstance(v, float) and v == v}
    words = [f"{n} = {v!r}" for n, v in some.items()]
    return " and ".join(words) or None


def _literal(value: object) -> str:
    if isinstance(value, np.datetime64):
        return f"'{value.astype('datetime64[us]')}'"
    return f"{value}"


def _text(box: type[Box], field: Path, rows: Path) -> str:
    """The pipeline, with sources and boxes that it needs and no others."""
    of_air = any(Pressure in p.needs for p in box.takes)
    places = any(Location in p.needs for p in box.takes)
    kinds = {p.kind for p in box.takes if Location not in p.needs}
    sources: dict[str, object] = {}
    if "array" in kinds or places:
        sources["field"] = {"path": str(field)}
    if "table" in kinds:
        sources["rows"] = {"path": str(rows), "kind": "table"}
    boxes: dict[str, object] = {}
    if places:
        boxes["places"] = {"box": "extract_minima", "inputs": {"field": "field"}}
    if any(p.name == "tracks" for p in box.takes):
        boxes["tracked"] = {"box": "identify_tracks", "inputs": {"minima": "places"},
                            "params": {"min_points": 2}}  # fmt: skip
    inputs = {p.name: _given(p.kind, Location in p.needs, p.name, boxes) for p in box.takes}
    params = {} if of_air or places else dict(box.examples[0])
    boxes["made"] = {"box": box.name, "inputs": inputs, "params": params}
    return yaml.safe_dump({"name": "every", "sources": sources, "boxes": boxes})


def _given(kind: str, places: bool, port: str, boxes: dict[str, object]) -> str:
    if places:
        return "tracked" if port == "tracks" and "tracked" in boxes else "places"
    return "field" if kind == "array" else "rows"


def smooth_field(
    path: Path, shape: tuple[int, int, int] = SHAPE, chunks: tuple[int, int, int] = CHUNKS
) -> Path:
    """A field of three variables round the globe, written to a path."""
    chance = np.random.default_rng(0)
    t, y, x = shape
    coordinates = {
        "time": np.datetime64("2000-01-01", "ns") + np.arange(t) * np.timedelta64(6, "h"),
        "lat": ("lat", np.linspace(90, -90, y), {"standard_name": "latitude"}),
        "lon": ("lon", np.arange(x) * 360 / x, {"standard_name": "longitude"}),
    }
    dims = ("time", "lat", "lon")
    smooth = chance.normal(0, 1, shape).cumsum(axis=2) / np.sqrt(x)
    data = xr.Dataset({n: (dims, smooth * s) for n, s in (("a", 1.0), ("b", -0.5))}, coordinates)
    pressure = {"standard_name": "air_pressure_at_mean_sea_level", "units": "Pa"}
    data["slp"] = (dims, 100_000 + 500 * smooth, pressure)
    data.to_zarr(path, encoding={v: {"chunks": chunks} for v in data}, consolidated=False)
    return path


def _rows(path: Path) -> Path:
    chance = np.random.default_rng(1)
    count = 20_000
    rows = pa.table(
        {
            "k": np.sort(chance.integers(0, 200, count)),
            "s": chance.choice(["p", "q"], count),
            "x": chance.normal(0, 1, count).round(6),
            "y": chance.normal(0, 1, count).round(6),
        }
    )
    pq.write_table(rows, path, row_group_size=2048)
    return path
