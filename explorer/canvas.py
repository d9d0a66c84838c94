"""The canvas: a pipeline as boxes and arrows, to look at and to draw."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param

from explorer.configure import Configure
from explorer.flow import Flow
from explorer.keys import Keys, together
from explorer.palette import Outline, Palette
from explorer.running import Running
from explorer.statuses import Status
from explorer.toolbar import Toolbar
from explorer.work import Work
from inverses.registry import Registry
from pipelines.workspace import Workspace

EMPTY = {
    "reader": "Nothing has been run here yet.",
    "explore": "Nothing is drawn yet. Switch to Edit to draw a pipeline, or open one.",
    "edit": "Drag a box from the palette to here, or click one to add it.",
}


PANE = {"position": "relative"}
AFLOAT = {
    "position": "absolute", "top": "10px", "left": "50%", "transform": "translateX(-50%)",
    "z-index": "10", "max-width": "84%",
}  # fmt: skip
OPAQUE = {"backgroundColor": "background.paper"}


class Canvas(Running):
    """A drawing with its views, to be put on a page.

    `view` is the canvas with its toolbar; `palette`, `outline` and `configure` go beside it.
    """

    dark = param.Boolean(False)

    def __init__(
        self, workspace: Workspace | None, registry: Registry, work: Work, author: bool = True
    ) -> None:
        super().__init__(workspace, registry, work, author)
        self._keys = Keys(self._pressed, self.paste)
        self._flow = Flow(self, self._keys)
        self._outline, self._configure = Outline(self), Configure(self)
        self._toolbar = Toolbar(self, self._keys, self._flow.fit)
        self._notice = pmui.Alert(closeable=True, visible=False, margin=0, styles=AFLOAT, sx=OPAQUE)
        self.palette: Any = Palette(self).view if author else pn.Column()
        self.outline: Any = self._outline.view
        self.configure: Any = self._configure.view
        pane = pn.Column(self._flow.view, self._notice, sizing_mode="stretch_both", styles=PANE)
        self.view: Any = pn.Column(self._toolbar.view, pane, sizing_mode="stretch_both", margin=0)
        self._watch()
        self._draw()

    def _watch(self) -> None:
        """Draw anew what a change is seen in."""
        self.param.watch(self._draw, ["draft", "mode", "chosen", "statuses", "path", "sought"])
        self.param.watch(self._draw_notice, ["notice", "severity", "draft"])
        self.param.watch(self._draw_theme, "dark")
        self.work.param.watch(lambda _: self._toolbar.draw(), "busy")
        self._notice.param.watch(self._dismissed, "closed")

    def find(self) -> None:
        """Select the next box that is sought, and bring it into sight."""
        super().find()
        self._flow.reveal(self.selected)

    def choose(self, names: Iterable[str]) -> None:
        """Select boxes, sources and groups; one that is out of sight is brought into it."""
        super().choose(names)
        if hasattr(self, "_flow"):
            self._flow.reveal(self.selected)

    def show_path(self, datasets: Iterable[str]) -> None:
        """Colour the boxes and arrows that a trace went through, and fade all others."""
        self.path = frozenset(datasets)

    def clear_path(self) -> None:
        """Show all boxes alike again."""
        self.path = None

    def show_status(
        self, name: str, state: str, text: str = "", seconds: float | None = None
    ) -> None:
        """Say on a box how it stands with it: idle, waiting, running, done, changed or failed."""
        self.statuses = {**self.statuses, name: Status(state, text, seconds)}

    def _draw(self, *_: param.parameterized.Event) -> None:
        with together():
            for part in (self._flow, self._toolbar, self._outline, self._configure):
                part.draw()
            self._keys.active = self.palette.visible = self.mode == "edit"
            self._draw_notice()

    def _draw_notice(self, *_: param.parameterized.Event) -> None:
        empty = EMPTY[self.mode if self.author else "reader"]
        text = self.notice or ("" if self.draft.names else empty)
        severity = self.severity if self.notice else "info"
        self._notice.param.update(title=text, severity=severity, visible=bool(text), closed=False)

    def _draw_theme(self, *_: param.parameterized.Event) -> None:
        self._flow.view.color_mode = "dark" if self.dark else "light"

    def _dismissed(self, event: param.parameterized.Event) -> None:
        if event.new:
            self.notice = ""
            self._notice.visible = False

    def _pressed(self, word: str) -> None:
        does = {"undo": self.undo, "redo": self.redo, "group": self.group, "save": self.save}
        {**does, "copy": self._toolbar.copy}.get(word, lambda: None)()
