"""A pipeline reads the same from any text that says the same, and runs in an order that works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.demo import asset
from pipelines.boxes.cyclones import ExtractMinima, IdentifyTracks, SimulateAgcm
from pipelines.errors import Refused
from pipelines.pipeline import Pipeline, Source, Step

BRANCHED = """
name: branched
sources:
  era: {path: era5.nc, variables: {slp: msl}}
boxes:
  z_tracks: {box: identify_tracks, inputs: {minima: b_minima}}
  b_minima: {box: extract_minima, inputs: {field: era}, params: {margin: 500}}
  a_tracks: {box: identify_tracks, inputs: {minima: c_minima}, params: {near_km: 300}}
  c_minima: {box: extract_minima, inputs: {field: sim}}
  sim: {box: simulate_agcm}
"""


def test_steps_come_after_what_they_need() -> None:
    order = [name for name, _ in Pipeline.from_text(BRANCHED).in_order()]
    assert order == ["b_minima", "sim", "c_minima", "a_tracks", "z_tracks"]


def test_sources_are_in_the_graph_but_are_no_steps() -> None:
    pipeline = Pipeline.from_text(BRANCHED)
    assert set(pipeline.graph()) == {*pipeline.sources, *pipeline.steps}
    assert set(pipeline.graph().edges) == {
        ("era", "b_minima"),
        ("b_minima", "z_tracks"),
        ("sim", "c_minima"),
        ("c_minima", "a_tracks"),
    }


def test_what_a_text_says_is_what_is_there() -> None:
    pipeline = Pipeline.from_text(BRANCHED)
    assert pipeline.name == "branched"
    assert pipeline.sources == {"era": Source("era5.nc", "array", {"slp": "msl"})}
    assert pipeline.steps["b_minima"] == Step(ExtractMinima(margin=500.0), {"field": "era"})
    assert pipeline.steps["a_tracks"].box == IdentifyTracks(near_km=300.0)
    assert pipeline.steps["sim"] == Step(SimulateAgcm(), {})
    assert pipeline.text == BRANCHED


def test_a_whole_number_does_for_a_float_and_nothing_else_does() -> None:
    box = Pipeline.from_text(BRANCHED).steps["b_minima"].box
    assert isinstance(box, ExtractMinima)
    assert type(box.margin) is float
    for other in ("'500'", "true", "null", "[500]", "1e400", ".nan"):
        with pytest.raises(Refused, match="margin is"):
            Pipeline.from_text(BRANCHED.replace("500", other))


def test_a_day_needs_no_quotes() -> None:
    subset = "{box: subset, inputs: {field: a}, params: {start: 2001-01-01}}"
    text = f"name: p\nboxes: {{a: {{box: simulate_agcm}}, s: {subset}}}"
    assert Pipeline.from_text(text).steps["s"].box.params()["start"] == "2001-01-01"


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(BRANCHED)
    assert Pipeline.from_file(tmp_path / "p.yaml").sources["era"].path == str(tmp_path / "era5.nc")
    absolute = BRANCHED.replace("era5.nc", "/data/era5.nc")
    assert Pipeline.from_text(absolute, base=tmp_path).sources["era"].path == "/data/era5.nc"


def test_the_demo_can_be_read() -> None:
    demo = Pipeline.from_file(asset("cyclones.yaml"))
    assert [name for name, _ in demo.in_order()] == ["agcm", "minima", "tracks"]


def test_a_long_circle_is_named() -> None:
    text = "name: p\nboxes:\n" + "".join(
        f"  t{n}: {{box: identify_tracks, inputs: {{minima: t{(n + 1) % 5}}}}}\n" for n in range(5)
    )
    with pytest.raises(Refused, match=r"the arrows run in a circle: .*t0 -> "):
        Pipeline.from_text(text)


def test_a_box_that_feeds_itself_is_a_circle() -> None:
    with pytest.raises(Refused, match=r"circle: t -> t$"):
        Pipeline.from_text("name: p\nboxes: {t: {box: identify_tracks, inputs: {minima: t}}}")


NAMES = st.from_regex(r"[A-Za-z_][\w.-]{0,10}", fullmatch=True)
Plain = dict[str, Any]


@st.composite
def plain_pipelines(draw: st.DrawFn) -> Plain:
    """Pipelines as data: fields from files or simulated, minima of some, tracks of those."""
    names = draw(st.lists(NAMES, min_size=2, max_size=8, unique=True))
    read, made = names[: len(names) // 2], names[len(names) // 2 :]
    sources = {n: {"path": draw(st.sampled_from(["a.nc", "../b.zarr"]))} for n in read}
    boxes: Plain = {}
    for name in made:
        boxes[name] = {"box": "simulate_agcm", "params": {"seed": draw(st.integers(0, 9))}}
        inputs = {"field": draw(st.sampled_from(names))}
        params = {"margin": draw(st.floats(0, 1e6))}
        minima = {"box": "extract_minima", "inputs": inputs, "params": params}
        if draw(st.booleans()):
            boxes[f"{name}-minima"] = minima
            boxes[f"{name}-a"] = {"box": "identify_tracks", "inputs": {"minima": f"{name}-minima"}}
    return {"name": draw(NAMES), "sources": sources, "boxes": boxes}


@settings(max_examples=60)
@given(plain_pipelines())
def test_a_pipeline_survives_a_round_trip_through_yaml(plain: Plain) -> None:
    flow, block = (yaml.safe_dump(plain, default_flow_style=f, sort_keys=f) for f in (True, False))
    one, other = Pipeline.from_text(flow), Pipeline.from_text(block)
    assert (one.name, one.sources, one.steps) == (other.name, other.sources, other.steps)
    assert [n for n, _ in one.in_order()] == [n for n, _ in other.in_order()]
    assert described(one) == filled(plain)


def described(pipeline: Pipeline) -> Plain:
    """A pipeline as the data that it could be read from."""
    steps = pipeline.steps.items()
    return {
        "name": pipeline.name,
        "sources": {n: {"path": s.path} for n, s in pipeline.sources.items()},
        "boxes": {
            n: {"box": s.box.name, "inputs": s.inputs, "params": s.box.params()} for n, s in steps
        },
    }


def filled(plain: Plain) -> Plain:
    """The same data with what it leaves to the defaults."""
    kinds = {b.name: b for b in (SimulateAgcm, ExtractMinima, IdentifyTracks)}
    boxes = {
        n: {
            "box": b["box"],
            "inputs": b.get("inputs", {}),
            "params": {**kinds[b["box"]]().params(), **b.get("params", {})},
        }
        for n, b in plain["boxes"].items()
    }
    return {**plain, "boxes": boxes}


@settings(max_examples=60)
@given(plain_pipelines())
def test_every_step_comes_after_all_it_is_made_of(plain: Plain) -> None:
    pipeline = Pipeline.from_text(yaml.safe_dump(plain))
    there = set(pipeline.sources)
    for name, step in pipeline.in_order():
        assert set(step.inputs.values()) <= there
        there.add(name)
    assert there == {*pipeline.sources, *pipeline.steps}
