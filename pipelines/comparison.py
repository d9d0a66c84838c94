"""What is different between two runs: code, parameters, inputs, and what they ran on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

import sqlalchemy as sa

from pipelines.catalog import edges, nodes, params
from pipelines.history import History, Run
from pipelines.run_graph import DATASET, TASK

Versions = frozenset[tuple[str, str]]  # each a version and its fingerprint, if that is known
CODE, PARAMETER, INPUT, PLACE = "code", "parameter", "input", "place"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that two runs do not have in common; "" stands for what is not there."""

    what: str
    where: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class _Told:
    """What the journal tells of a run by where it was: inputs as rows, all else as text."""

    code: Mapping[str, str]
    parameters: Mapping[str, str]
    inputs: Mapping[str, Versions]
    place: Mapping[str, str]


def compare(history: History, first: str, second: str) -> list[Difference]:
    """What changed from one run to another; nothing if only their outputs may differ."""
    before, after = (_told(history, history.run(each)) for each in (first, second))
    return [
        *_differences(CODE, before.code, after.code),
        *_differences(PARAMETER, before.parameters, after.parameters),
        *_differences(INPUT, *_comparable(before.inputs, after.inputs)),
        *_differences(PLACE, before.place, after.place),
    ]


def changed_lines(history: History, first: str, second: str) -> list[str]:
    """The lines of the pipeline's text that changed, with a sign before each."""
    before, after = (history.text_of(history.run(r).run) or "" for r in (first, second))
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:]
    return [line for line in lines if not line.startswith("@@")]


def _differences(
    what: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[Difference]:
    for where in dict.fromkeys([*before, *after]):
        ends = before.get(where, ""), after.get(where, "")
        if ends[0] != ends[1]:
            yield Difference(what, where, *ends)


def _told(history: History, run: Run) -> _Told:
    with history.catalog.reading() as connection:
        ours = (nodes.c.run == run.run) & (nodes.c.kind == TASK)
        tasks = connection.execute(sa.select(nodes).where(ours).order_by(nodes.c.id)).all()
        steps = {task.id: task.step for task in tasks}
        return _Told(
            {t.step: f"{t.name} {t.version}" for t in tasks},
            {"--only": run.part}
            | {f"{steps[n]}.{name}": v for n, name, v in connection.execute(_values(ours))},
            _by_name(connection.execute(_inputs(run.run))),
            {"pipeline": run.pipeline, "Spark": f"{run.spark} on {run.master}"}
            | {"Whence": run.whence},
        )


def _values(ours: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """The parameters of tasks."""
    values = sa.select(params).join(nodes, nodes.c.id == params.c.node)
    return values.where(ours).order_by(params.c.node, params.c.name)


def _inputs(run: str) -> sa.Select[Any]:
    """The datasets that a run used and had not made itself."""
    task, used = nodes.alias("task"), nodes.alias("used")
    rows = sa.select(used).join(edges, edges.c.source == used.c.id)
    rows = rows.join(task, task.c.id == edges.c.target).where(task.c.run == run)
    return rows.where((used.c.kind == DATASET) & (used.c.run != run)).order_by(used.c.id)


def _by_name(rows: Iterable[Any]) -> dict[str, Versions]:
    """The versions of each dataset that were used."""
    found: dict[str, Versions] = {}
    for row in rows:
        found[row.name] = found.get(row.name, Versions()) | {(row.version, row.fingerprint)}
    return found


def _comparable(*inputs: Mapping[str, Versions]) -> Iterator[dict[str, str]]:
    """What tells one input from another: its content if both runs know it, or else its version."""
    used = [(name, versions) for each in inputs for name, versions in each.items()]
    unknown = {name for name, versions in used if not all(content for _, content in versions)}
    for each in inputs:
        yield {name: _text(versions, name not in unknown) for name, versions in each.items()}


def _text(versions: Versions, by_content: bool) -> str:
    if by_content:
        return ", ".join(sorted({f"content {content[:12]}" for _, content in versions}))
    return ", ".join(sorted({version for version, _ in versions}))
