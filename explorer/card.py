"""The card beside the pointer: what was clicked, where it stands, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import panel as pn
import panel_material_ui as pmui

from explorer.text import prose

WIDE = 250
PLACED = {"position": "absolute", "z-index": "20", "padding": "8px"}


class Card:
    """One card that moves to wherever the last click was."""

    def __init__(self, trace: Callable[[], None], whole: Callable[[], None]) -> None:
        self._text = pn.pane.HTML("", sizing_mode="stretch_width", margin=0)
        self._whole = button("Select the whole track", whole)
        self.view = pmui.Paper(
            self._text, button("Trace back", trace, variant="contained"), self._whole,
            elevation=6, width=WIDE, visible=False, margin=0, styles={**PLACED, "left": "0"},
        )  # fmt: skip

    def show(
        self,
        title: str,
        lines: Sequence[str],
        in_track: bool,
        at: tuple[float, float],
        width: float,
    ) -> None:
        """Show what was clicked, beside the pointer and inside the picture."""
        across, down = (max(0, int(each)) for each in at)
        left = across + 16 if across < width - WIDE else across - WIDE - 16
        self._text.object = prose([("strong", title), *(("line", each) for each in lines)])
        self._whole.visible = in_track
        place = {"left": f"{max(left, 4)}px", "top": f"{max(down - 30, 4)}px"}
        self.view.param.update(styles={**PLACED, **place}, visible=True)

    def hide(self) -> None:
        """Put the card away."""
        self.view.visible = False


def button(label: str, act: Callable[[], Any], **look: Any) -> Any:
    """A button that does something."""
    shown = {"variant": "outlined", "size": "small", "margin": (4, 6, 4, 0), **look}
    made = pmui.Button(label=label, **shown)
    made.on_click(lambda _: act())
    return made
