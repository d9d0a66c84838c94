"""Classic NetCDF files, whose missing end the library reads as zeros: how long they must be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO

from pipelines.errors import Failed

# By number of the type: byte, char, short, int, float, double, and the unsigned and long ones.
SIZES = dict(enumerate((1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8), 1))


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a file, read from its start; numbers are wider in later versions."""

    file: BinaryIO
    version: int

    def whole(self, size: int = 4) -> int:
        data = self.file.read(size)
        if len(data) < size:
            raise EOFError
        return int.from_bytes(data)

    def count(self) -> int:
        return self.whole(8 if self.version == 5 else 4)

    def skip(self, size: int) -> None:
        self.file.seek(-(-size // 4) * 4, os.SEEK_CUR)

    def items(self) -> Iterator[int]:
        """The places in a list, each with its name passed over."""
        self.whole()
        for place in range(self.count()):
            self.skip(self.count())
            yield place

    def attributes(self) -> None:
        for _ in self.items():
            size = SIZES[self.whole()]
            self.skip(size * self.count())

    def variable(self, dims: list[int]) -> tuple[int, bool, int]:
        """Where a variable begins, whether it has records, and how many bytes it, or each, has."""
        shape = [dims[self.count()] for _ in range(self.count())]
        self.attributes()
        size = SIZES[self.whole()] * prod(shape[1:] if shape[:1] == [0] else shape)
        self.count()
        return self.whole(4 if self.version == 1 else 8), shape[:1] == [0], size


def check_length(path: str | Path) -> None:
    """Refuse a classic NetCDF file that ends before its data do; others are not looked at."""
    with Path(path).open("rb") as file:
        magic = file.read(4)
        if magic[:3] != b"CDF" or magic[3:] not in (b"\1", b"\2", b"\5"):
            return
        try:
            needed = _length(Header(file, magic[3]))
        except (EOFError, IndexError, KeyError):
            needed = None
    found = os.path.getsize(path)
    if needed is None or found < needed:
        whole = "its header alone is longer" if needed is None else f"it should have {needed:,}"
        raise Failed(f'"{path}" is cut short: it has {found:,} bytes, {whole}; fetch it again')


def _length(header: Header) -> int:
    """Where the last byte of the last variable is."""
    records = header.count()
    dims = [header.count() for _ in header.items()]
    header.attributes()
    found = [header.variable(dims) for _ in header.items()]
    each = [size for _, recorded, size in found if recorded]
    # A record has every variable rounded up to whole words, unless it has only one.
    record = each[0] if len(each) == 1 else sum(-(-size // 4) * 4 for size in each)
    ends = [begin + size for begin, recorded, size in found if not recorded]
    if 0 < records < 2**32 - 1:
        last = (records - 1) * record
        ends += [begin + last + size for begin, recorded, size in found if recorded]
    return max(ends, default=0)
