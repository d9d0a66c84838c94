"""Running in part: a bound on what is made becomes filters on what it is made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from inverses.recipes import recipes
from inverses.registry import Registry
from inverses.replay import made_within, needed
from pipelines.boxes.box import ArrayBox, Box, TableBox
from pipelines.datasets import Array, Dataset, Key, Made, Table
from pipelines.errors import Refused, unknown
from pipelines.pipeline import Pipeline, Step
from pipelines.predicates import Predicate, parsed
from pipelines.run import Run, array_of, attributes_of, publish_description, run, writing, written
from pipelines.spark import Progress, mapped, watched
from pipelines.tables import schema_of
from pipelines.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Only:
    """The dataset that is wanted, and which rows of it.

    >>> Only.from_text("tracks: lat between 20 and 60").dataset
    'tracks'
    """

    dataset: str
    predicate: Predicate

    @classmethod
    def from_text(cls, text: str) -> Only:
        name, colon, predicate = text.partition(":")
        if not colon or not predicate.strip():
            raise Refused(
                f'--only "{text:.60}": say a table and a predicate, like "tracks: lat > 20"'
            )
        return cls(name.strip(), parsed(predicate.strip(), "--only"))

    @property
    def text(self) -> str:
        """The same in one way of writing it."""
        return f"{self.dataset}: {self.predicate.text}"

    def check(self, pipeline: Pipeline, tables: Mapping[str, Table] | None = None) -> None:
        """Refuse a dataset that is not made, or no table, or a predicate that is not about it."""
        step = pipeline.step(self.dataset)
        if step is None:
            known = pipeline.unfolded()
            raise unknown("dataset", self.dataset, known, f'in pipeline "{pipeline.name}"')
        if not isinstance(step.box, TableBox):
            raise Refused(f'--only: "{self.dataset}" is an array; a table can be made in part')
        if tables and self.dataset in tables:
            table = tables[self.dataset]
            self.predicate.of(table).expression(schema_of(table))


def run_only(
    pipeline: Pipeline,
    workspace: Workspace,
    spark: SparkSession,
    only: str,
    registry: Registry | None = None,
    progress: Progress | None = None,
) -> dict[str, Dataset]:
    """Make the rows of one dataset that a predicate keeps, reading only what they need.

    What lies between the sources and that dataset is described and not kept: a trace makes again
    what it needs of it.
    """
    wanted = Only.from_text(only)
    wanted.check(pipeline)
    known = registry or Registry.of()

    def publish(one: Run, name: str, step: Step) -> Dataset:
        how = one.how(name, step)
        inputs = {port: cast(Table | Array, given) for port, given in one.inputs(step).items()}
        if name != wanted.dataset:
            return one.note(_described(one, name, step.box, inputs, how))
        assert isinstance(step.box, TableBox)
        return one.note(_made(one, name, step.box, inputs, how, wanted.predicate, known))

    return run(pipeline.up_to(wanted.dataset), workspace, spark, progress, publish, wanted.text)


def _described(
    one: Run, name: str, box: Box, inputs: Mapping[str, Table | Array], how: Made
) -> Dataset:
    """A dataset that is said to be made, and will be, where and when it is needed."""
    if isinstance(box, ArrayBox):
        grid = box.grid(inputs)
        array = array_of(name, grid, attributes_of(box, inputs))
        return publish_description(
            one.workspace, replace(array, made=how), replace(grid, metadata={})
        )
    assert isinstance(box, TableBox)
    described = box.described(name, inputs)
    return publish_description(one.workspace, replace(described, made=how), None)


def _made(
    one: Run,
    name: str,
    box: TableBox,
    inputs: Mapping[str, Table | Array],
    how: Made,
    predicate: Predicate,
    registry: Registry,
) -> Dataset:
    """The wanted rows, published."""
    began = time.monotonic()
    image = replace(box.described(name, inputs), made=how, kept=False)
    schema, asked = schema_of(image), predicate.of(image)
    kept = asked.expression(schema)
    every = [image, *_behind(one.workspace, inputs.values())]
    known = recipes(every, registry)
    with (
        one.workspace.staged(name) as stage,
        watched(one.spark, name, one.progress),
    ):
        at, parts, found = needed(image, asked.region(schema), known, one.spark)
        frame = made_within(box, found, at, parts, one.spark)
        mine = mapped(frame, _keeping(kept), frame.schema)
        made = written(writing(mine, stage).toArrow(), mine, name, image.attributes)
        seconds = round(time.monotonic() - began, 3)
        notes = {"only": predicate.text}
        dataset = replace(made, made=replace(how, seconds=seconds), notes=notes)
        return one.workspace.publish(stage, dataset)


def _keeping(
    kept: pc.Expression,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from pa.Table.from_batches([batch]).filter(kept).to_batches()

    return work


def _behind(workspace: Workspace, datasets: Iterable[Table | Array]) -> list[Table | Array]:
    """Datasets and all that they were made from, each once."""
    found: dict[Key, Table | Array] = {}
    waiting = list(datasets)
    while waiting:
        each = waiting.pop()
        if each.key not in found:
            found[each.key] = each
            inputs = each.made.inputs.values() if each.made else ()
            waiting += [workspace.dataset(*key) for key in inputs]
    return list(found.values())
