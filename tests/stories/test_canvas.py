"""Pipelines are drawn in a real browser, by mouse and by keyboard, and run as they were drawn."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect
from pyspark.sql import SparkSession

from explorer.demo import asset
from explorer.draft import Draft
from inverses.trace import trace
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.bench import Bench, bench, word
from tests.browser import tab_to, visiting
from tests.stories.explored import exploring, lit, opened, until

CYCLONES = asset("cyclones.yaml").read_text()


def test_the_cyclone_pipeline_is_drawn_by_mouse_undone_redone_saved_and_run(
    chromium: Browser, workspace: Workspace, spark: SparkSession
) -> None:
    with bench(chromium, workspace) as on:
        on.press("Edit")
        place_three_boxes(on)
        what_does_not_fit_is_refused(on)
        join_them(on)
        name_it(on, "cyclones")
        drawn, demo = on.canvas.draft, Pipeline.from_text(CYCLONES)
        assert (dict(drawn.sources), dict(drawn.steps)) == (demo.sources, demo.steps)

        undo_to_empty_and_redo(on)
        assert on.canvas.draft == drawn

        on.node("agcm").click()
        tune(on, "days (days)", "4")
        it_runs_from_where_it_is_saved_and_here(on, workspace, spark)
    what_was_drawn_can_be_traced(chromium, workspace, spark)


def place_three_boxes(on: Bench) -> None:
    on.drop("simulate_agcm", 130, 300)
    on.page.get_by_role("button", name="Fit View").click()
    on.drop("extract_minima", 760, 100)
    on.press("Tidy")
    on.press("Fit")
    on.page.wait_for_timeout(400)
    on.drop("identify_tracks", 500, 560)
    on.press("Tidy")
    on.press("Fit")
    on.page.wait_for_timeout(500)
    for old, new in (("simulate_agcm", "agcm"), ("extract_minima", "minima")):
        rename(on, old, new)
    rename(on, "identify_tracks", "tracks")


def what_does_not_fit_is_refused(on: Bench) -> None:
    refused = on.pull("agcm", "tracks", "minima")
    assert refused == 'port "minima" of box "tracks" takes a table, "agcm" is an array'
    assert on.canvas.draft.problems().keys() == {"minima", "tracks"}
    on.press("Run all")
    expect(on.page.get_by_text('has nothing at its port "field"')).to_be_visible()


def join_them(on: Bench) -> None:
    on.pull("agcm", "minima", "field")
    on.until(lambda c: c.draft.steps["minima"].inputs == {"field": "agcm"})
    on.pull("minima", "tracks", "minima")
    on.until(lambda c: not c.draft.problems())
    expect(on.page.locator(".react-flow__edge")).to_have_count(2)


def name_it(on: Bench, name: str) -> None:
    field = on.page.get_by_label("Pipeline", exact=True)
    field.fill(name)
    field.press("Enter")
    on.until(lambda c: c.draft.name == name)


def it_runs_from_where_it_is_saved_and_here(
    on: Bench, workspace: Workspace, spark: SparkSession
) -> None:
    on.press("Save")
    expect(on.page.get_by_text("saved; run it with: whence run")).to_be_visible()
    kept = workspace.path / "pipelines" / "cyclones.yaml"
    made = run(Pipeline.from_file(kept), workspace, spark)
    assert set(made) == {"agcm", "minima", "tracks"}

    on.press("Run all")
    on.until(lambda c: c.severity == "success" and "made agcm v2" in c.notice, 120)
    assert workspace.dataset("tracks").rows == made["tracks"].rows
    expect(on.node("tracks")).to_contain_text(f"✓ {made['tracks'].rows} rows")
    expect(on.node("tracks")).to_have_class(word("is-done"))


def what_was_drawn_can_be_traced(
    chromium: Browser, workspace: Workspace, spark: SparkSession
) -> None:
    """The first point that is worth a look lights up the cells that a trace finds."""
    with exploring(workspace) as explorer, visiting(chromium, explorer.url) as page:
        opened(page)
        page.get_by_text("Spark is ready").wait_for()
        page.get_by_role("button", name="hPa").first.click()
        page.get_by_role("button", name="Trace back").first.click()
        until(page, lambda: lit(page))
        asked = explorer.visits[0].state
        found = trace(workspace, asked.dataset, asked.where, spark=spark).cells("agcm").to_pylist()
        assert lit(page) == {(round(c["lon"] % 360, 3), round(c["lat"], 3)) for c in found}


def rename(on: Bench, old: str, new: str) -> None:
    on.node(old).click()
    field = on.page.get_by_label("Name", exact=True)
    expect(field).to_have_value(old)
    field.fill(new)
    field.press("Enter")
    expect(on.node(new)).to_be_visible()


def tune(on: Bench, label: str, value: str) -> None:
    field = on.page.get_by_label(label)
    field.press("Control+a")
    field.press_sequentially(value)
    field.press("Enter")
    on.until(lambda c: c.draft.steps["agcm"].box.params()["days"] == float(value))


def undo_to_empty_and_redo(on: Bench) -> None:
    steps = 0
    while on.canvas.can_undo:
        on.press("Undo (Ctrl+Z)")
        steps += 1
        on.until(lambda c: len(c._steps.future) == steps)  # noqa: B023
    expect(on.page.locator(".react-flow__node")).to_have_count(0)
    assert on.canvas.draft == Draft()
    on.page.locator("body").click(position={"x": 5, "y": 5})
    for left in range(steps - 1, -1, -1):
        on.page.keyboard.press("Control+y")
        on.until(lambda c: len(c._steps.future) == left)  # noqa: B023
    expect(on.page.locator(".react-flow__edge")).to_have_count(2)


def test_the_cyclone_pipeline_is_drawn_by_keyboard_alone(
    chromium: Browser, workspace: Workspace
) -> None:
    with bench(chromium, workspace, dark=True) as on:
        keys = on.page.keyboard
        tab_to(on.page, "Explore")
        keys.press("ArrowRight")
        keys.press("Enter")
        expect(on.page.get_by_label("Search boxes")).to_be_visible()
        drawn = {"agcm": "simulate_agcm", "minima": "extract_minima", "tracks": "identify_tracks"}
        for number, (name, kind) in enumerate(drawn.items(), 1):
            tab_to(on.page, "Search boxes")
            keys.press("Control+a")
            keys.type(kind)
            on.page.wait_for_timeout(200)
            keys.press("Enter")
            on.until(lambda c: len(c.draft.names) == number)  # noqa: B023
            expect(on.page.get_by_label("Name", exact=True)).to_have_value(kind)
            type_over(on, "Name", name)
            on.until(lambda c: c.selected == name and c._flow._wanted is None)  # noqa: B023
        choose(on, "minima", "Input field", "agcm")
        on.until(lambda c: c.draft.steps["minima"].inputs == {"field": "agcm"})
        choose(on, "tracks", "Input minima", "agcm")
        reason = 'port "minima" of box "tracks" takes a table, "agcm" is an array'
        expect(on.page.get_by_text(reason).first).to_be_visible()
        assert on.canvas.draft.steps["tracks"].inputs == {}
        choose(on, "tracks", "Input minima", "minima")
        on.until(lambda c: not c.draft.problems())
        assert dict(on.canvas.draft.steps) == Pipeline.from_text(CYCLONES).steps
        tab_to(on.page, "Undo")
        while on.canvas.can_undo:
            done = len(on.canvas._steps.past)
            keys.press("Enter")
            on.until(lambda c: len(c._steps.past) < done)  # noqa: B023
        assert on.canvas.draft == Draft()


def type_over(on: Bench, label: str, text: str) -> None:
    tab_to(on.page, label)
    on.page.keyboard.press("Control+a")
    on.page.keyboard.type(text)
    on.page.keyboard.press("Enter")


def choose(on: Bench, name: str, port: str, given: str) -> None:
    """Select a box in the outline, then what goes into it, with nothing but keys."""
    tab_to(on.page, f"{name} {on.canvas.kind_of(name)}:")
    on.page.keyboard.press("Enter")
    expect(on.page.get_by_label("Name", exact=True)).to_have_value(name)
    tab_to(on.page, port)
    on.page.keyboard.type(given)
    on.page.wait_for_timeout(300)


CIRCULAR = """
name: circular
boxes:
  agcm: {box: simulate_agcm}
  minima: {box: extract_minima, inputs: {field: agcm}}
  one: {box: identify_tracks}
  two: {box: identify_tracks, inputs: {minima: one}}
"""


def test_a_circle_is_refused_by_hand_by_form_and_by_paste(
    chromium: Browser, workspace: Workspace
) -> None:
    with bench(chromium, workspace) as on:
        on.open_text(CIRCULAR)
        on.press("Fit")
        on.page.wait_for_timeout(400)
        reason = "the arrows run in a circle: one -> two -> one"
        assert on.pull("two", "one", "minima") == reason
        assert on.canvas.draft.steps["one"].inputs == {}
        expect(on.page.locator(".react-flow__edge")).to_have_count(2)
        on.node("one").click()
        on.page.get_by_label("Input minima").select_option("two")
        expect(on.page.get_by_text(reason).first).to_be_visible()
        before = on.canvas.draft
        on.press("Paste (Ctrl+V)")
        pasted = CIRCULAR.replace(
            "one: {box: identify_tracks}", "one: {box: identify_tracks, inputs: {minima: two}}"
        )
        on.page.get_by_label("Paste the text of boxes here (YAML)").fill(pasted)
        on.press("Add to the canvas")
        expect(on.page.get_by_text(re.compile("circle: .*one-2 -> ")).first).to_be_visible()
        assert on.canvas.draft == before


def test_boxes_are_copied_and_pasted_as_text(chromium: Browser, workspace: Workspace) -> None:
    with bench(chromium, workspace) as on:
        on.open_text(CYCLONES)
        on.node("minima").click()
        on.until(lambda c: c.selected == "minima")
        on.page.keyboard.press("Control+c")
        area = on.page.get_by_label("Text of boxes (YAML)")
        expect(area).to_have_value(on.canvas.draft.copied(["minima"]))
        on.page.keyboard.press("Escape")
        expect(area).to_be_hidden()
        on.press("Paste (Ctrl+V)")
        on.page.get_by_label("Paste the text of boxes here (YAML)").fill(on.canvas.copy())
        on.press("Add to the canvas")
        expect(on.node("minima-2")).to_be_visible()
        assert on.canvas.draft.steps["minima-2"].inputs == {"field": "agcm"}
        on.press("Undo (Ctrl+Z)")
        expect(on.node("minima-2")).to_have_count(0)


BROKEN = """
name: broken
sources: {gone: {path: gone.nc}}
boxes: {minima: {box: extract_minima, inputs: {field: gone}}}
"""
SLOW = """
name: slow
boxes:
  agcm: {box: simulate_agcm, params: {days: 200}}
  minima: {box: extract_minima, inputs: {field: agcm}}
"""


def test_a_run_that_fails_says_so_on_its_box_and_one_that_is_cancelled_frees_the_page(
    chromium: Browser, workspace: Workspace, spark: SparkSession
) -> None:
    with bench(chromium, workspace) as on:
        on.open_text(BROKEN)
        on.press("Run all")
        expect(on.node("gone")).to_have_class(word("is-failed"), timeout=60_000)
        expect(on.node("gone")).to_contain_text("✕ ")
        expect(on.page.get_by_text('source "gone"').first).to_be_visible()
        on.open_text(SLOW)
        on.press("Run all")
        expect(on.node("agcm")).to_contain_text(" of ", timeout=60_000)
        expect(on.node("minima")).to_have_class(word("is-waiting"))
        on.press("Cancel")
        said = on.page.get_by_text("cancelled; what was made before")
        expect(said).to_be_visible(timeout=20_000)
        assert not on.canvas.work.busy


def test_run_to_here_runs_only_what_leads_there(
    chromium: Browser, workspace: Workspace, spark: SparkSession
) -> None:
    short = CYCLONES.replace("box: simulate_agcm", "box: simulate_agcm\n    params: {days: 2}")
    with bench(chromium, workspace) as on:
        on.open_text(short)
        on.node("minima").click()
        on.until(lambda c: c.selected == "minima")
        on.press("Run to here")
        on.until(lambda c: c.notice.startswith("made"), 90)
        assert on.canvas.notice == "made agcm v1, minima v1"
        expect(on.node("minima")).to_have_class(word("is-done"))
        expect(on.node("tracks")).to_have_class(word("is-idle"))
