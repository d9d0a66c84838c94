"""The form of the selected box: its name, what goes into it and its parameters, as it declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from explorer.badges import badge_of
from explorer.draft import Draft
from explorer.drawing import Drawing
from pipelines.boxes.box import hints_of
from pipelines.pipeline import Step

NOTHING = "(nothing)"
WIDE = {"sizing_mode": "stretch_width", "width": None, "size": "small", "margin": (8, 10)}
NATIVE = {"sizing_mode": "stretch_width", "margin": (8, 10, 0, 10)}
HINT = {"font-size": "12px", "opacity": "0.75"}
WRONG = {"font-size": "12px", "color": "#D55E00"}
EMPTY = "Select a box to see what goes into it and to set its parameters."


class Configure:
    """A form that is built when another box is selected, and filled anew when its box changes."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.view = pn.Column(sizing_mode="stretch_width")
        self._of: tuple[Any, ...] | None = None
        self._fields: dict[str, Any] = {}
        self._hints: dict[str, Any] = {}
        self._filling = False
        self._state = _status_line()

    def draw(self) -> None:
        """Show the form of what is selected now."""
        name, draft = self.drawing.selected, self.drawing.draft
        step, editing = draft.steps.get(name), self.drawing.mode == "edit"
        of = (name, type(step.box) if step else None, editing)
        if of != self._of:
            self._of = of
            self._build(name, step)
        self._fill(name, step)

    def _build(self, name: str, step: Step | None) -> None:
        self._hints = {}
        if name not in self.drawing.draft.names:
            self._fields = {}
            self.view.objects = [pmui.Alert(title=EMPTY, severity="info", margin=10)]
            return
        fields = self._step_fields(name, step) if step else self._source_fields(name)
        self._fields = {"name": self._name_field(name), **fields}
        for field in self._fields.values():
            field.disabled = self.drawing.mode != "edit"
        self.view.objects = [*self._heading(name, step), *self._rows(), *self._ending(name)]

    def _rows(self) -> list[Any]:
        """The fields, and under each input what may go into it."""
        hints = {f"port {port}": [hint] for port, hint in self._hints.items()}
        return [part for key, f in self._fields.items() for part in (f, *hints.get(key, []))]

    def _heading(self, name: str, step: Step | None) -> list[Any]:
        if step is None:
            return [_said("A source: a file that is read where it lies.")]
        about = (step.box.__doc__ or "").strip().partition("\n")[0]
        badge = badge_of(self.drawing.registry, type(step.box))
        return [_said(f"{step.box.name}. {about}"), _said(f"Tracing: {badge.meaning}.")]

    def _ending(self, name: str) -> list[Any]:
        self._state = _status_line()
        if self.drawing.mode != "edit":
            return [self._state]
        delete = pmui.Button(
            label=f"Delete {name}", icon="delete", color="error", variant="outlined", margin=(8, 10)
        )
        delete.on_click(lambda _: self.drawing.delete([name]))
        return [self._state, delete]

    def _name_field(self, name: str) -> Any:
        field = pmui.TextInput(label="Name", value=name, **WIDE)
        return self._watched(field, lambda new: self.drawing.rename(name, new.strip()))

    def _source_fields(self, name: str) -> dict[str, Any]:
        path = pmui.TextInput(label="Path", **WIDE)
        named = pmui.TextInput(label="Variables", placeholder="slp: msl, time: valid_time", **WIDE)
        named.helper_text = "what our names are in the file, where they are not recognised"

        def read(_: Any) -> None:
            pairs = dict(_pairs(named.value))
            self.drawing.change(lambda d: d.read_from(name, path.value, pairs))

        return {"path": self._watched(path, read), "variables": self._watched(named, read)}

    def _step_fields(self, name: str, step: Step) -> dict[str, Any]:
        hints = hints_of(type(step.box))
        ports = {f"port {p.name}": self._port_field(name, p.name) for p in step.box.takes}
        declared = step.box.parameters()
        return ports | {
            f"param {f.name}": self._param_field(name, f, hints[f.name]) for f in declared
        }

    def _port_field(self, name: str, port: str) -> Any:
        # The browser's own list: that of pmui.Select does not open by keyboard.
        field = pn.widgets.Select(label=f"Input {port}", options=[NOTHING], **NATIVE)
        hint = _said("")

        def wire(given: str) -> None:
            if not self.drawing.change(lambda d: _wired(d, name, port, given)):
                hint.param.update(object=escape(self.drawing.notice), styles=WRONG)

        self._hints[port] = hint
        return self._watched(field, wire)

    def _param_field(self, name: str, declared: Field[Any], hint: Any) -> Any:
        unit = declared.metadata.get("unit")
        label = f"{declared.name} ({unit})" if unit else declared.name
        field = _widget(hint, label, declared)

        def tune(value: Any) -> None:
            mark = self.drawing.burst(f"tune {name} {declared.name}")
            meant = {declared.name: _meant(hint, value)}
            if not self.drawing.change(lambda d: d.tuned(name, meant), mark):
                field.param.update(error_state=True, helper_text=self.drawing.notice)

        return self._watched(field, tune)

    def _watched(self, field: Any, then: Callable[[Any], Any]) -> Any:
        field.param.watch(lambda event: None if self._filling else then(event.new), "value")
        return field

    def _fill(self, name: str, step: Step | None) -> None:
        """Bring the fields to what the draft says, without taking that for a change."""
        if not self._fields:
            return
        status = self.drawing.status(name)
        wrong = status.state in ("failed", "missing")
        self._state.param.update(title=status.words, severity="warning" if wrong else "info")
        self._filling = True
        try:
            self._fields["name"].value = name
            self._fill_step(name, step) if step else self._fill_source(name)
        finally:
            self._filling = False

    def _fill_step(self, name: str, step: Step) -> None:
        draft = self.drawing.draft
        others = [NOTHING, *(n for n in draft.datasets if draft.maker(n) != name)]
        for port in step.box.takes:
            field = self._fields[f"port {port.name}"]
            given = step.inputs.get(port.name, NOTHING)
            needs = ", ".join(map(repr, port.needs))
            field.param.update(options=others, value=given)
            helps = f"{port.kind} with {needs}" if needs else port.kind
            self._hints[port.name].param.update(object=escape(helps), styles=HINT)
        for declared in step.box.parameters():
            field = self._fields[f"param {declared.name}"]
            field.value = _shown(getattr(step.box, declared.name))
            if hasattr(field, "helper_text"):
                field.param.update(error_state=False, helper_text=_helps(declared))

    def _fill_source(self, name: str) -> None:
        source = self.drawing.draft.sources[name]
        self._fields["path"].value = source.path
        self._fields["variables"].value = ", ".join(
            f"{a}: {b}" for a, b in source.variables.items()
        )


def _wired(draft: Draft, name: str, port: str, given: str) -> Draft:
    bare = draft.unwired(name, port)
    return bare if given == NOTHING else bare.wired(name, port, given)


def _widget(hint: Any, label: str, declared: Field[Any]) -> Any:
    """A field for a parameter of this type.

    Numbers are typed into a field of text: pmui's own for numbers forgets what is typed after
    the first Enter.
    """
    if hint is bool:
        return pmui.Checkbox(label=f"{label}: {declared.metadata.get('help', '')}", margin=(4, 10))
    return pmui.TextInput(label=label, **WIDE)


def _shown(value: Any) -> Any:
    """A value as its field shows it.

    >>> _shown(1000.0), _shown(0.25), _shown(8), _shown(True)
    ('1000', '0.25', '8', True)
    """
    return value if isinstance(value, bool) else str(value).removesuffix(".0")


def _meant(hint: Any, typed: Any) -> Any:
    """The value that was typed; what is none is left as it is, to be refused.

    >>> _meant(float, "1e3"), _meant(int, "8"), _meant(int, "x"), _meant(bool, True)
    (1000.0, 8, 'x', True)
    """
    try:
        return hint(typed.strip()) if hint in (int, float) else typed
    except ValueError:
        return typed


def _helps(declared: Field[Any]) -> str:
    """What a parameter means, and within which bounds."""
    low, high = declared.metadata.get("low"), declared.metadata.get("high")
    ends = {"at least": low, "at most": high}
    bounds = " and ".join(f"{word} {end}" for word, end in ends.items() if end is not None)
    return "; ".join(part for part in (str(declared.metadata.get("help", "")), bounds) if part)


def _pairs(text: str) -> list[tuple[str, str]]:
    """Names and what they stand for.

    >>> _pairs("slp: msl, time: valid_time")
    [('slp', 'msl'), ('time', 'valid_time')]
    """
    parts = (part.partition(":") for part in text.split(",") if part.strip())
    return [(ours.strip(), theirs.strip()) for ours, _, theirs in parts]


def _said(text: str) -> Any:
    """Foreign text as text, never as markup."""
    return pn.pane.HTML(escape(text), margin=(6, 12), sizing_mode="stretch_width")


def _status_line() -> Any:
    return pmui.Alert(title="", severity="info", margin=(8, 10), variant="outlined")
