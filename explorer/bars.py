"""The bars around the views: which field and step to show, how far back, and what is being done."""

from __future__ import annotations

from typing import Any

import panel as pn
import panel_material_ui as pmui

from explorer.state import State, is_field
from explorer.text import moment, plain
from explorer.work import Engine, Work
from pipelines.arrays import coordinate


class Controls:
    """Which field, which variable, which step: with a player over time."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.field = pmui.Select(label="Field", options=[], width=140, size="small")
        self.variable = pmui.Select(label="Variable", options=[], width=120, size="small")
        self.player = pmui.Player(
            label="Step", start=0, end=1, value=0, interval=350, variant="minimal",
            loop_policy="once", sizing_mode="stretch_width",
        )  # fmt: skip
        self.when = plain("", **{"min-width": "150px", "padding-top": "10px"})
        self.view = pn.Row(
            self.field, self.variable, self.player, self.when, sizing_mode="stretch_width"
        )
        for name, widget in (("field", self.field), ("variable", self.variable)):
            widget.param.watch(lambda e, n=name: self._chosen(n, e.new), "value")
        self.player.param.watch(lambda e: self._chosen("time", e.new), "value")
        state.param.watch(lambda *_: self.follow(), ["field", "variable", "time"])
        self.follow()

    def _chosen(self, name: str, value: Any) -> None:
        if value is not None and value != "":
            self.state.param.update(**{name: value})

    def follow(self) -> None:
        """Show what is chosen, and offer what there is."""
        array = self.state.array
        if array is None:
            return
        fields = [d.name for d in self.state.workspace.datasets() if d.kept and is_field(d)]
        self.field.param.update(options=fields, value=self.state.field)
        known = self.state.variable in array.variables
        variable = self.state.variable if known else array.variables[0]
        self.variable.param.update(options=array.variables, value=variable)
        step = min(self.state.time, array.shape[0] - 1)
        self.player.param.update(end=max(array.shape[0] - 1, 1), value=step)
        self.when.object = moment(coordinate(array, array.dims[0])[step])


class Jobs:
    """How many hops back are shown; what is being done, how far it is, and how to stop it."""

    def __init__(self, state: State, work: Work, engine: Engine) -> None:
        self.work, self.engine = work, engine
        self.hop = pmui.IntSlider(label="Hops back", start=0, end=1, value=0, width=180)
        self.level = pmui.RadioButtonGroup.from_param(
            state.param.level, label="Level", size="small", margin=(10, 10)
        )
        self.told = plain("", **{"padding-top": "12px"})
        self.bar = pmui.LinearProgress(
            value=0, visible=False, variant="determinate", width=160, margin=(20, 10)
        )
        self.cancel = pmui.Button(label="Cancel", size="small", disabled=True, icon="stop")
        self.cancel.on_click(lambda _: work.cancel())
        self.hop.param.watch(lambda e: state.param.update(hop=e.new), "value")
        state.param.watch(lambda e: self.hop.param.update(value=e.new), "hop")
        work.param.watch(lambda *_: self.shown(), ["busy", "label", "done", "total"])
        self.view = pn.Row(
            self.hop,
            self.level,
            self.told,
            self.bar,
            self.cancel,
            sizing_mode="stretch_width",
            height=64,
        )
        self.shown()

    def shown(self) -> None:
        """Say what goes on; where nothing does, how Spark is."""
        work = self.work
        if work.busy:
            known = f": {work.done} of {work.total} tasks" if work.total else ""
            waits = "" if self.engine.ready else f" ({self.engine.state})"
            text = f"{work.label}{known}{waits}"
        else:
            text = self.engine.state
        self.told.object = plain(text).object
        part = 100 * work.done // work.total if work.total else 0
        self.bar.param.update(visible=work.busy, value=part)
        self.cancel.disabled = not work.busy
