"""A small workspace, a copy of it to be damaged, and a command to ask with."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from explorer.cli import main
from inverses.ancestry import Ancestry
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.stories.asked import LITTLE, Ask, Said


@pytest.fixture(scope="module")
def little(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A small workspace, one of whose datasets was made by a box from somebody's own module."""
    workspace = Workspace.create(tmp_path_factory.mktemp("wrong"))
    made = run(Pipeline.from_text(LITTLE), workspace, spark)
    minima = made["minima"]
    assert minima.made is not None
    with workspace.staged("mine") as stage:
        shutil.copytree(minima.path, stage / "table")
        how = replace(minima.made, box="own_minima")
        workspace.publish(stage, replace(minima, name="mine", path="table", made=how))
    Ancestry.of(workspace).ancestors("minima")  # The first question writes the index.
    return workspace


@pytest.fixture
def copied(little: Workspace, tmp_path: Path) -> Workspace:
    """A copy of it, to be damaged."""
    return Workspace(shutil.copytree(little.path, tmp_path / "copied"))


@pytest.fixture
def ask(capfd: pytest.CaptureFixture[str]) -> Ask:
    """Run a command in this process."""

    def asked(*arguments: str | Path) -> Said:
        capfd.readouterr()
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as left:
            code = int(left.code or 0)
        return Said(code, *capfd.readouterr())

    return asked
