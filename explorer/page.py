"""The page: canvas, views, answers and exports of one visitor, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import panel as pn
import panel_material_ui as pmui

from explorer.asking import Asking, Question
from explorer.exporting import Exporting
from explorer.gate import Gate, Parcels
from explorer.glances import Glances
from explorer.maps import Clicked, Map
from explorer.rows import Rows
from explorer.series import Series, Slices
from explorer.state import State, is_field
from explorer.text import moment, plain
from explorer.why import Why
from explorer.work import Engine, Work
from inverses.answer import Limits
from inverses.registry import Registry
from pipelines.arrays import coordinate
from pipelines.workspace import Workspace

ADDRESS = ("field", "variable", "time", "dataset", "where", "attributes", "want", "traced")


@dataclass(slots=True)
class Server:
    """What all visitors share: the workspace, Spark, and what was looked at lately."""

    workspace: Workspace
    registry: Registry
    engine: Engine
    gate: Gate
    author: bool = True
    limits: Limits = field(default_factory=Limits)
    parcels: Parcels = field(default_factory=Parcels)
    glances: Glances = field(default_factory=Glances)

    def page(self) -> Any:
        """A fresh page for a visitor."""
        return Visit(self).view


class Visit:
    """One visitor's page: everything on it belongs to this visitor alone."""

    def __init__(self, server: Server) -> None:
        self.server = server
        document = pn.state.curdoc

        def later(act: Callable[[], Any]) -> None:
            if document is None:
                act()
            else:
                document.add_next_tick_callback(act)

        self.work = Work(server.engine, later)
        self.state = State(server.workspace)
        self.asking = Asking(server.workspace, server.registry, self.work, server.limits)
        self.map = Map(self.state, self.asking, server.glances)
        self.why = Why(self.state, self.asking, self.map.trace)
        self.rows = Rows(self.state, self._asked)
        self.series = Series(self.state, server.glances)
        self.slices = Slices(self.state, server.glances, self._asked)
        self.exporting = Exporting(self.asking, self.work, server.parcels)
        self.asking.param.watch(self._followed, ["planned", "traced"])
        self.view = self._page()
        self._addressed()

    def _asked(self, question: Question) -> None:
        self.map.card.visible = False
        self.map.ask(question)

    def _page(self) -> Any:
        return pmui.Page(  # type: ignore[attr-defined]
            title=f"Whence: {self.server.workspace.path.name}",
            sidebar=[self._sidebar()],
            main=[self._main()],
            contextbar=[self._contextbar()],
            contextbar_open=True,
            contextbar_width=380,
            contextbar_variant="persistent",
            sidebar_width=250,
            busy_indicator=None,
        )

    def _sidebar(self) -> Any:
        looks = [plain("Worth a look", **{"font-weight": "600"})]
        looks += [self._look(c) for c in self._worth_a_look()]
        return pn.Column(*looks, sizing_mode="stretch_width", margin=(0, 8))

    def _worth_a_look(self) -> Iterator[Clicked]:
        """The points at the ends of what the table on the map says."""
        table = self.map.table
        if table is None:
            return
        rows = self.server.glances.points(self.server.workspace, table)
        if {"pressure", "track"} <= set(rows):
            lowest = rows.groupby("track")["pressure"].idxmin()
            for position in rows.loc[lowest, "pressure"].sort_values().index[:8]:
                yield self.map.about(table, rows, int(position))

    def _look(self, clicked: Clicked) -> Any:
        button = pmui.Button(
            label=f"{clicked.title}, {clicked.lines[0]}", size="small", variant="text",
            sizing_mode="stretch_width", margin=0,
        )  # fmt: skip

        def act(_: Any) -> None:
            if clicked.row is not None:
                self.state.time = int(clicked.row["time_index"])
            self._asked(clicked.question)

        button.on_click(act)
        return button

    def _main(self) -> Any:
        views = pmui.Tabs(
            ("Map", pn.Column(self._controls(), self.map.view, sizing_mode="stretch_both")),
            ("Table", self.rows.view),
            ("Slices", self.slices.view),
            ("Time series", self.series.view),
            sizing_mode="stretch_both",
            dynamic=True,
        )
        views.param.watch(lambda e: self.series.watch(e.new == 3), "active")
        return pn.Column(views, self._jobs(), sizing_mode="stretch_both", min_height=620)

    def _controls(self) -> Any:
        array = self.state.array
        steps = (array.shape[0] if array else 1) - 1
        fields = [d.name for d in self.server.workspace.datasets() if is_field(d)]
        field = pmui.Select.from_param(
            self.state.param.field, label="Field", options=fields, width=140, size="small"
        )
        variable = pmui.Select.from_param(
            self.state.param.variable, label="Variable", width=120, size="small",
            options=array.variables if array else [],
        )  # fmt: skip
        player = pmui.Player(
            label="Step", start=0, end=max(steps, 1), value=self.state.time, interval=350,
            variant="minimal", loop_policy="once", sizing_mode="stretch_width",
        )  # fmt: skip
        player.param.watch(lambda e: setattr(self.state, "time", e.new), "value")
        self.state.param.watch(lambda e: setattr(player, "value", e.new), "time")
        when = plain("", **{"min-width": "150px"})

        def told(*_: Any) -> None:
            if (array := self.state.array) is not None:
                step = min(self.state.time, array.shape[0] - 1)
                when.object = moment(coordinate(array, array.dims[0])[step])

        self.state.param.watch(told, ["time", "field"])
        told()
        return pn.Row(field, variable, player, when, sizing_mode="stretch_width")

    def _jobs(self) -> Any:
        """What is being done, how far it is, and how to stop it."""
        told = plain("")
        bar = pmui.LinearProgress(value=0, visible=False, sizing_mode="stretch_width")
        cancel = pmui.Button(label="Cancel", size="small", disabled=True, icon="stop")
        cancel.on_click(lambda _: self.work.cancel())
        hop = pmui.IntSlider(label="Hops back", start=0, end=1, value=0, width=200)
        hop.param.watch(lambda e: setattr(self.state, "hop", e.new), "value")
        self.state.param.watch(lambda e: setattr(hop, "value", e.new), "hop")
        self._hop_slider = hop

        def shown(*_: Any) -> None:
            work = self.work
            known = f"{work.done} of {work.total} tasks" if work.total else ""
            told.object = f"{work.label}: {known}" if work.busy else self.server.engine.state
            bar.visible = work.busy
            bar.value = int(100 * work.done / work.total) if work.total else -1
            cancel.disabled = not work.busy

        self.work.param.watch(shown, ["busy", "label", "done", "total"])
        shown()
        if pn.state.curdoc is not None:
            pn.state.add_periodic_callback(shown, period=1000)
        return pn.Row(hop, told, bar, cancel, sizing_mode="stretch_width")

    def _contextbar(self) -> Any:
        return pmui.Tabs(
            ("Why", self.why.view), ("Export", self.exporting.view), sizing_mode="stretch_width"
        )

    def _followed(self, *_: Any) -> None:
        """Follow what is asked: hops to show, and the place over time."""
        planned = self.asking.planned
        hops = len(planned.plan.hops) if planned else 0
        self._hop_slider.end = max(hops, 1)
        self.state.hop = hops
        if planned and len(planned.plan.selection) == 1:
            at = planned.plan.selection.at.spans
            place = {
                d: at.get(d if d in at and d != "lat" and d != "lon" else f"{d}_index")
                for d in ("lat", "lon")
            }
            if all(place.values()):
                self.series.show({d: int(s.low[0]) for d, s in place.items() if s is not None})

    def _addressed(self) -> None:
        """Take from the address what is asked, and keep the address true."""
        if pn.state.location is not None:
            names = (
                "field",
                "variable",
                "time",
                "dataset",
                "where",
                "attributes",
                "want",
                "traced",
            )
            pn.state.location.sync(self.state, list(names))
        question = self.state.question
        if question is not None:
            traced = self.state.traced
            self.asking.ask(question)
            if traced:
                self.asking.trace()
