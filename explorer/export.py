"""Exporting traced cells: as rows, or as the smallest box of the source around them."""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import xarray as xr
from numpy.typing import NDArray

from inverses.answer import Answer, Found, hops_json
from inverses.guarantees import names
from pipelines.arrays import opened
from pipelines.datasets import Array
from pipelines.errors import Failed, Refused, TooDear
from pipelines.files import reason
from pipelines.tables import column

MOST_BOX_CELLS = 200_000_000
# Attributes that name other variables of the file, which are not exported, or packed values.
POINTERS = ("bounds", "climatology", "cell_measures", "grid_mapping", "formula_terms")
PACKED = ("valid_min", "valid_max", "valid_range")
Index = Mapping[str, NDArray[np.int64]]


def check_target(path: Path | str) -> Path:
    """The path if something can be exported to it; better to know before a long trace."""
    target = Path(path)
    if target.suffix not in WRITERS:
        raise Refused(f'cannot export to "{path}"; its name may end in {", ".join(WRITERS)}')
    if not target.resolve().parent.is_dir():
        raise Refused(f'cannot export to "{path}": there is no directory "{target.parent}"')
    if target.is_dir() or (target.suffix == ".zarr" and target.exists()):
        raise Refused(f'"{path}" exists, and is not replaced; name another, or remove it')
    return target


def export(answer: Answer, path: Path | str) -> Path:
    """Write what a trace found, whole or not at all, in the format that the suffix says."""
    target = check_target(path)
    for found in answer.found.values():
        if target.exists() and target.resolve() == Path(found.dataset.path).resolve():
            raise Refused(f'"{path}" is the source that was traced; export to another file')
    try:
        with _whole(target) as partial:
            WRITERS[target.suffix](answer, partial)
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise Failed(f'cannot export to "{path}": {reason(error)}') from None
    return target


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """A path beside the target to write to, which takes its place if all goes well."""
    partial = target.with_name(f".{target.stem}-{uuid.uuid4().hex[:8]}{target.suffix}")
    try:
        yield partial
        for written in [*partial.rglob("*"), partial]:
            _sync(written)
        os.replace(partial, target)
        _sync(target.resolve().parent)
    finally:
        _remove(partial)


def _remove(path: Path) -> None:
    """Remove a file or a directory; writers in other threads may still be adding to it."""
    if path.is_file():
        path.unlink()
    for _ in range(40):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            break
        time.sleep(0.05)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_csv(answer: Answer, path: Path) -> None:
    pa.csv.write_csv(traced_rows(answer), path)


def _write_parquet(answer: Answer, path: Path) -> None:
    rows = traced_rows(answer)
    pq.write_table(rows.replace_schema_metadata(_about(answer)), path)


def _write_nc(answer: Answer, path: Path) -> None:
    traced_box(answer).to_netcdf(path, engine="netcdf4")


def _write_zarr(answer: Answer, path: Path) -> None:
    # The format that everything reads, and that may have consolidated metadata.
    traced_box(answer).to_zarr(path, zarr_format=2, consolidated=True)


WRITERS: Mapping[str, Callable[[Answer, Path], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".nc": _write_nc,
    ".zarr": _write_zarr,
}


def traced_rows(answer: Answer) -> pa.Table:
    """One row per traced cell: dataset, variable, coordinates, indices, value.

    Where no array was reached, the rows of the tables that were.
    """
    found = answer.lineage
    chosen = {n: f for n, f in found.items() if isinstance(f.dataset, Array)} or found
    parts = [_with_name(n, f.table()) for n, f in chosen.items()]
    return pa.concat_tables(parts, promote_options="permissive")


def _with_name(name: str, rows: pa.Table) -> pa.Table:
    return rows.add_column(0, "dataset", pa.array([name] * rows.num_rows, pa.string()))


def traced_box(answer: Answer) -> xr.Dataset:
    """The smallest box of the source around the traced cells, with a mask for each variable."""
    array, found = _one_array(answer)
    cells = _cells(array, found)
    box = _box(array, found, len(cells))
    data = _cut(array, list(cells), box)
    for variable, index in cells.items():
        theirs = array.stored[variable]
        order = [d for d in data[variable].dims if d in array.dims]
        mask = xr.DataArray(_mask(box, index), dims=array.dims, attrs=_mask_attributes(theirs))
        data[f"{theirs}_traced"] = mask.transpose(*order)
        data[variable].attrs["ancillary_variables"] = f"{theirs}_traced"
    ours = {n: array.stored[n] for n in (*array.dims, *cells) if n in array.stored}
    return data.rename(ours).assign_attrs(_about(answer))


def _one_array(answer: Answer) -> tuple[Array, Found]:
    arrays = [(f.dataset, f) for f in answer.lineage.values() if isinstance(f.dataset, Array)]
    if len(arrays) != 1:
        reached = ", ".join(a.name for a, _ in arrays) or "none"
        raise Refused(f"a .nc or .zarr file holds one array (reached: {reached}); export .parquet")
    if not arrays[0][1].rows.num_rows:
        raise Refused("no cell was traced, so there is no box to export; export .csv")
    return arrays[0]


def _cells(array: Array, found: Found) -> dict[str, Index]:
    """The indices of the cells found of each variable."""
    kinds = column(found.rows, "variable")
    index = {d: column(found.rows, d) for d in array.dims}
    return {
        array.variables[kind]: {d: i[kinds == kind] for d, i in index.items()}
        for kind in np.unique(kinds)
    }


def _box(array: Array, found: Found, variables: int) -> Index:
    """The indices along each dimension of the smallest box around what was found."""
    box = {d: column(found.rows, d) for d in array.dims}
    box = {d: _around(i, array.size[d], d in array.circular) for d, i in box.items()}
    if variables * np.prod([float(len(i)) for i in box.values()]) > MOST_BOX_CELLS:
        raise TooDear("the box around these cells is too large for one file; export .parquet")
    return box


def _around(indices: NDArray[np.int64], size: int, circular: bool) -> NDArray[np.int64]:
    """The shortest run of indices that holds these, across the seam of a circle if that is shorter.

    >>> _around(np.array([143, 0, 1]), 144, True).tolist()
    [143, 0, 1]
    """
    seen = np.unique(indices)
    if not circular:
        return np.arange(seen[0], seen[-1] + 1)
    gaps = np.diff(np.append(seen, seen[0] + size))
    start = seen[(gaps.argmax() + 1) % len(seen)]
    return np.asarray((start + np.arange(size - gaps.max() + 1)) % size)


def _cut(array: Array, variables: list[str], box: Index) -> xr.Dataset:
    """The values in a box, as they are in the file but for packing and a break in longitudes."""
    index = {d: slice(i[0], i[-1] + 1) if (np.diff(i) == 1).all() else i for d, i in box.items()}
    with opened(array) as stored:
        data = stored[variables].isel(index).load()
    packed = [v for v in variables if "scale_factor" in data[v].encoding]
    for name in data.variables:
        kept = data[name].attrs.items()
        gone = (*POINTERS, *(PACKED if name in packed else ()))
        data[name].attrs = {k: v for k, v in kept if k not in gone}
    return _encoded(_unbroken(data, array))


def _unbroken(data: xr.Dataset, array: Array) -> xr.Dataset:
    """Longitudes that keep rising across the seam, as CF wants a coordinate to."""
    for dim in array.circular:
        values = data[dim].values.astype(float)
        jumps = np.diff(values)
        if len(jumps) and np.abs(jumps).max() > 180:
            seam = int(np.abs(jumps).argmax())
            values[: seam + 1] += 360 * np.sign(jumps[seam])
            data = data.assign_coords({dim: (dim, values, data[dim].attrs)})
    return data


def _encoded(data: xr.Dataset) -> xr.Dataset:
    """The data, to be written unpacked, with times in the file's own unit and calendar."""
    times = {n: data[n].encoding for n in data.coords if "calendar" in data[n].encoding}
    plain = data.drop_encoding()
    for name in plain.coords:
        kept = ("units", "calendar", "dtype")
        plain[name].encoding = {k: v for k, v in times.get(name, {}).items() if k in kept}
        plain[name].encoding["_FillValue"] = None
    return plain


def _mask(box: Index, index: Index) -> NDArray[np.int8]:
    mask = np.zeros([len(i) for i in box.values()], np.int8)
    mask[tuple(_positions(box[d], index[d]) for d in box)] = 1
    return mask


def _positions(run: NDArray[np.int64], indices: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(run)
    return order[np.searchsorted(run, indices, sorter=order)]


def _mask_attributes(variable: str) -> dict[str, Any]:
    return {
        "long_name": f"whether this cell of {variable} is in the lineage of the selection",
        "standard_name": "status_flag",
        "flag_values": np.array([0, 1], np.int8),
        "flag_meanings": "not_traced traced",
    }


def _about(answer: Answer) -> dict[str, str]:
    """The selection, the plan and the guarantee, as global attributes."""
    guarantee = {n: names(answer.guarantee(n)) for n in answer.lineage}
    return {
        "whence_selection": json.dumps(answer.to_json()["selection"]),
        "whence_plan": json.dumps(hops_json(answer.plan)),
        "whence_guarantee": json.dumps(guarantee),
    }
