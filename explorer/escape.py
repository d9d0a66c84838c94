"""The Escape key, heard wherever the pointer is."""

from __future__ import annotations

import param
from panel.custom import JSComponent

from explorer.demo import asset


class Escape(JSComponent):
    """Counts how often Escape was pressed on the page."""

    escaped = param.Integer(0)
    _esm = asset("escape.js").read_text()
