"""Tables and arrays: what a dataset is, what its attributes mean, and in which levels it nests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pipelines.errors import Refused, unknown

TUPLE, ELEMENT = "tuple", "element"
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Type:
    """What an attribute means, whatever it is stored as; inverses are matched by it."""

    name: str

    def __repr__(self) -> str:
        return self.name


Time = Type("Time")
Location = Type("Location")
Pressure = Type("Pressure")
Wind = Type("Wind")
WindSpeed = Type("WindSpeed")
WindDirection = Type("WindDirection")
TrackId = Type("TrackId")
Quantity = Type("Quantity")
Text = Type("Text")
Measure = Type("Measure")
Rank = Type("Rank")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One named part of every tuple: some columns of a table, or a variable with dimensions.

    >>> Attribute("location", Location, ("lat", "lon"))
    location: Location
    >>> Attribute("slp", Pressure, ("slp",), unit="Pa", dims=("lat", "lon"))
    slp: Pressure[lat, lon]
    """

    name: str
    type: Type
    columns: tuple[str, ...]
    unit: str | None = None
    dims: tuple[str, ...] = ()

    def __repr__(self) -> str:
        inner = f"[{', '.join(self.dims)}]" if self.dims else ""
        return f"{self.name}: {self.type}{inner}"


@dataclass(frozen=True, slots=True)
class Made:
    """How a dataset came to be: box, parameters, the versions it was made from, and how long."""

    box: str
    step: str
    params: Mapping[str, Any]
    inputs: Mapping[str, tuple[str, str]]
    run: str
    box_version: str = "1"
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One version of a named table or array in a workspace.

    One that is not `kept` has a description and no files. Its `checksum` is of all that a run
    wrote. Where its data come from anything but files, they come from its `content` (see
    `pipelines/contents.py`), which is never written down.
    """

    name: str
    version: str
    path: str
    attributes: tuple[Attribute, ...]
    made: Made | None = None
    origin: Mapping[str, Any] | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    kept: bool = True
    checksum: str = ""
    content: Any = None

    @property
    def key(self) -> Key:
        return self.name, self.version

    def attribute(self, name: str) -> Attribute:
        """The attribute of this name, or the one that has a column of this name."""
        for each in self.attributes:
            if name == each.name or name in each.columns:
                return each
        raise unknown("attribute", name, [a.name for a in self.attributes], f'in "{self.name}"')


@dataclass(frozen=True, slots=True)
class Group:
    """A row group of a Parquet file, with the least and greatest value of each column."""

    file: str
    index: int
    rows: int
    bytes: int
    bounds: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Dataset):
    """Tuples in Parquet files; one level."""

    types: Mapping[str, str]
    groups: tuple[Group, ...] = ()
    kind = "table"
    levels = (TUPLE,)

    @property
    def rows(self) -> int:
        return sum(g.rows for g in self.groups)

    @property
    def columns(self) -> list[str]:
        return list(self.types)


@dataclass(frozen=True, slots=True, kw_only=True)
class Array(Dataset):
    """A tuple per step of the first dimension, and in each the cells of its variables.

    `stored` maps our names of variables and dimensions to those in the file; `circular`
    names the dimensions that close on themselves.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    itemsize: int
    stored: Mapping[str, str]
    circular: tuple[str, ...] = ()
    engine: str = "zarr"
    kind = "array"
    levels = (TUPLE, ELEMENT)

    @property
    def rows(self) -> int:
        return self.shape[0]

    @property
    def variables(self) -> list[str]:
        return [a.name for a in self.attributes if a.dims]

    @property
    def cells(self) -> int:
        size = len(self.variables)
        for extent in self.shape:
            size *= extent
        return size

    @property
    def size(self) -> dict[str, int]:
        return dict(zip(self.dims, self.shape, strict=True))

    @property
    def columns(self) -> list[str]:
        return [*self.dims, *self.variables]


def check_kept(dataset: Dataset) -> None:
    """Refuse to read a dataset of which nothing but its description was kept."""
    if not dataset.kept:
        raise Refused(
            f'"{dataset.name}" was not kept (keep: false in its pipeline, or a run with --only); '
            "look at what is made of it, or run it again to keep it"
        )


def to_json(dataset: Dataset) -> dict[str, Any]:
    """A dataset as plain data; `from_json` is its inverse."""
    kind = "array" if isinstance(dataset, Array) else "table"
    plain = asdict(replace(dataset, content=None))
    return {"kind": kind, **{k: v for k, v in plain.items() if k != "content"}}


def from_json(plain: Mapping[str, Any]) -> Table | Array:
    """The dataset that `to_json` described."""
    rest = {k: v for k, v in plain.items() if k != "kind"}
    rest["attributes"] = tuple(_attribute(a) for a in rest["attributes"])
    rest["made"] = _made(rest["made"]) if rest["made"] else None
    if plain["kind"] == "array":
        tuples = {k: tuple(rest[k]) for k in ("dims", "shape", "chunks", "circular")}
        return Array(**{**rest, **tuples})
    return Table(**{**rest, "groups": tuple(Group(**g) for g in rest["groups"])})


def _attribute(plain: Mapping[str, Any]) -> Attribute:
    return Attribute(
        plain["name"],
        Type(plain["type"]["name"]),
        tuple(plain["columns"]),
        plain["unit"],
        tuple(plain["dims"]),
    )


def _made(plain: Mapping[str, Any]) -> Made:
    return Made(**{**plain, "inputs": {p: (n, v) for p, (n, v) in plain["inputs"].items()}})
