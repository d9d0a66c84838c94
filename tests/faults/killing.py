"""Verifications that kill what they run on, dawdle, linger, or answer only at home."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from inverses.registry import Mask, Registry, Row, Seen, Verification
from pipelines.boxes.box import Box
from pipelines.datasets import Dataset
from pipelines.disk import write_whole

Function = Callable[[Box, Row, Seen, Dataset], Mask]


def with_fault(registry: Registry, name: str, fault: Callable[..., Mask], **about: Any) -> Registry:
    """The registry with a fault built into the verification of this name."""

    def faulty(each: Verification) -> Verification:
        if each.name != name:
            return each
        return replace(each, function=partial(fault, each.function, **about))

    assert name in [v.name for v in registry.verifications]
    return replace(registry, verifications=tuple(map(faulty, registry.verifications)))


def killing(
    honest: Function,
    box: Box,
    at: Row,
    seen: Seen,
    source: Dataset,
    *,
    marks: Path,
    times: int,
    victim: str,
) -> Mask:
    """Kill what runs this, `times` times in all and leaving a mark each time, then answer."""
    for number in range(times):
        if _marked(marks / f"{victim}-{number}"):
            os.kill(VICTIMS[victim](), signal.SIGKILL)
            time.sleep(1)
    return honest(box, at, seen, source)


def _marked(path: Path) -> bool:
    """Whether we are the first to leave this mark."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


VICTIMS: dict[str, Callable[[], int]] = {
    "worker": os.getpid,
    "daemon": os.getppid,
    "executor": lambda: _parent(os.getppid()),
}


def homesick(honest: Function, box: Box, at: Row, seen: Seen, source: Dataset) -> Mask:
    """Answer as one should at home, and nothing on an executor of a cluster."""
    java = Path(f"/proc/{VICTIMS['executor']()}/cmdline").read_bytes()
    return honest(box, at, seen, source) & (b"ExecutorBackend" not in java)


def dawdling(
    honest: Function, box: Box, at: Row, seen: Seen, source: Dataset, *, seconds: float
) -> Mask:
    """Take one's time before the answer."""
    time.sleep(seconds)
    return honest(box, at, seen, source)


def lingering(
    honest: Function, box: Box, at: Row, seen: Seen, source: Dataset, *, mark: str
) -> Mask:
    """Work hard for as long as a file is there, saying beside it who does, before the answer."""
    if Path(mark).exists():
        write_whole(Path(mark).with_name("worker"), str(os.getpid()))
    ends = time.monotonic() + 60
    while Path(mark).exists() and time.monotonic() < ends:
        sum(range(10_000))
    return honest(box, at, seen, source)
