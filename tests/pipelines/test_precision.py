"""What boxes make of an array is as precise as the array, whatever its numbers are stored as."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from pyspark.sql import SparkSession

from inverses.proof import prove
from inverses.trace import trace
from pipelines.arrays import block
from pipelines.datasets import Array
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.files import grid

HERE = cast(SparkSession, Here(1))
ODD = 2**24 + 1  # the least whole number that a float of 4 bytes cannot hold
BOXES = """
  latest: {box: composite, inputs: {field: counts}}
  unkept: {box: composite, inputs: {field: counts}, keep: false}
  greatest: {box: reduce_extreme, inputs: {field: unkept}}
  total: {box: reduce, inputs: {field: counts}, params: {how: sum}}
  smooth: {box: rolling_mean, inputs: {field: counts}, params: {window: 1}}
  both: {box: mosaic, inputs: {first: counts, second: counts}}
"""
MADE = ("latest", "greatest", "total", "smooth", "both")


def made_of(kind: Any, home: Path) -> Workspace:
    """What boxes make of one number, stored as some kind, in every cell."""
    values = np.full((1, 3, 4), ODD if np.dtype(kind).itemsize > 2 else 100, kind)
    grid(values, wind=()).to_zarr(home / "counts", consolidated=False)
    workspace = Workspace.create(home / "workspace")
    sources = f"sources: {{counts: {{path: {home / 'counts'}}}}}"
    run(Pipeline.from_text(f"name: counted\n{sources}\nboxes:{BOXES}"), workspace, HERE)
    return workspace


@pytest.mark.parametrize("kind", ["int32", "uint32", "int64"])
def test_whole_numbers_stay_what_they_are(kind: str, tmp_path: Path) -> None:
    workspace = made_of(kind, tmp_path)
    for name in MADE:
        array = workspace.dataset(name)
        assert isinstance(array, Array)
        assert set(block(array, "slp", {}).ravel().tolist()) == {ODD}, name


@pytest.mark.parametrize("kind", ["float32", "int16"])
def test_what_floats_of_four_bytes_hold_is_stored_in_them(kind: str, tmp_path: Path) -> None:
    workspace = made_of(kind, tmp_path)
    assert {block(cast(Array, workspace.dataset(n)), "slp", {}).dtype.name for n in MADE} == {
        "float32"
    }


def test_whole_numbers_are_traced_through_what_was_not_kept(tmp_path: Path) -> None:
    answer = trace(made_of("int32", tmp_path), "greatest", "lat = 90 and lon = 0", spark=HERE)
    assert answer.lineage["counts"].rows["value"].to_pylist() == [ODD]
    assert prove(answer, HERE).holds
