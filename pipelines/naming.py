"""Naming: what the variables and dimensions of a file are to us, by CF, common names and units."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import cf_xarray  # noqa: F401  (registers the accessor `.cf`)
import xarray as xr

from pipelines.datasets import Pressure, Type, Wind
from pipelines.errors import Refused
from pipelines.minima import PASCALS
from pipelines.written import NAME

AXES = {"time": "time", "lat": "latitude", "lon": "longitude"}


@dataclass(frozen=True, slots=True)
class Known:
    """A variable we know: its type, its CF standard names, and the names it commonly has."""

    type: Type
    standard: frozenset[str]
    common: frozenset[str]


VARIABLES: Mapping[str, Known] = {
    "slp": Known(
        Pressure,
        frozenset({"air_pressure_at_mean_sea_level", "air_pressure_at_sea_level"}),
        frozenset({"slp", "msl", "psl", "mslp", "prmsl", "pmsl", "mslet"}),
    ),
    "u10": Known(
        Wind,
        frozenset({"eastward_wind"}),
        frozenset({"u10", "10u", "uas", "u10m", "ugrd10m", "uwnd"}),
    ),
    "v10": Known(
        Wind,
        frozenset({"northward_wind"}),
        frozenset({"v10", "10v", "vas", "v10m", "vgrd10m", "vwnd"}),
    ),
}
WIND = ("u10", "v10")
AT_THE_GROUND = {"sp", "ps", "pres", "psfc"}
METRES_A_SECOND = {
    "ms-1", "m/s", "m.s-1", "mps", "meters/second", "metres/second", "meterspersecond",
    "metrespersecond",
}  # fmt: skip


def names_in(source: str, data: xr.Dataset, given: Mapping[str, str]) -> dict[str, str]:
    """Our name of each axis and of each variable over all of them, and what the file calls it."""
    _check_given(source, data, given)
    axes = _axes(source, data, given)
    over = [str(v) for v in data.data_vars if fits(data, v, axes.values())]
    stated = {ours: theirs for ours, theirs in given.items() if ours not in AXES}
    for ours, theirs in stated.items():
        if not fits(data, theirs, axes.values()):
            raise Refused(
                f'source "{source}": {ours} cannot be "{theirs}", which does not have a number '
                f"for each {_listed(axes.values())}, but {_shaped(data, theirs)}"
            )
    known = axes | stated | _recognised(source, data, over, stated)
    _check_wind(source, data, known)
    return known | {v: v for v in over if v not in known and v not in known.values()}


def fits(data: xr.Dataset, variable: Hashable, axes: Iterable[Hashable]) -> bool:
    """Whether a variable has numbers over these axes, and over others only of size one."""
    dims = {data[a].dims[0] for a in axes}
    found = data[variable]
    extra = [n for d, n in found.sizes.items() if d not in dims]
    return found.dtype.kind in "fiu" and dims <= set(found.dims) and all(n == 1 for n in extra)


def _check_given(source: str, data: xr.Dataset, given: Mapping[str, str]) -> None:
    """Refuse a mapping to what the file does not have, or to one thing twice."""
    for ours, theirs in given.items():
        if not isinstance(ours, str) or not NAME.fullmatch(ours):
            raise Refused(f'source "{source}": {ours!r}, for "{theirs}", is not a name like slp')
        if theirs not in data.variables:
            found = _listed(data.variables)
            raise Refused(f'source "{source}": no variable "{theirs}" for {ours} (it has: {found})')
        if list(given.values()).count(theirs) > 1:
            raise Refused(f'source "{source}": "{theirs}" is given for two names; give it for one')
        if ours in AXES and data[theirs].ndim != 1:
            raise Refused(
                f'source "{source}": "{theirs}", given for {ours}, is {_shaped(data, theirs)}; '
                "Whence reads grids whose time, latitude and longitude have one dimension each"
            )


def _axes(source: str, data: xr.Dataset, given: Mapping[str, str]) -> dict[str, str]:
    """The coordinates that are time, latitude and longitude."""
    found = {o: [given[o]] if o in given else _coordinates(data, AXES[o]) for o in AXES}
    for ours, candidates in found.items():
        if not candidates:
            shapes = _listed(_shaped(data, c) for c in data.coords) or "none"
            raise Refused(
                f'source "{source}": no coordinate (of {shapes}) is known for a {AXES[ours]} and '
                f"has a dimension; say which it is, like: variables: {{{ours}: NAME}}"
            )
    every = [dict(zip(AXES, each, strict=True)) for each in product(*found.values())]
    fitting = [a for a in every if any(fits(data, v, a.values()) for v in data.data_vars)]
    if not fitting:
        shapes = _listed(_shaped(data, v) for v in data.data_vars) or "none"
        raise Refused(
            f'source "{source}": no variable (of {shapes}) is over time, latitude and longitude'
        )
    for ours in AXES:
        _only(source, ours, dict.fromkeys(a[ours] for a in fitting))
    return fitting[0]


def _coordinates(data: xr.Dataset, kind: str) -> list[str]:
    """The coordinates with one dimension that are of a kind: by their attributes, else by name."""
    for described in (lambda: data, data.cf.guess_coord_axis):  # to guess takes long
        found = [str(c) for c in described().cf.coordinates.get(kind, []) if data[c].ndim == 1]
        own = [c for c in found if data[c].dims == (c,)]
        if found:
            return own or found
    return []


def _recognised(
    source: str, data: xr.Dataset, over: list[str], stated: Mapping[str, str]
) -> dict[str, str]:
    """The variables we know that nobody had to name; wind only if both components are there."""
    free = [v for v in over if v not in stated.values()]
    found = {}
    for ours, known in VARIABLES.items():
        if ours not in stated and (matches := _matches(data, free, known)):
            found[ours] = _only(source, ours, matches)
    both = set(WIND) <= found.keys() | stated.keys()
    return {ours: theirs for ours, theirs in found.items() if both or ours not in WIND}


def _matches(data: xr.Dataset, free: list[str], known: Known) -> list[str]:
    """The variables that may be the known one: by name, standard name, or as a lone pressure."""
    named = [v for v in free if v.lower() in known.common]
    stated = [v for v in free if data[v].attrs.get("standard_name") in known.standard]
    if named or stated:
        return named if len(named) == 1 else list(dict.fromkeys(named + stated))
    lone = [v for v in free if _is_some_pressure(data[v])]
    return lone if known.type == Pressure and len(lone) == 1 else []


def _is_some_pressure(variable: xr.DataArray) -> bool:
    """Whether a variable is in a unit of pressure, and nothing says it is not at sea level."""
    unit = str(variable.attrs.get("units")).strip().lower()
    elsewhere = str(variable.name).lower() in AT_THE_GROUND
    return unit in PASCALS and "standard_name" not in variable.attrs and not elsewhere


def _only(source: str, ours: str, matches: Iterable[str]) -> str:
    """The one match there is; several are for the user to choose from."""
    first, *others = matches
    if others:
        raise Refused(
            f'source "{source}": {ours} may be {" or ".join([first, *others])}; '
            f"say which, like: variables: {{{ours}: {first}}}"
        )
    return first


def _check_wind(source: str, data: xr.Dataset, names: Mapping[str, str]) -> None:
    """Refuse a wind that is stated to be in another unit than metres per second."""
    for theirs in (names[n] for n in WIND if n in names):
        unit = str(data[theirs].attrs.get("units", "m/s"))
        if unit.lower().translate(str.maketrans("", "", " *^_")) not in METRES_A_SECOND:
            raise Refused(f'source "{source}": the wind "{theirs}" is in {unit}, not in m s-1')


def _shaped(data: xr.Dataset, variable: Hashable) -> str:
    return f"{variable}({', '.join(map(str, data[variable].dims))})"


def _listed(names: Iterable[Hashable]) -> str:
    return ", ".join(map(str, names))
