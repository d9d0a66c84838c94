"""The text of a pipeline, as short as it can be written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from pipelines.boxes.box import default_of
from pipelines.pipeline import Source, Step


def text_of(name: str, sources: Mapping[str, Source], steps: Mapping[str, Step]) -> str:
    """The YAML of a pipeline."""
    plain: dict[str, Any] = {"name": name}
    if sources:
        plain["sources"] = {n: _source_plain(s) for n, s in sources.items()}
    if steps:
        plain["boxes"] = {n: _step_plain(s) for n, s in steps.items()}
    return yaml.dump(
        plain,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=10_000,
        default_flow_style=None,
    )


def _source_plain(source: Source) -> dict[str, Any]:
    variables = {"variables": dict(source.variables)} if source.variables else {}
    return {"path": source.path, "kind": source.kind, **variables}


def _step_plain(step: Step) -> dict[str, Any]:
    """A step as it is written: without what is as it would be anyway."""
    usual = {f.name: default_of(f) for f in step.box.parameters()}
    params = {n: v for n, v in step.box.params().items() if v != usual[n]}
    parts = {"inputs": dict(step.inputs), "params": params}
    kept = {} if step.keep else {"keep": False}
    return {"box": step.box.name, **{k: v for k, v in parts.items() if v}, **kept}


class _Dumper(yaml.SafeDumper):
    """Plain YAML without aliases, which a pipeline may not have."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
