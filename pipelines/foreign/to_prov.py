"""Writing the run graph as W3C PROV-JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from prov.model import ProvDocument

from pipelines.foreign.prov_json import OWN, OWN_TASK, PARAMETER, SECONDS, WHOLE
from pipelines.foreign.stored import Stored, moment
from pipelines.run_graph import DATASET, TASK

NAMESPACE = "https://w3id.org/whence/terms/"


def text(stored: Stored) -> str:
    """The document as JSON."""
    document = ProvDocument()
    document.add_namespace("whence", NAMESPACE)
    for row in stored.of_kind(DATASET):
        document.entity(_name(row), _told(row, OWN))
    for row in stored.of_kind(TASK):
        document.activity(_name(row), other_attributes=_task(stored, row))
    for run in stored.runs.values():
        _add_run(document, run)
    for row in stored.nodes.values():
        _add_arrows(document, stored, row)
    plain = json.loads(document.serialize(format="json") or "{}")
    return json.dumps(plain, indent=1, sort_keys=True)


def _name(row: Any) -> str:
    return f"whence:{row.kind}/{row.id}/{quote(row.name, safe='')}"


def _told(row: Any, names: Mapping[str, str]) -> dict[str, Any]:
    label = {"prov:label": f"{row.name} {row.version}".strip()}
    return {**label, **{said: getattr(row, name) for name, said in names.items()}}


def _task(stored: Stored, row: Any) -> dict[str, Any]:
    given = {f"{PARAMETER}{n}": v for n, v in stored.params.get(row.id, {}).items()}
    took = {} if row.seconds is None else {SECONDS: row.seconds}
    return {**_told(row, OWN | OWN_TASK), **took, **given}


def _add_run(document: ProvDocument, run: Any) -> None:
    """A run as an activity, with its times; its tasks name it."""
    said: Any = {WHOLE: run.pipeline, "whence:part": run.part, "whence:run": run.run}
    if run.how:
        said |= {"whence:how": run.how, "whence:why": run.why}
    name = f"whence:run/{quote(run.run, safe='')}"
    document.activity(name, moment(run.at), moment(run.ended), said)


def _add_arrows(document: ProvDocument, stored: Stored, row: Any) -> None:
    if row.kind == TASK:
        for source in stored.behind(row.id, DATASET):
            document.used(_name(row), _name(source))
        for source in stored.behind(row.id, TASK):
            document.wasInformedBy(_name(row), _name(source))
    else:
        for source in stored.behind(row.id, TASK):
            document.wasGeneratedBy(_name(row), _name(source))
        for source in stored.behind(row.id, DATASET):
            document.wasDerivedFrom(_name(row), _name(source))
