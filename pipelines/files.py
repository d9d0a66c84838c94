"""Files: NetCDF and Zarr, opened lazily under our names, and let go of after every read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import xarray as xr

from pipelines.classic import check_length
from pipelines.errors import Failed, Refused, WhenceError
from pipelines.stores import check_store

FORMATS = {"zarr": "Zarr", "netcdf4": "NetCDF"}


@dataclass(frozen=True, slots=True)
class File:
    """What is in a file, read when asked for, and how to let go of the file after reading.

    The next read opens it again. A NetCDF file that stays open is locked against whoever wants
    to write it, and shows its old content to all who open it after it was overwritten.
    """

    data: xr.Dataset
    close: Callable[[], None]


def open_file(path: str, engine: str) -> File:
    """Open a NetCDF or Zarr file lazily, or say in one line why it cannot be."""
    try:
        with warnings.catch_warnings():
            # They complain of attributes; we say ourselves what we cannot work with.
            warnings.simplefilter("ignore")
            return _zarr(path) if engine == "zarr" else _netcdf(path)
    except WhenceError:
        raise
    except FileNotFoundError:
        raise Refused(f'no file at "{path}"; mend the path in the pipeline') from None
    except Exception as error:
        raise Failed(f'cannot read "{path}" as {FORMATS[engine]}: {reason(error)}') from None


def _zarr(path: str) -> File:
    unread = check_store(path)
    # Without consolidated metadata: what was checked is what is opened, and never out of date.
    data = xr.open_dataset(
        path, engine="zarr", consolidated=False, drop_variables=unread,
        cache=False, chunks=None, decode_timedelta=False,
    )  # fmt: skip
    # A store lists its arrays in any order, and in another the next time.
    return File(data[sorted(map(str, data.variables))], lambda: None)


def _netcdf(path: str) -> File:
    check_length(path)
    store = xr.backends.NetCDF4DataStore.open(path)  # type: ignore[no-untyped-call]
    try:
        data = xr.open_dataset(store, cache=False, chunks=None, decode_timedelta=False)
    finally:
        store.close()
    return File(data, store.close)


def under_our_names(data: xr.Dataset, stored: Mapping[str, str]) -> xr.Dataset:
    """The variables and dimensions that we have names for, under those names.

    A dimension bears the name of its coordinate, whatever the file calls it.

    >>> pressure = xr.DataArray([[1.0, 2.0]], dims=("t", "y"))
    >>> file = xr.Dataset({"msl": pressure}, {"latitude": ("y", [5, 9]), "time": ("t", [0])})
    >>> named = under_our_names(file, {"time": "time", "lat": "latitude", "slp": "msl"})
    >>> dict(named["slp"].sizes)
    {'time': 1, 'lat': 2}
    """
    wanted = [t for t in stored.values() if t in data.variables]
    kept = data[wanted]
    others = [n for n in stored if n in kept.variables and n not in wanted]
    lines = [t for t in wanted if kept[t].ndim == 1]
    apart = {kept[t].dims[0]: t for t in lines if kept[t].dims[0] != t}
    named = kept.drop_vars(others).set_coords(lines).swap_dims(apart)
    return named.rename({theirs: ours for ours, theirs in stored.items() if theirs != ours})


def reason(error: Exception) -> str:
    """The one line of an error from below that a person can act on."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__
