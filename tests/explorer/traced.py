"""A trace over a small file, and how plain xarray sees what was exported of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import xarray as xr
import zarr
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.trace import trace
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.files import AT_THE_SEAM, Layout, at, pipeline_over

SUFFIXES = (".csv", ".parquet", ".nc", ".zarr", ".zarr.zip", ".whence.zip")
BOXES = (".nc", ".zarr", ".zarr.zip")


@dataclass(frozen=True)
class Traced:
    """A file, the workspace of a run over it, and where its seam's lowest cell came from."""

    layout: Layout
    path: Path
    workspace: Workspace
    answer: Answer


def traced(layout: Layout, folder: Path, spark: SparkSession, absolute: bool = False) -> Traced:
    path = layout.at(folder)
    workspace = Workspace.create(folder / "workspace")
    pipeline = pipeline_over(path, only_minima=True, variables=dict(layout.variables))
    if absolute:
        pipeline = Pipeline.from_text(pipeline.text.replace(path.name, str(path)))
    run(pipeline, workspace, spark)
    answer = trace(workspace, "minima", at(AT_THE_SEAM), ["all"], spark=spark)
    return Traced(layout, path, workspace, answer)


def plainly(path: Path) -> xr.Dataset:
    """A file as plain xarray has it."""
    if path.suffix == ".zip":
        with zarr.storage.ZipStore(path, mode="r") as store, xr.open_zarr(store) as data:
            return data.load()
    with xr.open_zarr(path) if path.suffix == ".zarr" else xr.open_dataset(path) as data:
        return data.load()
