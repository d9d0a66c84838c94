"""The rows and cells that a trace found, one dataset at a time."""

from __future__ import annotations

from typing import Any

import panel as pn
import panel_material_ui as pmui

from explorer.asking import Asking
from explorer.text import plain

MOST = 200
EMPTY = "What a trace finds is listed here, dataset by dataset."


class Data:
    """The panel that lists what was found."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self.dataset = pmui.RadioButtonGroup(label="Dataset", options=[], size="small")
        self.count = plain(EMPTY)
        self.table = pn.pane.HTML("", sizing_mode="stretch_width", styles={"overflow-x": "auto"})
        self.view = pn.Column(
            self.dataset, self.count, self.table, sizing_mode="stretch_width", margin=(0, 8)
        )
        asking.after(self._offered, "traced")
        self.dataset.param.watch(self._shown, "value")
        self._offered()

    def _offered(self, *_: Any) -> None:
        traced = self.asking.traced
        names = list(traced.answer.lineage)[::-1] if traced else []
        self.dataset.param.update(options=names, value=names[0] if names else None)
        self.dataset.visible = bool(names)
        self._shown()

    def _shown(self, *_: Any) -> None:
        traced, name = self.asking.traced, self.dataset.value
        if traced is None or name not in traced.answer.lineage:
            self.count.object, self.table.object = EMPTY, ""
            return
        rows = traced.answer.cells(name)
        self.count.object = f"{min(MOST, rows.num_rows):,} shown of {rows.num_rows:,}"
        self.table.object = rows.slice(0, MOST).to_pandas().to_html(index=False, escape=True)
