"""Provenance in the words of PROV: which versions there are, what made them, what was traced."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from prov.model import PROV, ProvDocument

from explorer.cells import guarantees
from inverses.answer import Answer
from pipelines.datasets import Array, Dataset, Key, Table

NAMESPACE = "https://w3id.org/whence/terms/"


def on_the_path(answer: Answer) -> list[Table | Array]:
    """Every dataset that a trace went through, from the selected one to the sources, once each."""
    hops = [hop for each in answer.parts for hop in each.plan.hops]
    every = [answer.plan.selection.dataset, *(d for h in hops for d in (h.image, h.source))]
    return list({d.key: d for d in every}.values())


def provenance(answer: Answer) -> str:
    """An answer as PROV-JSON."""
    document = ProvDocument()
    document.add_namespace("whence", NAMESPACE)
    datasets = on_the_path(answer)
    _add_datasets(document, datasets)
    _add_runs(document, datasets)
    _add_trace(document, answer)
    plain = json.loads(document.serialize(format="json") or "{}")
    return json.dumps(plain, indent=1, sort_keys=True)


def _named(kind: str, *parts: str) -> str:
    return f"whence:{kind}/{'/'.join(quote(p) for p in parts)}"


def _dataset(key: Key) -> str:
    return _named("dataset", *key)


def _add_datasets(document: ProvDocument, datasets: Iterable[Dataset]) -> None:
    for each in datasets:
        told: dict[str, Any] = {
            "prov:type": PROV["Collection"],
            "prov:label": f"{each.name} {each.version}",
        }
        if each.origin and each.origin.get("checksum"):
            told["whence:xxh3_128"] = str(each.origin["checksum"])
        document.entity(_dataset(each.key), told)


def _add_runs(document: ProvDocument, datasets: Iterable[Dataset]) -> None:
    """The box that made each version, what it used, and what was so derived from what."""
    for each in datasets:
        if each.made is None:
            continue
        told = {
            "prov:type": "box run",
            "prov:label": each.made.box,
            "whence:run": each.made.run,
            "whence:boxVersion": each.made.box_version,
            "whence:parameters": json.dumps(dict(each.made.params), default=str),
        }
        activity = _named("run", each.made.run, each.made.step)
        document.activity(activity, other_attributes=told)
        document.wasGeneratedBy(_dataset(each.key), activity)
        for key in dict.fromkeys(each.made.inputs.values()):
            document.used(activity, _dataset(key))
            document.wasDerivedFrom(_dataset(each.key), _dataset(key), activity)


def _add_trace(document: ProvDocument, answer: Answer) -> None:
    """The trace: it used the selection, and found parts that the selection was derived from."""
    selection = answer.plan.selection
    document.agent("whence:whence", _software())
    trace, selected = "whence:trace", "whence:selection"
    document.activity(trace, other_attributes={"prov:type": "trace"})
    document.wasAssociatedWith(trace, "whence:whence")
    document.entity(selected, _selected(answer))
    document.wasDerivedFrom(selected, _dataset(selection.dataset.key))
    document.used(trace, selected)
    promised = guarantees(answer)
    for name, found in answer.lineage.items():
        part = _named("traced", *found.dataset.key)
        count = found.tuples if found.cells is None else found.cells
        document.entity(part, _part(name, count, promised[name]))
        document.used(trace, _dataset(found.dataset.key))
        document.wasGeneratedBy(part, trace)
        document.wasDerivedFrom(part, _dataset(found.dataset.key), trace)
        if found.dataset.key != selection.dataset.key:
            document.wasDerivedFrom(selected, part)


def _software() -> Mapping[str, Any]:
    told = {"prov:label": "Whence", "whence:version": version("whence")}
    return {"prov:type": PROV["SoftwareAgent"], **told}


def _selected(answer: Answer) -> Mapping[str, Any]:
    selection = answer.plan.selection
    return {
        "prov:type": "selection",
        "whence:where": selection.where or "everything",
        "whence:attributes": ", ".join(answer.plan.attributes),
        "whence:rows": len(selection),
    }


def _part(name: str, count: int, guarantee: list[str]) -> Mapping[str, Any]:
    return {
        "prov:type": "traced subset",
        "prov:location": f"cells/{name}.parquet",
        "whence:count": count,
        "whence:guarantee": ", ".join(guarantee) or "none",
    }
