"""Counts in words."""

from __future__ import annotations


def many(count: int, noun: str) -> str:
    """A number of things.

    >>> many(1, "cell"), many(1200, "cell")
    ('1 cell', '1,200 cells')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
