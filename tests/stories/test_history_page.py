"""The history in a real browser: find a run, compare two, open the kin of a dataset."""

from __future__ import annotations

from playwright.sync_api import Browser

from pipelines.workspace import Workspace
from tests.browser import visiting
from tests.runs import ran
from tests.stories.explored import exploring, opened

STEPS: dict[str, list[str]] = {"field": [], "lows": ["field"], "paths": ["lows"]}


def test_a_visitor_finds_runs_compares_them_and_sees_what_a_dataset_came_from(
    workspace: Workspace, chromium: Browser
) -> None:
    first = ran(workspace, STEPS, params={"lows": {"margin": 500}}, name="autumn")
    second = ran(workspace, STEPS, params={"lows": {"margin": 900}}, name="winter")
    with exploring(workspace) as explorer, visiting(chromium, explorer.url) as page:
        opened(page)
        page.get_by_role("tab", name="History").click()
        page.get_by_text("2 shown of 2 runs").wait_for()
        page.get_by_role("cell", name=first).wait_for()
        page.get_by_role("button", name="Compare").click()
        page.get_by_text("parameter, lows.margin: 500 → 900").wait_for()
        page.get_by_label("Search runs").fill("winter")
        page.get_by_label("Search runs").press("Enter")
        page.get_by_text("1 shown of 1 run").wait_for()
        assert page.get_by_role("cell", name=second).is_visible()
        assert not page.get_by_role("cell", name=first).is_visible()

        page.get_by_role("combobox", name="Dataset, like tracks").fill("paths@v1")
        page.get_by_role("combobox", name="Dataset, like tracks").press("Enter")
        page.get_by_text("Made from 2 datasets by 3 tasks.").wait_for()
        page.get_by_role("button", name="Open lows v1").click()
        page.get_by_role("button", name="Open make_lows").click()
        page.get_by_role("button", name="Open field v1").wait_for()
        page.get_by_role("combobox", name="Dataset, like tracks").fill("field")
        page.get_by_role("combobox", name="Dataset, like tracks").press("Enter")
        page.get_by_text("Affected by field: 4 dataset versions").wait_for()
