"""The palette says of each box how well it can be traced, before anything is traced."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from explorer.cli import main
from explorer.drawing import Drawing
from explorer.palette import Palette
from inverses.guarantees import sign
from inverses.promises import natures, promised
from inverses.registry import Registry


def told(registry: Registry) -> dict[str, str]:
    """What the palette says of each box, by its name."""
    palette = Palette(Drawing(None, registry))
    return {item["label"]: item["secondary"] for item in palette.list.items}


def test_a_box_shows_nature_and_promise_without_and_with_verification(registry: Registry) -> None:
    said = told(registry)
    assert "Aggregate: ⊇ complete unverified, = exact verified." in said["window_extreme"]
    assert (
        "Scalar and aggregate: ⊇ complete unverified, = exact verified." in said["extract_minima"]
    )
    assert "Made of parameters alone: a trace ends here." in said["simulate_agcm"]


def test_every_box_with_inputs_shows_what_the_registry_says(registry: Registry) -> None:
    for name, said in told(registry).items():
        box = registry.boxes[name]
        nature = " and ".join(natures(registry, box)).capitalize()
        weak, best = (sign(promised(registry, box, verified)) for verified in (False, True))
        assert not box.takes or (f" {nature}: {weak} " in said and f" unverified, {best} " in said)
        assert box.contributed in said


def test_of_what_is_asked_by_name_alone_less_may_be_promised(registry: Registry) -> None:
    assert "= exact verified; track: ⊇ complete or ⊆ pure." in told(registry)["identify_tracks"]


def test_a_box_without_inverses_is_traced_by_default(registry: Registry) -> None:
    bare = replace(registry, weak=(), verifications=())
    assert "By default: ⊇ complete unverified, ⊇ complete verified." in told(bare)["window_mean"]


def test_a_box_that_is_named_is_told_of_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boxes", "aggregate"]) == 0
    said = capsys.readouterr().out
    assert "\n  takes: a table as rows\n" in said and "called `column_how`" in said
    assert "\nanomaly: " not in said


def test_every_box_with_inputs_lists_its_inverses(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["boxes", "--json"]) == 0
    listed = {box["name"]: box["inverses"] for box in json.loads(capsys.readouterr().out)}
    without = {name for name, inverses in listed.items() if not inverses}
    assert without == {name for name, box in registry.boxes.items() if not box.takes}
