"""Text on a terminal: rows in columns, and nothing that moves the cursor."""

from __future__ import annotations

from collections.abc import Iterable


def print_grid(rows: list[list[str]]) -> None:
    """Rows in columns as wide as they need; a terminal wraps, nothing is cut."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def print_lines(lines: Iterable[str]) -> None:
    """Lines of text from anywhere, one after the other."""
    for line in lines:
        print(printable(line))


def printable(text: str) -> str:
    """A text from elsewhere, in which nothing can move the cursor.

    >>> printable("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
