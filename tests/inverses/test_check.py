"""`whence check` holds what is stated against the box itself, and shows what breaks it."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from explorer.cli import main
from inverses.check import check
from inverses.guarantees import EXACT
from inverses.influence import Influences
from inverses.registry import Registry
from inverses.samples import Sample
from inverses.trials import made_by
from pipelines.boxes.groups import Aggregate, TopN
from pipelines.boxes.window import WindowExtreme, WindowMean
from pipelines.contents import held_table
from pipelines.datasets import Attribute, Quantity
from pipelines.filters import Filter

REGISTRY = Registry.of()


def with_weak(name: str, box: type, **changed: object) -> Registry:
    """The shipped registry with one weak inverse made wrong."""
    weak = tuple(
        replace(w, **changed) if w.name == name and issubclass(box, w.box) else w
        for w in REGISTRY.weak
    )
    assert weak != REGISTRY.weak
    return Registry(REGISTRY.boxes, weak, REGISTRY.verifications)


def of(kind: type) -> str:
    """The name of the first weak inverse of a box."""
    return next(w.name for w in REGISTRY.weak if issubclass(kind, w.box))


def own_place(box: object, at: Filter, source: object) -> Filter:
    """It forgets all around."""
    return at.only("time", "lat", "lon")


@pytest.mark.parametrize("kind", [WindowMean, WindowExtreme, Aggregate, TopN])
def test_what_is_shipped_holds(kind: type) -> None:
    found = check(REGISTRY, kind, 25)
    assert found
    assert [f for f in found if not f.holds] == []


def test_an_inverse_that_forgets_is_shown_with_the_smallest_data() -> None:
    registry = with_weak(of(WindowMean), WindowMean, function=own_place)
    broken = [f for f in check(registry, WindowMean, 25) if not f.holds]
    assert {f.law for f in broken} == {"complete"}
    assert "can change it and is not in the answer" in str(broken[0].counterexample)
    assert "window_mean(" in str(broken[0].counterexample)


def test_an_inverse_that_promises_too_much_is_shown() -> None:
    registry = with_weak(of(WindowExtreme), WindowExtreme, promises=EXACT)
    broken = [f for f in check(registry, WindowExtreme, 25) if not f.holds]
    assert "pure" in {f.law for f in broken}


@pytest.mark.parametrize("n, holds", [(1, True), (2, True), (3, False)])
def test_what_ties_is_behind_a_row_only_if_together_it_could_put_it_out(
    n: int, holds: bool
) -> None:
    rows = pa.table({"x": [1.0, 1.0, 1.0], "y": [1.0, 2.0, 3.0]})
    attributes = tuple(Attribute(c, Quantity, (c,)) for c in "xy")
    inputs = {"rows": held_table("rows", attributes, rows)}
    influences = Influences(Sample(TopN("x", n), inputs), "rows", made_by(TopN("x", n), inputs))
    said = influences.contradicting(True, attributes[0], 0, {(0,), (1,), (2,)})
    assert (said is None) == holds, said


def test_the_command_prints_evidence_and_tells_by_its_exit_code(
    capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    kept = f"{tmp_path}/evidence.json"
    assert main(["check", "threshold", "--trials", "10", "--json", "--save", kept]) == 0
    found = json.loads(capsys.readouterr().out)
    keys = {"box", "inverse", "law", "trials", "holds", "counterexample"}
    assert all(set(each) == keys for each in found)
    assert {each["box"] for each in found} == {"threshold"}
    assert main(["check", "treshold"]) == 2
    assert 'did you mean "threshold"' in capsys.readouterr().err
