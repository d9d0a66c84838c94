"""Traced cells for other programs: as rows, or as the smallest box of the source around them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import xarray as xr
from numpy.typing import NDArray

from explorer import cf
from inverses.answer import Answer, Found
from inverses.guarantees import names
from pipelines.arrays import opened
from pipelines.datasets import Array, check_kept
from pipelines.errors import Refused, TooDear
from pipelines.sources import check_unchanged
from pipelines.tables import column

MOST_BOX_CELLS = 200_000_000
Index = Mapping[str, NDArray[np.int64]]


def exported(answer: Answer) -> dict[str, Found]:
    """What is exported of an answer: the arrays reached; where there are none, the tables."""
    found = answer.lineage
    return {n: f for n, f in found.items() if isinstance(f.dataset, Array)} or found


def traced_rows(answer: Answer) -> pa.Table:
    """One row per traced cell: dataset, variable, coordinates, indices, value.

    Where no array was reached, the rows of the tables that were.
    """
    parts = [_with_name(n, f.table()) for n, f in exported(answer).items()]
    return pa.concat_tables(parts, promote_options="permissive")


def _with_name(name: str, rows: pa.Table) -> pa.Table:
    return rows.add_column(0, "dataset", pa.array([name] * rows.num_rows, pa.string()))


def one_array(answer: Answer) -> str:
    """The name of the array that was reached, or of the one of them that is a source."""
    reached = {n: f.dataset for n, f in answer.lineage.items() if isinstance(f.dataset, Array)}
    sources = [n for n, array in reached.items() if not (array.made and array.made.inputs)]
    held = sources if len(reached) > 1 else list(reached)
    if len(held) != 1:
        which = ", ".join(reached) or "none"
        raise Refused(f"a .nc or .zarr file holds one array (reached: {which}); export .parquet")
    return held[0]


def traced_box(answer: Answer, dataset: str) -> xr.Dataset:
    """The smallest box of an array around the traced cells, with a mask for each variable."""
    found = answer.lineage[dataset]
    array = found.dataset
    assert isinstance(array, Array)
    box, cells = box_of(found), _cells(array, found)
    data = cf.described(_cut(array, list(cells), box))
    for variable, index in cells.items():
        theirs = array.stored[variable]
        order = [d for d in data[variable].dims if d in array.dims]
        mask = xr.DataArray(_mask(box, index), dims=array.dims, attrs=cf.mask_attributes(theirs))
        data[f"{theirs}_traced"] = mask.transpose(*order)
        data[variable].attrs["ancillary_variables"] = f"{theirs}_traced"
    ours = {n: array.stored[n] for n in (*array.dims, *cells) if n in array.stored}
    named = data.rename(ours).assign_attrs(about(answer))
    return named.assign_attrs(cf.file_attributes(data.attrs, _done(answer, dataset)))


def _done(answer: Answer, dataset: str) -> str:
    selection = answer.plan.selection
    where = f" where {selection.where}" if selection.where else ""
    return f"the cells of {dataset} behind {selection.dataset.name}{where}"


def _cells(array: Array, found: Found) -> dict[str, Index]:
    """The indices of the cells found of each variable."""
    kinds = column(found.rows, "variable")
    index = {d: column(found.rows, d) for d in array.dims}
    return {
        array.variables[kind]: {d: i[kinds == kind] for d, i in index.items()}
        for kind in np.unique(kinds)
    }


def box_of(found: Found) -> Index:
    """The indices along each dimension of the smallest box around what was found in an array."""
    array = found.dataset
    assert isinstance(array, Array)
    check_kept(array)
    if not found.rows.num_rows:
        raise Refused("no cell was traced, so there is no box to export; export .csv")
    box = {d: column(found.rows, d) for d in array.dims}
    box = {d: _around(i, array.size[d], d in array.circular) for d, i in box.items()}
    if box_cells(found, box) > MOST_BOX_CELLS:
        raise TooDear("the box around these cells is too large for one file; export .parquet")
    return box


def box_cells(found: Found, box: Index) -> int:
    """How many cells a box has, of all variables that something was found of."""
    variables = len(np.unique(column(found.rows, "variable")))
    return int(variables * np.prod([float(len(i)) for i in box.values()]))


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
    check_unchanged(array)
    index = {d: slice(i[0], i[-1] + 1) if (np.diff(i) == 1).all() else i for d, i in box.items()}
    with opened(array) as stored:
        data = stored[variables].isel(index).load()
    return cf.encoded(cf.unbroken(cf.without_broken(data), array))


def _mask(box: Index, index: Index) -> NDArray[np.int8]:
    mask = np.zeros([len(i) for i in box.values()], np.int8)
    mask[tuple(_positions(box[d], index[d]) for d in box)] = 1
    return mask


def _positions(run: NDArray[np.int64], indices: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(run)
    return order[np.searchsorted(run, indices, sorter=order)]


def about(answer: Answer) -> dict[str, str]:
    """The selection, the plan and the guarantee, as attributes of a file."""
    return {
        "whence_selection": json.dumps(answer.to_json()["selection"]),
        "whence_plan": json.dumps(answer.hops()),
        "whence_guarantee": json.dumps(guarantees(answer)),
    }


def guarantees(answer: Answer) -> dict[str, list[str]]:
    """What is promised of each dataset reached."""
    return {n: names(answer.guarantee(n)) for n in answer.lineage}
