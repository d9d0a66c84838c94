"""A canvas in a real browser, and what a reader's hand does to it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import panel as pn
import panel_material_ui as pmui
from playwright.sync_api import Browser, Locator, Page, expect

from explorer.canvas import Canvas
from explorer.work import Engine, Work
from inverses.registry import Registry
from pipelines.workspace import Workspace
from tests.browser import served, visiting


@dataclass
class Bench:
    """A canvas in a browser, and the same canvas here."""

    page: Page
    canvas: Canvas
    document: Any

    def node(self, name: str) -> Locator:
        return self.page.locator(f'.react-flow__node[data-id="{name}"]')

    def port(self, name: str, port: str = "out") -> Locator:
        return self.node(name).locator(f'.react-flow__handle[data-handleid="{port}"]')

    def item(self, name: str) -> Locator:
        """A box in the palette, or else in the outline."""
        return self.page.locator(".MuiListItemButton-root:visible", has_text=name).first

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def here(self, does: Callable[[Canvas], Any]) -> None:
        """Do something to the canvas as its page does: in its turn."""
        self.document.add_next_tick_callback(lambda: does(self.canvas))

    def open_text(self, text: str, seen: bool = True) -> None:
        """Open a pipeline from text, in Edit."""
        if self.canvas.mode != "edit":
            self.press("Edit")
        self.press("Open")
        self.page.get_by_label("Or the text of a pipeline (YAML)").fill(text)
        self.press("Open this text")
        named = re.search(r"name: (\S+)", text)
        self.until(lambda c: named is not None and c.draft.name == named[1])
        for name in self.canvas.draft.names if seen else ():
            expect(self.node(name)).to_be_visible()

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

    def pull(self, given: str, name: str, port: str, out: str = "out") -> str:
        """Draw a wire to a port and let go; what the port said about it before that."""
        start, end = self.port(given, out).bounding_box(), self.port(name, port).bounding_box()
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
    made: list[tuple[Canvas, Any]] = []
    engine, registry = Engine("local[2,4]"), Registry.of()

    def page() -> Any:
        document = pn.state.curdoc
        work = Work(engine, lambda call: document.add_next_tick_callback(call))
        canvas = Canvas(workspace, registry, work, author)
        canvas.dark = dark
        pn.state.onload(lambda: made.append((canvas, document)))
        return pmui.Page(
            main=[canvas.view], sidebar=[canvas.palette, canvas.outline], dark_theme=dark,
            contextbar=[canvas.configure], contextbar_open=True, contextbar_variant="persistent",
        )  # fmt: skip

    with served(page) as url, visiting(chromium, url, dark) as visited:
        visited.wait_for_selector(".react-flow__controls")
        while not made:
            visited.wait_for_timeout(50)
        visited.wait_for_timeout(300)
        yield Bench(visited, *made[0])


def word(name: str) -> re.Pattern[str]:
    """A class among others."""
    return re.compile(rf"(^|\s){name}(\s|$)")
