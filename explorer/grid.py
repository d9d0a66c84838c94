"""Text on a terminal: rows in columns, and nothing that moves the cursor."""

from __future__ import annotations


def print_grid(rows: list[list[str]]) -> None:
    """Rows in columns as wide as they need; a terminal wraps, nothing is cut."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def printable(text: str) -> str:
    """A text from elsewhere, in which nothing can move the cursor.

    >>> printable("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
