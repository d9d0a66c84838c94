"""CF: what the conventions ask of a file beyond what its source already says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import xarray as xr

from pipelines.datasets import Array
from pipelines.naming import VARIABLES

CONVENTIONS = "CF-1.11"
# Attributes that name other variables of the file, which are not exported.
POINTERS = ("bounds", "climatology", "cell_measures", "grid_mapping", "formula_terms")
# Those that were true of the whole array, or of packed values.
OF_ALL, OF_PACKED = ("actual_range",), ("valid_min", "valid_max", "valid_range")
AXES: Mapping[str, Mapping[str, str]] = {
    "time": {"standard_name": "time", "axis": "T"},
    "lat": {"standard_name": "latitude", "units": "degrees_north", "axis": "Y"},
    "lon": {"standard_name": "longitude", "units": "degrees_east", "axis": "X"},
}
# The calendars in which a second may be a leap second, and so CF wants to be told.
LEAPING = {"standard", "gregorian", "proleptic_gregorian", "julian"}


def without_broken(data: xr.Dataset) -> xr.Dataset:
    """The data without attributes that are no longer true of a part of it, unpacked."""
    for name in data.variables:
        gone = {*POINTERS, *OF_ALL}
        gone |= {*OF_PACKED} if "scale_factor" in data[name].encoding else set()
        data[name].attrs = {k: v for k, v in data[name].attrs.items() if k not in gone}
    return data


def described(data: xr.Dataset) -> xr.Dataset:
    """The data, under our names, with what CF wants said of each coordinate and variable."""
    for name in data.coords:
        for key, value in AXES.get(str(name), {}).items():
            data[name].attrs.setdefault(key, value)
        if data[name].encoding.get("calendar") in LEAPING:
            data[name].attrs.setdefault("units_metadata", "leap_seconds: unknown")
    for name in data.variables:
        if not {"standard_name", "long_name"} & data[name].attrs.keys():
            data[name].attrs |= _names(str(name), data[name].attrs)
    return data


def _names(name: str, attributes: Mapping[str, Any]) -> dict[str, str]:
    """What a variable is, in the words of CF if we know them and its unit is said."""
    if name in VARIABLES and "units" in attributes:
        return {"standard_name": min(VARIABLES[name].standard)}
    return {"long_name": name}


def mask_attributes(variable: str) -> dict[str, Any]:
    """What CF wants said of a mask."""
    return {
        "long_name": f"whether this cell of {variable} is in the lineage of the selection",
        "standard_name": "status_flag",
        "flag_values": np.array([0, 1], np.int8),
        "flag_meanings": "not_traced traced",
    }


def file_attributes(given: Mapping[Any, Any], done: str) -> dict[str, str]:
    """The conventions that a file follows, and its history with what was done last."""
    others = re.split(r"[,\s]+", str(given.get("Conventions", "")))
    kept = [c for c in others if c and not c.startswith("CF-")]
    line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} whence: {done}"
    earlier = str(given.get("history", "")).strip()
    return {
        "Conventions": ", ".join([CONVENTIONS, *kept]),
        "history": f"{line}\n{earlier}" if earlier else line,
    }


def unbroken(data: xr.Dataset, array: Array) -> xr.Dataset:
    """Longitudes that keep rising across the seam, as CF wants a coordinate to."""
    for dim in array.circular:
        values = data[dim].values.astype(float)
        jumps = np.diff(values)
        if len(jumps) and np.abs(jumps).max() > 180:
            seam = int(np.abs(jumps).argmax())
            values[: seam + 1] += 360 * np.sign(jumps[seam])
            data = data.assign_coords({dim: (dim, values, data[dim].attrs)})
    return data


def encoded(data: xr.Dataset) -> xr.Dataset:
    """The data, to be written unpacked, with times in the file's own unit and calendar."""
    times = {n: data[n].encoding for n in data.coords if "calendar" in data[n].encoding}
    plain = data.drop_encoding()
    for name in plain.coords:
        kept = ("units", "calendar", "dtype")
        plain[name].encoding = {k: v for k, v in times.get(name, {}).items() if k in kept}
        plain[name].encoding["_FillValue"] = None
    return plain
