"""Text on a page: whatever it says, it is shown as text and never acts."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np
import panel as pn

from inverses.guarantees import Guarantee, names, sign

MEANS = {
    "=": "exactly what made it",
    "⊇": "all that made it is in the answer, perhaps with more",
    "⊆": "nothing else is in the answer, but some of it may be missing",
    "?": "a hint without a guarantee",
}


def plain(text: str, **look: str) -> pn.pane.HTML:
    """Text from anywhere, with every character shown as it is."""
    return pn.pane.HTML(escape(text), styles=look, margin=(2, 0), sizing_mode="stretch_width")


STYLES = {
    "strong": "font-weight:600;margin:6px 0 2px",
    "line": "margin:2px 0",
    "faint": "opacity:0.75;font-size:13px;margin:2px 0",
    "warn": "border-left:4px solid #E69F00;padding:4px 8px;margin:4px 0",
    "error": "border-left:4px solid #D55E00;padding:4px 8px;margin:4px 0",
    "code": "white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px;margin:2px 0",
}


def prose(lines: Iterable[tuple[str, str]]) -> str:
    """Lines of text from anywhere as HTML, each in a style of ours and otherwise as it is.

    >>> prose([("faint", "1 < 2")])
    '<p style="opacity:0.75;font-size:13px;margin:2px 0">1 &lt; 2</p>'
    """
    tags = {"code": "pre"}
    return "".join(
        f'<{tags.get(look, "p")} style="{STYLES[look]}">{escape(text)}</{tags.get(look, "p")}>'
        for look, text in lines
    )


def code(text: str) -> pn.pane.HTML:
    """Lines to copy, as they are."""
    return pn.pane.HTML(prose([("code", text)]), sizing_mode="stretch_width")


def badge(guarantee: Guarantee) -> str:
    """A guarantee by sign and word."""
    return f"{sign(guarantee)} {' and '.join(names(guarantee)) or 'no guarantee'}"


def meaning(guarantee: Guarantee) -> str:
    """What a guarantee says of an answer."""
    return MEANS[sign(guarantee)]


def number(value: Any, unit: str | None = None) -> str:
    """A value with its unit, pressures as meteorologists say them.

    >>> number(87100.0, "Pa"), number(3.14159, "m s-1"), number(float("nan"), "Pa")
    ('871 hPa', '3.142 m s-1', 'missing (NaN)')
    """
    if not np.isfinite(value):
        return "missing (NaN)"
    if unit == "Pa" and abs(value) >= 1000:
        return f"{value / 100:,.4g} hPa"
    return f"{value:,.4g} {unit or ''}".strip()


def place(lat: float, lon: float) -> str:
    """A point on earth.

    >>> place(47.5, 320.0), place(-10.0, 0.0)
    ('47.5° N 40° W', '10° S 0° E')
    """
    east = (lon + 180) % 360 - 180
    north, side = ("N" if lat >= 0 else "S"), ("E" if east >= 0 else "W")
    return f"{abs(lat):g}° {north} {abs(east):g}° {side}"


def moment(value: Any) -> str:
    """A time to the minute."""
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[m]")).replace("T", " ")
    return str(value)
