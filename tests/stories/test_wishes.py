"""Each dataset behind a selection may have a wish of its own; the answer is still one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from explorer.evidence import opened
from pipelines.workspace import Workspace
from tests.stories.asked import Ask

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
    assert agcm == pure["lineage"]["agcm"] != complete["lineage"]["agcm"]
    assert told["lineage"]["minima"] == complete["lineage"]["minima"]
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
