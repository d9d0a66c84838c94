"""Zarr stores: what may be decoded, settled from their metadata before anything is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from pipelines.errors import Failed, Refused

LARGEST_CHUNK = 2**30
SHARDING = "sharding_indexed"
# Those that make numbers of bytes and do nothing else; `pickle`, for one, runs what it reads.
CODECS = {
    "bytes", "blosc", "zstd", "gzip", "crc32c", "transpose", SHARDING,
    "zlib", "lz4", "bz2", "lzma", "shuffle", "delta", "fixedscaleoffset", "quantize", "bitround",
    "astype", "packbits", "crc32", "adler32", "fletcher32",
}  # fmt: skip
TEXT = {"vlen-utf8", "vlen-bytes"}
Metadata = Mapping[str, Any]
Ends = Sequence[tuple[int, int]]


def check_store(path: str | Path) -> list[str]:
    """Refuse a store that could run code or claim endless memory.

    Returns the names of what is neither refused nor numbers, such as texts, for nobody to read.
    """
    if not any(Path(path, name).is_file() for name in (".zgroup", "zarr.json")):
        raise Failed(f'"{path}" is a directory without a Zarr group: no zarr.json, no .zgroup')
    arrays = dict(_arrays(Path(path)))
    for name, metadata in arrays.items():
        _check_array(f'"{path}": variable "{name}"', metadata)
    return [name for name, metadata in arrays.items() if _itemsize(metadata) is None]


def files_of(
    path: str | Path, whole: Iterable[str], some: Mapping[str, Iterable[Ends]]
) -> Iterator[Path]:
    """The files that hold a store's metadata, all of some variables, and of others some ranges."""
    group = zarr.open_group(path, mode="r", use_consolidated=False)
    yield from _metadata_files(Path(path))
    for name in {*whole, *some}:
        yield from _metadata_files(Path(path, name))
        stored = group[name]
        assert isinstance(stored, zarr.Array)
        size = stored.shards or stored.chunks
        grid = product(*(range(-(-n // c)) for n, c in zip(stored.shape, size, strict=True)))
        within = {key for ends in some.get(name, ()) for key in _keys(ends, size)}
        for key in within if name in some else grid:
            yield Path(path, name, stored.metadata.encode_chunk_key(key))


def _keys(ends: Ends, size: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The chunks that index ranges lie in, last index included."""
    each = [range(a // c, b // c + 1) for (a, b), c in zip(ends, size, strict=True)]
    return product(*each)


def _metadata_files(folder: Path) -> Iterator[Path]:
    for name in ("zarr.json", ".zgroup", ".zarray", ".zattrs"):
        yield folder / name


def _arrays(path: Path) -> Iterator[tuple[str, Metadata]]:
    """Every array of a store, Zarr 2 or 3, with its metadata."""
    for file in sorted([*path.glob("*/.zarray"), *path.glob("*/zarr.json")]):
        metadata = json.loads(file.read_bytes())
        if metadata.get("node_type", "array") == "array":
            yield file.parent.name, metadata


def _check_array(place: str, metadata: Metadata) -> None:
    coded = set(_codecs(metadata))
    if strange := coded - CODECS - TEXT:
        raise Refused(f"{place} is coded with {', '.join(sorted(strange))}, which is not allowed")
    if '"|O' in json.dumps(metadata.get("dtype")) and not coded & TEXT:
        raise Refused(f"{place} holds Python objects, which is not allowed")
    if prod(_chunk(metadata)) * (_itemsize(metadata) or 1) > LARGEST_CHUNK:
        raise Refused(f"{place} has chunks of over {LARGEST_CHUNK >> 20:,} MiB; store it in less")


def _codecs(metadata: Metadata) -> Iterator[str]:
    """The names of all codecs of an array, with those inside of others."""
    nested = [metadata.get(key) or () for key in ("codecs", "index_codecs", "filters")]
    for codec in [*(c for each in nested for c in each), metadata.get("compressor")]:
        if codec is not None:
            name = codec if isinstance(codec, str) else codec.get("name") or codec.get("id")
            yield str(name).removeprefix("numcodecs.")
            yield from _codecs({} if isinstance(codec, str) else codec.get("configuration") or {})


def _chunk(metadata: Metadata) -> list[int]:
    """The shape of what has to be decoded at once: of a shard, only a chunk in it."""
    if "chunks" in metadata:
        return list(metadata["chunks"])
    codecs = metadata["codecs"]
    sharded = len(codecs) == 1 and isinstance(codecs[0], dict) and codecs[0]["name"] == SHARDING
    grid = codecs[0] if sharded else metadata["chunk_grid"]
    return list(grid["configuration"]["chunk_shape"])


def _itemsize(metadata: Metadata) -> int | None:
    """The bytes of one number; None for what holds no plain numbers."""
    stated = metadata.get("dtype", metadata.get("data_type"))
    if isinstance(stated, dict):
        return 8 if str(stated.get("name")).startswith(("numpy.datetime", "numpy.time")) else None
    try:
        dtype = np.dtype(stated)
    except TypeError:
        return None
    return dtype.itemsize if dtype.kind in "biufcmM" and not TEXT & set(_codecs(metadata)) else None
