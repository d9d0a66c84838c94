"""Exporting traced cells: as rows, or as the smallest box of the source around them."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
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
from pipelines.tables import column

SUFFIXES = (".csv", ".parquet", ".nc", ".zarr")
MOST_BOX_CELLS = 200_000_000


def check_target(path: Path | str) -> Path:
    """The path if something can be exported to it; better to know before a long trace."""
    target = Path(path)
    if target.suffix not in SUFFIXES:
        raise Refused(f'cannot export to "{path}"; its name may end in {", ".join(SUFFIXES)}')
    if not target.resolve().parent.is_dir():
        raise Refused(f'cannot export to "{path}": there is no directory "{target.parent}"')
    if target.is_dir():
        raise Refused(f'"{path}" is a directory that exists; name another, or remove it')
    return target


def export(answer: Answer, path: Path | str) -> Path:
    """Write what a trace found, whole or not at all, in the format that the suffix says."""
    target = check_target(path)
    writers = {
        ".csv": _write_csv,
        ".parquet": _write_parquet,
        ".nc": _write_nc,
        ".zarr": _write_zarr,
    }
    try:
        with _whole(target) as partial:
            writers[target.suffix](answer, partial)
    except OSError as error:
        raise Failed(f'cannot export to "{path}": {error.strerror or error}') from None
    return target


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """A path beside the target to write to, which takes its place if all goes well."""
    partial = target.with_name(f".{target.stem}-{uuid.uuid4().hex[:8]}{target.suffix}")
    try:
        yield partial
        os.replace(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        partial.unlink(missing_ok=True)


def _write_csv(answer: Answer, path: Path) -> None:
    pa.csv.write_csv(traced_rows(answer), path)


def _write_parquet(answer: Answer, path: Path) -> None:
    about = {k.encode(): v.encode() for k, v in _about(answer).items()}
    rows = traced_rows(answer)
    pq.write_table(rows.replace_schema_metadata({**(rows.schema.metadata or {}), **about}), path)


def _write_nc(answer: Answer, path: Path) -> None:
    traced_box(answer).to_netcdf(path, engine="netcdf4")


def _write_zarr(answer: Answer, path: Path) -> None:
    traced_box(answer).to_zarr(path, consolidated=False)


WRITERS = {
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
    found = _one_array(answer)
    array = found.dataset
    assert isinstance(array, Array)
    index = {d: column(found.rows, d) for d in array.dims}
    box = {d: _around(index[d], array.size[d], d in array.circular) for d in array.dims}
    if np.prod([float(len(i)) for i in box.values()]) > MOST_BOX_CELLS:
        raise TooDear("the box around these cells is too large for one file; export .parquet")
    kinds = column(found.rows, "variable")
    traced = [array.variables[k] for k in np.unique(kinds)]
    data = opened(array)[traced].isel(box).load().drop_encoding()
    for variable in traced:
        mine = kinds == array.variables.index(variable)
        mask = _mask(box, {d: i[mine] for d, i in index.items()})
        data[f"{variable}_traced"] = (array.dims, mask, _mask_attributes(variable))
        data[variable].attrs["ancillary_variables"] = f"{variable}_traced"
    named = _unbroken(data, array).rename(_their_names(array, traced))
    return named.assign_attrs({**opened(array).attrs, **_about(answer)})


def _one_array(answer: Answer) -> Found:
    arrays = {n: f for n, f in answer.lineage.items() if isinstance(f.dataset, Array)}
    if len(arrays) != 1:
        found = ", ".join(arrays) or "none"
        raise Refused(f"a .nc or .zarr file holds one array (reached: {found}); export .parquet")
    return next(iter(arrays.values()))


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


def _mask(box: dict[str, NDArray[np.int64]], index: dict[str, NDArray[np.int64]]) -> Any:
    mask = np.zeros([len(i) for i in box.values()], np.int8)
    where = [_positions(box[d], index[d]) for d in box]
    mask[tuple(where)] = 1
    return mask


def _positions(run: NDArray[np.int64], indices: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(run)
    return order[np.searchsorted(run, indices, sorter=order)]


def _mask_attributes(variable: str) -> dict[str, Any]:
    return {
        "long_name": f"whether this cell of {variable} is in the lineage of the selection",
        "flag_values": np.array([0, 1], np.int8),
        "flag_meanings": "not_traced traced",
    }


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


def _their_names(array: Array, traced: list[str]) -> dict[str, str]:
    ours = {n: t for n, t in array.stored.items() if n in (*array.dims, *traced) and n != t}
    return ours | {f"{v}_traced": f"{array.stored[v]}_traced" for v in traced}


def _about(answer: Answer) -> dict[str, str]:
    """The selection, the plan and the guarantee, as global attributes."""
    plain = answer.to_json()
    guarantee = {n: names(answer.guarantee(n)) for n in answer.lineage}
    return {
        "whence_selection": json.dumps(plain["selection"]),
        "whence_plan": json.dumps(hops_json(answer.plan)),
        "whence_guarantee": json.dumps(guarantee),
    }
