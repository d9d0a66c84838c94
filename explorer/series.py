"""A place over time, and a slice of an array along any of its dimensions."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import panel as pn
import panel_material_ui as pmui

from explorer.glances import Glances
from explorer.picture import VERMILLION, Picture
from explorer.places import Plane
from explorer.state import State, about_cell
from explorer.text import place, plain
from pipelines.arrays import coordinate
from pipelines.datasets import Array

ASK = "Click a cell on the map to see its values over time."


class Series:
    """The values of one cell of the map over time, with the present step marked."""

    def __init__(self, state: State, glances: Glances) -> None:
        self.state, self.glances = state, glances
        self.at: dict[str, int] | None = None
        self.watched = False
        self.told = plain(ASK)
        self.view = pn.Column(self.told, sizing_mode="stretch_both")
        state.param.watch(self._drawn, ["time", "field", "variable"])

    def show(self, at: dict[str, int]) -> None:
        """Show the cell at these indices."""
        self.at = {d: i for d, i in at.items() if d in ("lat", "lon")}
        self._drawn()

    def watch(self, watched: bool) -> None:
        """Draw only while somebody looks."""
        self.watched = watched
        self._drawn()

    def _drawn(self, *_: Any) -> None:
        array = self.state.array
        if not self.watched or array is None or set(self.at or ()) != set(array.dims[1:]):
            return
        assert self.at is not None
        variable, now = self.state.variable, min(self.state.time, array.shape[0] - 1)
        when, values = self.glances.series(array, variable, self.at, now)
        times = when if when.dtype.kind == "M" else np.arange(len(when))
        # Between dollars a plot would look for formulas, and ask the internet to set them.
        unit = (array.attribute(variable).unit or "").replace("$", "")
        lat, lon = (float(coordinate(array, d)[self.at[d]]) for d in ("lat", "lon"))
        curve = hv.Curve((times, values), "time", hv.Dimension(variable, unit=unit))
        mark = hv.VLine(coordinate(array, array.dims[0])[now] if when.dtype.kind == "M" else now)
        drawn = curve.opts(responsive=True, height=240, tools=["hover"]) * mark.opts(
            color=VERMILLION
        )
        self.told.object = f"{variable} at {place(lat, lon)}, {len(values)} steps around this one"
        self.view.objects = [self.told, pn.pane.HoloViews(drawn, sizing_mode="stretch_width")]


class Slices:
    """A slice of any array across any one of its dimensions."""

    def __init__(self, state: State, glances: Glances, ask: Any) -> None:
        self.state, self.glances, self._ask = state, glances, ask
        arrays = [d for d in state.workspace.datasets() if d.kept and isinstance(d, Array)]
        self.array = pmui.Select(
            label="Array", options=[a.name for a in arrays], width=150, size="small"
        )
        self.variable = pmui.Select(label="Variable", options=[], width=130, size="small")
        self.across = pmui.Select(label="Slice across", options=[], width=130, size="small")
        self.index = pmui.IntSlider(label="Index", start=0, end=1, value=0, width=260)
        self.picture = Picture(self._tapped, labels=("", ""), name="slice")
        self.told = plain("")
        pane = pn.pane.Bokeh(self.picture.figure, sizing_mode="stretch_both", min_height=260)
        controls = pn.Row(self.array, self.variable, self.across, self.index)
        self.view = pn.Column(controls, self.told, pane, sizing_mode="stretch_both")
        self.array.param.watch(self._chosen, "value")
        for widget in (self.variable, self.across, self.index):
            widget.param.watch(self._drawn, "value")
        self._chosen()

    def refresh(self) -> None:
        """Follow what was published since."""
        arrays = [d for d in self.state.workspace.datasets() if d.kept and isinstance(d, Array)]
        self.array.options = [a.name for a in arrays]
        self._chosen()

    @property
    def _array(self) -> Array | None:
        found = self.state.workspace.dataset(self.array.value) if self.array.value else None
        return found if isinstance(found, Array) else None

    def _chosen(self, *_: Any) -> None:
        array = self._array
        if array is not None:
            self.variable.param.update(options=array.variables, value=array.variables[0])
            self.across.param.update(options=list(array.dims), value=array.dims[0])
            self._drawn()

    def _drawn(self, *_: Any) -> None:
        array, dim = self._array, self.across.value
        if array is None or dim not in array.dims or self.variable.value not in array.variables:
            return
        self.index.end = max(array.size[dim] - 1, 1)
        index = min(self.index.value, array.size[dim] - 1)
        up, across = (d for d in array.dims if d != dim)
        values = self.glances.slice(array, self.variable.value, dim, index)
        self.picture.show(
            Plane.of(array, up, across), values, coasts=(up, across) == ("lat", "lon")
        )
        self.picture.figure.xaxis[0].axis_label = across
        self.picture.figure.yaxis[0].axis_label = up
        self.told.object = f"{dim} {index} of {array.size[dim]}: {coordinate(array, dim)[index]}"

    def _tapped(self, x: float, y: float, *_: Any) -> None:
        array, plane = self._array, self.picture.plane
        if array is None or plane is None or (at := plane.cell(x, y)) is None:
            return
        index = min(self.index.value, array.size[self.across.value] - 1)
        self._ask(about_cell(array, self.variable.value, {self.across.value: index, **at}))
