"""The demo: simulated weather, its cyclone tracks, and the question that one of them begs."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.trace import trace
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


def demo(
    workspace: Workspace, spark: SparkSession, progress: Progress | None = None
) -> tuple[Answer, str]:
    """Run the cyclone pipeline, and trace the strangest point of its tracks."""
    run(Pipeline.from_file(asset("cyclones.yaml")), workspace, spark, progress)
    where = strangest(workspace)
    return trace(workspace, "tracks", where, spark=spark, progress=progress), where


def strangest(workspace: Workspace) -> str:
    """The predicate that selects the track point of lowest pressure."""
    minima, tracks = workspace.dataset("minima"), workspace.dataset("tracks")
    place = ["time_index", "lat_index", "lon_index"]
    points = matching(tracks, None).join(matching(minima, None), place, right_suffix=" of minimum")  # type: ignore[arg-type]
    deepest = points.take([pc.index(points["pressure"], pc.min(points["pressure"])).as_py()])
    row = deepest.to_pylist()[0]
    return f"track = {row['track']} and time = '{row['time']}'"
