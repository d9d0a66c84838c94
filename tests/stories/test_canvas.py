"""Pipelines are drawn in a real browser, by mouse and by keyboard, and run as they were drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import panel as pn
import panel_material_ui as pmui
from playwright.sync_api import Browser, Locator, Page, expect
from pyspark.sql import SparkSession

from explorer.canvas import Canvas
from explorer.demo import asset
from explorer.draft import Draft
from explorer.work import Engine, Work
from inverses.registry import Registry
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.workspace import Workspace
from tests.browser import served, visiting

CYCLONES = asset("cyclones.yaml").read_text()


@dataclass
class Bench:
    """A canvas in a browser, and the same canvas here."""

    page: Page
    canvas: Canvas

    def node(self, name: str) -> Locator:
        return self.page.locator(f'.react-flow__node[data-id="{name}"]')

    def port(self, name: str, port: str = "out") -> Locator:
        return self.node(name).locator(f'.react-flow__handle[data-handleid="{port}"]')

    def item(self, name: str) -> Locator:
        """A box in the palette."""
        return self.page.locator(".MuiListItemButton-root", has_text=name).first

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def until(self, holds: Callable[[Canvas], Any], seconds: float = 15) -> None:
        """Wait until something holds of the canvas here."""
        end = time.monotonic() + seconds
        while not holds(self.canvas):
            assert time.monotonic() < end, (self.canvas.notice, self.canvas.draft.to_text())
            self.page.wait_for_timeout(50)

    def drop(self, kind: str, x: int, y: int) -> None:
        """Drag a box from the palette to the canvas."""
        known = len(self.canvas.draft.names)
        pane = self.page.locator(".react-flow__pane")
        self.item(kind).drag_to(pane, target_position={"x": x, "y": y})
        self.until(lambda c: len(c.draft.names) > known)
        expect(self.page.locator(".react-flow__node")).to_have_count(known + 1)
        self.page.wait_for_timeout(400)

    def pull(self, given: str, name: str, port: str) -> str:
        """Draw a wire to a port and let go; what the port said about it before that."""
        start, end = self.port(given).bounding_box(), self.port(name, port).bounding_box()
        assert start and end
        mouse = self.page.mouse
        mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
        mouse.down()
        mouse.move(end["x"] - 25, end["y"] - 20, steps=4)
        decided = self.node(name).locator(".rf-handle-valid, .rf-handle-invalid")
        expect(decided).to_have_count(1)
        mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=4)
        self.page.wait_for_timeout(100)
        said = self.port(name, port).get_attribute("data-tooltip") or ""
        mouse.up()
        return said


@contextmanager
def bench(
    chromium: Browser, workspace: Workspace | None, author: bool = True, dark: bool = False
) -> Iterator[Bench]:
    """A canvas on a page of its own."""
    made: list[Canvas] = []
    engine, registry = Engine("local[2,4]"), Registry.of()

    def page() -> Any:
        document = pn.state.curdoc
        work = Work(engine, lambda call: document.add_next_tick_callback(call))
        canvas = Canvas(workspace, registry, work, author)
        canvas.dark = dark
        made.append(canvas)
        return pmui.Page(
            main=[canvas.view], sidebar=[canvas.palette, canvas.outline], dark_theme=dark,
            contextbar=[canvas.configure], contextbar_open=True, contextbar_variant="persistent",
        )  # fmt: skip

    with served(page) as url, visiting(chromium, url, dark) as visited:
        visited.wait_for_selector(".react-flow__controls")
        yield Bench(visited, made[0])


def open_text(on: Bench, text: str, mode: str = "edit") -> None:
    """Bring a pipeline onto the canvas as the Open dialog does."""
    on.page.evaluate("1")
    on.canvas.mode = mode
    on.press("Open")
    on.page.get_by_label("Or the text of a pipeline (YAML)").fill(text)
    on.press("Open this text")
    count = len(Draft.from_text(text).names)
    expect(on.page.locator(".react-flow__node")).to_have_count(count)


def test_the_cyclone_pipeline_is_drawn_by_mouse_undone_redone_saved_and_run(
    chromium: Browser, workspace: Workspace, spark: SparkSession
) -> None:
    with bench(chromium, workspace) as on:
        on.press("Edit")
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

        refused = on.pull("agcm", "tracks", "minima")
        assert refused == 'port "minima" of box "tracks" takes a table, "agcm" is an array'
        assert on.canvas.draft.problems().keys() == {"minima", "tracks"}
        on.press("Run all")
        expect(on.page.get_by_text('has nothing at its port "field"')).to_be_visible()

        on.pull("agcm", "minima", "field")
        on.until(lambda c: c.draft.steps["minima"].inputs == {"field": "agcm"})
        on.pull("minima", "tracks", "minima")
        on.until(lambda c: not c.draft.problems())
        expect(on.page.locator(".react-flow__edge")).to_have_count(2)

        name = on.page.get_by_label("Pipeline", exact=True)
        name.fill("cyclones")
        name.press("Enter")
        on.until(lambda c: c.draft.name == "cyclones")
        drawn, demo = on.canvas.draft, Pipeline.from_text(CYCLONES)
        assert (dict(drawn.sources), dict(drawn.steps)) == (demo.sources, demo.steps)

        undo_to_empty_and_redo(on)
        assert on.canvas.draft == drawn

        on.node("agcm").click()
        tune(on, "days (days)", "4")
        on.press("Save")
        expect(on.page.get_by_text("saved; run it with: whence run")).to_be_visible()
        kept = workspace.path / "pipelines" / "cyclones.yaml"
        made = run(Pipeline.from_file(kept), workspace, spark)
        assert set(made) == {"agcm", "minima", "tracks"}

        on.press("Run all")
        on.until(lambda c: c.severity == "success" and "made agcm v2" in c.notice, 120)
        assert workspace.dataset("tracks").rows == made["tracks"].rows
        expect(on.node("tracks")).to_contain_text(f"✓ {made['tracks'].rows} rows")
        expect(on.node("tracks")).to_have_class(as_word("is-done"))


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


def as_word(name: str) -> Any:
    import re

    return re.compile(rf"(^|\s){name}(\s|$)")
