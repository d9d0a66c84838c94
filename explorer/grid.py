"""Rows in columns on a terminal."""

from __future__ import annotations


def print_grid(rows: list[list[str]]) -> None:
    """Rows in columns as wide as they need; a terminal wraps, nothing is cut."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
