"""The journey in a real browser: open the demo, find the wrong track, click it, take it home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from playwright.sync_api import Browser, Page

from explorer.demo import strangest
from inverses.trace import trace
from pipelines.workspace import Workspace
from tests.browser import tab_to, visiting
from tests.stories.explored import Explorer, click_at, exploring, lit, opened, until

WRONG_AT = (322.5, 45.0)


@pytest.fixture(scope="module")
def explorer(demo: Workspace) -> Iterator[Explorer]:
    with exploring(demo) as served:
        yield served


@pytest.fixture(scope="module")
def behind(demo: Workspace) -> set[tuple[float, float]]:
    """The cells behind the wrong point, asked for without a browser."""
    cells = trace(demo, "tracks", strangest(demo)).cells("agcm").to_pylist()
    return {(c["lon"], c["lat"]) for c in cells}


def traced(page: Page) -> None:
    page.get_by_text("Look here first").wait_for()


def fetched(page: Page, folder: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("link", name="Fetch").click()
    target = folder / download.value.suggested_filename
    download.value.save_as(target)
    return target


def marked(path: Path) -> set[tuple[float, float]]:
    """The cells that an exported file marks as traced."""
    with xr.open_dataset(path) as data:
        mask = next(data[v] for v in data if "traced" in str(v) or "mask" in str(v))
        cells = np.argwhere(mask.values > 0)
        lat, lon = (mask.dims.index(d) for d in ("lat", "lon"))
        return {(float(data["lon"][c[lon]]), float(data["lat"][c[lat]])) for c in cells}


@pytest.fixture(scope="module")
def window(explorer: Explorer, chromium: Browser) -> Iterator[Page]:
    """The window of a first visitor, in light."""
    with visiting(chromium, explorer.url) as page:
        opened(page)
        page.get_by_text("Spark is ready").wait_for()
        yield page


def test_by_mouse_the_wrong_point_is_found_traced_and_taken_home(
    window: Page, behind: set[tuple[float, float]], tmp_path: Path
) -> None:
    page = window
    page.get_by_role("button", name="871 hPa").click()
    page.get_by_text("Promised").wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("Click any point").wait_for()
    click_at(page, *WRONG_AT)
    page.get_by_text("lowest of 5,558 points of tracks").wait_for()
    page.get_by_role("button", name="Trace back").first.click()
    traced(page)
    until(page, lambda: lit(page))
    assert lit(page) == behind and len(behind) == 9
    page.get_by_text("stuck: exactly 87,100").wait_for()
    page.get_by_role("button", name="Prove it by replay").click()
    page.get_by_text("Proved: run again on this alone").wait_for()
    page.get_by_role("button", name="Pin this answer").click()
    page.get_by_text("Pinned").wait_for()
    page.get_by_role("tab", name="Export").click()
    page.get_by_role("button", name="Prepare the file").click()
    assert marked(fetched(page, tmp_path)) == behind


def test_an_address_brings_selection_answer_and_pins_back(
    window: Page, chromium: Browser, behind: set[tuple[float, float]]
) -> None:
    until(window, lambda: "pins" in window.url and "traced=1" in window.url)
    with visiting(chromium, window.url) as page:
        opened(page)
        traced(page)
        assert until(page, lambda: lit(page) == behind)
        page.get_by_text("Pinned").wait_for()


def test_by_keyboard_alone_and_in_the_dark_another_visitor_does_the_same(
    window: Page,
    explorer: Explorer,
    chromium: Browser,
    behind: set[tuple[float, float]],
    tmp_path: Path,
) -> None:
    window.keyboard.press("Escape")
    with visiting(chromium, explorer.url, dark=True) as page:
        opened(page)
        tab_to(page, "871 hPa")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Trace back").first.wait_for()
        tab_to(page, "Trace back")
        page.keyboard.press("Enter")
        traced(page)
        assert until(page, lambda: lit(page) == behind)
        tab_to(page, "WHY")
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Prepare the file").wait_for()
        tab_to(page, "Prepare the file")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Fetch").wait_for()
        tab_to(page, "Fetch")
        with page.expect_download() as download:
            page.keyboard.press("Enter")
        download.value.save_as(tmp_path / "cells.nc")
        assert marked(tmp_path / "cells.nc") == behind
        assert not lit(window), "one visitor's selection is not another's"


RANGE = """() => {
  const models = Bokeh.documents.flatMap((d) => [...d._all_models.values()])
  const figure = models.find((m) => m.name === "map" && m.type === "Figure")
  return [figure.x_range.start, figure.x_range.end]
}"""


@pytest.mark.parametrize("zoom", [1, 4, 16])
def test_a_click_selects_the_cell_under_it(zoom: int, window: Page, explorer: Explorer) -> None:
    visit = explorer.visits[0]
    figure = visit.map.picture.figure
    half = 180 / zoom, 90 / zoom
    for lon, lat in [(0, 0), (180, 30), (360, -30), (90, 90), (270, -90)]:

        def zoomed(lon: float = lon, lat: float = lat) -> None:
            visit._cleared()
            visit.state.points = ""
            figure.x_range.update(start=lon - half[0], end=lon + half[0])
            figure.y_range.update(start=lat - half[1], end=lat + half[1])

        figure.document.add_next_tick_callback(zoomed)
        start = lon - half[0]
        until(window, lambda start=start: abs(window.evaluate(RANGE)[0] - start) < 1e-6)
        window.wait_for_timeout(300)
        click_at(window, lon, lat)
        planned = until(window, lambda: visit.asking.planned)
        assert planned.question.dataset == "agcm"
        spans = planned.plan.selection.at.spans
        at = {d: int(spans[d].low[0]) for d in ("lat", "lon")}
        assert at == {"lat": round((90 - lat) / 2.5), "lon": round(lon / 2.5) % 144}
