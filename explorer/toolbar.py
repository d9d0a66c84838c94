"""The bar above the canvas: every action as a button, and the dialogs that some of them open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui

from explorer.keys import Keys
from explorer.running import Running

EDITS = (
    "Undo",
    "Redo",
    "Copy",
    "Paste",
    "Delete",
    "Group",
    "Ungroup",
    "Fold or open group",
    "Tidy",
)
FILES = ("Save", "Open")
RUNS = ("Run all", "Run to here", "Cancel")
ICONS = {
    "Undo": "undo", "Redo": "redo", "Copy": "content_copy", "Paste": "content_paste",
    "Delete": "delete", "Group": "select_all", "Ungroup": "deselect",
    "Fold or open group": "unfold_less", "Tidy": "auto_fix_high", "Save": "save",
    "Open": "folder_open", "Run all": "play_arrow", "Run to here": "skip_next",
    "Cancel": "stop", "Fit": "fit_screen",
}  # fmt: skip
HINTS = {"Undo": " (Ctrl+Z)", "Redo": " (Ctrl+Y)", "Copy": " (Ctrl+C)", "Paste": " (Ctrl+V)"}


class Toolbar:
    """Buttons in groups: mode, changes, files, search, runs."""

    def __init__(self, drawing: Running, keys: Keys, fit: Callable[[], None]) -> None:
        self.drawing, self.keys = drawing, keys
        self.text = _area("Text of boxes (YAML)")
        self.dialog = pmui.Dialog(
            open=False,
            show_close_button=True,
            width_option="md",
            close_on_click=True,
            title_variant="h6",
            sizing_mode="stretch_width",
        )
        does = {**self.actions(), "Fit": fit}
        self.buttons = {name: _button(name, does[name]) for name in does}
        self.mode = pmui.RadioButtonGroup(
            options={"Explore": "explore", "Edit": "edit"}, value=drawing.mode, size="small",
            margin=(6, 8),
        )  # fmt: skip
        self.mode.param.watch(self._switch, "value")
        self.name = pmui.TextInput(label="Pipeline", size="small", width=150, margin=(6, 8))
        self.name.param.watch(self._call, "value")
        self.search = pmui.TextInput(label="Find", size="small", width=120, margin=(6, 8))
        self.search.param.watch(lambda e: drawing.param.update(sought=e.new), "value_input")
        self.search.param.watch(lambda _: drawing.find(), "enter_pressed")
        self.view = pmui.FlexBox(
            *self._parts(), align_items="center", gap="2px", sizing_mode="stretch_width"
        )

    def actions(self) -> dict[str, Callable[[], None]]:
        """What each button does."""
        drawing = self.drawing
        return {
            "Undo": drawing.undo, "Redo": drawing.redo, "Copy": self.copy, "Paste": self.ask_text,
            "Delete": drawing.delete, "Group": drawing.group, "Ungroup": drawing.ungroup,
            "Fold or open group": drawing.fold, "Tidy": drawing.tidy, "Save": drawing.save,
            "Open": self.ask_file, "Run all": drawing.run_all, "Run to here": drawing.run_to,
            "Cancel": drawing.cancel,
        }  # fmt: skip

    def _parts(self) -> list[Any]:
        theirs = [self.mode, *self._editing(), _gap(), *(self.buttons[n] for n in RUNS), _gap()]
        return [
            *(theirs if self.drawing.author else []),
            self.search,
            self.buttons["Fit"],
            self.dialog,
        ]

    def _editing(self) -> list[Any]:
        return [self.name, *(self.buttons[n] for n in (*FILES, *EDITS))]

    def draw(self) -> None:
        """Show what can be done now."""
        drawing = self.drawing
        editing, busy = drawing.mode == "edit", drawing.work.busy
        self.mode.value = drawing.mode
        for part in self._editing():
            part.visible = editing
        self.name.value = drawing.draft.name
        off = {
            "Undo": not drawing.can_undo, "Redo": not drawing.can_redo,
            "Delete": not drawing.chosen, "Run all": busy or not drawing.draft.steps,
            "Run to here": busy or not drawing.selected, "Cancel": not busy,
        }  # fmt: skip
        for name, disabled in off.items():
            self.buttons[name].disabled = disabled

    def copy(self) -> None:
        """Put the chosen boxes, or all, on the clipboard as text, and show it."""
        text = self.drawing.copy()
        self.keys.to_clipboard(text)
        self.text.value = text
        self._ask("Copied: the boxes as text", self.text)

    def ask_text(self) -> None:
        """Ask for the text to paste."""
        text = _area("Paste the text of boxes here (YAML)")
        add = pmui.Button(label="Add to the canvas", icon="content_paste", margin=10)
        add.on_click(
            lambda _: self._then(lambda: self.drawing.paste(text.value_input or text.value))
        )
        self._ask("Paste", text, add)

    def ask_file(self) -> None:
        """Ask for a pipeline to open, kept here or as text."""
        kept = self.drawing.shelf.names() if self.drawing.shelf else []
        parts: list[Any] = [_opener(name, self._opens(name)) for name in kept]
        text = _area("Or the text of a pipeline (YAML)")
        load = pmui.Button(label="Open this text", icon="folder_open", margin=10)
        load.on_click(
            lambda _: self._then(lambda: self.drawing.load(text.value_input or text.value))
        )
        self._ask("Open a pipeline", *parts, text, load)

    def _opens(self, name: str) -> Callable[[Any], None]:
        return lambda _: self._then(lambda: self.drawing.open(name))

    def _ask(self, title: str, *parts: Any) -> None:
        self.dialog.objects = list(parts)
        self.dialog.param.update(title=title, open=True)

    def _then(self, done: Callable[[], None]) -> None:
        self.dialog.open = False
        done()

    def _switch(self, event: Any) -> None:
        self.drawing.mode = event.new

    def _call(self, event: Any) -> None:
        if event.new != self.drawing.draft.name:
            self.drawing.change(lambda d: d.called(event.new))


def _button(name: str, does: Callable[[], None]) -> Any:
    button = pmui.IconButton(
        icon=ICONS[name], description=f"{name}{HINTS.get(name, '')}", size="small",
        color="error" if name in ("Delete", "Cancel") else "default", margin=2,
    )  # fmt: skip
    button.on_click(lambda _: does())
    return button


def _opener(name: str, opens: Callable[[Any], None]) -> Any:
    button = pmui.Button(label=name, icon="description", variant="text", margin=(2, 10))
    button.on_click(opens)
    return button


def _area(label: str) -> Any:
    return pmui.TextAreaInput(
        label=label, rows=12, max_length=200_001, sizing_mode="stretch_width", width=None, margin=10
    )


def _gap() -> Any:
    return pn.Spacer(width=12, height=1)
