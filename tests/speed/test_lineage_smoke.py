"""Lineage is measured at a tiny size, and every approach gives the same answer."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.postgres import postgresql
from tests.speed.approaches import APPROACHES, all_paths, path_rows
from tests.speed.histories import Large
from tests.speed.lineage import evaluated, measured, shown
from tests.speed.plots import plot
from tests.speed.rows import table
from tests.workflows import eman, fmri, montage

TINY = Large(runs=12, turns=1, rebuilds=1, warm=0)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgresql() as address:
        yield address


def test_the_evaluation_of_2008_is_repeated(url: str, tmp_path: Path) -> None:
    every = evaluated(url, quick=True)
    text = shown(every)
    assert all(name in text for name in ("random", "fMRI", "Montage", "EMAN", *APPROACHES))
    scans = next(kept for kept in every if kept.name == "fMRI")
    assert scans.nodes == 45 and (scans.rows["paper"] or 0) <= 107
    assert (scans.rows["labels"] or 0) <= 107
    for kept in every:
        if kept.name in ("Montage", "EMAN"):
            assert kept.rows["paper"] == kept.nodes, "no node is copied"
    pictures = plot(every, tmp_path)
    assert bool(pictures) == bool(find_spec("matplotlib"))
    assert all(path.stat().st_size > 1000 for path in pictures)


def test_a_history_is_measured_in_both_databases(url: str, tmp_path: Path) -> None:
    rows = list(measured(url, TINY, tmp_path))
    assert len(rows) >= 9
    for row in rows:
        assert row.measured is not None or row.missing == "not installed"
    assert "append of 100 datasets" in table(rows)


def test_paths_are_counted_as_walking_them_counts() -> None:
    for graph in (fmri(), montage(4), eman(1, width=3)):
        assert path_rows(graph) == len(list(all_paths(graph)))


def test_workflows_have_the_sizes_that_were_described() -> None:
    assert len(fmri()) == 45
    assert len(montage(40)) > 1000
    assert len(eman(20)) > len(eman(1))
