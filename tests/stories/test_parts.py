"""At the command line a part is run alone, and cells are followed to what they led to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipelines.datasets import Table
from pipelines.tables import column, matching
from pipelines.workspace import Workspace
from tests.stories.asked import Ask

OVER = """
name: over
sources: {{field: {{path: "{}"}}}}
boxes:
  minima: {{box: extract_minima, inputs: {{field: field}}}}
"""
ONLY = "minima: time = '2000-01-02' and lat > 0"
CELLS = ("--where", "time = '2000-01-03' and lat between 30 and 60 and lon < 90")


def test_a_run_of_a_part_publishes_the_rows_that_were_asked_for(
    ask: Ask, little: Workspace, tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "over.yaml").write_text(OVER.format(little.dataset("agcm").path))
    said = ask("run", tmp_path / "over.yaml", "-w", tmp_path / "part", "--only", ONLY)
    assert (said.code, said.err) == (0, "") and "minima v1, " in said.out
    part = matching(_table(Workspace(tmp_path / "part"), "minima"), None)
    whole = matching(_table(little, "minima"), None)
    kept = (column(whole, "time_index") == 4) & (column(whole, "lat") > 0)
    assert part.num_rows == kept.sum() > 0


def _table(workspace: Workspace, name: str) -> Table:
    found = workspace.dataset(name)
    assert isinstance(found, Table)
    return found


@pytest.fixture
def alone(copied: Workspace) -> Workspace:
    """The workspace without what a box made that nobody here knows."""
    shutil.rmtree(copied.path / "datasets" / "mine")
    return copied


def test_impact_says_what_was_derived_and_of_which_attributes(
    ask: Ask, alone: Workspace, spark: SparkSession
) -> None:
    said = ask("impact", "agcm", *CELLS, "-w", alone.path)
    assert (said.code, said.err) == (0, "")
    head, minima, tracks = said.out.splitlines()
    assert head.endswith("of agcm had a part in:")
    assert minima.startswith("  minima: ") and "(complete and pure of time, location," in minima
    assert tracks.startswith("  tracks: ") and "(complete of time, location, track)" in tracks


def test_impact_is_narrowed_to_the_attributes_named(
    ask: Ask, alone: Workspace, spark: SparkSession
) -> None:
    named = ("--attribute", "location", "--attribute", "time")
    found = json.loads(ask("impact", "agcm", *CELLS, *named, "--json", "-w", alone.path).out)
    assert {n: each["attributes"] for n, each in found["impact"].items()} == {
        "minima": ["time", "location"],
        "tracks": ["time", "location"],
    }
    assert found["impact"]["tracks"]["guarantee"] == ["complete", "pure"]
