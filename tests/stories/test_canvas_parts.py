"""What the canvas relies on in its libraries, and what it shows besides the pipeline itself."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from explorer.demo import asset
from explorer.draft import Draft
from explorer.shelf import Shelf
from pipelines.boxes.cyclones import ExtractMinima, IdentifyTracks, SimulateAgcm
from pipelines.errors import Refused
from pipelines.pipeline import Pipeline
from pipelines.workspace import Workspace
from tests.bench import Bench, bench, word

CYCLONES = asset("cyclones.yaml").read_text()
SCRIPT = "<img src=x onerror=alert(1)>.nc"


def kept(workspace: Workspace, text: str) -> None:
    """Keep a pipeline where the canvas opens them from."""
    Shelf(workspace).save(Draft.from_text(text))


def test_exploring_selects_and_changes_nothing(chromium: Browser, demo: Workspace) -> None:
    """Traps: no click is told, read-only nodes must stay editable, one stylesheet is all."""
    with bench(chromium, demo) as on:
        told: list[str] = []
        on.canvas._flow.view.on("*", lambda event: told.append(event["type"]))
        expect(on.node("tracks")).to_contain_text("✓ ")
        on.node("tracks").click()
        on.until(lambda c: c.selected == "tracks")
        on.until(lambda _: "selection_changed" in told)
        assert "node_clicked" not in told
        assert on.canvas._flow.view.editable and on.canvas._flow.view.sync_mode == "event"
        expect(on.node("tracks")).not_to_have_class(word("react-flow__node-default"))
        expect(on.node("tracks")).to_have_css("border-left-width", "5px")
        before = on.canvas.draft
        drag(on, "tracks", 90, 60)
        on.page.keyboard.press("Delete")
        on.page.wait_for_timeout(300)
        assert on.canvas.draft == before and on.canvas.selected == "tracks"
        expect(on.page.get_by_label("Name", exact=True)).to_be_disabled()
        on.page.keyboard.press("Escape")


def drag(on: Bench, name: str, right: int, down: int) -> None:
    box = on.node(name).bounding_box()
    assert box
    on.page.mouse.move(box["x"] + 40, box["y"] + 14)
    on.page.mouse.down()
    on.page.mouse.move(box["x"] + 40 + right, box["y"] + 14 + down, steps=5)
    on.page.mouse.up()


def test_tab_and_enter_select_a_box_and_the_outline_does_too(
    chromium: Browser, demo: Workspace
) -> None:
    with bench(chromium, demo) as on:
        on.node("minima").focus()
        on.page.keyboard.press("Enter")
        on.until(lambda c: c.selected == "minima")
        on.item("tracks").click()
        on.until(lambda c: c.selected == "tracks")
        expect(on.node("tracks")).to_have_class(word("selected"))
        expect(on.node("minima")).not_to_have_class(word("selected"))


def test_a_traced_path_is_in_colour_and_the_rest_fades(chromium: Browser, demo: Workspace) -> None:
    with bench(chromium, demo) as on:
        on.page.wait_for_timeout(300)
        before = on.canvas._flow.view.viewport
        on.here(lambda c: c.show_path(["tracks", "minima"]))
        expect(on.page.locator(".react-flow__node.is-traced")).to_have_count(2)
        expect(on.node("agcm")).to_have_css("opacity", "0.32")
        stroke = "rgb(213, 94, 0)"
        traced = on.page.locator(".react-flow__edge-path").nth(1)
        expect(traced).to_have_css("stroke", stroke)
        expect(on.page.locator(".react-flow__edge-path").nth(0)).not_to_have_css("stroke", stroke)
        on.here(lambda c: c.clear_path())
        expect(on.page.locator(".react-flow__node.is-traced")).to_have_count(0)
        expect(on.node("agcm")).to_have_css("opacity", "1")
        assert on.canvas._flow.view.viewport == before


def many(count: int) -> str:
    draft = Draft("many").added(SimulateAgcm(), "b0")
    for number in range(1, count):
        kind = ExtractMinima() if number % 10 == 1 else IdentifyTracks()
        name, given = f"b{number}", "b0" if number % 10 == 1 else f"b{number - 1}"
        fresh = SimulateAgcm() if number % 10 == 0 else kind
        draft = draft.added(fresh, name)
        given = f"b{number - 1}" if number % 10 == 1 else given
        if number % 10:
            draft = draft.wired(name, draft.steps[name].box.takes[0].name, given)
    return draft.to_text()


def test_three_hundred_boxes_are_drawn_found_and_highlighted(
    chromium: Browser, workspace: Workspace
) -> None:
    """Trap: the smallest zoom is 0.5 unless said otherwise, too large to see them all."""
    with bench(chromium, workspace) as on:
        on.open_text(many(300), seen=False)
        expect(on.page.locator(".react-flow__node")).to_have_count(300)
        on.press("Fit")
        expect(on.page.locator(".react-flow__viewport")).to_have_attribute("style", word("scale.*"))
        assert on.canvas._flow.view.viewport["zoom"] < 0.5
        on.page.wait_for_timeout(1000)
        on.here(lambda c: c.show_path([f"b{n}" for n in range(10, 20)]))
        expect(on.page.locator(".react-flow__node.is-traced")).to_have_count(10)
        on.page.get_by_label("Find").fill("b237")
        on.page.get_by_label("Find").press("Enter")
        on.until(lambda c: c.selected == "b237")
        expect(on.node("b237")).to_be_in_viewport()


def test_groups_fold_move_as_one_and_leave_the_text_alone(
    chromium: Browser, workspace: Workspace
) -> None:
    with bench(chromium, workspace) as on:
        on.open_text(CYCLONES)
        text, places = on.canvas.draft.to_text(), dict(on.canvas.draft.sheet.places)
        on.node("agcm").click()
        on.node("minima").click(modifiers=["Shift"])
        on.until(lambda c: c.chosen == ["agcm", "minima"])
        on.press("Group")
        frame = on.node("group:group-1")
        expect(frame).to_be_visible()
        drag(on, "group:group-1", 30, 120)
        on.until(lambda c: c.draft.sheet.places != places)
        moved = on.canvas.draft.sheet.places
        steps = {n: tuple(b - a for a, b in zip(places[n], moved[n], strict=True)) for n in places}
        assert steps["agcm"] == pytest.approx(steps["minima"]) and steps["tracks"] == (0, 0)
        on.press("Undo (Ctrl+Z)")
        on.until(lambda c: dict(c.draft.sheet.places) == places)
        on.press("Fold or open group")
        expect(on.node("agcm")).to_have_count(0)
        expect(frame).to_contain_text("2 boxes inside")
        expect(on.page.locator(".react-flow__edge")).to_have_count(1)
        on.press("Save")
        on.until(lambda c: c.notice.startswith("saved"))
        home = workspace.path / "pipelines"
        assert (home / "cyclones.yaml").read_text() == text
        assert Shelf(workspace).open("cyclones", on.canvas.registry.boxes) == on.canvas.draft
        assert {p.name for p in home.iterdir()} == {"cyclones.yaml", "cyclones.layout.json"}


def test_several_boxes_dragged_or_deleted_together_are_one_step(
    chromium: Browser, workspace: Workspace
) -> None:
    with bench(chromium, workspace) as on:
        on.open_text(CYCLONES)
        start = on.canvas.draft
        on.node("minima").click()
        on.node("tracks").click(modifiers=["Shift"])
        on.until(lambda c: len(c.chosen) == 2)
        drag(on, "tracks", 0, 90)
        on.until(lambda c: c.draft.sheet.places["minima"] != start.sheet.places["minima"])
        on.page.wait_for_timeout(700)
        on.page.keyboard.press("Control+z")
        on.until(lambda c: c.draft == start)
        on.page.keyboard.press("Delete")
        on.until(lambda c: c.draft.names == ["agcm"])
        on.page.wait_for_timeout(700)
        on.page.keyboard.press("Control+z")
        on.until(lambda c: c.draft == start)
        expect(on.page.locator(".react-flow__edge")).to_have_count(2)


def test_text_from_files_is_shown_as_text(chromium: Browser, workspace: Workspace) -> None:
    text = f"name: foreign\nsources: {{s: {{path: 'a/{SCRIPT}', variables: {{slp: '<b>x'}}}}}}"
    minima = "boxes: {m: {box: extract_minima, inputs: {field: s}}}"
    with bench(chromium, workspace) as on:
        on.open_text(f"{text}\n{minima}")
        expect(on.node("s")).to_contain_text(SCRIPT)
        on.node("s").click()
        expect(on.page.get_by_label("Path")).to_have_value(f"a/{SCRIPT}")
        on.press("Run all")
        on.until(lambda c: SCRIPT in c.notice, 60)
        expect(on.node("s")).to_have_class(word("is-failed"))
        expect(on.page.get_by_role("alert").filter(has_text=SCRIPT).first).to_be_visible()
        assert on.page.locator('img[src="x"]').count() == 0


def test_readers_see_and_select_but_neither_draw_nor_run(
    chromium: Browser, demo: Workspace
) -> None:
    with bench(chromium, demo, author=False) as on:
        expect(on.node("tracks")).to_contain_text("✓ ")
        for name in ("Edit", "Run all", "Save", "Cancel"):
            assert on.page.get_by_role("button", name=name, exact=True).count() == 0
        assert on.page.get_by_label("Search boxes").count() == 0
        on.node("tracks").click()
        on.until(lambda c: c.selected == "tracks")
        before, canvas = on.canvas.draft, on.canvas
        calls = (
            lambda: canvas.load("name: p"), lambda: canvas.add("simulate_agcm"), canvas.undo,
            canvas.save, canvas.run_all, canvas.delete, lambda: canvas.paste(CYCLONES),
        )  # fmt: skip
        for call in calls:
            canvas.notice = ""
            call()
            assert "this page is for readers" in canvas.notice
        with pytest.raises(ValueError, match="mode"):
            canvas.mode = "edit"
        assert canvas.draft == before and not (demo.path / "pipelines").exists()


def test_the_canvas_opens_on_what_was_last_run(demo: Workspace, chromium: Browser) -> None:
    with bench(chromium, demo) as on:
        there, said = on.canvas.draft, Pipeline.from_text(CYCLONES)
        assert (there.name, dict(there.steps)) == (said.name, said.steps)
        tracks = demo.dataset("tracks")
        shown = f"{tracks.rows:,} rows".replace(",", "\u202f")
        expect(on.node("tracks")).to_contain_text(shown)
        expect(on.node("tracks")).to_contain_text(" s")
        on.press("Edit")
        on.node("minima").click()
        field = on.page.get_by_label("margin (Pa)")
        field.press("Control+a")
        field.press_sequentially("-5")
        field.press("Enter")
        on.page.wait_for_timeout(300)
        refused = on.page.get_by_text('box "extract_minima": margin is -5.0; it may be at least 0')
        expect(refused.first).to_be_visible()
        expect(field).to_have_value("1000")
        field.press("Control+a")
        field.press_sequentially("700")
        field.press("Enter")
        expect(on.node("minima")).to_contain_text("↻ ")


def test_a_name_that_is_none_and_a_link_are_refused(workspace: Workspace) -> None:
    shelf = Shelf(workspace)
    shelf.save(Draft("fine"))
    (shelf.home / "linked.yaml").symlink_to(workspace.path / "whence.json")
    (shelf.home / "rubbish.yaml").write_bytes(b"\xff")
    assert shelf.names() == ["fine", "rubbish"]
    for name in ("linked", "rubbish", "../whence", "none"):
        with pytest.raises(Refused):
            shelf.open(name, {})
    with pytest.raises(Refused, match="link"):
        shelf.save(Draft("linked"))


SEVERAL = """
name: several
boxes:
  agcm: {box: simulate_agcm, params: {days: 2}}
  minima: {box: extract_minima, inputs: {field: agcm}}
  split: {box: split_rows, inputs: {rows: minima}, params: {where: lat > 0}}
  south: {box: aggregate, inputs: {rows: split}, params: {what: "pressure:min"}}
"""


def test_a_box_of_several_datasets_has_a_port_for_each_and_runs(
    chromium: Browser, workspace: Workspace
) -> None:
    with bench(chromium, workspace) as on:
        on.open_text(SEVERAL)
        on.press("Fit")
        on.page.wait_for_timeout(500)
        on.here(lambda c: c.change(lambda d: d.unwired("south", "rows")))
        expect(on.page.locator(".react-flow__edge")).to_have_count(2)
        on.pull("split", "south", "rows", out="rest")
        on.until(lambda c: c.draft.steps["south"].inputs == {"rows": "split.rest"})
        expect(on.page.locator(".react-flow__edge")).to_have_count(3)
        on.press("Run all")
        on.until(lambda c: c.severity == "success" and "split.rest v1" in c.notice, 120)
        expect(on.node("split")).to_have_class(word("is-done"))
        north, south = (workspace.dataset(n).rows for n in ("split", "split.rest"))
        assert north + south == workspace.dataset("minima").rows and north and south
    with bench(chromium, workspace) as again:
        assert set(again.canvas.draft.names) == {"agcm", "minima", "split", "south"}
        assert again.canvas.draft.steps["south"].inputs == {"rows": "split.rest"}
