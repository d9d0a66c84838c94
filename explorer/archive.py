"""Zip archives: written the same way every time, and read only if they are what we write."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_IFMT, S_IFREG
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, LargeZipFile, ZipFile, ZipInfo

from pipelines.errors import Failed, Refused, TooDear

MOST_BYTES = 2 * 2**30
MOST_ENTRIES = 4096
MOST_RATIO = 200
# Below this many bytes even a text of one letter is no bomb.
HARMLESS = 2**20
END, END_SIZE = b"PK\5\6", 22
ENTRY_SIZE = 46 + 1024


@contextmanager
def archive(path: Path) -> Iterator[ZipFile]:
    """A new archive; one over 2 GiB is refused, as many programs could not read it."""
    try:
        with ZipFile(path, "w", allowZip64=False) as file:
            yield file
    except LargeZipFile:
        raise TooDear("this is too much for one zip file; select fewer") from None


def add(file: ZipFile, name: str, content: bytes, deflated: bool = False) -> None:
    """Add an entry that says nothing of when and where it was written."""
    entry = ZipInfo(name)
    entry.create_system = 3
    entry.external_attr = (S_IFREG | 0o644) << 16
    entry.compress_type = ZIP_DEFLATED if deflated else ZIP_STORED
    file.writestr(entry, content)


def check_end(file: BinaryIO) -> None:
    """Refuse an archive whose list of entries is too long to be read, or not where it should be."""
    size = file.seek(0, 2)
    if size > MOST_BYTES:
        raise Refused(f"it has {size:,} bytes, over the limit of {MOST_BYTES:,}")
    file.seek(max(0, size - END_SIZE))
    end = file.read(END_SIZE)
    if len(end) < END_SIZE or not end.startswith(END):
        raise Failed("it does not end as a zip file does")
    disk, first, here, count, length, start, comment = struct.unpack("<HHHHIIH", end[4:])
    if (disk, first, comment, here) != (0, 0, 0, count) or start + length + END_SIZE != size:
        raise Failed("its list of entries is not where it should be")
    if count > MOST_ENTRIES or length > MOST_ENTRIES * ENTRY_SIZE:
        raise Refused(f"it has {count:,} entries, over the limit of {MOST_ENTRIES:,}")


def check_entries(entries: list[ZipInfo], size: int) -> None:
    """Refuse entries that are not plain files, come twice, or are larger than they may be."""
    seen: set[str] = set()
    for entry in entries:
        name = entry.orig_filename
        if name in seen:
            raise Refused(f'it has "{name}" twice')
        seen.add(name)
        _check_name(name)
        _check_kind(entry)
        _check_size(entry)
    if sum(e.file_size for e in entries) > MOST_BYTES:
        raise Refused(f"it would unpack to more than {MOST_BYTES:,} bytes")
    if sum(e.compress_size for e in entries) > size:
        raise Refused("its entries overlap")


def _check_name(name: str) -> None:
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ":" in parts[0]:
        raise Refused(f'its entry "{name}" has an absolute path')
    if ".." in parts:
        raise Refused(f'its entry "{name}" leads out of it')


def _check_kind(entry: ZipInfo) -> None:
    kind = S_IFMT(entry.external_attr >> 16)
    if kind not in (0, S_IFREG):
        raise Refused(f'its entry "{entry.orig_filename}" is a link or no plain file')
    if entry.flag_bits & 1 or entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise Refused(f'its entry "{entry.orig_filename}" is encrypted or strangely packed')


def _check_size(entry: ZipInfo) -> None:
    if entry.file_size > max(HARMLESS, MOST_RATIO * entry.compress_size):
        raise Refused(
            f'its entry "{entry.orig_filename}" would unpack to {entry.file_size:,} bytes from '
            f"{entry.compress_size:,}"
        )
