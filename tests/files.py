"""Files as others write them: small grids in the layouts of the great archives, and pipelines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import xarray as xr
import yaml

from pipelines.datasets import Array
from pipelines.errors import WhenceError
from pipelines.pipeline import Pipeline, Source
from pipelines.sources import as_array, fingerprinted

STEPS, ROWS, COLUMNS = 4, 9, 16
AT_THE_SEAM, AT_THE_POLE = (1, 4, 0), (2, 0, 7)
MARGIN, NEAR_KM, FAR_KM = 1000, 2500, 5000


def pressures(seed: int = 0) -> npt.NDArray[np.float32]:
    """Unruly pressures in pascals, lowest once in the first column and once in the first row."""
    values = np.random.default_rng(seed).uniform(99_000, 103_000, (STEPS, ROWS, COLUMNS))
    values[AT_THE_SEAM] = values[AT_THE_POLE] = 96_000
    return values.astype(np.float32)


def grid(
    values: npt.NDArray[Any],
    name: str = "slp",
    dims: tuple[str, str, str] = ("time", "lat", "lon"),
    units: str | None = "Pa",
    wind: tuple[str, ...] = ("u10", "v10"),
) -> xr.Dataset:
    """What is in a file: pressure and wind on the globe, six-hourly, from the north pole down."""
    t, y, x = dims
    hours = np.arange(len(values)) * np.timedelta64(6, "h")
    data = xr.Dataset(
        {name: (dims, values, {} if units is None else {"units": units})},
        {
            t: (t, np.datetime64("2001-03-01T00", "ns") + hours),
            y: (y, np.linspace(90, -90, values.shape[1]), {"units": "degrees_north"}),
            x: (x, np.arange(values.shape[2]) * 360 / values.shape[2], {"units": "degrees_east"}),
        },
        {"title": "a small world"},
    )
    for seed, component in enumerate(wind, 1):
        speed = np.random.default_rng(seed).normal(0, 15, values.shape).astype(np.float32)
        data[component] = (dims, speed, {"units": "m s**-1"})
    return data


def era5(path: Path) -> None:
    """Packed, with the extra coordinates of the Climate Data Store."""
    data = grid(pressures(), "msl", ("valid_time", "latitude", "longitude"))
    data = data.assign_coords(number=0, expver=("valid_time", np.array(["0001"] * STEPS, object)))
    packing = {"dtype": "int16", "scale_factor": 0.25, "add_offset": 1e5, "_FillValue": -32767}
    data.to_netcdf(path, encoding={"msl": packing})


def cmip(path: Path) -> None:
    """A model with a calendar of its own, upward latitudes, and longitudes about Greenwich."""
    data = grid(pressures(), "psl", wind=("uas", "vas"))
    data["time"] = xr.date_range(
        "1850-02-28", periods=STEPS, freq="6h", calendar="noleap", use_cftime=True
    )
    data = data.assign_coords(lat=-data["lat"], lon=data["lon"] - 180)
    data["psl"].attrs["standard_name"] = "air_pressure_at_mean_sea_level"
    data["lat"].attrs = {"standard_name": "latitude", "bounds": "lat_bnds"}
    data["lat_bnds"] = (("lat", "bnds"), np.zeros((ROWS, 2)))
    data.to_netcdf(path, encoding={"time": {"units": "days since 1850-01-01", "dtype": "f8"}})


def ncep(path: Path) -> None:
    """A classic file that grows by records, in millibars."""
    data = grid(pressures() / 100, units="millibars", wind=("uwnd", "vwnd"))
    data.to_netcdf(path, format="NETCDF3_CLASSIC", unlimited_dims=["time"])


def odd(path: Path) -> None:
    """Names that say nothing, beside one that misleads."""
    data = grid(pressures(), "field7", ("a", "b", "c"), wind=("east", "north"))
    for name in "abc":
        data[name].attrs = {}
    data["slp"] = data["field7"] * 0
    data.to_netcdf(path)


def with_level(path: Path) -> None:
    """A dimension too many, of size one."""
    grid(pressures()).expand_dims(height=[10.0], axis=1).to_netcdf(path)


def regional(path: Path) -> None:
    """A window on the world, whose longitudes do not close the circle."""
    data = grid(pressures())
    data.assign_coords(lon=data["lon"] / 4 - 30, lat=data["lat"] / 2 + 45).to_netcdf(path)


def transposed(path: Path) -> None:
    grid(pressures()).transpose("lon", "lat", "time").to_netcdf(path)


def with_gaps(path: Path) -> None:
    """Cells are missing, one of them next to the lowest."""
    values = pressures()
    values[np.random.default_rng(9).random(values.shape) < 0.15] = np.nan
    values[AT_THE_SEAM] = values[AT_THE_POLE] = 96_000
    values[1, 4, -1] = np.nan
    grid(values).to_netcdf(path)


def windless(path: Path) -> None:
    grid(pressures(), wind=()).to_netcdf(path)


def apart(path: Path) -> None:
    """Dimensions with names of their own beside those of their coordinates."""
    data = grid(pressures(), "mslp", ("t", "y", "x"))
    data = data.rename(t="valid_time", y="latitude", x="longitude")
    data = data.swap_dims(valid_time="t", latitude="y", longitude="lon")
    data.to_netcdf(path)


def rolled(path: Path) -> None:
    """Longitudes that jump from 180 to -180 in the middle."""
    data = grid(pressures())
    data.assign_coords(lon=(data["lon"] + 180) % 360 - 180).to_netcdf(path)


def chunked(path: Path) -> None:
    """Compressed NetCDF chunks, none of which divides its dimension."""
    packed = {"chunksizes": (3, 4, 5), "zlib": True}
    grid(pressures()).to_netcdf(path, encoding={"slp": packed})


def zarr_2(path: Path) -> None:
    data = grid(pressures(), "msl", ("valid_time", "latitude", "longitude"))
    data.to_zarr(path, zarr_format=2, consolidated=True, encoding={"msl": {"chunks": (3, 4, 5)}})


def zarr_3(path: Path) -> None:
    """In shards, without consolidated metadata, with a text that is nobody's business."""
    data = grid(pressures())
    data = data.assign_coords(expver=("time", np.array(["0001"] * STEPS, object)))
    sharded = {"chunks": (2, 3, 4), "shards": (4, 9, 8)}
    data.to_zarr(path, zarr_format=3, consolidated=False, encoding={"slp": sharded})


@dataclass(frozen=True)
class Layout:
    """How to write a file, what its pressure is called there, and what there is to know of it."""

    write: Callable[[Path], None]
    pressure: str = "slp"
    dims: tuple[str, str, str] = ("time", "lat", "lon")
    suffix: str = ".nc"
    pascals: float = 1.0
    wraps: bool = True
    variables: Mapping[str, str] = field(default_factory=dict)

    def at(self, folder: Path) -> Path:
        """A file of this layout, written."""
        path = folder / f"world{self.suffix}"
        self.write(path)
        return path

    def truth(self, path: Path) -> npt.NDArray[np.float64]:
        """Its pressures in pascals over time, latitude and longitude, as plain xarray has them."""
        plainly: Any = xr.open_dataset if path.is_file() else xr.open_zarr
        with plainly(path, **({} if path.is_file() else {"consolidated": False})) as data:
            values = data[self.pressure].squeeze(drop=True).transpose(*self.dims).values
        return np.asarray(values, np.float64) * self.pascals


LONG_NAMES = ("valid_time", "latitude", "longitude")
LAYOUTS = {
    "era5": Layout(era5, "msl", LONG_NAMES),
    "cmip": Layout(cmip, "psl"),
    "ncep": Layout(ncep, pascals=100.0),
    "odd": Layout(
        odd,
        "field7",
        ("a", "b", "c"),
        variables={
            "slp": "field7", "u10": "east", "v10": "north", "time": "a", "lat": "b", "lon": "c",
        },
    ),
    "with_level": Layout(with_level),
    "regional": Layout(regional, wraps=False),
    "transposed": Layout(transposed),
    "with_gaps": Layout(with_gaps),
    "windless": Layout(windless),
    "apart": Layout(apart, "mslp", ("t", "y", "lon")),
    "rolled": Layout(rolled),
    "chunked": Layout(chunked),
    "zarr_2": Layout(zarr_2, "msl", LONG_NAMES, ".zarr"),
    "zarr_3": Layout(zarr_3, suffix=".zarr"),
}  # fmt: skip


def pipeline_over(path: Path, only_minima: bool = False, **source: Any) -> Pipeline:
    """A pipeline file beside its source, which it names."""
    plain: dict[str, Any] = {
        "name": "mine",
        "sources": {"world": {"path": path.name, **source}},
        "boxes": {
            "minima": {
                "box": "extract_minima",
                "inputs": {"field": "world"},
                "params": {"margin": MARGIN},
            },
            "tracks": {
                "box": "identify_tracks",
                "inputs": {"minima": "minima"},
                "params": {"near_km": NEAR_KM, "far_km": FAR_KM, "min_points": 2},
            },
        },
    }
    if only_minima:
        del plain["boxes"]["tracks"]
    file = path.with_name("mine.yaml")
    file.write_text(yaml.safe_dump(plain))
    return Pipeline.from_file(file)


def at(*cells: tuple[int, int, int]) -> str:
    """A predicate that keeps the minima at some cells."""
    each = "(time_index = {} and lat_index = {} and lon_index = {})"
    return " or ".join(each.format(*cell) for cell in cells)


def source_at(path: Path, **variables: str) -> Array:
    return fingerprinted(as_array("world", Source(str(path), variables=variables)))


def written(data: xr.Dataset, folder: Path, name: str = "world.nc") -> Path:
    data.to_netcdf(folder / name)
    return folder / name


def refusal(kind: type[WhenceError], act: Callable[..., Any], *given: Any, **named: Any) -> str:
    """What an act is refused with: an error of this kind, in one line."""
    with pytest.raises(kind) as caught:
        act(*given, **named)
    said = str(caught.value)
    assert said and "\n" not in said and len(said) < 400
    return said
