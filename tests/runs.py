"""Runs without Spark: tables of a few letters, published and journalled as real ones are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.datasets import Attribute, Dataset, Made, Quantity, Table
from pipelines.history import Entry, History
from pipelines.pipeline import Pipeline
from pipelines.workspace import Workspace

SPARK = {"master": "nowhere", "version": "0"}
TEXT = "name: {}\nboxes: {{a: {{box: simulate_agcm}}}}\n"


def pipeline(name: str = "p") -> Pipeline:
    """A pipeline to be written down, not to be run."""
    return Pipeline(name, {}, {}, TEXT.format(name))


def described(name: str, made: Made | None, path: str = "table", text: str = "x") -> Table:
    """A small table; without a maker it is a source."""
    origin = None if made else {"checksum": text, "times": "", "size": 1, "newest": 0}
    return Table(
        name=name, version="", path=path, attributes=(Attribute("n", Quantity, ("n",)),),
        types={"n": "int64"}, made=made, origin=origin,
    )  # fmt: skip


def publish(workspace: Workspace, name: str, made: Made | None, text: str = "x") -> Dataset:
    """A version of a small table."""
    with workspace.staged(name) as stage:
        (stage / "table").mkdir()
        (stage / "table" / "part").write_text(text)
        return workspace.publish(stage, described(name, made, text=text))


def step(
    workspace: Workspace,
    entry: Entry,
    name: str,
    inputs: Iterable[Dataset] = (),
    box: str = "",
    version: str = "1",
    params: Mapping[str, Any] | None = None,
) -> Dataset:
    """One box of a run: it makes the dataset of this name."""
    ports = {f"p{n}": d.key for n, d in enumerate(inputs)}
    how = Made(box or f"make_{name}", name, params or {}, ports, entry.run, version, 0.5)
    entry.sources()
    dataset = publish(workspace, name, how, text=name)
    entry.add(name, dataset)
    return dataset


def ran(
    workspace: Workspace,
    steps: Mapping[str, Iterable[str]],
    params: Mapping[str, Mapping[str, Any]] | None = None,
    versions: Mapping[str, str] | None = None,
    name: str = "p",
) -> str:
    """A run of steps, each with the names of its inputs; those not made in it are as they are."""
    with History.recorded(workspace, pipeline(name), SPARK) as entry:
        for made, inputs in steps.items():
            used = [entry.made.get(i) or workspace.dataset(i) for i in inputs]
            given, version = (params or {}).get(made), (versions or {}).get(made, "1")
            step(workspace, entry, made, used, version=version, params=given)
    return entry.run
