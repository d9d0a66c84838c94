"""A box without inverses is probed: what was seen is told as seen, with no guarantee."""

from inverses.probing import probe
from pipelines.boxes.landcover import Label
from pipelines.boxes.pointwise import Combine
from pipelines.boxes.relational import FilterRows
from pipelines.boxes.times import RollingMean
from pipelines.boxes.window import WindowMean
from tests.inverses.bare import Apart, Cooled


def test_windows_are_inferred_from_what_changes() -> None:
    (seen,) = probe(WindowMean)
    box = WindowMean.from_params(WindowMean.examples[0])
    rows, columns = box.lat // 2, box.lon // 2
    assert seen.reach == {"time": (0, 0), "lat": (-rows, rows), "lon": (-columns, columns)}
    assert "no guarantee" in seen.text()


def test_each_port_is_probed() -> None:
    assert [seen.port for seen in probe(Combine)] == ["field", "other"]
    (rolling,) = probe(RollingMean)
    assert rolling.reach["lat"] == rolling.reach["lon"] == (0, 0)


def test_ports_of_equally_long_names_are_given_fields_that_differ() -> None:
    assert {seen.port: seen.reach["lat"] for seen in probe(Apart)} == {
        "warm": (0, 0),
        "cold": (-1, 0),
    }
    assert {seen.port: seen.reach["lon"] for seen in probe(Cooled)} == {
        "warm": (0, 0),
        "cold": (0, 1),
    }


def test_regions_are_seen_to_reach_far() -> None:
    for seen in probe(Label):
        assert seen.reach["time"] == (0, 0)


def test_tables_are_not_probed() -> None:
    assert probe(FilterRows) == []
