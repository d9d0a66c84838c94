"""What a run writes is summed while it is written, and tells what was made alike from the rest."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from pyspark.sql import SparkSession

from pipelines.catalog import nodes
from pipelines.datasets import Dataset
from pipelines.fingerprints import content
from pipelines.history import History
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace

TEXT = """
name: x
boxes:
  sky: {{box: simulate_agcm, keep: {keep}, params: {{resolution: 15, days: 2, chunk: 3{more}}}}}
  lows: {{box: extract_minima, inputs: {{field: sky}}, params: {{margin: {margin}}}}}
"""


def made(
    home: Path, spark: SparkSession, margin: int = 500, keep: str = "true", more: str = ""
) -> dict[str, Dataset]:
    text = TEXT.format(margin=margin, keep=keep, more=more)
    return run(Pipeline.from_text(text), Workspace.create(home), spark)


def sums(*given: dict[str, Dataset]) -> list[tuple[str, str]]:
    return [(content(each["sky"]), content(each["lows"])) for each in given]


def test_what_is_made_again_has_the_same_sum_and_what_is_made_otherwise_has_not(
    tmp_path: Path, spark: SparkSession
) -> None:
    first, again = made(tmp_path, spark), made(tmp_path, spark)
    assert [d.version for d in (*first.values(), *again.values())] == ["v1", "v1", "v2", "v2"]
    other_weather, other_rule = made(tmp_path, spark, more=", seed: 1"), made(tmp_path, spark, 700)
    one, two, three, four = sums(first, again, other_weather, other_rule)
    assert one == two
    assert one[0] != three[0] and one[1] != three[1]
    assert one[0] == four[0] and one[1] != four[1]
    assert sums(made(tmp_path, spark, keep="false")) == [one]


def test_the_journal_has_the_sum_that_the_version_itself_tells(
    tmp_path: Path, spark: SparkSession
) -> None:
    made(tmp_path, spark)
    workspace = Workspace(tmp_path)
    history = History.as_it_is(workspace)
    assert history is not None
    named = sa.select(nodes.c.name, nodes.c.fingerprint).where(nodes.c.kind == "dataset")
    with history.catalog.reading() as connection:
        found = {row.name: row.fingerprint for row in connection.execute(named)}
    assert found == {d.name: d.checksum for d in workspace.datasets()}
    assert all(len(each) == 32 for each in found.values())
