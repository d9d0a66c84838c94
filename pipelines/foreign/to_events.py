"""Writing the run graph as OpenLineage events, one per task."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import attr
from openlineage.client.event_v2 import (
    DatasetEvent,
    InputDataset,
    Job,
    JobEvent,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
    StaticDataset,
)
from openlineage.client.facet_v2 import (
    JobFacet,
    RunFacet,
    dataset_version_dataset,
    execution_parameters_run,
)
from openlineage.client.serde import Serde

from pipelines.foreign.events import OURS, UNNAMED
from pipelines.foreign.stored import Stored
from pipelines.run_graph import DATASET, TASK

PRODUCER = "https://w3id.org/whence/"
LONG_AGO = "1970-01-01T00:00:00+00:00"  # the time of what came without one


@attr.define
class WhenceRunFacet(RunFacet):
    """What a task was in Whence, so that it is known again."""

    box: str
    boxVersion: str  # noqa: N815
    run: str
    step: str


@attr.define
class WhenceJobFacet(JobFacet):
    """Says that a job stands for arrows of which no more is known."""

    direct: bool


def lines(stored: Stored) -> Iterator[str]:
    """The events as JSON, one a line: tasks, then arrows without one, then what has neither."""
    for task in stored.of_kind(TASK):
        yield Serde.to_json(_ran(stored, task))
    for dataset in stored.of_kind(DATASET):
        if sources := stored.behind(dataset.id, DATASET):
            yield Serde.to_json(_derived(dataset, sources))
        elif not stored.used.get(dataset.id) and not stored.made.get(dataset.id):
            yield Serde.to_json(_alone(dataset))


def untold(stored: Stored) -> int:
    """How many arrows lead from task to task, for which OpenLineage has no words."""
    return sum(len(stored.behind(task.id, TASK)) for task in stored.of_kind(TASK))


def _ran(stored: Stored, task: Any) -> RunEvent:
    ours = WhenceRunFacet(task.name, task.version, task.run, task.step, producer=PRODUCER)
    given = [
        execution_parameters_run.ExecutionParameter(key=name, name=name, value=value)
        for name, value in stored.params.get(task.id, {}).items()
    ]
    told = execution_parameters_run.ExecutionParametersRunFacet(given, producer=PRODUCER)
    return RunEvent(
        eventType=RunState.COMPLETE,
        eventTime=task.at or LONG_AGO,
        run=Run(_run_id(task), {OURS: ours, "executionParameters": told}),
        job=Job(task.namespace or UNNAMED, task.step or task.name),
        inputs=[InputDataset(**_named(d)) for d in stored.behind(task.id, DATASET)],
        outputs=[OutputDataset(**_named(d)) for d in stored.after(task.id, DATASET)],
        producer=PRODUCER,
    )


def _derived(dataset: Any, sources: list[Any]) -> JobEvent:
    facets: dict[str, JobFacet] = {OURS: WhenceJobFacet(True, producer=PRODUCER)}
    told = f"derivation of {dataset.name} {dataset.version}".strip()
    return JobEvent(
        eventTime=dataset.at or LONG_AGO,
        job=Job(dataset.namespace or UNNAMED, told, facets),
        inputs=[InputDataset(**_named(d)) for d in sources],
        outputs=[OutputDataset(**_named(dataset))],
        producer=PRODUCER,
    )


def _alone(dataset: Any) -> DatasetEvent:
    found = StaticDataset(**_named(dataset))
    return DatasetEvent(eventTime=dataset.at or LONG_AGO, dataset=found, producer=PRODUCER)


def _named(dataset: Any) -> dict[str, Any]:
    facet = dataset_version_dataset.DatasetVersionDatasetFacet
    version = {"version": facet(dataset.version, producer=PRODUCER)} if dataset.version else {}
    return {"namespace": dataset.namespace or UNNAMED, "name": dataset.name, "facets": version}


def _run_id(task: Any) -> str:
    """The run's own number if it is a UUID, or else one that is always the same for it."""
    try:
        return str(uuid.UUID(task.run))
    except ValueError:
        told = "/".join((task.namespace, task.name, task.run, task.step))
        return str(uuid.uuid5(uuid.NAMESPACE_URL, PRODUCER + told))
