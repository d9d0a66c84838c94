"""Exporting traced cells, in the format that the name of the file says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import zarr

from explorer.archive import add, archive
from explorer.cells import about, one_array, traced_box, traced_rows
from explorer.whole import whole
from inverses.answer import Answer
from pipelines.errors import Failed, Refused
from pipelines.files import reason

# Formats whose writers want a file, or a directory, that has a name.
NAMED = (".nc", ".zarr")


def check_target(path: Path | str) -> Path:
    """The path if something can be exported to it; better to know before a long trace."""
    target = Path(path)
    suffix = suffix_of(target)
    if not target.resolve().parent.is_dir():
        raise Refused(f'cannot export to "{path}": there is no directory "{target.parent}"')
    if target.is_dir() or (suffix == ".zarr" and target.exists()):
        raise Refused(f'"{path}" exists, and is not replaced; name another, or remove it')
    if any(_keeps_versions(folder) for folder in target.resolve().parents):
        raise Refused(f'"{path}" is among the versions of a workspace; export to another place')
    return target


def _keeps_versions(folder: Path) -> bool:
    """Whether a directory is where a workspace keeps what was published, or is about to be."""
    return folder.name in ("datasets", "staging") and (folder.parent / "whence.json").is_file()


def suffix_of(path: Path | str) -> str:
    """The end of a name that says its format.

    >>> suffix_of("cells.zarr.zip")
    '.zarr.zip'
    """
    name = Path(path).name
    for suffix in WRITERS:
        if name.endswith(suffix) and name != suffix:
            return suffix
    raise Refused(f'cannot export to "{path}"; its name may end in {", ".join(WRITERS)}')


def export(answer: Answer, path: Path | str) -> Path:
    """Write what a trace found, whole or not at all, in the format that the suffix says."""
    target = check_target(path)
    for found in (*answer.found.values(), *answer.lineage.values()):
        if target.exists() and target.resolve() == Path(found.dataset.path).resolve():
            raise Refused(f'"{path}" is the source that was traced; export to another file')
    suffix = suffix_of(target)
    try:
        with whole(target, nameless=suffix not in NAMED) as partial:
            WRITERS[suffix](answer, partial)
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise Failed(f'cannot export to "{path}": {reason(error)}') from None
    return target


def _write_csv(answer: Answer, path: Path) -> None:
    pyarrow.csv.write_csv(traced_rows(answer), path)


def _write_parquet(answer: Answer, path: Path) -> None:
    rows = traced_rows(answer)
    pq.write_table(rows.replace_schema_metadata(about(answer)), path)


def _write_nc(answer: Answer, path: Path) -> None:
    traced_box(answer, one_array(answer)).to_netcdf(path, engine="netcdf4")


def _write_zarr(answer: Answer, path: Path) -> None:
    _into_zarr(answer, path)


def _into_zarr(answer: Answer, store: Any) -> None:
    """Write a box in the format that everything reads, and that may have consolidated metadata."""
    box = traced_box(answer, one_array(answer))
    # Attributes in Zarr are JSON, whose numbers have no size: read back, flags are 64 bits long.
    flags = {n: {"dtype": "int64"} for n in box.data_vars if "flag_values" in box[n].attrs}
    box.to_zarr(store, zarr_format=2, consolidated=True, encoding=flags)


def _write_zarr_zip(answer: Answer, path: Path) -> None:
    # Zipped afterwards: Zarr writes its metadata twice, and a zip would keep both.
    parts: dict[str, Any] = {}
    _into_zarr(answer, zarr.storage.MemoryStore(parts))
    with archive(path) as file:
        for name in sorted(parts):
            add(file, name, parts[name].to_bytes())


def _write_bundle(answer: Answer, path: Path) -> None:
    # Only here, since it takes a second.
    from explorer.bundle import write_bundle

    write_bundle(answer, path)


WRITERS: Mapping[str, Callable[[Answer, Path], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".nc": _write_nc,
    ".zarr": _write_zarr,
    ".zarr.zip": _write_zarr_zip,
    ".whence.zip": _write_bundle,
}
