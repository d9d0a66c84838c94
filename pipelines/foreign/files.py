"""Files with run graphs: what is in one is found by looking, and all of it is checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.catalog import Catalog
from pipelines.disk import write_whole
from pipelines.errors import Failed, Refused
from pipelines.foreign import edge_lists, events, prov_json
from pipelines.foreign.graph import Graph
from pipelines.foreign.stored import Stored

LARGEST = 2**30
OPENLINEAGE, PROV = "openlineage", "prov"
FORMS = {".jsonl": OPENLINEAGE, ".ndjson": OPENLINEAGE, ".json": PROV}
KNOWN = "OpenLineage events (JSON lines or an array), PROV-JSON, or CSV with source,target"


def read(path: Path | str) -> Graph:
    """The graph in a file, or one line on what is wrong with it."""
    try:
        graph = _graph(_content(Path(path)))
        graph.in_order()
        return graph
    except Refused as error:
        raise Refused(f'cannot import "{path}": {error}') from None


def write(catalog: Catalog, path: Path | str, form: str | None = None) -> int:
    """Write the run graph of a catalog to a file; how many arrows that form has no words for."""
    target = Path(path)
    chosen = form or FORMS.get(target.suffix)
    if chosen is None:
        raise Refused(f'"{path}" does not say its form: end it in .jsonl or .json, or use --as')
    # Only here, since what they stand on takes a while to load.
    from pipelines.foreign import to_events, to_prov

    stored = Stored.by(catalog)
    told = to_prov.text(stored) if chosen == PROV else "\n".join(to_events.lines(stored))
    try:
        write_whole(target, told + "\n")
    except OSError as error:
        raise Failed(f'cannot write "{path}": {error.strerror}') from None
    return 0 if chosen == PROV else to_events.untold(stored)


def _content(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise Refused(f"it has more than {LARGEST:,} bytes; split it")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise Refused(f"{error.strerror}") from None
    except ValueError:
        raise Refused("it is not text in UTF-8") from None


def _graph(content: str) -> Graph:
    start = content.lstrip()[:1]
    if not start:
        raise Refused(f"it is empty; give {KNOWN}")
    if start not in "[{":
        return edge_lists.read(content)
    whole = _whole(content)
    if prov_json.is_one(whole):
        return prov_json.read(whole)
    return events.read(_events(content) if whole is None else _listed(whole))


def _whole(content: str) -> Any:
    """The one JSON value that a text is; None if it is none, or several lines of them."""
    try:
        return json.loads(content)
    except ValueError:
        return None
    except RecursionError:
        raise Refused("its JSON nests too deep") from None


def _listed(whole: Any) -> list[Any]:
    found = whole if isinstance(whole, list) else [whole]
    if not all(isinstance(e, dict) and e.keys() & {"job", "dataset", "run"} for e in found):
        raise Refused(f"its JSON is neither an event nor a document of PROV; give {KNOWN}")
    return found


def _events(content: str) -> Iterator[Any]:
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                raise Refused(f"line {number} is not JSON: {line.strip()!r:.60}") from None
