"""Boxes that nobody wrote inverses for are probed at the command line, if that is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from inverses.registry import Registry
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.files import grid
from tests.inverses.test_inferring import HERE
from tests.stories.asked import Ask

TEXT = """
name: bare
sources: {world: {path: world}}
boxes: {blurred: {box: blurred, inputs: {field: world}}}
"""
BOXES = ("--boxes", "tests.inverses.bare")
WHERE = ("--where", "time = '2001-03-02' and lat between 20 and 30 and lon = 180")
HINT = "nobody wrote inverses of blurred, so all it takes may be behind a datum; --infer"
SEEN = "lat -1 to 1, lon -1 to 1 (inferred from 55 probes; no guarantee)"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("bare")
    fields = grid(np.random.default_rng(3).normal(0, 1, (12, 18, 36)), wind=())
    fields.to_zarr(home / "world", consolidated=False)
    known = Registry.of(BOXES[1:]).boxes
    run(Pipeline.from_text(TEXT, known, base=home), Workspace.create(home / "w"), HERE)
    return home / "w"


def test_a_plan_says_what_could_be_inferred_or_what_was(ask: Ask, bare: Path) -> None:
    plain, inferred = (
        ask("plan", "blurred", *WHERE, *BOXES, *more, "-w", bare) for more in ((), ("--infer",))
    )
    assert HINT in plain.out and "everything" in plain.out
    assert HINT not in inferred.out and "everything" not in inferred.out
    assert f"blurred: inferred_window: field: time 0, {SEEN}\n" in inferred.out
    assert "? no guarantee" in inferred.out


def test_an_answer_says_what_could_be_inferred_or_what_was(
    ask: Ask, bare: Path, spark: SparkSession
) -> None:
    plain, inferred = (
        ask("trace", "blurred", *WHERE, *BOXES, *more, "-w", bare) for more in ((), ("--infer",))
    )
    assert HINT in plain.out and "⊇ complete: world, 7,776 cells" in plain.out
    assert HINT not in inferred.out and "? no guarantee: world, 9 cells" in inferred.out
    assert SEEN in inferred.out
    told = json.loads(ask("trace", "blurred", *WHERE, *BOXES, "--infer", "--json", "-w", bare).out)
    assert told["lineage"]["world"]["guarantee"] == []
    assert {name for hop in told["hops"] for name in hop["weak"]} == {"inferred_window"}
