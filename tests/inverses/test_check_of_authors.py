"""`whence check` of boxes that are unlike ours."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.cli import main
from inverses.check import check
from inverses.registry import Registry
from inverses.samples import grids, inputs_for
from pipelines.boxes.box import STATED, Box, Port, boxes_in
from pipelines.datasets import Location, Pressure, Text, Time, Type, Wind
from pipelines.errors import Refused
from tests.inverses.authored import (
    FORGOTTEN,
    OF_BROKEN,
    OF_DAMP,
    OF_DRIFT,
    OF_FAR,
    OF_GALES,
    OF_GUSTS,
    OF_HALF_OF_THEM,
    OF_HEAT,
    OF_NONSENSE,
    OF_NOWHERE,
    OF_PICKY_GUSTS,
    OF_SOME_HEAT,
    OF_THE_LOWEST,
    OF_TRACES,
    Closed,
    Clumsy,
    Damp,
    Frail,
    Gale,
    Gust,
    Hot,
    Picky,
    Traces,
    Warm,
    authored,
    moody,
    there,
    weak,
)
from tests.inverses.authored_rows import (
    OF_SPOKEN,
    OF_SUMMED,
    OF_SUMMED_IN_PART,
    OF_TEN,
    Nameless,
    Spoken,
    Summed,
    Ten,
)


@pytest.mark.parametrize("registry, kind", [(OF_GUSTS, Gust), (OF_DAMP, Damp), (OF_TRACES, Traces)])
def test_samples_have_all_that_a_port_needs(registry: Registry, kind: type[Box]) -> None:
    found = check(registry, kind, 20)
    assert {"complete", "pure"} <= {f.law for f in found}
    assert [f for f in found if not f.holds] == []


@pytest.mark.parametrize("needs", [(Wind,), (Time,), (Location, Pressure), (Text, Type("Dose"))])
@given(data=st.data())
def test_rows_and_fields_have_what_is_needed_of_them(
    needs: tuple[Type, ...], data: st.DataObject
) -> None:
    for kind in ("table", "array") if not {Text, Location} & {*needs} else ("table",):
        made = data.draw(inputs_for(Port("given", kind, needs), data.draw(grids())))
        assert {each.type for each in made.attributes} >= {*needs}


def test_differences_of_tiny_values_are_seen() -> None:
    broken = {f.law for f in check(OF_HALF_OF_THEM, Traces, 20) if not f.holds}
    assert broken == {"complete", "sufficient"}


@pytest.mark.parametrize("case", FORGOTTEN)
def test_samples_reach_the_poles_years_before_and_columns_that_are_not_round(case: str) -> None:
    broken = {f.law for f in check(FORGOTTEN[case], Gust, 60) if not f.holds}
    assert "complete" in broken


@pytest.mark.parametrize("case", OF_FAR)
def test_samples_have_many_steps_and_columns(case: str) -> None:
    (kind,) = OF_FAR[case].boxes.values()
    assert "complete" in {f.law for f in check(OF_FAR[case], kind, 60) if not f.holds}


def test_samples_have_more_rows_than_the_ten_highest() -> None:
    assert {f.law for f in check(OF_TEN, Ten, 60) if not f.holds} >= {"faithful"}


@pytest.mark.parametrize("registry, kind", [(OF_SPOKEN, Spoken), (OF_SUMMED, Summed)])
def test_other_words_and_whole_numbers_show_what_counts(
    registry: Registry, kind: type[Box]
) -> None:
    found = check(registry, kind, 40)
    assert {"complete", "pure"} <= {f.law for f in found}
    assert [f for f in found if not f.holds] == []


def test_a_row_whose_number_might_be_another_is_missed() -> None:
    (broken,) = [f for f in check(OF_SUMMED_IN_PART, Summed, 40) if not f.holds]
    assert (broken.inverse, broken.law) == ("not_nought", "complete")


def test_an_inverse_that_says_less_of_a_region_is_seen() -> None:
    (broken,) = [f for f in check(OF_THE_LOWEST, Gust, 20) if not f.holds]
    assert broken.law == "regions" and "it says less of" in str(broken.counterexample)


def test_an_inverse_of_what_no_sample_makes_is_not_tried_and_does_not_hold() -> None:
    found = {f.law: f for f in check(OF_HEAT, Hot, 20) if f.inverse}
    assert found.keys() == {"complete", "pure"}
    assert all(f.trials == 0 and not f.holds for f in found.values())
    assert "of 20 samples" in str(found["pure"].counterexample)
    assert [f for f in check(OF_SOME_HEAT, Warm, 20) if not f.holds] == []


def test_an_inverse_of_cells_that_are_all_missing_is_not_tried_and_does_not_hold() -> None:
    found = {f.law: f for f in check(OF_GALES, Gale, 20) if f.inverse}
    assert found.keys() == {"complete", "pure"}
    assert all(f.trials == 0 and not f.holds for f in found.values())
    assert "the box makes nothing; give it examples" in str(found["pure"].counterexample)


def test_what_is_not_seen_a_second_time_is_told_with_the_data_it_was_seen_with() -> None:
    broken = [f for f in check(authored(weak(Gust, moody())), Gust, 5) if not f.holds]
    assert broken
    assert all("; with gust() over field" in str(f.counterexample) for f in broken)


def test_an_inverse_that_fits_nothing_is_not_tried_though_others_are() -> None:
    (found,) = [f for f in check(OF_NOWHERE, Gust, 20) if not f.holds]
    assert (found.inverse, found.law, found.trials) == ("nowhere", "complete", 0)
    assert "Location is made of anything at a port" in str(found.counterexample)


def test_samples_that_a_box_refuses_are_left_out() -> None:
    found = {f.law: f for f in check(OF_PICKY_GUSTS, Picky, 40)}
    assert found["runs"].holds and found["complete"].holds and found["pure"].holds
    assert 0 < found["complete"].trials < found["runs"].trials
    said = str(found["sufficient"].counterexample)
    assert said.startswith("of the answer alone, nothing is made: some wind is missing")


@pytest.mark.parametrize("kind, error", [(Clumsy, "ValueError"), (Frail, "Failed")])
def test_a_box_that_ends_in_an_error_is_shown_with_the_data_that_make_it(
    kind: type[Box], error: str
) -> None:
    found = {f.law: f for f in check(OF_PICKY_GUSTS, kind, 40)}
    said = str(found["runs"].counterexample)
    complaint = f"it raises {error}: some wind is missing"
    assert said.startswith(f"{complaint}; with {kind.name}() over field")
    assert "nan" in said and complaint in str(found["complete"].counterexample)


def test_a_box_that_refuses_all_samples_is_not_tried_and_says_why() -> None:
    broken = [f for f in check(OF_PICKY_GUSTS, Closed, 5) if not f.holds]
    assert {f.law for f in broken} == {"complete", "pure"}
    assert all("makes nothing: it is closed; give it" in str(f.counterexample) for f in broken)


def test_an_inverse_that_ends_in_an_error_holds_nothing() -> None:
    found = [f for f in check(OF_BROKEN, Gust, 10) if f.inverse]
    assert {"complete", "pure", "narrowing"} <= {f.law for f in found if not f.holds}
    said = [str(f.counterexample) for f in found if not f.holds]
    assert all("""it raises Failed: "broken" of Gust failed: KeyError: 'lat'""" in s for s in said)


@pytest.mark.parametrize("says", OF_NONSENSE)
def test_an_inverse_that_makes_nonsense_holds_nothing_and_is_told_what_to_make(says: str) -> None:
    broken = {f.law: f for f in check(OF_NONSENSE[says], Gust, 20) if not f.holds}
    assert {"complete", "monotony"} <= broken.keys()
    assert says in str(broken["complete"].counterexample)


def test_what_no_trial_can_show_is_not_asked_of_trials() -> None:
    with patch.object(Hot, "influence", STATED):
        assert {f.law for f in check(OF_HEAT, Hot, 5) if f.inverse} == {"complete"}


def test_an_inverse_of_several_boxes_need_not_fit_each() -> None:
    shared = replace(OF_NOWHERE, weak=(*OF_NOWHERE.weak, weak(Traces, there, name="own")))
    assert [f for f in check(shared, Traces, 5) if not f.holds] == []


def test_the_command_says_what_was_not_tried_and_keeps_no_evidence_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "evidence.json"
    with patch.object(Registry, "of", lambda *_: OF_HEAT):
        assert main(["check", "hot", "--trials", "5", "--save", str(saved)]) == 1
    said = capsys.readouterr().out
    assert "hot: own_cell, complete: NOT TRIED\n  never tried: of 5 samples" in said
    assert "give it examples" in said
    assert "no inverse could be tried" not in said
    assert json.loads(saved.read_text()) == []


def test_a_box_without_a_name_is_refused_in_words() -> None:
    mine = ModuleType("mine")
    vars(mine)["Nameless"] = Nameless
    with pytest.raises(Refused, match="is a box without a name"):
        boxes_in([mine])


def test_the_command_says_which_parameters_no_example_varies(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with patch.object(Registry, "of", lambda *_: OF_DRIFT):
        assert main(["check", "drift", "--trials", "5"]) == 0
        assert "drift: by is 0 in all its examples, and was tried as" in capsys.readouterr().out
        assert main(["check", "drift", "--trials", "5", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
