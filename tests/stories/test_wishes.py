"""Each dataset behind a selection may have a wish of its own; the answer is still one."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pyarrow.parquet as pq
import pytest

from explorer.evidence import opened
from inverses.answer import Answer
from inverses.limits import Limits
from inverses.plans import Plan
from inverses.trace import trace_each
from pipelines.workspace import Workspace
from tests.inverses.test_inferring import HERE
from tests.stories.asked import Ask, assert_refused

TRACKS = ("tracks", "--where", "time_index = 4", "--attribute", "track")
WISHES = ("--want", "complete", "--want", "agcm=pure")
KEYS = {"selection", "want", "unmet", "hops", "lineage", "seconds", "spark"}


def test_the_answer_is_one_object_in_which_a_dataset_says_its_own_wish(
    ask: Ask, little: Workspace
) -> None:
    told, complete, pure = (
        json.loads(ask("trace", *TRACKS, *wishes, "--json", "-w", little.path).out)
        for wishes in (WISHES, ("--want", "complete"), ("--want", "pure"))
    )
    assert told.keys() == complete.keys() == KEYS
    assert told["want"] == ["complete"] and told["unmet"] == []
    agcm = told["lineage"]["agcm"]
    assert agcm.pop("want") == agcm["guarantee"] == ["pure"]
    assert agcm.pop("unmet") == []
    assert agcm == pure["lineage"]["agcm"] != complete["lineage"]["agcm"]
    assert told["lineage"]["minima"] == complete["lineage"]["minima"]
    assert {hop["to"] for hop in complete["hops"] if "newcomers" in hop} == {"minima"}
    own = [hop for hop in told["hops"] if "want" in hop]
    assert {hop["to"] for hop in own} == {"minima", "agcm"}
    assert all(hop["want"] == ["pure"] for hop in own)


def test_people_read_which_wish_a_dataset_has(ask: Ask, little: Workspace) -> None:
    said = ask("trace", *TRACKS, *WISHES, "-w", little.path)
    assert "  ⊆ pure: agcm (wished pure), " in said.out
    assert "  ⊇ complete: minima, " in said.out
    proved = ask("trace", *TRACKS[:3], "--want", "agcm=complete", "--prove", "-w", little.path)
    assert "\nproved: run again on this alone" in proved.out


def test_plans_are_shown_one_for_each_wish(ask: Ask, little: Workspace) -> None:
    said = ask("plan", *TRACKS, *WISHES, "-w", little.path)
    general, own = said.out.split(", back to agcm (wished pure):\n")
    assert "chain" in own and "chain" not in general
    assert "minima → agcm" not in general
    plain = json.loads(ask("plan", *TRACKS, *WISHES, "--json", "-w", little.path).out)
    assert [hop["to"] for hop in plain["hops"]] == ["minima"]
    assert plain["own"]["agcm"]["want"] == ["pure"]


def test_exports_hold_what_each_wish_found(ask: Ask, little: Workspace, tmp_path: Path) -> None:
    told = json.loads(
        ask("trace", *TRACKS, *WISHES, "--json", "--export", tmp_path / "it.whence.zip",
            "-w", little.path).out
    )  # fmt: skip
    ask("trace", *TRACKS, *WISHES, "--export", tmp_path / "it.parquet", "-w", little.path)
    evidence = opened(tmp_path / "it.whence.zip")
    cells = told["lineage"]["agcm"]["cells"]
    assert evidence.cells["agcm"].num_rows == cells
    assert pq.read_table(tmp_path / "it.parquet").num_rows == cells
    assert evidence.answer["lineage"] == told["lineage"]
    assert evidence.plan["own"].keys() == {"agcm"}


@pytest.mark.parametrize("wishes", [("minima=pure", "agcm=complete"), ("pure", "minima=complete")])
def test_every_dataset_may_be_named(ask: Ask, little: Workspace, wishes: tuple[str, ...]) -> None:
    asked = [part for wish in wishes for part in ("--want", wish)]
    told = json.loads(ask("trace", *TRACKS, *asked, "--json", "-w", little.path).out)
    assert told["lineage"].keys() == {"minima", "agcm"}
    assert all(set(e.get("want", ())) <= set(e["guarantee"]) for e in told["lineage"].values())
    assert told["want"] == ["pure"] and told["unmet"] == []
    hops = [(hop["to"], *hop.get("want", told["want"]), hop["level"]) for hop in told["hops"]]
    assert len(hops) == len(set(hops)), "no plan is carried out twice"
    assert {wished for _, wished, _ in hops} == {"pure", "complete"}


def test_one_plan_is_enough_if_every_dataset_has_the_same_wish(ask: Ask, little: Workspace) -> None:
    each = ("--want", "minima=pure", "--want", "agcm=pure")
    named, plain = (
        json.loads(ask("trace", *TRACKS, *wishes, "--json", "-w", little.path).out)
        for wishes in (each, ("--want", "pure"))
    )
    assert named["hops"] == plain["hops"]
    assert named["spark"]["jobs"] == plain["spark"]["jobs"]


UNMET = ("--want", "complete", "--want", "agcm=exact")


def test_what_is_not_met_for_a_dataset_is_said_of_it(
    ask: Ask, little: Workspace, tmp_path: Path
) -> None:
    said = ask("trace", *TRACKS, *UNMET, "--export", tmp_path / "it.whence.zip", "-w", little.path)
    assert said.out.startswith("not pure for agcm: no inverse of ")
    assert (
        "\nnot pure for agcm: no inverse of " in ask("plan", *TRACKS, *UNMET, "-w", little.path).out
    )
    with ZipFile(tmp_path / "it.whence.zip") as bundle:
        told, promised = (json.loads(bundle.read(f"{n}.json")) for n in ("answer", "guarantee"))
    agcm = told["lineage"]["agcm"]
    assert agcm["guarantee"] == ["complete"]
    wish = {"want": ["complete", "pure"], "unmet": ["pure"]}
    assert promised["own"] == {"agcm": wish} == {"agcm": {word: agcm[word] for word in wish}}
    assert told["unmet"] == promised["unmet"] == []


def test_limits_are_for_all_wishes_together(ask: Ask, little: Workspace) -> None:
    plain = json.loads(ask("plan", *TRACKS, *WISHES, "--json", "-w", little.path).out)
    read = [
        sum(hop["reads"]["bytes"] for hop in each["hops"])
        for each in (plain, *plain["own"].values())
    ]
    for command in ("plan", "trace"):
        asked = (command, *TRACKS, *WISHES, "-w", little.path, "--limit-bytes")
        assert_refused(ask(*asked, str(sum(read) - 1)), 2, "over the limit", "--limit-bytes")
        assert ask(*asked, str(sum(read))).code == 0
    assert max(read) < sum(read) - 1


def test_time_that_one_wish_took_is_not_there_for_the_next(
    little: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []

    def slow(planned: Plan, spark: object, limits: Limits, progress: object) -> Answer:
        left.append(limits.seconds)
        return Answer(planned, {}, {"total": 4.0}, {"jobs": 0})

    monkeypatch.setattr("inverses.trace.carry_out", slow)
    wishes = {"minima": "pure", "agcm": "complete"}
    answer = trace_each(little, "tracks", TRACKS[2], wishes, spark=HERE, limits=Limits(seconds=6.0))
    assert left == [6.0, 2.0]
    assert 8.0 < answer.seconds["total"] == 8.0 + answer.seconds["plan"]
