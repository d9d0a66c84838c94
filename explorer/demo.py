"""The demo: simulated weather, its cyclone tracks, and the point of them that cannot be."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.spark import Progress
from pipelines.tables import matching
from pipelines.workspace import Workspace


def asset(name: str) -> Path:
    """A file that comes with Whence: beside this package when installed, else in the checkout."""
    here = Path(__file__).parent
    installed = here / "assets" / name
    return installed if installed.exists() else here.parent / "assets" / name


def demo(workspace: Workspace, spark: SparkSession, progress: Progress | None = None) -> None:
    """Run the cyclone pipeline, unless its tracks are there already."""
    if "tracks" not in workspace.names():
        run(Pipeline.from_file(asset("cyclones.yaml")), workspace, spark, progress)


def strangest(workspace: Workspace) -> str:
    """The predicate that selects the track point of lowest pressure."""
    minima, tracks = workspace.dataset("minima"), workspace.dataset("tracks")
    place = ["time_index", "lat_index", "lon_index"]
    points = matching(tracks, None).join(matching(minima, None), place, right_suffix=" of minimum")  # type: ignore[arg-type]
    deepest = points.take([pc.index(points["pressure"], pc.min(points["pressure"])).as_py()])
    row = deepest.to_pylist()[0]
    return f"track = {row['track']} and time = '{row['time']}'"
