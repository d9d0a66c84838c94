"""Asking in this process as at a shell, and what a refusal looks like there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LITTLE = """
name: little
boxes:
  agcm: {box: simulate_agcm, params: {days: 5, resolution: 5, chunk: 8}}
  minima: {box: extract_minima, inputs: {field: agcm}}
  tracks: {box: identify_tracks, inputs: {minima: minima}, params: {min_points: 3}}
"""


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    code: int
    out: str
    err: str


Ask = Callable[..., Said]


def contents(path: Path) -> dict[str, str]:
    """Everything below a path, by name, with what it holds."""
    return {
        str(p.relative_to(path)): hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else ""
        for p in sorted(path.rglob("*"))
    }


def assert_refused(said: Said, code: int, *parts: str) -> None:
    """One helpful line on stderr and nothing else."""
    assert said.code == code, said
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("whence: ")
    assert "unexpected" not in said.err
    assert "Traceback" not in said.err
    for part in parts:
        assert part in said.err
