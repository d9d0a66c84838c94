"""What is really opened below a directory, by whatever process, as the kernel tells it."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OPENED, LOST = 0x20, 0x4000
EVENT = struct.Struct("iIII")
MOST = 16_384  # events that wait for us, by the kernel's own setting; one more is told as lost


@contextmanager
def opened_below(root: Path) -> Iterator[Counter[str]]:
    """Count how often each file below a directory is opened; it is known at the end."""
    kernel = ctypes.CDLL(None, use_errno=True)
    queue = kernel.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    folders = [root, *(p for p in root.rglob("*") if p.is_dir())]
    watched = {kernel.inotify_add_watch(queue, os.fsencode(f), OPENED): f for f in folders}
    assert queue >= 0 and min(watched) >= 0, os.strerror(ctypes.get_errno())
    found: Counter[str] = Counter()
    try:
        yield found
        found.update(
            str((watched[folder] / name).relative_to(root))
            for folder, name in _events(os.read(queue, MOST * (EVENT.size + 256)))
            if (watched[folder] / name).is_file()
        )
    finally:
        os.close(queue)


def _events(told: bytes) -> Iterator[tuple[int, str]]:
    """Each event's directory and the name of what was opened there."""
    at = 0
    while at < len(told):
        folder, what, _, length = EVENT.unpack_from(told, at)
        assert not what & LOST, "more was opened than can be counted"
        name = told[at + EVENT.size : at + EVENT.size + length].rstrip(b"\0")
        yield folder, os.fsdecode(name)
        at += EVENT.size + length
