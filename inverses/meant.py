"""Which node of the run graph a person means by `name`, `name@version` or `namespace/name`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

import sqlalchemy as sa

from pipelines.catalog import nodes, params
from pipelines.errors import Refused, unknown
from pipelines.run_graph import DATASET, TASK

FEW, MANY = 10, 5000  # names to list, and names to look among for one that is meant


def meant(connection: sa.Connection, said: str, namespace: str, kind: str = DATASET) -> list[Any]:
    """The nodes that are meant, newest first: those of one thing, in one version or in all.

    A dataset in our own namespace is meant before what others call the same; a box is the same
    whoever ran it, unless a namespace is said.
    """
    of_one = _of_one_box if kind == TASK else _of_one
    for condition in _readings(said):
        kinds = (kind,) if kind == TASK else (DATASET, TASK)
        for each in kinds:
            rows = _rows(connection, condition & (nodes.c.kind == each))
            if rows:
                return of_one(said, rows, namespace)
    raise _unknown(connection, said, kind)


def _readings(said: str) -> Iterator[sa.ColumnElement[bool]]:
    """What a text may mean, the likeliest first."""
    name, _, version = said.rpartition("@")
    yield nodes.c.name == said
    if name:
        yield (nodes.c.name == name) & (nodes.c.version == version)
    for joint in ("/", ":", ""):
        whole = nodes.c.namespace + joint + nodes.c.name
        yield whole == said
        if name:
            yield (whole == name) & (nodes.c.version == version)
    yield nodes.c.name.endswith(f":{said}", autoescape=True)


def _rows(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> list[Any]:
    return list(connection.execute(sa.select(nodes).where(condition).order_by(nodes.c.id.desc())))


def _of_one(said: str, rows: list[Any], namespace: str) -> list[Any]:
    """The rows of one namespace: ours, or the only one there is."""
    whole = {(r.namespace, r.name) for r in rows}
    ours = [r for r in rows if r.namespace == namespace]
    if ours or len(whole) == 1:
        return ours or rows
    raise _several(said, whole)


def _of_one_box(said: str, rows: list[Any], namespace: str) -> list[Any]:
    """The rows of one box in all namespaces: of one that was run in ours, or the only one."""
    ours = {r.name for r in rows if r.namespace == namespace}
    names = ours or {r.name for r in rows}
    if len(names) == 1:
        return [r for r in rows if r.name in names]
    raise _several(said, {(r.namespace, r.name) for r in rows if r.name in names})


def _several(said: str, whole: set[tuple[str, str]]) -> Refused:
    """The error for what may mean more than one thing."""
    listed = ", ".join(sorted(f"{space}/{name}" for space, name in whole)[:FEW])
    return Refused(f'"{said}" may be {len(whole)} things; say which: {listed}')


def _unknown(connection: sa.Connection, said: str, kind: str) -> Refused:
    """The error for what is not there: the nearest that is, and the newest few."""
    newest = sa.select(nodes.c.name).where(nodes.c.kind == kind).group_by(nodes.c.name)
    names = list(connection.scalars(newest.order_by(sa.func.max(nodes.c.id).desc()).limit(MANY)))
    near = get_close_matches(said.partition("@")[0], names, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    word = "box" if kind == TASK else kind
    plural = "boxes" if kind == TASK else "datasets"
    return Refused(f'no {word} "{said}" in the history{hint} ({plural}: {_listed(names)})')


def check_parameter(connection: sa.Connection, box: str, said: str) -> None:
    """Refuse the name of a parameter that no task of a box was ever given."""
    theirs = sa.select(params.c.name).distinct().join(nodes, nodes.c.id == params.c.node)
    kept = (nodes.c.kind == TASK) & (nodes.c.name == box)
    names = set(connection.scalars(theirs.where(kept)))
    if said not in names:
        raise unknown("parameter", said, names, f'of "{box}" in the history')


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    more = ", and more" if len(known) > FEW else ""
    return (", ".join(sorted(known[:FEW])) or "none") + more
