"""`whence check` holds what is stated against the box itself, and shows what breaks it."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from explorer.cli import main
from inverses import words
from inverses.check import NO_NEWCOMERS, check
from inverses.evidence import Evidence, Shown, gathered, known, sum_of_pages
from inverses.guarantees import EXACT
from inverses.influence import Influences
from inverses.making import made_by
from inverses.registry import SCALAR, Registry
from inverses.samples import Sample
from pipelines.boxes.box import Box
from pipelines.boxes.cyclones import ExtractMinima, IdentifyTracks
from pipelines.boxes.extraction import ExtractAbove
from pipelines.boxes.gridding import GridRows
from pipelines.boxes.groups import Aggregate, TopN
from pipelines.boxes.landcover import Label
from pipelines.boxes.masks import Choose, Threshold
from pipelines.boxes.pointwise import Calculate
from pipelines.boxes.relational import Distinct
from pipelines.boxes.times import Climatology, RollingMean
from pipelines.boxes.window import WindowExtreme, WindowMean
from pipelines.contents import held_array, held_table
from pipelines.datasets import Attribute, Pressure, Quantity, Time
from tests.inverses import wrong
from tests.inverses.authored import there
from tests.inverses.wrong import REGISTRY, Stated, is_caught, registry_with


def of(kind: type) -> str:
    """The name of the first weak inverse of a box."""
    return next(w.name for w in REGISTRY.weak if issubclass(kind, w.box))


@pytest.mark.parametrize("kind", [WindowMean, WindowExtreme, Aggregate, TopN])
def test_what_is_shipped_holds(kind: type) -> None:
    found = check(REGISTRY, kind, 25)
    assert found
    assert [f for f in found if not f.holds] == []


def test_an_inverse_that_forgets_is_shown_with_the_smallest_data() -> None:
    registry = registry_with(of(WindowMean), WindowMean, function=wrong.own_place)
    found = {f.law: f for f in check(registry, WindowMean, 25) if not f.holds}
    assert {*found} == {"complete", "sufficient", "faithful"}
    assert "can change it and is not in the answer" in str(found["complete"].counterexample)
    assert "is not made again" in str(found["sufficient"].counterexample)
    assert "window_mean(" in str(found["complete"].counterexample)


def test_an_inverse_that_promises_too_much_is_shown() -> None:
    registry = registry_with(of(WindowExtreme), WindowExtreme, promises=EXACT)
    broken = [f for f in check(registry, WindowExtreme, 25) if not f.holds]
    assert "pure" in {f.law for f in broken}


PASSES = {"function": wrong.everything_passes}
WRONG = {
    "another step": ("same_step", ExtractMinima, {"function": wrong.next_step}, "complete"),
    "any step": ("same_step", ExtractMinima, {"function": wrong.any_time}, "pure"),
    "the first step": ("same_step", ExtractMinima, {"function": wrong.first_step}, "faithful"),
    "no other steps": ("whole_cycle", Climatology, {"function": there}, "faithful"),
    "steps farther away": ("window", RollingMean, {"function": wrong.next_steps}, "complete"),
    "the first rows": ("rows_in_cell", GridRows, {"function": wrong.first_rows}, "faithful"),
    "the ends of a region": ("same_place", Calculate, {"function": wrong.both_ends}, "regions"),
    "all of a region": ("own_cell", ExtractAbove, {"function": wrong.more_of_regions}, "regions"),
    "the first rows of a region": (
        "rows_in_cell",
        GridRows,
        {"function": wrong.first_rows},
        "regions",
    ),
    "no neighbours": ("neighbourhood", ExtractMinima, {"function": wrong.too_near}, "complete"),
    "all around": ("neighbourhood", ExtractMinima, {"promises": EXACT}, "pure"),
    "another's place": (
        "neighbourhood",
        ExtractMinima,
        {"function": wrong.around_all},
        "narrowing",
    ),
    "its chunk": ("neighbourhood", ExtractMinima, {"function": wrong.whole_chunk}, "chunking"),
    "another's pressure": ("own_cell", ExtractMinima, {"function": wrong.nothing}, "complete"),
    "all winds": ("both_components", ExtractMinima, {"function": wrong.any_time}, "pure"),
    "the point for its track": (
        "cone",
        IdentifyTracks,
        {"function": wrong.only_the_point},
        "complete",
    ),
    "a track of no one": ("same_time", IdentifyTracks, {"function": wrong.before}, "complete"),
    "all rows": ("same_values", Distinct, {"function": wrong.alike_in_part}, "pure"),
    "rows of a name": ("same_values", Distinct, {"function": wrong.not_named_p}, "complete"),
    "the centre": ("criterion", ExtractMinima, {"function": wrong.centre}, "complete"),
    "the whole five by five": ("criterion", ExtractMinima, PASSES, "pure"),
    "no edge": ("region", Label, {"function": wrong.region_alone}, "complete"),
    "the condition": ("chosen", Choose, {"function": wrong.of_condition}, "complete"),
    "both formulas": ("chosen", Choose, PASSES, "pure"),
    "all of the cone": ("chain", IdentifyTracks, PASSES, "pure"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_inverse_is_caught(case: str) -> None:
    name, kind, changed, law = WRONG[case]
    assert is_caught(registry_with(name, kind, **changed), kind, name, law)


def test_regions_that_do_not_begin_with_the_least_are_tried() -> None:
    registry = registry_with("none_below", TopN, function=wrong.in_range)
    assert is_caught(registry, TopN, "none_below", "faithful", 300)


def test_a_scalar_attribute_that_loses_rows_to_another_is_caught() -> None:
    def scalar(every: tuple[Stated, ...]) -> tuple[Stated, ...]:
        return tuple(replace(s, nature=SCALAR) if s.box is Aggregate else s for s in every)

    lie = replace(
        REGISTRY, weak=scalar(REGISTRY.weak), verifications=scalar(REGISTRY.verifications)
    )
    (broken,) = [f for f in check(lie, Aggregate, 40) if not f.holds]
    assert (broken.inverse, broken.law) == ("counted", "natures")
    assert "asked together with " in str(broken.counterexample)


@pytest.mark.parametrize("kind", [TopN, Aggregate, WindowExtreme, Label])
def test_a_box_that_makes_something_new_of_less_is_not_monotone(kind: type[Box]) -> None:
    with patch.object(kind, "monotone", True):
        assert is_caught(REGISTRY, kind, *NO_NEWCOMERS)


@pytest.mark.parametrize("kind", [k for k in REGISTRY.boxes.values() if k.monotone])
def test_a_box_that_is_monotone_makes_nothing_new_of_less(kind: type[Box]) -> None:
    assert not is_caught(REGISTRY, kind, *NO_NEWCOMERS, 30)


def test_what_a_box_says_of_itself_is_tested_without_inverses_and_is_no_evidence_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = Registry(REGISTRY.boxes, (), ())
    with patch.object(Registry, "of", lambda *_: bare), patch.object(Threshold, "monotone", True):
        saved = str(tmp_path / "evidence.json")
        assert main(["check", "threshold", "--trials", "10", "--save", saved]) == 0
    said = capsys.readouterr().out
    assert "threshold: no newcomers: holds in 10 trials\n" in said
    assert "threshold: no inverse could be tried" in said
    assert json.loads(Path(saved).read_text()) == []


def contradicting_all(values: list[float], n: int) -> str | None:
    """What is said if every row is held to be behind the first of the n highest."""
    rows = pa.table({"x": values, "y": [float(k) for k in range(len(values))]})
    attributes = tuple(Attribute(c, Quantity, (c,)) for c in "xy")
    inputs = {"rows": held_table("rows", attributes, rows)}
    influences = Influences(Sample(TopN("x", n), inputs), "rows", made_by(TopN("x", n), inputs))
    return influences.contradicting(True, attributes[0], 0, {(k,) for k in range(len(values))})


@pytest.mark.parametrize("n, holds", [(1, True), (2, True), (3, False)])
def test_what_ties_is_behind_a_row_only_if_together_it_could_put_it_out(
    n: int, holds: bool
) -> None:
    said = contradicting_all([1.0, 1.0, 1.0], n)
    assert (said is None) == holds, said


@pytest.mark.parametrize("row", [0, 2, 3])
def test_a_row_that_cannot_matter_does_not_hide_behind_rows_that_tie(row: int) -> None:
    values = [5.0] * 3
    values.insert(row, 3.0)
    said = contradicting_all(values, 2)
    assert said == f"({row},) of rows cannot change it: datum 0, x"


@pytest.mark.parametrize("n, many", [(1, 4), (2, 4), (3, 5), (2, 30)])
def test_each_of_many_rows_that_tie_may_be_one_of_those_it_takes(n: int, many: int) -> None:
    assert contradicting_all([5.0] * many, n) is None


def test_a_step_in_which_nothing_is_known_may_have_had_the_place_too() -> None:
    start, step = np.datetime64("2000-01-01", "ns"), np.timedelta64(6, "h")
    places = {"time": start + np.arange(2) * step, "lat": np.arange(3.0), "lon": np.zeros(1)}
    cells = np.array([[[np.nan]] * 3, [[-3.0], [-1.5], [np.nan]]])
    slp = Attribute("slp", Pressure, ("slp",), "Pa", ("lat", "lon"))
    field = held_array("field", (Attribute("time", Time, ("time",)), slp), places, {"slp": cells})
    sample = Sample(ExtractMinima(0.0), {"field": field})
    made = made_by(sample.box, sample.inputs)
    influences = Influences(sample, "field", made, steps=True)
    location = made.attribute("location")
    assert influences.contradicting(True, location, 0, {(0,), (1,)}) is None


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


def test_a_box_is_checked_with_those_that_make_what_it_makes_besides(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "split_rows", "--trials", "5", "--json"]) == 0
    assert {f["box"] for f in json.loads(capsys.readouterr().out)} == {"split_rows", "filter_rows"}


def test_a_law_that_does_not_hold_is_told_by_the_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    forgetful = registry_with(of(WindowMean), WindowMean, function=wrong.own_place)
    with patch.object(Registry, "of", lambda *_: forgetful):
        assert main(["check", "window_mean", "--trials", "10"]) == 1
    assert "DOES NOT HOLD" in capsys.readouterr().out


def test_evidence_that_is_shipped_is_of_inverses_that_are_there_and_held() -> None:
    stated = (*REGISTRY.weak, *REGISTRY.verifications)
    there = {
        (name, box.version, each.name)
        for name, box in REGISTRY.boxes.items()
        for each in stated
        if issubclass(box, each.box)
    }
    shipped = known()
    assert shipped.keys() <= there
    assert {box for box, _, _ in shipped} == {n for n, b in REGISTRY.boxes.items() if b.takes}
    assert all(each.held and each.trials >= 100 for each in shipped.values())
    for (box, _, inverse), each in shipped.items():
        assert each.pages == REGISTRY.pages(REGISTRY.boxes[box], inverse), f"check {box} again"


def test_promises_that_nothing_can_try_are_not_counted_as_held() -> None:
    laws = {"monotony", "complete"}
    tested = [Shown("label", "1", "region", law, 9, True, frozenset(("complete", "pure")))
              for law in laws]  # fmt: skip
    (kept,) = gathered(tested)
    assert kept["untried"] == ("pure",)
    assert "pure" not in {f.law for f in check(REGISTRY, Label, 5)}


def test_an_answer_tells_of_every_promise_that_was_not_tried() -> None:
    first, second = REGISTRY.weak[:2]
    held = Evidence(60, True, "2000-01-01"), Evidence(90, True, "2000-01-01", ("pure",))
    used = [replace(r, evidence=e) for r, e in zip((first, second), held, strict=True)]
    assert words.tested(used).endswith(
        "60 trials on 2000-01-01, which cannot show that it is pure)"
    )


def test_what_testing_has_shown_is_told_by_its_weakest_part() -> None:
    first, second, third = REGISTRY.weak[:3]
    much, little = Evidence(900, True, "2000-01-01"), Evidence(60, True, "2000-01-01")
    broken = Evidence(700, False, "2000-01-01")
    some = [replace(first, evidence=much), replace(second, evidence=little)]
    assert words.tested(some) == "(stated by the author, held in 60 trials on 2000-01-01)"
    assert words.tested([*some, replace(third, evidence=None)]) == ""
    assert words.tested([*some, replace(third, evidence=broken)]).endswith(
        "BROKEN within 700 trials on 2000-01-01)"
    )


def test_an_inverse_of_several_boxes_is_known_by_the_one_it_was_tested_least_for() -> None:
    pages = REGISTRY.pages(REGISTRY.boxes["select"], "same_cell")
    much, little = (Evidence(n, True, "2000-01-01", pages=pages) for n in (900, 60))
    assert shown_of_same_cell(select=much) == much
    assert shown_of_same_cell(select=much, subset=little) == little


def shown_of_same_cell(**tested: Evidence) -> Evidence | None:
    """What is believed of an inverse, by what was shown of it for some boxes."""
    found = {(box, "1", "same_cell"): each for box, each in tested.items()}
    (one,) = [w for w in REGISTRY.with_evidence(found).weak if w.name == "same_cell"]
    return one.evidence


def test_what_was_shown_of_other_pages_is_no_evidence() -> None:
    assert shown_of_same_cell(select=Evidence(900, True, "2000-01-01", pages="0" * 12)) is None
    assert shown_of_same_cell(select=Evidence(900, True, "2000-01-01")) is None


def test_the_sum_of_a_page_is_another_one_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in {"page": "n = 1", "same_page": "n = 1", "other_page": "n = 2"}.items():
        (tmp_path / f"{name}.py").write_text(text)
        import_module(name)
    page, same, other = (sum_of_pages([n]) for n in ("page", "same_page", "other_page"))
    assert page == same != other
    assert sum_of_pages(["page", "other_page"]) == sum_of_pages(["other_page", "page"]) != page


def test_what_is_kept_of_one_box_leaves_what_is_kept_of_others(tmp_path: Path) -> None:
    kept = tmp_path / "evidence.json"
    for box in ("threshold", "subset", "threshold"):
        assert main(["check", box, "--trials", "5", "--json", "--save", str(kept)]) == 0
    every = [(e["box"], e["inverse"]) for e in json.loads(kept.read_text())]
    assert every == [("subset", "same_cell"), ("threshold", "cell_there")]
