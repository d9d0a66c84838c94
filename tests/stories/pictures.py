"""Takes the pictures in the README: `python -m tests.stories.pictures WORKSPACE`."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from pipelines.workspace import Workspace
from tests.browser import browser_path
from tests.stories.explored import click_at, exploring, opened

TO = Path(__file__).parents[2] / "assets" / "pictures"
WIDE = {"width": 1440, "height": 900}


def main(workspace: str) -> None:
    """Go through the demo once, and take a picture of each state that the README shows."""
    TO.mkdir(exist_ok=True)
    with exploring(Workspace(workspace)) as explorer, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        page = browser.new_page(viewport=WIDE)
        page.set_default_timeout(90_000)
        page.goto(explorer.url)
        opened(page)
        page.get_by_text("Spark is ready").wait_for()
        asked(page)
        traced(page)
        drawing(page)
        browser.close()


def asked(page: Page) -> None:
    """A click on the wrong point: the card, the outline, the plan."""
    page.get_by_role("button", name="871 hPa").click()
    page.get_by_role("button", name="Trace back").first.wait_for()
    page.keyboard.press("Escape")
    page.wait_for_timeout(1500)
    click_at(page, 322.5, 45)
    page.get_by_text("lowest of").wait_for()
    taken(page, "asked")


def traced(page: Page) -> None:
    """The answer, in light and in dark."""
    page.get_by_role("button", name="Trace back").first.click()
    page.get_by_text("Look here first").wait_for()
    taken(page, "traced")
    page.get_by_role("button", name="Toggle theme").click()
    taken(page, "dark")
    page.get_by_role("button", name="Toggle theme").click()


def drawing(page: Page) -> None:
    """The canvas while a pipeline is drawn."""
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("tab", name="Configure").click()
    page.get_by_text("extract_minima").first.wait_for()
    taken(page, "drawing")


def taken(page: Page, name: str) -> None:
    page.wait_for_timeout(2500)
    page.screenshot(path=TO / f"{name}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
