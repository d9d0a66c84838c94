"""What the tests of array boxes share: other chunks, ranges instead of points, and real Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.proof import prove
from inverses.registry import Registry, WeakInverse
from inverses.trace import trace
from inverses.trials import found_by, inversions
from pipelines.arrays import chunks_of, inside
from pipelines.boxes.box import ArrayBox
from pipelines.contents import HeldCells
from pipelines.datasets import Array
from pipelines.filters import Filter
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.spans import Span
from pipelines.workspace import Workspace
from tests.files import grid
from tests.inverses.cases import Case

DIMS = ("time", "lat", "lon")
MANY = max(300, settings().max_examples)
PATIENCE = pytest.mark.timeout(300 if MANY == 300 else 14_400)


def params_of(box: Any) -> st.SearchStrategy[Any]:
    """A box with one of the parameters that it gives as examples."""
    return st.sampled_from(box.examples).map(box.from_params)


def in_parts(case: Case, registry: Registry, data: st.DataObject) -> None:
    """A box can be made block by block, inverted over ranges, and made again in part."""
    in_blocks(case, data)
    of_ranges(case, registry, data)
    faithful(case, registry, data)


def in_blocks(case: Case, data: st.DataObject) -> None:
    """Any block of what is made, from any chunks of the inputs, is that part of the whole."""
    assert isinstance(case.made, Array) and isinstance(case.box, ArrayBox)
    cut: dict[str, Any] = {p: rechunked(a, data) for p, a in case.inputs.items()}
    assert case.box.grid(cut).shape == case.made.shape
    for chunk in chunks_of(rechunked(case.made, data), case.made.variables[0]):
        ranges = {d: (a, b + 1) for d, (a, b) in zip(case.made.dims, chunk.ranges, strict=True)}
        part = tuple(slice(*r) for r in ranges.values())
        for variable, values in case.box.block(cut, ranges).items():
            np.testing.assert_array_equal(values, case.made_plain[variable][part])


def rechunked(array: Any, data: st.DataObject) -> Array:
    chunks = tuple(data.draw(st.integers(1, n)) for n in array.shape)
    return replace(array, chunks=chunks)


def of_ranges(case: Case, registry: Registry, data: st.DataObject) -> None:
    """A weak inverse of a range holds all that it holds for the points there, and no more."""
    assert isinstance(case.made, Array)
    ends = _ends(case.made, data)
    places = np.array(list(product(*(range(a, b + 1) for a, b in ends.values()))))
    points = {d: Span(places[:, i], places[:, i]) for i, d in enumerate(ends)}
    region = {d: Span(np.array([a]), np.array([b])) for d, (a, b) in ends.items()}
    for port, source in case.inputs.items():
        for stated, _, hop in inversions(registry, case.box, port, case.made, source):
            if isinstance(stated, WeakInverse):
                each = found_by(hop, Filter(np.arange(len(places)), points))
                whole = found_by(hop, Filter(np.zeros(1, np.int64), region))[0]
                assert whole == set().union(*each), f"{stated.name} is wrong for ranges"


def faithful(case: Case, registry: Registry, data: st.DataObject) -> None:
    """Of what is kept alone, all else missing, a box makes in a region all that it makes there."""
    assert isinstance(case.made, Array)
    ends = _ends(case.made, data)
    region = Filter(
        np.zeros(1, np.int64), {d: Span(*np.array([[a], [b]])) for d, (a, b) in ends.items()}
    )
    kept = {p: _alone(case, registry, p, a, region) for p, a in case.inputs.items()}
    again = case.forward(kept)
    part = tuple(slice(a, b + 1) for a, b in ends.values())
    for variable in case.made.variables:
        np.testing.assert_array_equal(
            again[variable][part], case.forward(case.plain)[variable][part]
        )


def _alone(case: Case, registry: Registry, port: str, source: Any, region: Filter) -> Any:
    """What faithful weak inverses keep of an input, all else missing."""
    weak = registry.faithful(case.box, port, case.made, source)
    assert weak, f"{case.box.name} cannot be made again in part"
    keep = np.ones(source.shape, bool)
    for each in weak:
        keep &= _mask(source, inside(source, each(case.box, region, source)))
    return {v: np.where(keep, values, np.nan) for v, values in case.plain[port].items()}


def _mask(source: Array, kept: Filter) -> np.ndarray:
    mask = np.zeros(source.shape, bool)
    for n in range(len(kept)):
        mask[tuple(slice(kept.spans[d].low[n], kept.spans[d].high[n] + 1) for d in source.dims)] = (
            True
        )
    return mask


def _ends(array: Array, data: st.DataObject) -> dict[str, list[int]]:
    """Any ranges of indices, last included."""
    pairs = {d: data.draw(st.tuples(*[st.integers(0, n - 1)] * 2)) for d, n in array.size.items()}
    return {d: sorted(pair) for d, pair in pairs.items()}


def at_times(array: Array, times: np.ndarray) -> Array:
    """The array with other times."""
    assert isinstance(array.content, HeldCells)
    held = replace(array.content, coordinates={**array.content.coordinates, array.dims[0]: times})
    return replace(array, content=held)


def traced(
    fields: Mapping[str, np.ndarray],
    boxes: str,
    asked: str,
    where: str,
    spark: SparkSession,
    home: Path,
) -> Answer:
    """What Spark finds behind some cells of what boxes made of fields stored in small chunks."""
    for name, values in fields.items():
        chunks = tuple(max(1, n // 2) for n in values.shape)
        stored = grid(values, wind=())
        stored.to_zarr(home / name, encoding={"slp": {"chunks": chunks}}, consolidated=False)
    sources = "\n".join(f"  {name}: {{path: {home / name}}}" for name in fields)
    workspace = Workspace.create(home / "workspace")
    text = f"name: small\nsources:\n{sources}\nboxes:\n{boxes}"
    run(Pipeline.from_text(text), workspace, spark)
    return trace(workspace, asked, where, spark=spark)


def proves_itself(answer: Answer) -> bool:
    """Whether the boxes give the selected cells back, run on what was found alone."""
    return prove(answer, cast(SparkSession, Here(2))).holds


def cells(answer: Answer, source: str) -> set[tuple[int, ...]]:
    """The indices of the cells found in a source."""
    found = answer.cells(source)
    return set(zip(*(found[f"{d}_index"].to_pylist() for d in DIMS), strict=True))
