"""Only what was truly made from a dataset is looked at to say what was derived from it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from inverses.impact import impact
from inverses.planner import behind
from inverses.true_descendants import true_descendants
from pipelines.errors import SourceChanged
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.runs import publish, ran

HERE = cast(SparkSession, Here(1))
FIELD = "{box: simulate_agcm, params: {days: 1.0, resolution: 15.0, seed: SEED}}"


@pytest.fixture
def here(tmp_path: Path, catalog_url: str) -> Workspace:
    workspace = Workspace.create(tmp_path / "w", catalog_url)
    publish(workspace, "field", None, "one")
    ran(workspace, {"a": ["field"], "b": ["a"], "other": ["field"], "c": ["a", "b"]})
    return workspace


def made_of(workspace: Workspace, name: str) -> set[str]:
    return {each.name for each in true_descendants(workspace, workspace.dataset(name))}


def test_what_was_made_from_a_dataset_at_any_remove_descends_from_it(here: Workspace) -> None:
    assert made_of(here, "field") == {"a", "b", "other", "c"}
    assert made_of(here, "a") == {"b", "c"}
    assert not made_of(here, "c")


def test_what_was_made_from_another_of_the_same_number_does_not_descend(here: Workspace) -> None:
    shutil.rmtree(here.path / "datasets" / "b")
    ran(here, {"b": []})
    assert here.dataset("b").version == "v1"
    assert not made_of(here, "b")
    assert made_of(here, "a") == {"c"}


def test_without_a_history_datasets_say_themselves_what_they_descend_from(here: Workspace) -> None:
    mute = Workspace(here.path, "postgresql+psycopg://nobody@127.0.0.1:1/nowhere")
    assert made_of(mute, "a") == {"b", "c"}


def test_unrelated_data_that_have_changed_do_not_matter(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "w")
    lows = [f"lows{n}: {{box: extract_minima, inputs: {{field: field{n}}}}}" for n in (1, 2)]
    fields = [f"field{n}: {FIELD.replace('SEED', str(n))}" for n in (1, 2)]
    _run(workspace, *fields, *lows)
    shutil.rmtree(workspace.path / "datasets" / "field2")
    _run(workspace, f"field2: {FIELD.replace('SEED', '3')}")
    with pytest.raises(SourceChanged):
        behind(workspace, workspace.dataset("lows2"))
    found = impact(workspace, "field1", spark=HERE)
    assert {key[0] for key in found.reached} == {"lows1"}
    assert not impact(workspace, "field2", spark=HERE).reached


def _run(workspace: Workspace, *steps: str) -> None:
    text = "\n".join(f"  {step}" for step in steps)
    run(Pipeline.from_text(f"name: p\nboxes:\n{text}\n"), workspace, HERE)
