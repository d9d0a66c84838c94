"""Asking about data as one and one by one, in memory and in a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.as_one import able
from inverses.guarantees import EXACT
from inverses.making import made_unless_refused
from inverses.places import tells_of_cells
from inverses.plans import Hop
from inverses.registry import Registry
from inverses.samples import Sample, samples
from inverses.trace import trace
from inverses.trials import data_of, found_as_one, found_by, inversions
from pipelines.boxes.box import Box
from pipelines.filters import Filter
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests import laws

REGISTRY = Registry.of()


def hops(sample: Sample, registry: Registry = REGISTRY) -> Iterator[tuple[Hop, Filter]]:
    """Every way back from what a box made that can be gone as one, and all data there."""
    made = made_unless_refused(sample.box, sample.inputs)
    assume(made is not None)
    assert made is not None
    for port, source in sample.inputs.items():
        every = [h for *_, h in inversions(registry, sample.box, port, made, source, sample.inputs)]
        yield from ((hop, data_of(made)) for hop in (*every, *_whole(every)) if able(hop))


def _whole(every: list[Hop]) -> Iterator[Hop]:
    """The way back that rows which tell of cells go when asked about whatever they tell."""
    told = [hop for hop in every if tells_of_cells(hop)]
    last = [i for hop in told for i in hop.levels[-1].inversions if i.promises >= EXACT]
    if last:
        exact = tuple({i.attribute: i for i in last}.values())
        *above, level = told[0].levels
        yield replace(told[0], levels=(*above, replace(level, inversions=exact)))


def holds(sample: Sample, some: st.DataObject, registry: Registry = REGISTRY) -> int:
    """Hold the law for some of the data; how many ways back there were."""
    ways = 0
    for hop, at in hops(sample, registry):
        chosen = some.draw(st.lists(st.booleans(), min_size=len(at), max_size=len(at)))
        mine = at[np.flatnonzero(chosen)]
        if len(mine):
            alone = Filter(np.arange(len(mine)), mine.spans)
            laws.as_one(found_as_one(hop, mine), set().union(*found_by(hop, alone)))
        ways += 1
    return ways


def sweep_of(box: type[Box]) -> Any:
    (sweep,) = [s for s in REGISTRY.sweeps if s.box is box]
    return sweep.function


def assert_caught_as_one(kind: type[Box], registry: Registry) -> None:
    """Assert that the law does not hold for what is registered of a box."""

    @given(sample=samples(kind), some=st.data())
    @settings(max_examples=1000, derandomize=True, database=None, phases=[Phase.generate])
    def each(sample: Sample, some: st.DataObject) -> None:
        holds(sample, some, registry)

    with pytest.raises((AssertionError, ExceptionGroup), match=r"as one|violat|distinct"):
        each()


def traced(
    text: str, folder: Path, spark: SparkSession, where: str | None = None, **asked: Any
) -> Answer:
    """What is behind what a pipeline made, asked in a workspace of its own."""
    workspace = Workspace.create(folder / "workspace")
    if "made" not in workspace.names():
        run(Pipeline.from_text(text), workspace, spark)
    return trace(workspace, "made", where, spark=spark, **asked)


def cells_of(answer: Answer, name: str) -> set[tuple[Any, ...]]:
    found = answer.cells(name).drop_columns(["value"])
    return set(zip(*(found[c].to_pylist() for c in found.column_names), strict=True))
