"""A picture of a field: values in colour, coasts and points over them, and cells that light up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import colorcet
import numpy as np
from bokeh.core.property.descriptors import UnsetValueError
from bokeh.events import RangesUpdate, SelectionGeometry, Tap
from bokeh.models import BasicTicker, ColumnDataSource, LinearColorMapper, Range1d
from bokeh.models.annotations import ColorBar
from bokeh.plotting import figure

from explorer.places import MOST_PIXELS, Plane, coastlines

# Okabe and Ito's colours, told apart by nearly everybody.
VERMILLION, SKY, GREEN, YELLOW, BLUE, PURPLE = (
    "#D55E00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#CC79A7",
)  # fmt: skip
PINS = (SKY, GREEN, PURPLE, YELLOW)
CORNERS = ("left", "right", "bottom", "top")
LAYERS: Mapping[str, Mapping[str, Any]] = {
    "outline": {"fill_alpha": 0, "line_color": VERMILLION, "line_width": 2, "line_dash": [6, 4]},
    "removed": {"fill_alpha": 0, "line_color": VERMILLION, "line_width": 1, "line_alpha": 0.7},
    "pinned": {"fill_alpha": 0.35, "fill_color": "color", "line_color": "color", "line_width": 2},
    "cells": {"fill_alpha": 0.6, "fill_color": VERMILLION, "line_color": "#3b1a00"},
    "suspect": {"fill_alpha": 0, "line_color": "#000000", "line_width": 3},
}


class Picture:
    """One figure with a layer for each thing it shows.

    `on_tap(x, y, reach)` is told of clicks in coordinates, with how far ten pixels reach there;
    `on_box(left, right, bottom, top)` of boxes drawn with the box tool.
    """

    def __init__(
        self,
        on_tap: Callable[[float, float, tuple[float, float], tuple[float, float]], None],
        on_box: Callable[[Sequence[float]], None] | None = None,
        labels: tuple[str, str] = ("longitude", "latitude"),
        name: str = "map",
    ) -> None:
        self.name = name
        self._on_tap, self._on_box = on_tap, on_box
        self.plane: Plane | None = None
        self._values: Any = None
        self.figure: Any = figure(
            sizing_mode="stretch_both", min_height=260, tools="pan,wheel_zoom,box_zoom,reset,save",
            active_scroll="wheel_zoom", x_range=Range1d(start=0), y_range=Range1d(start=0),
            x_axis_label=labels[0], y_axis_label=labels[1], name=name,
        )  # fmt: skip
        self.figure.toolbar.logo = None
        self.mapper = LinearColorMapper(palette=colorcet.palette["blues"], nan_color="#b0b0b0")
        self._draw()
        self.figure.on_event(Tap, self._tapped)
        self.figure.on_event(RangesUpdate, self._moved)
        if on_box is not None:
            self.figure.add_tools("box_select")
            self.figure.on_event(SelectionGeometry, self._boxed)

    def _draw(self) -> None:
        plot = self.figure
        self.image = ColumnDataSource({k: [] for k in ("image", "x", "y", "dw", "dh")})
        plot.image(
            "image", x="x", y="y", dw="dw", dh="dh", source=self.image, color_mapper=self.mapper
        )
        plot.add_layout(ColorBar(color_mapper=self.mapper, ticker=BasicTicker(), width=12), "right")
        self.coast = ColumnDataSource({"xs": [], "ys": []})
        plot.multi_line("xs", "ys", source=self.coast, color="#555555", line_width=0.8)
        self.lines = ColumnDataSource({"xs": [], "ys": []})
        plot.multi_line("xs", "ys", source=self.lines, color="#222222", line_width=1.2, alpha=0.7)
        self.layers = {name: self._layer(name, look) for name, look in LAYERS.items()}
        self.points = ColumnDataSource({"x": [], "y": []}, name=f"{self.name} points")
        plot.scatter(
            "x", "y", source=self.points, size=8, fill_color="#ffffff", line_color="#222222",
            line_width=1.5,
        )  # fmt: skip
        self.here = ColumnDataSource({"x": [], "y": []})
        plot.scatter(
            "x", "y", source=self.here, size=18, fill_alpha=0, line_color=VERMILLION, line_width=3
        )

    def _layer(self, name: str, look: Mapping[str, Any]) -> ColumnDataSource:
        source = ColumnDataSource({n: [] for n in (*CORNERS, "color")}, name=f"{self.name} {name}")
        self.figure.quad(**{c: c for c in CORNERS}, source=source, **look)
        return source

    def show(self, plane: Plane, values: Any, coasts: bool) -> None:
        """Show the values (up, across) of a plane; the camera moves only for another plane."""
        fresh = self.plane is None or self.plane.extent != plane.extent
        self.plane, self._values = plane, values
        if fresh:
            self._fit(plane, coasts)
        finite = values[np.isfinite(values)]
        low, high = np.percentile(finite, [1, 99.9]) if finite.size else (0, 1)
        self.mapper.update(low=float(low), high=float(high if high > low else low + 1))
        self._raster(None if fresh or not self._large else self._view)

    def _fit(self, plane: Plane, coasts: bool) -> None:
        left, right, bottom, top = plane.extent
        for each, low, high in (
            (self.figure.x_range, left, right),
            (self.figure.y_range, bottom, top),
        ):
            each.update(start=low, end=high, reset_start=low, reset_end=high)
        xs, ys = coastlines(left) if coasts else ([], [])
        self.coast.data = {"xs": xs, "ys": ys}

    @property
    def _large(self) -> bool:
        assert self.plane is not None
        return max(len(self.plane.x.order), len(self.plane.y.order)) > MOST_PIXELS

    @property
    def _view(self) -> tuple[float, float, float, float]:
        x, y = self.figure.x_range, self.figure.y_range
        return x.start, x.end, y.start, y.end

    @property
    def width(self) -> float:
        """How many pixels the picture is wide."""
        return self._pixels("inner_width", 900)

    @property
    def height(self) -> float:
        """How many pixels the picture is high."""
        return self._pixels("inner_height", 450)

    def _pixels(self, name: str, otherwise: float) -> float:
        try:
            return float(getattr(self.figure, name))
        except UnsetValueError:
            return otherwise

    def _raster(self, view: Sequence[float] | None) -> None:
        if self.plane is not None:
            self.image.data = self.plane.picture(self._values, view)

    def light(self, layer: str, rows: Any, columns: Any, colors: Sequence[str] = ()) -> None:
        """Light up some cells in a layer, instead of those that were."""
        if self.plane is None:
            return
        boxes = self.plane.boxes(np.asarray(rows, int), np.asarray(columns, int))
        which = boxes.pop("cell")
        named = np.array(colors or [VERMILLION] * len(np.atleast_1d(rows)), object)
        self._put(layer, {**boxes, "color": named[which]})

    def frame(self, layer: str, corners: Mapping[str, Any]) -> None:
        """Draw rectangles, given by their edges, in a layer."""
        count = len(corners["left"])
        self._put(layer, {**corners, "color": [VERMILLION] * count})

    def _put(self, layer: str, data: Mapping[str, Any]) -> None:
        """Show something in a layer; an empty one that stays empty is not sent to the page."""
        if len(data["left"]) or len(self.layers[layer].data["left"]):
            self.layers[layer].data = dict(data)

    def _tapped(self, event: Any) -> None:
        if event.x is None or event.y is None:
            return
        x, y = self.figure.x_range, self.figure.y_range
        reach = (10 * (x.end - x.start) / self.width, 10 * (y.end - y.start) / self.height)
        self._on_tap(event.x, event.y, reach, (event.sx, event.sy))

    def _boxed(self, event: Any) -> None:
        drawn = event.geometry
        if event.final and drawn.get("type") == "rect" and self._on_box is not None:
            ends = (drawn["x0"], drawn["x1"], drawn["y0"], drawn["y1"])
            self._on_box([min(ends[:2]), max(ends[:2]), min(ends[2:]), max(ends[2:])])

    def _moved(self, event: Any) -> None:
        if self.plane is not None and self._large:
            self._raster((event.x0, event.x1, event.y0, event.y1))
