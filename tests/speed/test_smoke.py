"""Every benchmark runs at a tiny size and states facts that hold; no clock is asserted here."""

import sys

import pytest
from pyspark.sql import SparkSession

from tests.speed import storms
from tests.speed.__main__ import BENCHMARKS, main
from tests.speed.benchmarks import BENCHMARKS as CORE
from tests.speed.benchmarks import Scale, storm_tracker
from tests.speed.fields import Bench, Size
from tests.speed.rows import Aim, Row, table
from tests.speed.sides import Measured

# A low margin calls many cells minima, so that few steps fill more than one row group.
FIELD = Size(resolution=10.0, days=12.0, margin=50.0)
TINY = Scale(FIELD, 5, (FIELD,), turns=1, warm=0)


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Weather of the tiny size, shared by all that measure it."""
    return Bench(spark, tmp_path_factory.mktemp("bench"))


@pytest.mark.parametrize("name", [*CORE, "journal"])
def test_a_benchmark_gives_ratios_and_its_facts_hold(name: str, bench: Bench) -> None:
    rows = BENCHMARKS[name](bench, TINY)
    assert rows
    for row in rows:
        assert [text for text, holds in row.facts if not holds] == []
        if name == "PyStormTracker" and not storms.installed():
            assert row.missing == "not installed"
        else:
            assert row.measured is not None and row.measured.ratio > 0
    assert all(row.name in table(rows) for row in rows)


def test_without_the_storm_tracker_its_rows_say_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pystormtracker", None)
    rows = storm_tracker(bench, TINY)
    assert [row.measured for row in rows] == [None]
    assert "not installed" in table(rows)
    assert not any(row.met for row in rows)


def test_a_row_is_met_by_its_ratio_and_by_its_facts() -> None:
    slow = Measured((3.0,), (1.0,))
    assert Row("slow", Aim("<", 4), slow, (("said so", True),)).met
    assert not Row("slow", Aim("<", 4), slow, (("said so", False),)).met
    assert not Row("slow", Aim("<", 2), slow).met
    assert Row("slow", Aim(">=", 0.3), slow).met, "a gain is the peer's time over ours"


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--only", "everything"])
    assert stopped.value.code == 2
    assert "PyStormTracker" in capsys.readouterr().err
