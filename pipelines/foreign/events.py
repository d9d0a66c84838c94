"""OpenLineage events: which datasets a job's run read and wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from pipelines.errors import Refused
from pipelines.foreign.graph import Graph, listing, mapping, text
from pipelines.foreign.stored import seconds_of, value_of
from pipelines.run_graph import DATASET, TASK, Node

OURS = "whence"  # the facet by which a task of ours is known again
FAIL, ABORT = "FAIL", "ABORT"
LAST = ("COMPLETE", FAIL, ABORT)  # the types of events after which a run is over
UNNAMED = "whence:unnamed"  # stands for no namespace, which an event has to have
Mention = tuple[str, str]


@dataclass(slots=True)
class _Run:
    """A run of a job, gathered from all its events."""

    task: Node
    ended: datetime
    direct: bool = False
    inputs: dict[Mention, str] = field(default_factory=dict)
    outputs: dict[Mention, str] = field(default_factory=dict)
    ends: list[tuple[datetime, str]] = field(default_factory=list)

    @property
    def made(self) -> dict[Mention, str]:
        """What it wrote, unless it is known to have ended badly: then that was never whole."""
        last = sorted(self.ends, key=itemgetter(0))[-1:]
        return {} if any(how in (FAIL, ABORT) for _, how in last) else self.outputs


def read(events: Iterable[Any]) -> Graph:
    """The graph of some events.

    A dataset whose version nobody says is one node, however often it was written. Where others
    say versions of it, a run that says none has read the last that was written before its end.
    A run that failed or was aborted has read what it read, and made nothing.
    """
    gathered: dict[tuple[str, ...], _Run] = {}
    graph = Graph()
    for number, event in enumerate(events, 1):
        _gather(gathered, graph, mapping(event, f"event {number}"), f"event {number}")
    written = _written(gathered.values())
    for run in gathered.values():
        _add(graph, run, written)
    return graph


def _gather(
    gathered: dict[tuple[str, ...], _Run], graph: Graph, event: Mapping[str, Any], where: str
) -> None:
    if "dataset" in event and "job" not in event:
        mention, version = _mention(event["dataset"], f"{where}: dataset")
        graph.put(_dataset(mention, version))
        return
    if _is_whole(event):
        return
    task, at = _task(event, where), _time(event, where)
    run = gathered.setdefault(task.identity, _Run(task, at, _is_direct(event["job"])))
    run.ended = max(run.ended, at)
    if (how := event.get("eventType")) in LAST:
        run.ends.append((at, how))
    for way, found in (("inputs", run.inputs), ("outputs", run.outputs)):
        for each in listing(event.get(way), f"{where}: {way}"):
            mention, version = _mention(each, f"{where}: one of its {way}")
            found[mention] = version or found.get(mention, "")


def _is_whole(event: Mapping[str, Any]) -> bool:
    """Whether an event is about a whole run of ours, whose tasks have events of their own."""
    run = event.get("run")
    facet = (run.get("facets") or {}).get(OURS) if isinstance(run, dict) else None
    return isinstance(facet, dict) and "pipeline" in facet


def _is_direct(job: Mapping[str, Any]) -> bool:
    """Whether a job stands for arrows from dataset to dataset, about which no more is known."""
    facet = (job.get("facets") or {}).get(OURS)
    return isinstance(facet, dict) and facet.get("direct") is True


def _task(event: Mapping[str, Any], where: str) -> Node:
    job = mapping(event.get("job"), f"{where}: job")
    run = mapping(event.get("run", {}), f"{where}: run")
    name, namespace = text(job.get("name"), f"{where}: the name of its job"), _space(job, where)
    number = text(run.get("runId"), f"{where}: runId") if "run" in event else ""
    facets = mapping(run.get("facets") or {}, f"{where}: facets")
    at, given = _time(event, where).isoformat(), _given(facets.get("executionParameters"))
    if (ours := facets.get(OURS)) is not None:
        return replace(_own_task(ours, where), namespace=namespace, at=at, params=given)
    code = mapping(job.get("facets") or {}, f"{where}: facets").get("sourceCodeLocation")
    version = code.get("version") if isinstance(code, dict) else None
    said = version if isinstance(version, str) else ""
    return Node(TASK, name, said, namespace, number, at=at, params=given)


def _own_task(facet: Any, where: str) -> Node:
    """A task that Whence exported, as it was."""
    plain = mapping(facet, f"{where}: the facet {OURS}")
    told = {k: plain.get(k, "") for k in ("box", "boxVersion", "run", "step")}
    box, version, run, step = (v and text(v, f"{where}: {k}") for k, v in told.items())
    return Node(TASK, box, version, run=run, step=step, seconds=seconds_of(plain.get("seconds")))


def _given(facet: Any) -> dict[str, Any]:
    """The parameters of a run, as far as their facet is one."""
    found = {}
    for each in facet.get("parameters") or () if isinstance(facet, dict) else ():
        with suppress(Refused, AttributeError, TypeError):
            name = text(each.get("name") or each.get("key"), "a parameter")
            found[name] = value_of(str(each.get("value")))
    return found


def _mention(plain: Any, where: str) -> tuple[Mention, str]:
    """The dataset that is meant, and the version of it if that is said."""
    dataset = mapping(plain, where)
    name = text(dataset.get("name"), f"{where}: its name")
    facet = mapping(dataset.get("facets") or {}, f"{where}: facets").get("version")
    version = facet.get("datasetVersion") if isinstance(facet, dict) else None
    said = "" if version is None else text(str(version), f"{where}: its version")
    return (_space(dataset, where), name), said


def _space(plain: Mapping[str, Any], where: str) -> str:
    namespace = text(plain.get("namespace"), f"{where}: its namespace")
    return "" if namespace == UNNAMED else namespace


def _time(event: Mapping[str, Any], where: str) -> datetime:
    try:
        at = datetime.fromisoformat(event["eventTime"])
    except (KeyError, TypeError, ValueError):
        found = event.get("eventTime")
        raise Refused(f"{where}: eventTime is a date and time; found {found!r:.60}") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _written(gathered: Iterable[_Run]) -> dict[Mention, list[tuple[datetime, str]]]:
    """When which versions of each dataset were written, first to last."""
    written: dict[Mention, list[tuple[datetime, str]]] = {}
    for run in gathered:
        for mention, version in run.made.items():
            if version:
                written.setdefault(mention, []).append((run.ended, version))
    return {mention: sorted(times) for mention, times in written.items()}


def _add(graph: Graph, run: _Run, written: Mapping[Mention, list[tuple[datetime, str]]]) -> None:
    read_ = {m: version or _last(written.get(m, ()), run) for m, version in run.inputs.items()}
    sources = [graph.put(_dataset(m, version)) for m, version in read_.items()]
    targets = [graph.put(_dataset(m, version)) for m, version in run.made.items()]
    if run.direct:
        through = [(source, target) for source in sources for target in targets]
    else:
        task = graph.put(run.task)
        through = [*((s, task) for s in sources), *((task, t) for t in targets)]
    for source, target in through:
        graph.arrow(source, target)


def _last(times: Iterable[tuple[datetime, str]], run: _Run) -> str:
    """The last version that was written before a run ended, and not by itself."""
    own = set(run.outputs.values())
    return next((v for at, v in reversed(list(times)) if at <= run.ended and v not in own), "")


def _dataset(mention: Mention, version: str) -> Node:
    namespace, name = mention
    return Node(DATASET, name, version, namespace)
