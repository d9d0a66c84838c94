"""An evidence bundle: a trace with all that it takes to show it again elsewhere, in one file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any

import pyarrow.parquet as pq
import yaml
from rocrate.rocrate import ROCrate

from explorer.archive import add, archive
from explorer.cells import about, box_of, guarantees, traced_box
from explorer.evidence import FORMAT, SUFFIX, checked
from explorer.export import export
from explorer.provenance import on_the_path, provenance
from explorer.shown import plans_json
from inverses import words
from inverses.answer import Answer
from inverses.guarantees import names
from pipelines.datasets import Array, to_json
from pipelines.errors import Refused, TooDear
from pipelines.history import History
from pipelines.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a bundle."""

    name: str
    about: str
    format: str
    content: bytes

    @property
    def is_text(self) -> bool:
        return self.format.startswith(("text/", "application/json", "application/yaml"))


def bundle(answer: Answer, path: Path | str) -> Path:
    """Write an answer and all that it rests on as one zip file, whole or not at all."""
    if not str(path).endswith(SUFFIX):
        raise Refused(f'cannot bundle into "{path}"; its name must end in {SUFFIX}')
    return export(answer, path)


def write_bundle(answer: Answer, path: Path) -> None:
    """Write the parts of a bundle one after the other, and see that it can be opened."""
    crate, sums = _crate(answer), {}
    with archive(path) as file:
        for part in _parts(answer):
            add(file, part.name, part.content, deflated=part.is_text)
            sums[part.name] = sha256(part.content).hexdigest()
            _describe(crate, part)
        described = _json(crate.metadata.generate())
        add(file, "ro-crate-metadata.json", described, deflated=True)
        sums["ro-crate-metadata.json"] = sha256(described).hexdigest()
        add(file, "whence.json", _json(_manifest(answer, sums)), deflated=True)
    try:
        checked(path)
    except Refused as error:
        raise TooDear(f"this is too much for one bundle: {error}; select fewer") from None


def _manifest(answer: Answer, sums: dict[str, str]) -> dict[str, Any]:
    """What makes this zip a bundle: its format, what to print, and what every file must be."""
    made_by = f"whence {version('whence')}"
    return {"format": FORMAT, "made_by": made_by, "words": words.told(answer), "files": sums}


def _parts(answer: Answer) -> Iterator[Part]:
    """The files of a bundle, always in this order."""
    wished, unmet = names(answer.plan.wish), names(answer.plan.unmet)
    own = {name: each.plan for name, each in answer.own.items()}
    wishes = {"own": answer.wishes} if own else {}
    promised = {"want": wished, **wishes, "unmet": unmet, "guarantee": guarantees(answer)}
    yield Part("README.txt", "the answer in words", "text/plain", _readme(answer).encode())
    yield _part("answer", "the answer, as whence trace --json", answer.to_json())
    yield _part("plan", "the plan, as whence plan --json", plans_json(answer.plan, own))
    yield _part("guarantee", "what was wished for and what is promised", promised)
    text = _pipeline(answer)
    if text is not None:
        about = "the pipeline that made the selected dataset"
        yield Part("pipeline.yaml", about, "application/yaml", text.encode())
    told = provenance(answer).encode()
    yield Part("provenance.json", "provenance, in PROV-JSON", "application/json", told)
    for each in sorted(on_the_path(answer), key=lambda d: d.key):
        plain = to_json(replace(each, path=PurePath(each.path).name))
        yield _part(f"datasets/{each.name}-{each.version}", "a dataset version", plain)
    for name in sorted(answer.lineage):
        yield from _cells(answer, name)


def _part(name: str, about: str, plain: Any) -> Part:
    return Part(f"{name}.json", about, "application/json", _json(plain))


def _json(plain: Any) -> bytes:
    return json.dumps(plain, indent=1, ensure_ascii=False, default=str).encode()


def _cells(answer: Answer, name: str) -> Iterator[Part]:
    """What was found in a dataset: as rows, and of an array as a box with a mask."""
    rows = BytesIO()
    pq.write_table(answer.cells(name).replace_schema_metadata(about(answer)), rows)
    kind = "application/vnd.apache.parquet"
    yield Part(f"cells/{name}.parquet", f"what was traced in {name}", kind, rows.getvalue())
    if _has_box(answer, name):
        box = traced_box(answer, name)
        small = {v: {"zlib": True} for v in box.data_vars}
        data = bytes(box.to_netcdf(None, engine="h5netcdf", encoding=small))
        told = f"the smallest box of {name} around it, with a mask"
        yield Part(f"cells/{name}.nc", told, "application/netcdf", data)


def _has_box(answer: Answer, name: str) -> bool:
    """Whether there is a box around what was found that is small enough to be kept."""
    found = answer.lineage[name]
    try:
        return isinstance(found.dataset, Array) and bool(box_of(found))
    except Refused:
        return False


def _readme(answer: Answer) -> str:
    where = answer.plan.selection.where
    asked = f"{answer.plan.selection.dataset.name}{f' where {where}' if where else ''}"
    boxes = [n for n in sorted(answer.lineage) if _has_box(answer, n)]
    lines = [
        f"Where did this come from: {asked}?",
        "",
        *words.told(answer),
        "",
        "cells/*.parquet holds what was found, a row each.",
        *(f"cells/{n}.nc holds the smallest box of {n} around it, with a mask." for n in boxes),
        "answer.json, plan.json and guarantee.json say it to programs, provenance.json in PROV.",
        "datasets/ describes every dataset version on the way.",
        "",
        "Show it again with: whence open THIS_FILE.whence.zip",
    ]
    return "\n".join(lines) + "\n"


def _pipeline(answer: Answer) -> str | None:
    """The text of the pipeline that made the selected dataset, if a run of ours did."""
    dataset = answer.plan.selection.dataset
    workspace = Workspace.holding(dataset)
    if dataset.made is None or workspace is None:
        return None
    text = History.asked_of(workspace).text_of(dataset.made.run)
    return None if text is None else _without_places(text)


def _without_places(text: str) -> str:
    """A pipeline in which files have names, but no place on a machine."""
    for path in _absolute(text):
        text = text.replace(path, PurePath(path).name)
    if not _absolute(text):
        return text
    plain = yaml.safe_load(text)
    for source in plain["sources"].values():
        source["path"] = PurePath(source["path"]).name
    return yaml.safe_dump(plain, sort_keys=False)


def _absolute(text: str) -> list[str]:
    """The absolute paths of a pipeline's sources, longest first."""
    sources = (yaml.safe_load(text) or {}).get("sources") or {}
    paths = [str(s["path"]) for s in sources.values()]
    return sorted((p for p in paths if PurePath(p).is_absolute()), key=len, reverse=True)


def _crate(answer: Answer) -> ROCrate:
    crate = ROCrate(version="1.2")
    selection = answer.plan.selection
    crate.name = f"Where {len(selection):,} of {selection.dataset.name} came from"
    crate.description = "\n".join(words.told(answer))
    crate.license = "That of the sources; see the attributes of the files."
    return crate


def _describe(crate: ROCrate, part: Part) -> None:
    told = {
        "name": part.about,
        "encodingFormat": part.format,
        "contentSize": str(len(part.content)),
        "sha256": sha256(part.content).hexdigest(),
    }
    crate.add_file(dest_path=part.name, properties=told)
