"""Files that appear whole or not at all, wherever the writing of them stops."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.disk import sync


@contextmanager
def whole(target: Path, nameless: bool = False) -> Iterator[Path]:
    """A path to write to; what was written takes the target's place if all goes well.

    A `nameless` file is one that the system itself forgets when its writer is killed. Where there
    are none, and for writers that need a name, it lies hidden beside the target.
    """
    partial = target.with_name(f".{uuid.uuid4().hex[:8]}-{target.name}")
    handle = _nameless(target.parent) if nameless else None
    try:
        if handle is None:
            yield partial
        else:
            unnamed = f"/proc/self/fd/{handle}"
            yield Path(unnamed)
            os.fsync(handle)
            # Given a directory, even one that the path does not need, the link is followed.
            os.link(unnamed, partial, src_dir_fd=handle)
        for written in [*partial.rglob("*"), partial]:
            sync(written)
        os.replace(partial, target)
        sync(target.resolve().parent)
    finally:
        if handle is not None:
            os.close(handle)
        _remove(partial)


def _nameless(folder: Path) -> int | None:
    """A file without a name in a folder, if there can be one."""
    flag = getattr(os, "O_TMPFILE", 0)
    if not flag or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, flag | os.O_RDWR, 0o666)
    except OSError:
        return None


def _remove(path: Path) -> None:
    """Remove a file or a directory; writers in other threads may still be adding to it."""
    if path.is_file():
        path.unlink()
    for _ in range(40):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            break
        time.sleep(0.05)
