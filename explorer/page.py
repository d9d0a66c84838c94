"""The page: canvas, views, answers and exports of one visitor, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param

from explorer.asking import Asking, Question
from explorer.bars import Controls, Jobs
from explorer.canvas import Canvas
from explorer.clicks import Clicked, on_point
from explorer.data import Data
from explorer.escape import Escape
from explorer.exporting import Exporting
from explorer.gate import Gate, Parcels
from explorer.glances import Glances, has_places
from explorer.history import HistoryView
from explorer.maps import Map
from explorer.rows import Rows
from explorer.series import Series, Slices
from explorer.state import State, is_field
from explorer.text import plain
from explorer.why import Why
from explorer.work import Engine, Work
from inverses.limits import Limits
from inverses.registry import Registry
from pipelines.workspace import Workspace

LOOKING, DRAWING, BELOW = 230, 460, 600  # pixels of the canvas, and of the views below it
VIEWS = ("Map", "Table", "Slices", "Time series", "History")
ADDRESS = ("field", "variable", "time", "dataset", "where", "attributes", "want", "traced", "pins")


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
        self.series = Series(self.state, server.glances)
        self.exporting = Exporting(self.asking, self.work, server.parcels)
        self.data = Data(self.asking)
        self.canvas = Canvas(server.workspace, server.registry, self.work, server.author)
        self.canvas.param.watch(self._picked, "selected")
        self.escape = Escape()  # type: ignore[no-untyped-call]
        self.escape.param.watch(lambda *_: self._cleared(), "escaped")
        self.controls = Controls(self.state)
        self.jobs = Jobs(self.state, self.work, server.engine)
        self.looks = pn.Column(sizing_mode="stretch_width", margin=(0, 8))
        self._versions: list[tuple[str, str]] = []
        self.asking.after(self._followed, "planned", "traced")
        self.asking.param.watch(self._noted, ["pinned"])
        self.view = self._page()
        if pn.state.location is not None:
            pn.state.location.sync(self.state, list(ADDRESS))
        if document is None:
            self._began()
        else:
            # What changes before a page has loaded may never reach it.
            pn.state.onload(self._began)
            pn.state.on_session_destroyed(lambda _: self.work.cancel())

    def _began(self) -> None:
        """Show what there is and what the address says, and follow what changes."""
        self._addressed()
        self._refreshed()
        if pn.state.curdoc is not None:
            pn.state.add_periodic_callback(self._refreshed, period=1000)

    def _asked(self, question: Question) -> None:
        self.map.card.hide()
        self.map.ask(question)

    def _cleared(self) -> None:
        """Let go of the selection; what is pinned stays."""
        self.map.card.hide()
        self.state.asked(None)
        self.asking.clear()

    def _page(self) -> Any:
        page = pmui.Page(  # type: ignore[attr-defined]
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
        # Else every event of any visitor would have this page looked through, which takes 25 ms.
        with param.edit_constant(page):
            page.busy = False
        page.param.watch(lambda event: self.canvas.param.update(dark=event.new), "dark_theme")
        self.canvas.dark = page.dark_theme
        return page

    def _sidebar(self) -> Any:
        """What to look at and the outline of boxes; while drawing, the palette above them."""
        palette = pn.Column(self.canvas.palette, visible=False, sizing_mode="stretch_width")
        self.canvas.param.watch(
            lambda event: palette.param.update(visible=event.new == "edit"), "mode"
        )
        return pn.Column(palette, self.looks, self.canvas.outline, sizing_mode="stretch_width")

    def _picked(self, event: Any) -> None:
        """Show the data of the box that was selected, if it has any yet."""
        if event.new in self.server.workspace.names():
            self.state.table = event.new
            dataset = self.server.workspace.dataset(event.new)
            if is_field(dataset):
                self.state.field = event.new
            elif has_places(dataset):
                self.state.points = event.new

    def _refreshed(self) -> None:
        """Follow what runs publish while the page is open."""
        self.jobs.shown()
        now = [d.key for d in self.server.workspace.datasets()]
        if now == self._versions:
            return
        self._versions = now
        self.canvas.refresh()
        self.canvas.recall()
        self.state.reset()
        self.controls.follow()
        for made in ("rows", "slices", "history"):
            if made in self.__dict__:
                getattr(self, made).refresh()
        self.map.refresh()
        named = plain("Worth a look", **{"font-weight": "600"})
        self.looks.objects = [named, *(self._look(c) for c in self._worth_a_look())]

    def _worth_a_look(self) -> Iterator[Clicked]:
        """The points at the ends of what the table on the map says."""
        table = self.map.table
        if table is None:
            return
        rows = self.server.glances.points(self.server.workspace, table)
        if {"pressure", "track"} <= set(rows):
            lowest = rows.groupby("track")["pressure"].idxmin()
            for position in rows.loc[lowest, "pressure"].sort_values().index[:8]:
                yield on_point(table, rows, int(position))

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
        """The views, one of them seen; each is made when it is first asked for."""
        on_map = pn.Column(self.controls.view, self.map.view, sizing_mode="stretch_both")
        self.views = [on_map, *(pn.Column(sizing_mode="stretch_both") for _ in VIEWS[1:])]
        strip = pmui.Tabs(*((n, pn.Spacer(height=0)) for n in VIEWS), sizing_mode="stretch_width")
        strip.param.watch(lambda event: self._viewed(event.new), "active")
        self._viewed(0)
        drawn = pn.Column(self.canvas.view, sizing_mode="stretch_width", margin=0)
        parts = (drawn, strip, *self.views, self.jobs.view, self.escape)
        main = pn.Column(*parts, sizing_mode="stretch_both")

        def fitted(mode: str) -> None:
            drawn.height = DRAWING if mode == "edit" else LOOKING
            main.min_height = drawn.height + BELOW

        self.canvas.param.watch(lambda event: fitted(event.new), "mode")
        fitted(self.canvas.mode)
        return main

    def _viewed(self, active: int) -> None:
        """Show one view; what is not seen is not drawn either."""
        made: dict[int, Callable[[], Any]] = {
            1: lambda: self.rows.view, 2: lambda: self.slices.view, 3: lambda: self.series.view,
            4: lambda: self.history.view,
        }  # fmt: skip
        if active in made and not self.views[active].objects:
            self.views[active].append(made[active]())
        for number, view in enumerate(self.views):
            view.visible = number == active
        self.series.watch(active == 3)

    @cached_property
    def rows(self) -> Rows:
        return Rows(self.state, self._asked)

    @cached_property
    def slices(self) -> Slices:
        return Slices(self.state, self.server.glances, self._asked)

    @cached_property
    def history(self) -> HistoryView:
        return HistoryView(self.server.workspace, self.work)

    def _contextbar(self) -> Any:
        return pmui.Tabs(
            ("Why", self.why.view),
            ("Configure", self.canvas.configure),
            ("Data", self.data.view),
            ("Export", self.exporting.view),
            sizing_mode="stretch_width",
        )

    def _followed(self, *_: Any) -> None:
        """Follow what is asked: hops to show, and the place over time."""
        planned = self.asking.planned
        hops = len(planned.plan.hops) if planned else 0
        self._show_path()
        self.jobs.hop.end = max(hops, 1)
        self.state.hop = hops
        if planned and len(planned.plan.selection) == 1:
            at = planned.plan.selection.at.spans
            place = {
                d: at.get(d if d in at and d != "lat" and d != "lon" else f"{d}_index")
                for d in ("lat", "lon")
            }
            if all(place.values()):
                self.series.show({d: int(s.low[0]) for d, s in place.items() if s is not None})

    def _show_path(self) -> None:
        """Colour the boxes that the question goes back through."""
        planned = self.asking.planned
        if planned is None:
            self.canvas.clear_path()
        else:
            behind = [hop.source.name for hop in planned.plan.hops]
            self.canvas.show_path([planned.question.dataset, *behind])

    def _addressed(self) -> None:
        """Ask what the address says is asked, and answer again what it says was answered."""
        question, pinned = self.state.question, self.state.pinned
        if question is not None:
            self.asking.ask(question)
        if pinned or (question and self.state.traced):
            self.asking.restore(question if self.state.traced else None, pinned)

    def _noted(self, *_: Any) -> None:
        """Keep in the address what is pinned."""
        self.state.pin([p.question for p in self.asking.pinned])
