"""Sources: files from outside, recognised, checked and fingerprinted, read where they lie."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cf_xarray  # noqa: F401  (registers the accessor `.cf`)
import numpy as np
import xarray as xr
import zarr

from pipelines.arrays import open_file
from pipelines.datasets import Array, Attribute, Pressure, Quantity, Time, Type, Wind
from pipelines.errors import Failed, Refused, SourceChanged
from pipelines.pipeline import Source

# Our name: its type, the CF standard names, and the names that files commonly use.
VARIABLES: Mapping[str, tuple[Type, set[str], set[str]]] = {
    "slp": (
        Pressure,
        {"air_pressure_at_mean_sea_level", "air_pressure_at_sea_level"},
        {"slp", "msl", "psl", "mslp", "prmsl", "pmsl", "mslet"},
    ),
    "u10": (Wind, {"eastward_wind"}, {"u10", "10u", "uas", "u10m", "ugrd10m", "uwnd"}),
    "v10": (Wind, {"northward_wind"}, {"v10", "10v", "vas", "v10m", "vgrd10m", "vwnd"}),
}
AXES = {"time": "T", "lat": "Y", "lon": "X"}
WHOLE_CHECKSUM = 256 * 2**20
BLOCK_BYTES = 16 * 2**20
LARGEST_CHUNK = 2**30
CODECS = {
    "bytes", "blosc", "zstd", "gzip", "crc32c", "transpose", "sharding_indexed",
    "zlib", "lz4", "bz2", "shuffle", "delta", "fixedscaleoffset", "quantize", "bitround",
}  # fmt: skip


def as_array(name: str, source: Source) -> Array:
    """The array in a source's file, under our names, without reading its values."""
    path = Path(source.path)
    if not path.exists():
        raise Failed(f'source "{name}": no file at "{path}"; mend the path in the pipeline')
    engine = "zarr" if path.is_dir() else "netcdf4"
    if engine == "zarr":
        _check_zarr(path)
    data = open_file(str(path), engine)
    stored = _names(name, data, source.variables)
    return _described(name, path, engine, data.rename(_renames(stored)), stored)


def _described(
    name: str, path: Path, engine: str, data: xr.Dataset, stored: Mapping[str, str]
) -> Array:
    dims = tuple(d for d in AXES if d in data.dims)
    variables = [str(v) for v in data.data_vars if _fits(data[v], dims)]
    if "time" not in dims or len(dims) < 3 or not variables:
        found = ", ".join(f"{v}{data[v].dims}" for v in data.data_vars)
        raise Refused(f'source "{name}" has no variable over time, latitude and longitude: {found}')
    first = data[variables[0]]
    shape = tuple(data.sizes[d] for d in dims)
    return Array(
        name=name,
        version="",
        path=str(path.resolve()),
        attributes=(Attribute("time", Time, ("time",)), *(_variable(data, v) for v in variables)),
        origin=fingerprint(path),
        dims=dims,
        shape=shape,
        chunks=_chunks(first, dims, shape),
        itemsize=max(data[v].dtype.itemsize for v in variables),
        stored={k: v for k, v in stored.items() if k in (*dims, *variables)}
        | {v: stored.get(v, v) for v in variables},
        circular=("lon",) if _circles(data["lon"].values) else (),
        engine=engine,
    )


def _fits(variable: xr.DataArray, dims: tuple[str, ...]) -> bool:
    """Whether a variable has these dimensions, and others only of size one."""
    extra = [n for d, n in variable.sizes.items() if d not in dims]
    return set(dims) <= set(variable.dims) and all(n == 1 for n in extra)


def _variable(data: xr.Dataset, name: str) -> Attribute:
    kind = VARIABLES[name][0] if name in VARIABLES else Quantity
    dims = tuple(d for d in AXES if d in data[name].dims and d != "time")
    return Attribute(name, kind, (name,), data[name].attrs.get("units"), dims)


def _chunks(
    variable: xr.DataArray, dims: tuple[str, ...], shape: tuple[int, ...]
) -> tuple[int, ...]:
    """The chunks on disk; for a file without, as many whole steps as make a handy block."""
    found = variable.encoding.get("chunks") or variable.encoding.get("chunksizes")
    if found and not variable.encoding.get("contiguous"):
        sizes = dict(zip(variable.dims, found, strict=True))
        return tuple(int(min(sizes[d], n)) for d, n in zip(dims, shape, strict=True))
    step = int(np.prod(shape[1:])) * variable.dtype.itemsize
    return (max(1, min(shape[0], BLOCK_BYTES // max(step, 1))), *shape[1:])


def _circles(lon: Any) -> bool:
    """Whether evenly spaced longitudes close the circle."""
    if len(lon) < 3:
        return False
    steps = np.diff(lon.astype(float))
    even = np.allclose(steps, steps[0], rtol=1e-3)
    return bool(even and abs(abs(steps[0]) * len(lon) - 360) < abs(steps[0]) / 2)


def _names(name: str, data: xr.Dataset, given: Mapping[str, str]) -> dict[str, str]:
    """Our names of dimensions and variables, and what the file calls each."""
    for ours, theirs in given.items():
        if theirs not in data.variables:
            found = ", ".join(map(str, data.variables))
            raise Refused(f'source "{name}": no variable "{theirs}" for {ours} (it has: {found})')
    guessed = {**_axes(name, data), **_variables(name, data, given)}
    return {**guessed, **given}


def _axes(name: str, data: xr.Dataset) -> dict[str, str]:
    guessed = data.cf.guess_coord_axis()
    keys = {"time": "T", "lat": "latitude", "lon": "longitude"}
    found = {}
    for ours, key in keys.items():
        mapping = guessed.cf.axes if key == "T" else guessed.cf.coordinates
        dims = [str(c) for c in mapping.get(key, []) if c in data.dims]
        if len(dims) == 1:
            found[ours] = dims[0]
    return found


def _variables(name: str, data: xr.Dataset, given: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for ours, (_, standard, common) in VARIABLES.items():
        if ours in given:
            continue
        named = [str(v) for v in data.data_vars if str(v).lower() in common]
        stated = [str(v) for v in data.data_vars if data[v].attrs.get("standard_name") in standard]
        matches = list(dict.fromkeys(named if len(named) == 1 else named + stated))
        if len(matches) > 1:
            raise Refused(
                f'source "{name}": {ours} may be {" or ".join(matches)}; '
                f"say which, like: variables: {{{ours}: {matches[0]}}}"
            )
        if matches:
            found[ours] = matches[0]
    return found


def _renames(stored: Mapping[str, str]) -> dict[str, str]:
    return {theirs: ours for ours, theirs in stored.items() if theirs != ours}


def _check_zarr(path: Path) -> None:
    """Refuse a Zarr store whose decoding could run code or claim more memory than its shape."""
    try:
        group = zarr.open_group(str(path), mode="r")
        arrays = [a for _, a in group.arrays()]
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Failed(f'cannot read "{path}" as zarr: {reason}') from None
    for each in arrays:
        for codec in _codecs(each.metadata.to_dict()):
            if codec not in CODECS:
                raise Refused(
                    f'"{path}": variable "{each.name}" is coded with "{codec}", not allowed'
                )
        if each.dtype.kind == "O":
            raise Refused(f'"{path}": variable "{each.name}" holds Python objects, not allowed')
        if int(np.prod(each.chunks or (1,))) * each.dtype.itemsize > LARGEST_CHUNK:
            raise Refused(f'"{path}": chunks of "{each.name}" are over {LARGEST_CHUNK >> 20} MiB')


def _codecs(metadata: Mapping[str, Any]) -> Iterator[str]:
    """The names of all codecs in an array's metadata, Zarr 2 or 3, nested ones too."""
    for codec in [*(metadata.get("codecs") or ()), *(metadata.get("filters") or ())]:
        yield str(codec.get("name") or codec.get("id"))
        yield from _codecs(codec.get("configuration") or {})
    if metadata.get("compressor"):
        yield str(metadata["compressor"]["id"])


def fingerprint(path: Path) -> dict[str, Any]:
    """What a source is now: size, time and, unless it is very large, a checksum."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    stats = [(str(f.relative_to(path.parent)), f.stat()) for f in files]
    size = sum(s.st_size for _, s in stats)
    times = json.dumps([(n, s.st_size, s.st_mtime_ns) for n, s in stats])
    return {
        "size": size,
        "times": hashlib.sha256(times.encode()).hexdigest(),
        "checksum": _checksum(files) if size <= WHOLE_CHECKSUM else None,
    }


def _checksum(files: list[Path]) -> str:
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as handle:
            total.update(hashlib.file_digest(handle, "sha256").digest())
    return total.hexdigest()


def check_unchanged(array: Array) -> None:
    """Refuse to answer from a source that is not what the run read."""
    if array.origin is None:
        return
    path = Path(array.path)
    if not path.exists():
        raise Failed(f'source "{array.name}": no file at "{path}" any more')
    now = fingerprint(path)
    same = now["times"] == array.origin["times"]
    if not same and (now["checksum"] is None or now["checksum"] != array.origin["checksum"]):
        raise SourceChanged(
            f'source "{array.name}" ("{path}") has changed since the run that read it; run again'
        )
