"""A real browser for tests: pages are served here, and what goes wrong in one fails its test."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import panel as pn
import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from tests.__main__ import CHROMIUMS

LOOPBACK = ("127.0.0.1", "localhost")
WIDE = {"width": 1500, "height": 860}


def browser_path() -> str | None:
    """Where Chromium is on this machine; None where only Playwright may have one."""
    return next(filter(None, map(shutil.which, CHROMIUMS)), None)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The one browser that all tests share; each visits with a window of its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def served(page: Callable[[], Any], **options: Any) -> Iterator[str]:
    """The address of a page that is made anew for every visitor, on a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = pn.serve(
        {"/": page}, port=port, address="127.0.0.1", show=False, threaded=True, verbose=False,
        **options,
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.stop()
        server.join(10)


@contextmanager
def visiting(chromium: Browser, url: str, dark: bool = False) -> Iterator[Page]:
    """A window on a page; errors in its console and requests that leave the machine are failures.

    Such requests are refused, so that a test passes on a machine that has no network.
    """
    scheme = "dark" if dark else "light"
    context = chromium.new_context(viewport=WIDE, color_scheme=scheme, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(30_000)
    wrong = watched(page)
    try:
        page.goto(url)
        yield page
        assert not wrong, wrong
    finally:
        context.close()


def watched(page: Page) -> list[str]:
    """What goes wrong on a page, as it does."""
    wrong: list[str] = []

    def only_here(route: Route) -> None:
        if urlsplit(route.request.url).hostname in LOOPBACK:
            route.continue_()
        else:
            wrong.append(f"asked for {route.request.url}")
            route.abort()

    page.route(lambda url: url.startswith(("http:", "https:", "ws:", "wss:")), only_here)
    page.on("pageerror", lambda error: wrong.append(f"threw {error}"))
    page.on("dialog", lambda dialog: (wrong.append(f"said {dialog.message}"), dialog.dismiss()))
    page.on("console", lambda said: said.type == "error" and wrong.append(f"error: {said.text}"))
    return wrong


FOCUSED = """() => {
  let at = document.activeElement
  while (at && at.shadowRoot && at.shadowRoot.activeElement) { at = at.shadowRoot.activeElement }
  if (!at) { return "" }
  const label = at.labels && at.labels.length ? at.labels[0].innerText : ""
  const by = at.getAttribute("aria-labelledby")
  const named = by && by.split(" ").map((id) => at.getRootNode().getElementById(id)?.innerText)
  return at.getAttribute("aria-label") || label || (named && named.join(" ")) || at.innerText || ""
}"""


def tab_to(page: Page, name: str, most: int = 120) -> None:
    """Go on with the Tab key until what is called so, after its icon, has the focus."""
    seen = []
    for _ in range(most):
        page.keyboard.press("Tab")
        seen.append(" ".join(page.evaluate(FOCUSED).split()))
        if f" {name}" in f" {seen[-1]}":
            return
    raise AssertionError(
        f'the Tab key does not reach "{name}"; it reached {list(dict.fromkeys(seen))}'
    )
