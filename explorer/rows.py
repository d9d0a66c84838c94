"""The table view: any dataset, paged, sorted, filtered; its rows are clickable selections."""

from __future__ import annotations

from typing import Any

import pandas as pd
import panel as pn
import panel_material_ui as pmui

from explorer.asking import Question
from explorer.shown import first_rows
from explorer.state import State, about_cell, about_row
from explorer.text import plain
from pipelines.datasets import Array, Table
from pipelines.errors import WhenceError

MOST = 100_000


class Rows:
    """The rows of the dataset a visitor has chosen."""

    def __init__(self, state: State, ask: Any) -> None:
        self.state, self._ask = state, ask
        self.dataset = pmui.Select(
            label="Dataset", options=state.workspace.names(), value=state.table, width=180,
            size="small",
        )  # fmt: skip
        self.where = pmui.TextInput(
            label="Filter, like: lat > 40 and track = 1", size="small", sizing_mode="stretch_width"
        )
        self.count = plain("")
        self.table = pn.widgets.Tabulator(
            pd.DataFrame(), pagination="remote", page_size=12, disabled=True, selectable=1,
            show_index=False, sizing_mode="stretch_width", theme="materialize",
        )  # fmt: skip
        self.ask = pmui.Button(label="Ask about all rows that the filter keeps", size="small")
        self.ask.on_click(self._all)
        self.dataset.param.watch(lambda e: setattr(state, "table", e.new or ""), "value")
        self.where.param.watch(self._filled, "value")
        state.param.watch(self._filled, ["table"])
        self.table.on_click(self._clicked)
        self.table.param.watch(self._selected, "selection")
        self.view = pn.Column(
            pn.Row(self.dataset, self.where, sizing_mode="stretch_width"),
            pn.Row(self.count, self.ask),
            self.table,
            sizing_mode="stretch_both",
        )
        self._filled()

    def refresh(self) -> None:
        """Follow what was published since."""
        self.dataset.options = self.state.workspace.names()
        self.dataset.value = self.state.table
        self._filled()

    def _filled(self, *_: Any) -> None:
        if not self.state.table:
            self.count.object = "This workspace is empty: run a pipeline first."
            return
        try:
            dataset = self.state.workspace.dataset(self.state.table)
            rows, total = first_rows(dataset, self.where.value or None, MOST)
        except WhenceError as error:
            self.count.object = plain(str(error)).object
            return
        self.table.value = rows.to_pandas()
        self.count.object = f"{rows.num_rows:,} shown of {total:,}"

    def _clicked(self, event: Any) -> None:
        self._about(event.row)

    def _selected(self, event: Any) -> None:
        if event.new:
            self._about(event.new[0])

    def _about(self, position: int) -> None:
        dataset = self.state.workspace.dataset(self.state.table)
        (row,) = self.table.value.iloc[[position]].to_dict("records")  # Each value as it is stored.
        if isinstance(dataset, Table):
            row |= {k: v.to_datetime64() for k, v in row.items() if isinstance(v, pd.Timestamp)}
            self._ask(about_row(dataset, row))
        else:
            at = {d: int(row[f"{d}_index"]) for d in dataset.dims}
            self._ask(about_cell(dataset, str(row["variable"]), at))

    def _all(self, _: Any) -> None:
        dataset = self.state.workspace.dataset(self.state.table)
        named = tuple(dataset.variables[:1]) if isinstance(dataset, Array) else ()
        self._ask(Question(dataset.name, self.where.value or "", named))
