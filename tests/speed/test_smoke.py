"""Every benchmark runs at a tiny size and states facts that hold; no clock is asserted here."""

import sys
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from inverses.making import made_by
from inverses.registry import Registry
from inverses.trials import data_of, found_by, inversions
from pipelines.boxes.landcover import Label
from pipelines.contents import held_array
from pipelines.datasets import Attribute, Pressure, Time
from pipelines.pipeline import Pipeline
from tests.speed import edges, every, library, storms
from tests.speed.__main__ import BENCHMARKS, main
from tests.speed.benchmarks import BENCHMARKS as CORE
from tests.speed.benchmarks import Scale, storm_tracker
from tests.speed.every import Asked, pipelines_of_every_box
from tests.speed.fields import Bench, Size
from tests.speed.library import BENCHMARKS as LIBRARY
from tests.speed.rows import Aim, Row, table
from tests.speed.sides import Measured

# A low margin calls many cells minima, so that few steps fill more than one row group.
FIELD = Size(resolution=10.0, days=12.0, margin=50.0)
TINY = Scale(FIELD, 5, (FIELD,), turns=1, warm=0, close=1)


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Weather of the tiny size, shared by all that measure it."""
    return Bench(spark, tmp_path_factory.mktemp("bench"))


# Both run pipelines over ten times the days.
SLOW = {"forward": pytest.mark.night, "journal": pytest.mark.night}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=SLOW.get(n, ())) for n in (*CORE, "journal")]
)
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


def two_of_every_box(home: Path) -> list[tuple[str, Pipeline, Asked]]:
    """A box over arrays and one over tables."""
    return [each for each in pipelines_of_every_box(home) if each[0] in ("threshold", "project")]


@pytest.mark.parametrize("name", LIBRARY)
def test_a_benchmark_of_the_library_gives_ratios(
    name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "FEW", 3)
    monkeypatch.setattr(library, "LARGE", 3000)
    monkeypatch.setattr(library, "SUBJECTS", [library.SUBJECTS[1], library.SUBJECTS[-1]])
    monkeypatch.setattr(library, "pipelines_of_every_box", two_of_every_box)
    monkeypatch.setattr(every, "UNKEPT", {"tables": every.UNKEPT["tables"]})
    rows = BENCHMARKS[name](bench, TINY)
    assert rows and all(row.measured and row.measured.ratio > 0 for row in rows)


def test_the_edges_of_labels_are_those_that_the_box_states() -> None:
    values = np.random.default_rng(4).normal(edges.LOW, 1, (2, 5, 8))
    lon, lat = np.arange(8) * 45.0, np.linspace(80, -80, 5)
    times = np.datetime64("2000-01-01", "ns") + np.arange(2) * np.timedelta64(6, "h")
    places = {"time": times, "lat": lat, "lon": lon}
    slp = Attribute("slp", Pressure, ("slp",), "Pa", ("lat", "lon"))
    described = (Attribute("time", Time, ("time",)), slp)
    field = held_array("field", described, places, {"slp": values}, (2, 5, 8), ("lon",))
    box = Label("slp", edges.LOW, "below")
    made = made_by(box, {"field": field})
    hops = inversions(Registry.of(), box, "field", made, field, {"field": field})
    (hop,) = [hop for stated, _, hop in hops if stated.name == "region"]
    behind = found_by(hop, data_of(made))
    stated = {(n, int(np.ravel_multi_index(i[1:], values.shape)))
              for n, items in enumerate(behind) for i in items}  # fmt: skip
    assert {(int(a), int(b)) for a, b in zip(*edges.regions(values), strict=True)} == stated


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
