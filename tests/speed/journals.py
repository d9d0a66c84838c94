"""What the journal costs a forward run: the same run with it and without."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from pipelines.datasets import Dataset
from pipelines.history import History
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.speed.benchmarks import Scale, in_lasting_workspaces
from tests.speed.fields import Bench
from tests.speed.rows import Aim, Row


@dataclass(slots=True)
class Forgotten:
    """A run that nobody writes down."""

    named: dict[str, Dataset]
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    made: dict[str, Dataset] = field(default_factory=dict)

    def begin(self) -> None:
        """There is nothing to be written."""

    def sources(self) -> dict[str, Dataset]:
        return self.named

    def add(self, name: str, dataset: Dataset) -> None:
        self.made[name] = dataset

    @classmethod
    @contextmanager
    def recorded(
        cls, _: Any, __: Any, ___: Any, sources: Callable[[], dict[str, Dataset]], part: str
    ) -> Iterator[Forgotten]:
        yield cls(sources())


def without_journal(
    pipeline: Pipeline, workspace: Workspace, spark: SparkSession
) -> Mapping[str, Dataset]:
    """The same run, but for its journal."""
    with patch("pipelines.run.History", Forgotten):
        return run(pipeline, workspace, spark)


def journal(bench: Bench, scale: Scale) -> list[Row]:
    """The forward run with its journal against the same without."""
    short, long = scale.demo, scale.demo.longer(10)
    return [
        _journal(bench, scale, f"journal, simulated, {short}", short.pipeline()),
        _journal(
            bench, scale, f"journal, from a file, {short}", short.pipeline_over(bench.zarr(short))
        ),
        _journal(
            bench,
            scale.long_runs,
            f"journal, from a file, {long}",
            long.pipeline_over(bench.zarr(long)),
        ),
    ]


def _journal(bench: Bench, scale: Scale, name: str, pipeline: Pipeline) -> Row:
    measured = in_lasting_workspaces(bench, scale, pipeline, run, without_journal)
    facts = (("with it every run is found again, without it none", _is_found(bench, pipeline)),)
    return Row(name, Aim("<=", 1.02), measured, facts)


def _is_found(bench: Bench, pipeline: Pipeline) -> bool:
    with bench.scratch() as folder:
        workspace = Workspace.create(folder)
        without_journal(pipeline, workspace, bench.spark)
        run(pipeline, workspace, bench.spark)
        return History.asked_of(workspace).runs()[1] == 1
