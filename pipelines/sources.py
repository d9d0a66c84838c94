"""Sources: files from outside, recognised, checked and fingerprinted, read where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import cftime
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pipelines.arrays import Chunk, opened
from pipelines.datasets import Array, Attribute, Dataset, Quantity, Table, Time
from pipelines.errors import Failed, Refused, SourceChanged
from pipelines.files import open_file, reason, under_our_names
from pipelines.fingerprints import rests, seen, summed, unchanged
from pipelines.naming import AXES, VARIABLES, WIND, names_in
from pipelines.parquet import table_in, with_bounds
from pipelines.pipeline import Source
from pipelines.stores import LARGEST_CHUNK, files_of

BLOCK_BYTES = 16 * 2**20
D = TypeVar("D", bound=Table | Array)


def as_dataset(name: str, source: Source) -> Table | Array:
    """What is in a source's file, as it was seen; what to know it again by is yet to be summed."""
    if source.kind == "array":
        return as_array(name, source)
    return with_bounds(replace(table_in(name, source), origin=seen(Path(source.path))))


def as_array(name: str, source: Source) -> Array:
    """The array in a source's file, as it was seen."""
    found = array_in(name, source)
    return replace(found, origin=seen(Path(source.path)))


def fingerprinted(source: D) -> D:
    """A source with the sum of its content, by which to know it again.

    Boxes may have read it since it was seen: if it changed meanwhile, nobody knows what they read.
    """
    path, known = Path(source.path), source.origin
    assert known is not None
    try:
        found = replace(source, origin=summed(path, known))
        rested = rests(path, known)
    except OSError as error:
        raise Failed(f'source "{source.name}": cannot read "{path}": {reason(error)}') from None
    if not rested:
        raise SourceChanged(
            f'source "{source.name}" ("{path}") changed while it was read; run again'
        )
    return found


def recognised(name: str, source: Source) -> Table | Array:
    """What is in a source's file, without reading its values."""
    return array_in(name, source) if source.kind == "array" else table_in(name, source)


def array_in(name: str, source: Source) -> Array:
    """The array in a source's file, under our names, without reading its values."""
    path = Path(source.path)
    if not (path.is_file() or path.is_dir()):
        raise Refused(f'source "{name}": no file at "{path}"; mend the path in the pipeline')
    engine = "zarr" if path.is_dir() else "netcdf4"
    file = open_file(str(path), engine)
    try:
        stored = names_in(name, file.data, source.variables)
        data = under_our_names(file.data, stored)
        _check_coordinates(name, data)
        return _described(name, path, engine, data, stored)
    except OSError as error:
        raise Failed(f'source "{name}": cannot read "{path}": {reason(error)}') from None
    finally:
        file.close()


def check_unchanged(source: Dataset, chunks: Iterable[Chunk] | None = None) -> None:
    """Refuse to answer from a source that is not what the run read, or from such chunks of it."""
    if source.origin is None:
        return
    path = Path(source.path)
    try:
        parts: Iterable[Path] = ()
        if isinstance(source, Array) and source.engine == "zarr" and chunks is not None:
            parts = _files(source, chunks)
        same = unchanged(path, source.origin, list(parts))
    except FileNotFoundError:
        raise Failed(f'source "{source.name}": no file at "{path}" any more; put it back') from None
    except OSError as error:
        raise Failed(f'source "{source.name}": cannot read "{path}": {reason(error)}') from None
    if not same:
        raise SourceChanged(
            f'source "{source.name}" ("{path}") has changed since the run that read it; run again'
        )


def _files(array: Array, chunks: Iterable[Chunk]) -> Iterator[Path]:
    """The files that hold some chunks, the coordinates, and what describes both."""
    read: dict[str, list[list[tuple[int, int]]]] = {}
    with opened(array) as data:
        dims = {v: [str(d) for d in data[v].dims] for v in array.variables}
        coordinates = [array.stored[str(d)] for d in data.coords]
    for chunk in chunks:
        ranges = dict(zip(array.dims, chunk.ranges, strict=True))
        ends = [ranges.get(d, (0, 0)) for d in dims[chunk.variable]]
        read.setdefault(array.stored[chunk.variable], []).append(ends)
    return files_of(array.path, coordinates, read)


def _described(
    name: str, path: Path, engine: str, data: xr.Dataset, stored: Mapping[str, str]
) -> Array:
    dims = tuple(AXES)
    variables = [n for n in stored if n not in AXES]
    chief = data["slp" if "slp" in variables else variables[0]]
    array = Array(
        name=name,
        version="",
        path=str(path.resolve()),
        attributes=(Attribute("time", Time, ("time",)), *_attributes(data, variables)),
        dims=dims,
        shape=tuple(data.sizes[d] for d in dims),
        chunks=_chunks(chief),
        itemsize=max(data[v].dtype.itemsize for v in variables),
        stored=stored,
        circular=("lon",) if circles(data["lon"].values) else (),
        engine=engine,
    )
    if prod(array.chunks) * array.itemsize > LARGEST_CHUNK:
        pieces = " × ".join(map(str, array.chunks))
        raise Refused(f'source "{name}" has chunks of {pieces}, over {LARGEST_CHUNK >> 20:,} MiB')
    return array


def _attributes(data: xr.Dataset, variables: list[str]) -> Iterator[Attribute]:
    """The variables with their types; half a wind is just a quantity."""
    known = set(variables) if set(WIND) <= set(variables) else set(variables) - set(WIND)
    for name in variables:
        kind = VARIABLES[name].type if name in known & VARIABLES.keys() else Quantity
        unit = data[name].attrs.get("units")
        yield Attribute(name, kind, (name,), None if unit is None else str(unit), ("lat", "lon"))


def _chunks(variable: xr.DataArray) -> tuple[int, ...]:
    """The chunks on disk; for a file without, as many whole steps as make a handy block."""
    shape = [variable.sizes[d] for d in AXES]
    found = variable.encoding.get("chunks") or variable.encoding.get("chunksizes")
    if found:
        sizes = dict(zip(variable.dims, found, strict=True))
        return tuple(min(int(sizes[d]), n) for d, n in zip(AXES, shape, strict=True))
    steps = BLOCK_BYTES // (prod(shape[1:]) * variable.dtype.itemsize)
    return (max(1, min(shape[0], steps)), *shape[1:])


def _check_coordinates(name: str, data: xr.Dataset) -> None:
    """Refuse coordinates that are not times and degrees."""
    for dim, word in AXES.items():
        if not data.sizes[dim]:
            raise Refused(f'source "{name}" is empty: it has no {word} at all')
    if not _are_times(data["time"].values):
        raise Refused(
            f'source "{name}": its times are not dates; give them units like '
            '"hours since 1900-01-01"'
        )
    for dim, most in (("lat", 90.0), ("lon", 720.0)):
        values = data[dim].values
        small = values.dtype.kind in "fiu" and (np.abs(values) <= most + 1e-3).all()
        if not small or str(data[dim].attrs.get("units")).lower().startswith("rad"):
            raise Refused(f'source "{name}": its {AXES[dim]}s are not all degrees up to {most:g}')
    if data.sizes["lon"] > 1 and np.isclose(np.ptp(data["lon"].values), 360, atol=1e-3):
        raise Refused(f'source "{name}" has its first longitude again at the end; drop that column')


def _are_times(values: NDArray[Any]) -> bool:
    if values.dtype.kind == "M":
        return not bool(np.isnat(values).any())
    return all(isinstance(v, cftime.datetime) for v in values)


def circles(lon: NDArray[Any]) -> bool:
    """Whether evenly spaced longitudes close the circle, wherever it is cut.

    >>> circles(np.array([0, 90, 180, 270])), circles(np.array([90, -180, -90, 0]))
    (True, True)
    >>> circles(np.array([0, 90, 180]))
    False
    """
    steps = (np.diff(lon.astype(float), append=float(lon[0])) + 180) % 360 - 180
    even = np.allclose(steps, steps[0], rtol=0.02, atol=0)
    return bool(len(lon) > 2 and even and round(abs(steps.sum()) / 360) == 1)
