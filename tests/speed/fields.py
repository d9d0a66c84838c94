"""What is measured on: simulated weather of a given size, as a workspace and as a file."""

from __future__ import annotations

import hashlib
import inspect
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pyarrow.compute as pc
import xarray as xr
from pyspark.sql import SparkSession

from pipelines import linking, minima, weather
from pipelines.boxes import cyclones
from pipelines.datasets import Table
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.tables import matching
from pipelines.workspace import Workspace

STEPS = """
  minima: {{box: extract_minima, inputs: {{field: agcm}}, params: {{margin: {0.margin}}}}}
  tracks: {{box: identify_tracks, inputs: {{minima: minima}}}}
"""
SIMULATED = """
name: cyclones
boxes:
  agcm: {{box: simulate_agcm, params: {{{0.weather}}}}}"""
FROM_FILE = """
name: cyclones
sources: {{agcm: {{path: "{1}"}}}}
boxes:"""


@dataclass(frozen=True, slots=True)
class Size:
    """How much weather, how fine, and how readily a cell of it is called a minimum."""

    resolution: float = 2.5
    days: float = 60.0
    margin: float = 1000.0

    @property
    def weather(self) -> str:
        """The parameters of the simulation; only from 60 days on are faults where they stay."""
        faults = str(self.days >= 60).lower()
        return f"resolution: {self.resolution}, days: {self.days}, defects: {faults}"

    @property
    def name(self) -> str:
        """What files of this size are called; another name once the rules have changed."""
        return f"{self.resolution:g}-{self.days:g}-{self.margin:g}-{_rules()}"

    def __str__(self) -> str:
        return f"{self.days:g} days at {self.resolution:g} degrees"

    def longer(self, times: float) -> Size:
        """The same weather, going on."""
        return replace(self, days=self.days * times)

    def pipeline(self) -> Pipeline:
        """Simulate the field, find its minima, form the tracks."""
        return Pipeline.from_text((SIMULATED + STEPS).format(self))

    def pipeline_over(self, file: Path) -> Pipeline:
        """Find the minima of a field that exists, form the tracks."""
        return Pipeline.from_text((FROM_FILE + STEPS).format(self, file))


@cache
def _rules() -> str:
    """A short sum of the code that makes weather, minima and tracks."""
    code = "".join(inspect.getsource(module) for module in (weather, minima, linking, cyclones))
    return hashlib.sha256(code.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Bench:
    """Where to measure: a warm Spark, and a directory in which workspaces are kept."""

    spark: SparkSession
    folder: Path

    def workspace(self, size: Size) -> Workspace:
        """A workspace with simulated weather and its tracks, made if it is not there yet."""
        return self._made("simulated", size, size.pipeline)

    def workspace_over_file(self, size: Size) -> Workspace:
        """A workspace with the tracks of the same weather, read from a file outside of it."""
        field = self.zarr(size)
        return self._made("from-file", size, lambda: size.pipeline_over(field))

    def _made(self, kind: str, size: Size, pipeline: Callable[[], Pipeline]) -> Workspace:
        workspace = Workspace.create(self.folder / f"{kind}-{size.name}")
        if "tracks" not in workspace.names():
            run(pipeline(), workspace, self.spark)
        return workspace

    def zarr(self, size: Size) -> Path:
        """The field of a size as a Zarr store."""
        return Path(self.workspace(size).dataset("agcm").path)

    def netcdf(self, size: Size) -> Path:
        """The field of a size as a NetCDF file, made if it is not there yet."""
        file = self.folder / f"{size.name}.nc"
        if not file.exists():
            partial = file.with_suffix(".partial")
            with xr.open_zarr(self.zarr(size), consolidated=False, chunks=None) as field:
                field.to_netcdf(partial)
            partial.rename(file)
        return file

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A directory for what need not be kept, on the same disk as what is."""
        with tempfile.TemporaryDirectory(dir=self.folder) as path:
            yield Path(path)


def early_point(workspace: Workspace) -> str:
    """The predicate that selects the eighth point of the first track."""
    found = workspace.dataset("tracks")
    assert isinstance(found, Table)
    rows = matching(found, None)
    one = rows.filter(pc.field("track") == pc.min(rows["track"])).sort_by("time_index")
    row = one.slice(7, 1).to_pylist()[0]
    return f"track = {row['track']} and time = '{row['time']}'"
