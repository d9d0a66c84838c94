"""Lists beside the canvas: the palette of boxes to add, and the outline of those that are there."""

from __future__ import annotations

from typing import Any

import panel as pn
import panel_material_ui as pmui

from explorer.badges import badge, badge_of, word_of
from explorer.drawing import Drawing
from inverses.promises import natures, when_named
from pipelines.boxes.box import Box

COLOURS = {
    "exact": "#0072B2", "complete": "#009E73", "pure": "#B5651D", "unknown": "#767676",
    "origin": "#767676",
}  # fmt: skip
ICONS = {
    "idle": "radio_button_unchecked", "waiting": "hourglass_empty", "running": "play_circle",
    "done": "check_circle", "changed": "update", "failed": "error", "missing": "warning",
}  # fmt: skip
STATES = {
    "done": "success", "failed": "error", "missing": "warning", "changed": "warning",
    "running": "primary", "waiting": "primary", "idle": "disabled",
}  # fmt: skip


BADGES = {
    "& .MuiAvatar-root": {
        "width": 30, "height": 30, "borderRadius": "6px", "color": "#fff", "fontSize": 17,
    },
    "& .MuiListItemAvatar-root": {"minWidth": 42, "alignSelf": "start", "pt": "8px"},
}  # fmt: skip


class Palette:
    """Every box there is, with how well it can be traced: drag one to the canvas, or click it."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.search = pmui.TextInput(
            label="Search boxes", placeholder="Enter adds the first", size="small", width=None,
            sizing_mode="stretch_width", margin=(8, 8),
        )  # fmt: skip
        self.list = pmui.MenuList(
            draggable=True, highlight=False, sizing_mode="stretch_width", sx=BADGES
        )
        self.source = pmui.TextInput(
            label="Add a file (NetCDF, Zarr)", placeholder="path, then Enter", size="small",
            width=None, sizing_mode="stretch_width", margin=(12, 8),
        )  # fmt: skip
        self.list.on_click(self._add_clicked)
        self.search.param.watch(self._fill, "value_input")
        self.search.param.watch(self._add_first, "enter_pressed")
        self.source.param.watch(self._add_source, "enter_pressed")
        self._fill()
        self.view = pn.Column(self.search, self.list, self.source, sizing_mode="stretch_width")

    def _items(self) -> list[dict[str, Any]]:
        word = (self.search.value_input or "").strip().lower()
        boxes = sorted(self.drawing.registry.boxes.items())
        items = [self._item(name) for name, _ in boxes]
        return [i for i in items if word in f"{i['label']} {i['secondary']}".lower()]

    def _item(self, name: str) -> dict[str, Any]:
        box = self.drawing.registry.boxes[name]
        badge = badge_of(self.drawing.registry, box)
        about = (box.__doc__ or "").strip().partition("\n")[0]
        return {
            "label": name,
            "secondary": f"{about} {self._traced(box)}. Contributed: {box.contributed}",
            "avatar": badge.sign,
            "color": COLOURS[badge.word],
            "selectable": False,
        }

    def _traced(self, box: type[Box]) -> str:
        """The nature of its inverses, and what is promised without verification and with it."""
        if not box.takes:
            return badge_of(self.drawing.registry, box).meaning.capitalize()
        nature = " and ".join(natures(self.drawing.registry, box)) or "By default"
        weak, best = (word_of(self.drawing.registry, box, verified) for verified in (False, True))
        lesser = (
            f"; {named}: {' or '.join(f'{b.sign} {b.word}' for b in map(badge, each))}"
            for named, each in when_named(self.drawing.registry, box).items()
        )
        return f"{nature.capitalize()}: {weak} unverified, {best} verified{''.join(lesser)}"

    def _fill(self, *_: Any) -> None:
        self.list.items = self._items()

    def _add_clicked(self, item: Any) -> None:
        self.drawing.add(item["label"])

    def _add_first(self, *_: Any) -> None:
        if self.list.items:
            self.drawing.add(self.list.items[0]["label"])
            self.search.param.update(value="", value_input="")

    def _add_source(self, *_: Any) -> None:
        if path := (self.source.value_input or "").strip():
            self.drawing.add_source(path)
            self.source.param.update(value="", value_input="")


class Outline:
    """All that is on the canvas as a list: choosing here is selecting there."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.view = pmui.MenuList(sizing_mode="stretch_width", label="On the canvas")
        self.view.on_click(self._choose_clicked)

    def _choose_clicked(self, item: Any) -> None:
        self.drawing.choose([item["label"]])

    def draw(self) -> None:
        """Show what is there and what is selected."""
        names = self.drawing.draft.names
        items = [self._item(name) for name in names]
        chosen = self.drawing.selected
        active = (names.index(chosen),) if chosen in names else None
        if items != self.view.items:
            self.view.items = items
        if active != self.view.active:
            self.view.active = active

    def _item(self, name: str) -> dict[str, Any]:
        status = self.drawing.status(name)
        icon, colour = ICONS[status.state], STATES[status.state]
        said = f"{self.drawing.kind_of(name)}: {status.words}"
        return {"label": name, "secondary": said, "icon": icon, "color": colour}
