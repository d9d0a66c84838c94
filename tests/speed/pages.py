"""How fast the page follows: clicks to outlines and cells, a large canvas, two visitors at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median, quantiles

from playwright.sync_api import Page, sync_playwright

from pipelines.workspace import Workspace
from tests.__main__ import CHROMIUMS
from tests.browser import browser_path
from tests.speed.benchmarks import Scale, jobs_of, nothing
from tests.speed.fields import Bench
from tests.speed.rows import Aim, Row
from tests.speed.sides import Measured
from tests.stories.explored import Explorer, click_at, exploring, lit, opened, until

OUTLINE, PATH = 0.150, 1.0  # seconds
APART = 15  # degrees, so that a click is on one point of a track and no other
LISTEN = """(name) => {
  const models = Bokeh.documents.flatMap((d) => [...d._all_models.values()])
  const source = models.find((m) => m.name === name)
  window.heard = new Promise((done) => {
    let began = null
    const pressed = () => { began = performance.now() }
    document.addEventListener("pointerdown", pressed, {once: true, capture: true})
    const changed = () => {
      if (began === null || !(source.data.left ?? source.data.get("left")).length) { return }
      source.properties.data.change.disconnect(changed)
      done((performance.now() - began) / 1000)
    }
    source.properties.data.change.connect(changed)
  })
}"""
POINTS = """(apart) => {
  const models = Bokeh.documents.flatMap((d) => [...d._all_models.values()])
  const data = models.find((m) => m.name === "map points").data
  const [x, y] = ["x", "y"].map((n) => [...(data[n] ?? data.get(n))])
  const far = (a, b) => Math.hypot(x[a] - x[b], y[a] - y[b]) >= apart
  const inside = (n) => Math.abs(y[n]) < 75
  return [...x.keys()].filter((n) => inside(n) && x.every((_, m) => m === n || far(n, m)))
    .map((n) => [x[n], y[n]])
}"""
MANY = "name: many\nboxes:\n  b0: {box: simulate_agcm}\n" + "".join(
    f"  b{n}: {{box: extract_minima, inputs: {{field: b0}}}}\n" for n in range(1, 300)
)


def page(bench: Bench, scale: Scale) -> list[Row]:
    """Everything a visitor waits for, in a real browser."""
    workspace = bench.workspace(scale.demo)
    with visitors(workspace) as (explorer, one, other):
        return [
            outlines(one, scale),
            cells(bench, jobs_of(bench, workspace), one, scale),
            beside(one, other, scale),
            highlighting(explorer, one, scale),
        ]


@contextmanager
def visitors(workspace: Workspace) -> Iterator[tuple[Explorer, Page, Page]]:
    """Two visitors of one explorer, in windows of their own."""
    assert browser_path(), f"there is no browser: none of {', '.join(CHROMIUMS)}"
    with exploring(workspace) as explorer, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        pages = [browser.new_context(viewport={"width": 1500, "height": 900}).new_page()
                 for _ in range(2)]  # fmt: skip
        for each in pages:
            each.set_default_timeout(120_000)
            each.goto(explorer.url)
            opened(each)
            each.get_by_text("Spark is ready").wait_for()
        yield explorer, pages[0], pages[1]
        browser.close()


def clicked(page: Page, lon: float, lat: float) -> float:
    """Seconds from a click on the map to the outline it brings."""
    page.keyboard.press("Escape")
    until(page, lambda: not lit(page, "outline"))
    page.wait_for_timeout(400)
    page.evaluate(LISTEN, "map outline")
    click_at(page, lon, lat)
    return float(page.evaluate("() => window.heard"))


def many_clicks(page: Page, count: int) -> list[float]:
    places = [tuple(place) for place in page.evaluate(POINTS, APART)]
    return [clicked(page, *places[n % len(places)]) for n in range(count)]


def high(seconds: list[float]) -> float:
    """The time that one in twenty is above."""
    return quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


def outlines(page: Page, scale: Scale) -> Row:
    """A click brings its outline before one notices a wait."""
    many_clicks(page, scale.warm + 1)
    seconds = many_clicks(page, 2 * scale.turns)
    measured = Measured((high(seconds),), (OUTLINE,))
    note = (
        f"95th of 100 in {len(seconds)} clicks against {OUTLINE} s; median {median(seconds):.3f} s"
    )
    return Row("click to outline", Aim("<=", 1), measured, notes=(note,))


def cells(bench: Bench, jobs: int, page: Page, scale: Scale) -> Row:
    """From Trace back to lit cells, against as many empty Spark jobs, in turns."""
    ours, peer = [], []
    for turn in range(scale.warm + scale.turns):
        page.keyboard.press("Escape")
        page.get_by_role("button", name="hPa").first.click()
        button = page.get_by_role("button", name="Trace back").first
        button.wait_for()
        page.evaluate(LISTEN, "map cells")
        button.click()
        lit = float(page.evaluate("() => window.heard"))
        began = time.perf_counter()
        for _ in range(jobs):
            nothing(bench.spark)
        if turn >= scale.warm:
            ours.append(lit)
            peer.append(time.perf_counter() - began)
    note = f"{jobs} of one stage, as the trace has {jobs}"
    return Row("click to cells", Aim("<=", 2), Measured(tuple(ours), tuple(peer)), notes=(note,))


def beside(one: Page, other: Page, scale: Scale) -> Row:
    """One visitor's clicks while another traces everything, against clicks alone."""
    alone = many_clicks(other, scale.turns)
    busy: list[float] = []
    while len(busy) < scale.turns:
        _trace_everything(one)
        cancel = one.get_by_role("button", name="Cancel").first
        while len(busy) < scale.turns and cancel.is_enabled():
            busy += many_clicks(other, 1)
    measured = Measured((high(busy),), (high(alone),))
    return Row("second visitor", Aim("<=", 2), measured, notes=("95th of 100 of clicks",))


def _trace_everything(page: Page) -> None:
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Table").click()
    page.get_by_role("button", name="Ask about all rows").click()
    page.get_by_role("button", name="Trace back").first.click()
    page.wait_for_timeout(100)


def highlighting(explorer: Explorer, page: Page, scale: Scale) -> Row:
    """A traced path through 300 boxes is coloured."""
    canvas = explorer.visits[0].canvas
    document = explorer.visits[0].map.picture.figure.document

    def soon(act: Callable[[], object]) -> None:
        document.add_next_tick_callback(act)

    soon(lambda: (canvas.param.update(mode="edit"), canvas.load(MANY)))
    page.locator(".react-flow__node").nth(200).wait_for(state="attached")
    page.wait_for_timeout(2000)
    seconds = []
    for _ in range(max(3, scale.turns // 4)):
        soon(canvas.clear_path)
        page.locator(".react-flow__node.is-traced").first.wait_for(state="detached")
        began = time.perf_counter()
        soon(lambda: canvas.show_path(["b0", "b7"]))
        page.locator(".react-flow__node.is-traced").nth(1).wait_for(state="attached")
        seconds.append(time.perf_counter() - began)
    measured = Measured((median(seconds),), (PATH,))
    return Row("path in 300 boxes", Aim("<", 1), measured, notes=(f"median against {PATH} s",))
