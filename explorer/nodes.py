"""A drawing as the nodes and edges that the canvas shows, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from explorer.badges import badge_of
from explorer.drawing import GROUP, Drawing
from explorer.sheet import Place, Sheet
from inverses.registry import Registry
from pipelines.boxes.box import OUT, Box, made_besides

WIDTH, HEIGHT = 224, 84
EDGE, HEAD = 20, 40
TRACED = "#D55E00"
Plain = dict[str, Any]


def node_types(registry: Registry) -> dict[str, Plain]:
    """What can be on the canvas: each box with its ports, a source, a group open and folded."""
    ours: dict[str, Plain] = {
        "source": {"inputs": [], "outputs": [_out("array")]},
        "frame": {"inputs": [], "outputs": []},
        "folded": {"inputs": None, "outputs": None},
    }
    return ours | {f"box:{name}": _ports(box) for name, box in registry.boxes.items()}


def _ports(box: type[Box]) -> Plain:
    needs = {p.name: ", ".join([p.kind, *map(repr, p.needs)]) for p in box.takes}
    inputs = [{"id": p.name, "label": p.name, "type": needs[p.name]} for p in box.takes]
    others = [_out(each.kind, name) for name, each in made_besides(box).items()]
    return {"inputs": inputs, "outputs": [_out(box.kind), *others]}


def _out(kind: str, name: str = "") -> Plain:
    return {"id": name or OUT, "label": name or "makes", "type": kind}


def nodes_of(drawing: Drawing) -> list[Plain]:
    """A node for every group and every box that is not folded away, groups first."""
    draft = drawing.draft
    sheet = draft.sheet
    groups = [_group(drawing, name) for name in sheet.groups]
    shown = [n for n in draft.names if sheet.group_of(n) not in sheet.folded]
    return [*groups, *(_box(drawing, name) for name in shown)]


def _box(drawing: Drawing, name: str) -> Plain:
    sheet, status = drawing.draft.sheet, drawing.status(name)
    group = sheet.group_of(name)
    origin = frame_of(sheet, group)[0] if group else (0.0, 0.0)
    x, y = sheet.places[name]
    step = drawing.draft.steps.get(name)
    sign = badge_of(drawing.registry, type(step.box)) if step else None
    classes = [f"is-{status.state}", f"makes-{step.box.kind if step else 'source'}"]
    classes += [f"badge-{sign.word}"] if sign else []
    return {
        **_common(drawing, name, classes),
        "type": f"box:{step.box.name}" if step else "source",
        "label": f"{name}\n{drawing.kind_of(name)}\n{status.line}",
        "ariaLabel": f"{name}: {drawing.kind_of(name)}",
        "position": {"x": x - origin[0], "y": y - origin[1]},
        "style": {"--share": f"{100 * (status.share or 0):.0f}%"},
        **({"parentId": f"{GROUP}{group}"} if group else {}),
    }


def _group(drawing: Drawing, name: str) -> Plain:
    sheet = drawing.draft.sheet
    (x, y), (width, height) = frame_of(sheet, name)
    folded = name in sheet.folded
    count = len(sheet.groups[name])
    size = {} if folded else {"style": {"width": f"{width}px", "height": f"{height}px"}}
    inside = f"{count} box{'es' if count > 1 else ''} inside"
    return {
        **_common(drawing, f"{GROUP}{name}", ["is-folded" if folded else "is-frame"]),
        "type": "folded" if folded else "frame",
        "label": f"{name}\n{inside}\nopen it to see them" if folded else name,
        "ariaLabel": f"group {name}, {inside}",
        "position": {"x": x, "y": y},
        "connectable": False,
        "zIndex": 0 if folded else -1,
        **size,
    }


def _common(drawing: Drawing, identity: str, classes: list[str]) -> Plain:
    traced = drawing.path is not None and _is_traced(drawing, identity)
    found = identity in drawing.found()
    marks = [m for m, on in (("is-traced", traced), ("is-found", found)) if on]
    editing = drawing.mode == "edit"
    return {
        "id": identity,
        "data": {},
        "className": " ".join(["whence", *classes, *marks]),
        "selected": identity in drawing.chosen,
        "draggable": editing,
        "connectable": editing,
        "deletable": editing,
    }


def _is_traced(drawing: Drawing, identity: str) -> bool:
    members = drawing.draft.sheet.groups.get(identity.removeprefix(GROUP), frozenset())
    traced = frozenset(map(drawing.draft.maker, drawing.path or ()))
    return identity in traced or (identity.startswith(GROUP) and bool(members & traced))


def frame_of(sheet: Sheet, group: str) -> tuple[Place, Place]:
    """Where the frame of a group begins, and how wide and high it is."""
    places = [sheet.places[n] for n in sheet.groups[group] if n in sheet.places] or [(0.0, 0.0)]
    left, top = min(x for x, _ in places), min(y for _, y in places)
    right, bottom = max(x for x, _ in places) + WIDTH, max(y for _, y in places) + HEIGHT
    return (left - EDGE, top - HEAD), (right - left + 2 * EDGE, bottom - top + HEAD + EDGE)


def edges_of(drawing: Drawing) -> dict[str, tuple[Plain, tuple[str, str]]]:
    """The arrows by their id, each with the box and port it leads to."""
    draft, path = drawing.draft, drawing.path
    sheet = draft.sheet
    hidden = {m: f"{GROUP}{g}" for g in sheet.folded for m in sheet.groups[g]}
    arrows = [(g, n, p) for n, s in draft.steps.items() for p, g in s.inputs.items()]
    edges = {}
    for given, name, port in arrows:
        maker = draft.maker(given)
        start, end = hidden.get(maker, maker), hidden.get(name, name)
        if start != end:
            traced = path is not None and given in path and name in map(draft.maker, path)
            ends = {"source": start, "target": end}
            out = given.removeprefix(maker).removeprefix(".") or OUT
            ports = _handles({"sourceHandle": (maker, out), "targetHandle": (name, port)}, hidden)
            identity = f"{given}>{name}:{port}"
            edge = {"id": identity, **ends, **ports, **_stroke(traced, path is not None)}
            edges[identity] = (edge, (name, port))
    return edges


def _handles(ends: Mapping[str, tuple[str, str]], hidden: Mapping[str, str]) -> dict[str, str]:
    return {key: port for key, (name, port) in ends.items() if name not in hidden}


def _stroke(traced: bool, faded: bool) -> Plain:
    """An arrow of the path stands out, and all others fade if there is a path."""
    colour = {"color": TRACED} if traced else {}
    style = {"stroke": TRACED, "strokeWidth": 3} if traced else {"opacity": 0.3} if faded else {}
    return {
        "style": style,
        "markerEnd": {"type": "arrowclosed", "width": 16, "height": 16, **colour},
        "animated": traced,
    }
