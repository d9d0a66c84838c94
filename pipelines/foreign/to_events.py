"""Writing the run graph as OpenLineage events: one per task, and the start and end of each run."""

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
    error_message_run,
    execution_parameters_run,
    parent_run,
)
from openlineage.client.serde import Serde

from pipelines.foreign.events import OURS, UNNAMED
from pipelines.foreign.stored import Stored, moment
from pipelines.journal import FAILED, FINISHED, INTERRUPTED
from pipelines.run_graph import DATASET, TASK

PRODUCER = "https://w3id.org/whence/"
STATES = {FINISHED: RunState.COMPLETE, FAILED: RunState.FAIL, INTERRUPTED: RunState.ABORT}
LONG_AGO = "1970-01-01T00:00:00+00:00"  # the time of what came without one


@attr.define
class WhenceRunFacet(RunFacet):
    """What a task was in Whence, so that it is known again."""

    box: str
    boxVersion: str  # noqa: N815
    run: str
    step: str
    seconds: float | None


@attr.define
class WhenceWholeFacet(RunFacet):
    """Says that a run is one of a whole pipeline, or of a part of it, of which tasks are told."""

    pipeline: str
    part: str


@attr.define
class WhenceJobFacet(JobFacet):
    """Says that a job stands for arrows of which no more is known."""

    direct: bool


def lines(stored: Stored) -> Iterator[str]:
    """The events as JSON, one a line: runs, tasks, arrows without one, and what has neither."""
    for run in stored.runs.values():
        yield from map(Serde.to_json, _started_and_ended(run))
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


def _started_and_ended(run: Any) -> Iterator[RunEvent]:
    """The first event of a run, and the last if it came to an end."""
    facets: dict[str, RunFacet] = {
        OURS: WhenceWholeFacet(run.pipeline, run.part, producer=PRODUCER)
    }
    yield _whole(run, RunState.START, run.at, facets)
    if run.how:
        if run.why:
            said = error_message_run.ErrorMessageRunFacet(run.why, "PYTHON", producer=PRODUCER)
            facets = {**facets, "errorMessage": said}
        yield _whole(run, STATES[run.how], run.ended, facets)


def _whole(run: Any, state: RunState, at: str, facets: dict[str, RunFacet]) -> RunEvent:
    return RunEvent(
        eventType=state,
        eventTime=moment(at) or LONG_AGO,
        run=Run(_whole_id(run), facets),
        job=Job(run.namespace or UNNAMED, run.pipeline or UNNAMED),
        producer=PRODUCER,
    )


def _whole_id(run: Any) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{PRODUCER}run/{run.namespace}/{run.run}"))


def _part_of(run: Any) -> dict[str, RunFacet]:
    """The run of which a task was one, if it is known."""
    if run is None:
        return {}
    job = parent_run.Job(run.namespace or UNNAMED, run.pipeline or UNNAMED)
    parent = parent_run.ParentRunFacet(parent_run.Run(_whole_id(run)), job, producer=PRODUCER)
    return {"parent": parent}


def _ran(stored: Stored, task: Any) -> RunEvent:
    known = (task.name, task.version, task.run, task.step, task.seconds)
    ours = WhenceRunFacet(*known, producer=PRODUCER)
    given = [
        execution_parameters_run.ExecutionParameter(key=name, name=name, value=value)
        for name, value in stored.params.get(task.id, {}).items()
    ]
    told = execution_parameters_run.ExecutionParametersRunFacet(given, producer=PRODUCER)
    parent = _part_of(stored.runs.get(task.run))
    return RunEvent(
        eventType=RunState.COMPLETE,  # a task is journalled once what it made is published
        eventTime=task.at or LONG_AGO,
        run=Run(_run_id(task), {OURS: ours, "executionParameters": told, **parent}),
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
