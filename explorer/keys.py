"""Keys, clipboard and the size of the pane: what the canvas needs of the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import panel as pn
import param
from panel.custom import JSComponent

WIDTH, HEIGHT = 900.0, 420.0


class Keys(JSComponent):
    """Sits in the pane of a flow and tells of shortcuts; typing in a field is left alone."""

    active = param.Boolean(False)

    _esm = """
    const SHORTCUTS = {z: "undo", y: "redo", c: "copy", g: "group", s: "save"}

    function typing(event) {
      const at = event.composedPath()[0]
      return at.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName)
    }

    function pane(el) {
      let root = el.getRootNode()
      while (root.host) {
        const found = root.querySelector(".react-flow")
        if (found) { return found }
        root = root.host.getRootNode()
      }
      return null
    }

    export function render({model, el}) {
      const pressed = (event) => {
        if (!model.active || typing(event) || !(event.ctrlKey || event.metaKey)) { return }
        const key = event.key.toLowerCase()
        const word = key === "z" && event.shiftKey ? "redo" : SHORTCUTS[key]
        if (!word || (word === "copy" && String(window.getSelection()))) { return }
        event.preventDefault()
        model.send_msg({type: "key", word})
      }
      const pasted = (event) => {
        if (!model.active || typing(event)) { return }
        const text = event.clipboardData.getData("text/plain")
        if (text) { model.send_msg({type: "paste", text: text.slice(0, 200001)}) }
      }
      document.addEventListener("keydown", pressed)
      document.addEventListener("paste", pasted)
      const watcher = new ResizeObserver((entries) => {
        const {width, height} = entries[0].contentRect
        if (width && height) { model.send_msg({type: "size", width, height}) }
      })
      const watch = () => {
        const found = pane(el)
        if (found) { watcher.observe(found) } else { setTimeout(watch, 100) }
      }
      setTimeout(watch, 0)
      model.on("msg:custom", ({text}) => { navigator.clipboard?.writeText(text).catch(() => {}) })
      model.on("remove", () => {
        document.removeEventListener("keydown", pressed)
        document.removeEventListener("paste", pasted)
        watcher.disconnect()
      })
      el.style.display = "none"
    }
    """

    def __init__(self, pressed: Callable[[str], None], pasted: Callable[[str], None]) -> None:
        super().__init__(width=0, height=0, margin=0)  # type: ignore[no-untyped-call]
        self.size = (WIDTH, HEIGHT)
        self._pressed, self._pasted = pressed, pasted

    def to_clipboard(self, text: str) -> None:
        """Put text on the reader's clipboard, if the browser lets us."""
        self._send_msg({"text": text})

    def _handle_msg(self, msg: Any) -> None:
        if msg.get("type") == "size":
            self.size = (float(msg["width"]), float(msg["height"]))
        elif msg.get("type") == "paste":
            self._pasted(str(msg.get("text", "")))
        elif msg.get("type") == "key":
            self._pressed(str(msg.get("word")))


@contextmanager
def together() -> Iterator[None]:
    """Send all that changes as one; a page that is still being loaded would miss it."""
    with pn.io.hold() if pn.state.loaded else nullcontext():
        yield
