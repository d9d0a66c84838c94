"""A served explorer for tests, with its visits in reach, and eyes and hands for its map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

from explorer.gate import Gate
from explorer.page import Server, Visit
from explorer.serving import free_port, start
from explorer.work import Engine
from inverses.registry import Registry
from pipelines.workspace import Workspace

SCREEN = """([name, x, y]) => {
  const models = Bokeh.documents.flatMap((d) => [...d._all_models.values()])
  const view = Bokeh.index.find_one(models.find((m) => m.name === name && m.type === "Figure"))
  const box = view.canvas_view.el.getBoundingClientRect()
  return [box.left + view.frame.x_scale.compute(x), box.top + view.frame.y_scale.compute(y)]
}"""
LAYER = """(name) => {
  const models = Bokeh.documents.flatMap((d) => [...d._all_models.values()])
  const data = models.find((m) => m.name === name).data
  const column = (c) => [...(data[c] ?? data.get(c))]
  const [left, right, bottom, top] = ["left", "right", "bottom", "top"].map(column)
  return left.map((l, n) => [(l + right[n]) / 2, (bottom[n] + top[n]) / 2])
}"""


@dataclass
class Explorer:
    """A server and everybody who visits it."""

    server: Server
    visits: list[Visit] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.server.gate.url

    def page(self) -> Any:
        self.visits.append(Visit(self.server))
        return self.visits[-1].view


@contextmanager
def exploring(workspace: Workspace, **options: Any) -> Iterator[Explorer]:
    """The explorer of a workspace, served by the Spark that tests share."""
    server = Server(
        workspace, Registry.of(), Engine("local[2,4]"), Gate(free_port(None)), **options
    )
    explorer = Explorer(server)
    server.engine.start()
    thread = start(server, explorer.page)
    try:
        yield explorer
    finally:
        thread.stop()
        thread.join(10)


def opened(page: Page) -> None:
    """Wait until a page shows its map."""
    page.get_by_text("Worth a look").wait_for()
    until(page, lambda: page.evaluate("() => Bokeh.documents.length > 0"))


def until(page: Page, true: Callable[[], Any], seconds: float = 20) -> Any:
    """Wait for something on a page, a little at a time."""
    for _ in range(int(seconds * 20)):
        if found := true():
            return found
        page.wait_for_timeout(50)
    raise AssertionError("it did not come true")


def click_at(page: Page, lon: float, lat: float, name: str = "map") -> None:
    """Click a picture at a point of its coordinates."""
    page.mouse.click(*page.evaluate(SCREEN, [name, lon, lat]))


def lit(page: Page, layer: str = "cells", name: str = "map") -> set[tuple[float, float]]:
    """The longitudes and latitudes of the cells that a layer of a picture lights up."""
    return {(round(x % 360, 3), round(y, 3)) for x, y in page.evaluate(LAYER, f"{name} {layer}")}
