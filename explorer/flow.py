"""The one place that knows panel-reactflow: it shows a drawing and tells what was done to it."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

from panel_material_ui.widgets.menus import DRAG_TYPE
from panel_reactflow import ReactFlow

from explorer.demo import asset
from explorer.drawing import GROUP, Drawing
from explorer.keys import Keys, together
from explorer.nodes import HEIGHT, WIDTH, Plain, edges_of, frame_of, node_types, nodes_of
from pipelines.boxes.box import OUT

PATCHED = ("position", "label", "className", "style", "draggable", "connectable", "deletable")
FIXED = ("id", "type", "parentId")
SMALLEST, LARGEST = 0.05, 1.2
LONGEST = 3.0
MARGIN = 24


class Flow:
    """A drawing as boxes and arrows.

    The drawing is the only truth: whatever the reader does here becomes a change of the drawing,
    and what the drawing then is is drawn, so that a refused change is taken back.
    """

    def __init__(self, drawing: Drawing, keys: Keys) -> None:
        self.drawing, self.keys = drawing, keys
        self._stamps, self._arrows = count(1), dict[str, tuple[str, str]]()
        self._drawing_now = False
        self._wanted: set[str] | None = None
        self._before, self._until = list[set[str]](), 0.0
        self.view = ReactFlow(
            node_types=node_types(drawing.registry),
            editor_mode="side",
            default_node_editor=_no_editor,
            default_edge_editor=_no_editor,
            bottom_panel=[keys],
            min_zoom=SMALLEST,
            max_zoom=LARGEST,
            show_minimap=False,
            sizing_mode="stretch_both",
            min_height=150,
            stylesheets=[asset("canvas.css").read_text(encoding="utf-8")],
        )
        self.view.add_connection_validator(self._refusal)
        for event in ("node_moved", "selection_changed", "edge_added", "edge_deleted", "drop"):
            self.view.on(event, getattr(self, f"_{event}"))
        self.view.on("node_deleted", self._node_deleted)

    def draw(self) -> None:
        """Show the drawing as it is now; what is alike is left alone, what moved is patched."""
        with together(), _Silently(self):
            editing = self.drawing.mode == "edit"
            faded = ["has-path"] if self.drawing.path is not None else []
            self.view.param.update(
                enable_connect=editing,
                show_minimap=editing,
                enable_delete=editing,
                drop_types=[DRAG_TYPE] if editing else [],
                css_classes=[self.drawing.mode, *faded],
            )
            self._draw_nodes(nodes_of(self.drawing))
            self._draw_edges(edges_of(self.drawing))

    def _draw_nodes(self, nodes: list[Plain]) -> None:
        shown = {n["id"]: n for n in self.view.nodes}
        if [_fixed(n) for n in nodes] != [_fixed(n) for n in self.view.nodes]:
            self._select(nodes, shown)
            self.view.nodes = nodes
            return
        for node in nodes:
            self._patch(node, shown[node["id"]])
        self._select(nodes, shown)

    def _patch(self, node: Plain, shown: Plain) -> None:
        patch = {k: node.get(k) for k in PATCHED if node.get(k) != shown.get(k)}
        if patch:
            self.view.patch_node_props(node["id"], patch)

    def _select(self, nodes: list[Plain], shown: dict[str, Plain]) -> None:
        """Select what the drawing has chosen, and nothing else, without a moment of neither.

        The browser keeps its own selection when nodes are sent anew, and tells of every step. So
        what is new is selected first; once it tells of that, the rest is let go.
        """
        wanted = {n["id"] for n in nodes if n["selected"]}
        before = {name for name, node in shown.items() if node.get("selected")}
        if wanted == before or wanted == self._wanted:
            return
        self._before = [*(self._before if self._wanted is not None else []), before]
        self._wanted = wanted
        self._until = time.monotonic() + LONGEST
        for name in (wanted - before) & shown.keys():
            self.view.patch_node_props(name, {"selected": True})
        if not wanted - before:
            self._let_go((before - wanted) & {n["id"] for n in nodes})

    def _let_go(self, names: set[str]) -> None:
        for name in names:
            self.view.patch_node_props(name, {"selected": False})

    def _draw_edges(self, edges: dict[str, tuple[Plain, tuple[str, str]]]) -> None:
        self._arrows = {identity: end for identity, (_, end) in edges.items()}
        plain = [edge for edge, _ in edges.values()]
        if plain != [
            {k: v for k, v in e.items() if k not in ("data", "selected")} for e in self.view.edges
        ]:
            # The browser ignores arrows that look as they did when it was last sent some.
            stamp = {"stamp": next(self._stamps)}
            self.view.edges = [{**edge, "data": stamp} for edge in plain]

    def fit(self) -> None:
        """Bring all boxes into sight."""
        places = self.drawing.draft.sheet.places.values()
        if places:
            left, top = min(x for x, _ in places), min(y for _, y in places)
            right, bottom = max(x for x, _ in places) + WIDTH, max(y for _, y in places) + HEIGHT
            self._look_at(left, top, right - left, bottom - top)

    def reveal(self, name: str) -> None:
        """Bring a box into sight by the shortest way; who sees it is not moved."""
        place, seen = self.drawing.draft.sheet.places.get(name), self.view.viewport
        if place is None or seen is None:
            return
        near, (x, y), (wide, high) = seen["zoom"], place, self.keys.size
        right = _inward(seen["x"] + near * x, near * WIDTH, wide)
        down = _inward(seen["y"] + near * y, near * HEIGHT, high)
        if right or down:
            self.view.viewport = {"x": seen["x"] + right, "y": seen["y"] + down, "zoom": near}

    def _look_at(self, x: float, y: float, width: float, height: float, zoom: float = 0.0) -> None:
        wide, high = self.keys.size
        fitting = min(0.88 * wide / width, 0.82 * high / height, 1.1)
        near = zoom or max(fitting, SMALLEST)
        left, top = wide / 2 - near * (x + width / 2), high / 2 - near * (y + height / 2)
        self.view.viewport = {"x": left, "y": top, "zoom": near}

    def _refusal(self, arrow: Plain) -> str | None:
        """Why an arrow that is being drawn may not end here; the browser shows it."""
        name, port = str(arrow.get("target")), str(arrow.get("targetHandle"))
        return self.drawing.draft.refusal(name, port, _given(arrow))

    def _edge_added(self, event: Plain) -> None:
        edge = event["edge"]
        name, port, given = str(edge.get("target")), str(edge.get("targetHandle")), _given(edge)
        self.drawing.change(lambda d: d.wired(name, port, given))
        self.draw()

    def _edge_deleted(self, event: Plain) -> None:
        end = self._arrows.get(event["edge_id"])
        if end is not None:
            mark = self.drawing.burst("delete")
            self.drawing.change(lambda d: d.unwired(*end), mark)

    def _node_deleted(self, event: Plain) -> None:
        self.drawing.delete([event["node_id"]])

    def _node_moved(self, event: Plain) -> None:
        """A box was dragged, or a group with all its boxes; the moves of one drag are one step."""
        name, place = str(event["node_id"]), event["position"]
        sheet = self.drawing.draft.sheet
        x, y = float(place["x"]), float(place["y"])
        if name.startswith(GROUP):
            moved = _group_moved(sheet, name.removeprefix(GROUP), x, y)
        else:
            group = sheet.group_of(name)
            left, top = frame_of(sheet, group)[0] if group else (0.0, 0.0)
            moved = {name: (x + left, y + top)}
        self.drawing.change(lambda d: d.drawn(d.sheet.moved(moved)), self.drawing.burst("move"))

    def _selection_changed(self, event: Plain) -> None:
        """Follow the reader's selection, but not the steps by which ours is made."""
        nodes = set(event["nodes"])
        waiting = self._wanted is not None and time.monotonic() < self._until
        if self._drawing_now or (waiting and nodes in self._before):
            return
        if waiting and self._wanted is not None and nodes > self._wanted:
            self._let_go(nodes - self._wanted)
            return
        self._wanted = None
        if nodes != set(self.drawing.chosen):
            self.drawing.choose(event["nodes"])

    def _drop(self, event: Plain) -> None:
        dragged, place = event["data"], event["position"]
        if isinstance(dragged, dict):
            at = (float(place["x"]) - WIDTH / 2, float(place["y"]) - HEIGHT / 2)
            self.drawing.add(str(dragged.get("label")), at)


def _given(arrow: Plain) -> str:
    """The dataset that an arrow starts from: what a box makes, or one of those it makes besides."""
    source, handle = str(arrow.get("source")), str(arrow.get("sourceHandle") or OUT)
    return source if handle == OUT else f"{source}.{handle}"


class _Silently:
    """While we draw, what the flow tells of is our own doing."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    def __enter__(self) -> None:
        self.before, self.flow._drawing_now = self.flow._drawing_now, True

    def __exit__(self, *_: object) -> None:
        self.flow._drawing_now = self.before


def _inward(start: float, length: float, room: float) -> float:
    """How far something has to go to lie within some room, a little off its edges.

    >>> _inward(-10, 50, 200), _inward(60, 50, 200), _inward(180, 50, 200)
    (34, 0.0, -54)
    """
    return max(MARGIN - start, 0.0) or min(room - MARGIN - start - length, 0.0)


def _group_moved(sheet: Any, group: str, x: float, y: float) -> dict[str, tuple[float, float]]:
    left, top = frame_of(sheet, group)[0]
    inside = {n: sheet.places[n] for n in sheet.groups[group]}
    return {n: (u + x - left, v + y - top) for n, (u, v) in inside.items()}


def _fixed(node: Plain) -> list[Any]:
    return [node.get(k) for k in FIXED]


def _no_editor(*_: Any, **__: Any) -> None:
    """Boxes are edited in a form of ours."""
