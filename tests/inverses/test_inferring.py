"""A box without inverses is probed if one asks for it; what was seen is never called complete."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest
from pyspark.sql import SparkSession

from inverses import words
from inverses.answer import Answer
from inverses.guarantees import NOTHING, names, sign
from inverses.inferring import Likeness, _probed_once, inferable, inferring
from inverses.registry import Registry
from inverses.trace import trace
from pipelines.boxes.box import Box
from pipelines.datasets import Array
from pipelines.here import Here
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.files import grid
from tests.inverses.bare import Apart, Cooled

HERE = cast(SparkSession, Here(2))
REGISTRY = Registry.of(["tests.inverses.bare"])
TEXT = """
name: bare
sources: {world: {path: world}}
boxes:
  blurred: {box: blurred, inputs: {field: world}}
  wide: {box: blurred, inputs: {field: blurred}, params: {reach: 2}}
  drifted: {box: drifted, inputs: {field: world}}
  levelled: {box: levelled, inputs: {field: world}}
  choosy: {box: choosy, inputs: {field: world}}
  lately: {box: lately, inputs: {field: world}}
  smooth: {box: window_mean, inputs: {field: drifted}}
"""
SHAPE = (12, 18, 36)
WHERE = "time = '2001-03-02' and lat between 20 and 30 and lon = 180"
AT = (4, 6, 18)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    home = tmp_path_factory.mktemp("bare")
    grid(np.random.default_rng(3).normal(0, 1, SHAPE), wind=()).to_zarr(
        home / "world", consolidated=False
    )
    workspace = Workspace.create(home / "w")
    run(Pipeline.from_text(TEXT, REGISTRY.boxes, base=home), workspace, HERE)
    return workspace


def asked(workspace: Workspace, name: str, infer: bool = True, where: str = WHERE) -> Answer:
    return trace(workspace, name, where, spark=HERE, registry=REGISTRY, infer=infer)


def offsets(answer: Answer) -> set[tuple[int, ...]]:
    """How far from the datum the cells lie that were found."""
    cells = answer.cells("world").to_pylist()
    found = [tuple(c[f"{d}_index"] for d in ("time", "lat", "lon")) for c in cells]
    return {tuple(n - m for n, m in zip(cell, AT, strict=True)) for cell in found}


def test_the_datum_is_where_the_tests_say(workspace: Workspace) -> None:
    (cell,) = asked(workspace, "world").cells("world").to_pylist()
    assert tuple(cell[f"{d}_index"] for d in ("time", "lat", "lon")) == AT


def test_windows_are_the_stencils_that_boxes_have(workspace: Workspace) -> None:
    three = {(0, y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)}
    assert offsets(asked(workspace, "blurred")) == three
    drifted = {(t, 0, x) for t in (-1, 0) for x in (0, 1, 2)}
    assert offsets(asked(workspace, "drifted")) == drifted
    chained = {(0, y, x) for y in range(-3, 4) for x in range(-3, 4)}
    assert offsets(asked(workspace, "wide")) == chained, "each with its own parameters"


def test_where_no_end_is_seen_there_is_none(workspace: Workspace) -> None:
    assert asked(workspace, "levelled").lineage["world"].cells == SHAPE[1] * SHAPE[2]


@pytest.mark.parametrize("name", ["blurred", "drifted", "levelled", "smooth"])
@pytest.mark.parametrize("want", ["exact", "complete", "pure"])
def test_nothing_is_promised_of_what_was_inferred(
    workspace: Workspace, name: str, want: str
) -> None:
    answer = trace(workspace, name, WHERE, (), want, spark=HERE, registry=REGISTRY, infer=True)
    assert answer.guarantee("world") == NOTHING
    assert sign(answer.guarantee("world")) == "?"
    assert names(answer.plan.unmet) == answer.to_json()["want"]


def test_it_is_said_how_often_it_was_seen(workspace: Workspace) -> None:
    answer = asked(workspace, "blurred")
    told = "field: time 0, lat -1 to 1, lon -1 to 1 (inferred from 55 probes; no guarantee)"
    (hop,) = {hop["to"]: hop for hop in answer.to_json()["hops"]}.values()
    assert set(hop["weak"]) == {"inferred_window"} and hop["guarantee"] == []
    assert hop["inferred"] == {"inferred_window": told}
    assert any(f"inferred_window: {told}" in line for line in words.told(answer))
    assert words.inferred(answer.plan) == [f"blurred: inferred_window: {told}"]


def test_unless_it_is_asked_for_everything_is_the_answer(workspace: Workspace) -> None:
    answer = asked(workspace, "blurred", infer=False)
    assert answer.lineage["world"].cells == np.prod(SHAPE)
    assert names(answer.guarantee("world")) == ["complete"]
    assert inferable([answer.plan], REGISTRY) == ["blurred"]
    assert not any("inferred" in hop for hop in answer.to_json()["hops"])


@pytest.mark.parametrize("name", ["choosy", "lately"])
def test_a_box_that_cannot_be_probed_has_the_default(workspace: Workspace, name: str) -> None:
    answer = asked(workspace, name)
    assert answer.lineage["world"].cells == np.prod(SHAPE)
    assert names(answer.guarantee("world")) == ["complete"]


def test_a_box_with_inverses_is_never_probed_and_another_only_once(workspace: Workspace) -> None:
    boxes: list[Box] = []

    def noted(box: Box, inputs: Any) -> Any:
        boxes.append(box)
        return []

    _probed_once.cache_clear()
    with patch("inverses.inferring.probed", noted):
        for _ in range(2):
            inferring(REGISTRY, workspace, workspace.dataset("smooth"))
    _probed_once.cache_clear()
    assert [box.name for box in boxes] == ["drifted"]


@pytest.mark.parametrize("box, dim, reach", [(Apart(), "lat", (-1, 0)), (Cooled(), "lon", (0, 1))])
def test_ports_of_equally_long_names_are_told_apart(
    workspace: Workspace, box: Box, dim: str, reach: tuple[int, int]
) -> None:
    world = workspace.dataset("world")
    assert isinstance(world, Array)
    alike = tuple(Likeness.of(port, world) for port in ("warm", "cold"))
    seen = {each.port: each.reach[dim] for each in _probed_once(box, alike)}
    assert seen == {"warm": (0, 0), "cold": reach}
