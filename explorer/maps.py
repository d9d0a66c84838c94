"""The map: a field at one time, the tracks over it, and a card for whatever is clicked."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pandas as pd
import panel as pn

from explorer import highlight
from explorer.asking import Asking, Question, Traced
from explorer.card import Card
from explorer.clicks import Clicked, on_cell, on_point
from explorer.glances import Glances, Lines
from explorer.picture import PINS, Picture
from explorer.places import Plane
from explorer.state import State, about_box, about_track
from pipelines.datasets import Array, Table
from pipelines.tables import column

EDGES: dict[str, Any] = {"left": [], "right": [], "bottom": [], "top": []}
SOON = 4 * 2**20  # bytes of a chunk that is read while the page waits


class Map:
    """The map of one visitor."""

    def __init__(self, state: State, asking: Asking, glances: Glances) -> None:
        self.state, self.asking, self.glances = state, asking, glances
        self.picture = Picture(self._tapped, self._boxed)
        self.card = Card(self.trace, self._whole_track)
        self._lines = Lines(None)
        self._track: Question | None = None
        pane = pn.pane.Bokeh(self.picture.figure, sizing_mode="stretch_both", margin=0)
        self.view = pn.Column(
            pane,
            self.card.view,
            sizing_mode="stretch_both",
            styles={"position": "relative"},
            margin=0,
        )
        state.param.watch(self._shown, ["field", "variable", "time", "points"])
        state.param.watch(self._lit, ["hop", "level"])
        asking.param.watch(self._lit, ["planned", "found", "traced", "pinned"])
        self._shown()

    def refresh(self) -> None:
        """Follow what was published since."""
        self._shown()

    def _shown(self, *_: Any) -> None:
        """Draw the chosen step of the chosen field, and the points over it."""
        array = self.state.array
        if array is None:
            return
        step = min(self.state.time, array.shape[0] - 1)
        variable, record = self.state.variable, array.dims[0]
        if variable not in array.variables:
            return

        def read() -> Any:
            return self.glances.slice(array, variable, record, step)

        def draw(values: Any) -> None:
            if (self.state.field, self.state.variable, self.state.time) != wanted:
                return
            with pn.io.hold():
                self.picture.show(Plane.of(array, "lat", "lon"), values, coasts=True)
                self._points(step)
                self._lit()

        wanted = (self.state.field, variable, self.state.time)
        if prod(array.chunks) * array.itemsize <= SOON:
            draw(read())
        else:
            self.asking.work.aside(read, draw)

    def _points(self, step: int) -> None:
        rows = self._rows()
        if rows is None:
            return
        if self._lines.rows is not rows:
            self._lines = Lines(rows)
        now = rows[rows["time_index"] == step]
        xs, ys = self._lines.alive(step)
        self.picture.points.data = {"x": _turned(self.picture, now["lon"]), "y": now["lat"]}
        self.picture.lines.data = {
            "xs": [_turned(self.picture, x) for x in xs],
            "ys": list(ys),
        }

    def _rows(self) -> pd.DataFrame | None:
        table = self.table
        return None if table is None else self.glances.points(self.state.workspace, table)

    @property
    def table(self) -> Table | None:
        """The table whose rows are the points."""
        found = self.state.workspace.dataset(self.state.points) if self.state.points else None
        return found if isinstance(found, Table) else None

    def _lit(self, *_: Any) -> None:
        """Light up what is known of the answer in the step that is shown."""
        array, plane = self.state.array, self.picture.plane
        if array is None or plane is None:
            return
        fixed = {array.dims[0]: min(self.state.time, array.shape[0] - 1)}
        with pn.io.hold():
            self._light_answer(array, plane, fixed)
            self._light_pins(array, plane, fixed)
            self._light_suspects(array, fixed)
            self._ring()

    def _light_answer(self, array: Array, plane: Plane, fixed: dict[str, int]) -> None:
        found, outline = self.asking.found.get(array.key), self._outline(array)
        waiting = outline if found is None else None
        shown = found if found is not None and self._reaches(array) else None
        cells = self._verified(shown, fixed, plane)
        if shown is not None and self.state.level == "tuple":
            self._frame_step(shown, fixed, plane)
            waiting, cells, outline = None, highlight.NONE, None
        else:
            edges = highlight.outlined(waiting, array, fixed, plane) if waiting else EDGES
            self.picture.frame("outline", edges)
        fine = self.state.level == "cell"
        self.picture.light("cells", *(cells if fine else highlight.NONE))
        maybe = highlight.NONE
        if shown is not None and outline is not None and fine:
            maybe = highlight.candidates(outline, array, fixed, plane)
        self.picture.light("removed", *highlight.without(maybe, cells))

    def _outline(self, array: Array) -> Any:
        """Where the weak inverses say that an answer in this array lies."""
        planned = self.asking.planned
        if planned is None:
            return None
        selection = planned.plan.selection
        return planned.outline.get(array.key, selection.at if selection.dataset == array else None)

    def _frame_step(self, found: Any, fixed: dict[str, int], plane: Plane) -> None:
        """Frame the whole step, if anything in it contributed."""
        (dim, step), *_ = fixed.items()
        here = bool((column(found.rows, dim) == step).any())
        ends = dict(zip(EDGES, ([e] for e in plane.extent), strict=True))
        self.picture.frame("outline", ends if here else EDGES)

    def _verified(self, found: Any, fixed: dict[str, int], plane: Plane) -> highlight.Cells:
        if found is None:
            return highlight.NONE
        return highlight.verified(found, self.state.variable, fixed, plane)

    def _reaches(self, array: Array) -> bool:
        """Whether the hops that are shown go back as far as this array."""
        hops = self.asking.planned.plan.hops if self.asking.planned else ()
        first = [n for n, hop in enumerate(hops, 1) if hop.source.key == array.key]
        return not first or self.state.hop >= first[0]

    def _light_pins(self, array: Array, plane: Plane, fixed: dict[str, int]) -> None:
        rows, columns, colors = [highlight.NONE[0]], [highlight.NONE[1]], []
        for traced, color in zip(self.asking.pinned, PINS * 10, strict=False):
            found = traced.answer.found.get(array.key)
            if found is not None and traced is not self.asking.traced:
                up, across = self._verified(found, fixed, plane)
                rows.append(up)
                columns.append(across)
                colors += [color] * len(up)
        self.picture.light("pinned", np.concatenate(rows), np.concatenate(columns), colors)

    def _light_suspects(self, array: Array, fixed: dict[str, int]) -> None:
        traced: Traced | None = self.asking.traced
        here = [
            s.at
            for s in (traced.suspects if traced else ())
            if s.dataset == array.name and s.variable == self.state.variable
            and {"lat", "lon"} <= s.at.keys() and s.at.items() >= fixed.items()
        ]  # fmt: skip
        self.picture.light("suspect", [a["lat"] for a in here], [a["lon"] for a in here])

    def _ring(self) -> None:
        """Draw a ring around each selected point of the step that is shown."""
        rows, planned = self._rows(), self.asking.planned
        here: dict[str, Any] = {"x": [], "y": []}
        if (
            rows is not None
            and planned
            and planned.plan.selection.dataset.name == self.state.points
        ):
            spans = planned.plan.selection.at.spans
            now = spans["time_index"].low == self.state.time
            lon, lat = spans["lon"].low[now], spans["lat"].low[now]
            here = {"x": _turned(self.picture, lon), "y": lat}
        self.picture.here.data = here

    def _tapped(
        self, x: float, y: float, reach: tuple[float, float], screen: tuple[float, float]
    ) -> None:
        clicked = self._near(x, y, reach) or self._cell(x, y)
        if clicked is not None:
            self.ask(clicked.question)
            self._show_card(clicked, screen)

    def ask(self, question: Question) -> None:
        """Ask about something, with the guarantee that is wished for."""
        self.state.asked(Question(question.dataset, question.where, question.attributes,
                                  self.state.want))  # fmt: skip
        self.asking.ask(self.state.question)  # type: ignore[arg-type]

    def _boxed(self, box: Sequence[float]) -> None:
        table = self.table
        if table is not None:
            self.card.hide()
            self.ask(about_box(table, self.state.time, list(box)))

    def _near(self, x: float, y: float, reach: tuple[float, float]) -> Clicked | None:
        """The point within reach of a click that is nearest to it."""
        rows, table = self._rows(), self.table
        if rows is None or table is None:
            return None
        now = rows[rows["time_index"] == self.state.time]
        away = np.hypot(
            (_turned(self.picture, now["lon"]) - x) / reach[0],
            (now["lat"].to_numpy() - y) / reach[1],
        )
        if not len(away) or away.min() > 1:
            return None
        return on_point(table, rows, int(now.index[int(np.argmin(away))]))

    def _cell(self, x: float, y: float) -> Clicked | None:
        array, plane = self.state.array, self.picture.plane
        if array is None or plane is None or (at := plane.cell(x, y)) is None:
            return None
        record = array.dims[0]
        at = {record: min(self.state.time, array.shape[0] - 1), **at}
        values = self.glances.slice(array, self.state.variable, record, at[record])
        return on_cell(array, self.state.variable, at, values)

    def _show_card(self, clicked: Clicked, screen: tuple[float, float]) -> None:
        row = clicked.row
        self._track = about_track(self.table, row) if self.table and row else None
        width = self.picture.width
        self.card.show(clicked.title, clicked.lines, self._track is not None, screen, width)

    def _whole_track(self) -> None:
        if self._track is not None:
            self.ask(self._track)

    def trace(self) -> None:
        """Trace what is selected, and put the card away."""
        self.card.hide()
        self.state.traced = 1
        self.asking.trace()


def _turned(picture: Picture, lon: Any) -> Any:
    """Longitudes in the turn that a map shows."""
    west = picture.plane.extent[0] if picture.plane else 0.0
    return west + (np.asarray(lon, float) - west) % 360
