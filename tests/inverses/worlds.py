"""Random pipelines over two small sources, run, with every step by plain loops beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from inverses.making import made_by
from inverses.trials import Items
from pipelines.arrays import block
from pipelines.boxes.box import Box
from pipelines.boxes.extraction import ExtractAbove
from pipelines.boxes.groups import Aggregate
from pipelines.boxes.landcover import Composite, Label
from pipelines.boxes.masks import Mask, Threshold
from pipelines.boxes.pointwise import Calculate, Combine
from pipelines.boxes.reduce import Reduce, ReduceExtreme
from pipelines.boxes.regrid import Coarsen
from pipelines.boxes.relational import FilterRows
from pipelines.boxes.select import Select, Subset
from pipelines.boxes.times import ResampleMean, RollingMean
from pipelines.boxes.window import WindowExtreme, WindowMean, WindowMedian
from pipelines.contents import held_array
from pipelines.datasets import Array, Attribute, Made, Quantity, Table, Time
from tests.inverses.cases import Case, Truth
from tests.oracles import regions

SHAPE = (2, 4, 6)
TIMES = np.datetime64("2000-01-01", "ns") + np.arange(SHAPE[0]) * np.timedelta64(6, "h")
LAT, LON = np.array([60.0, 20.0, -20.0, -60.0]), np.arange(SHAPE[2]) * 10.0
Rows = list[dict[str, Any]]
Plain = Mapping[str, Any]


def around(values: np.ndarray, statistic: Callable[[np.ndarray], Any]) -> np.ndarray:
    made = np.empty(values.shape)
    for t, y, x in np.ndindex(values.shape):
        made[t, y, x] = there(values[t, max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2], statistic)
    return made


def there(values: np.ndarray, statistic: Callable[[np.ndarray], Any]) -> Any:
    """A statistic of the numbers that are not missing."""
    known = values[~np.isnan(values)]
    return statistic(known) if len(known) else np.nan


def rolling(values: np.ndarray) -> np.ndarray:
    steps = range(len(values))
    return np.array([along(values[max(t - 1, 0) : t + 2], 0, np.mean)[0] for t in steps])


def by_twos(values: np.ndarray) -> np.ndarray:
    pairs = [values[t : t + 2] for t in range(0, len(values), 2)]
    return np.concatenate([along(pair, 0, np.mean) for pair in pairs])


def latest(values: np.ndarray) -> np.ndarray:
    return along(values, 0, lambda known: known[-1])


def numbered(values: np.ndarray) -> np.ndarray:
    return np.array([regions.numbers(field > 0.11, 8, False) for field in values])


def region_behind(given: Plain, port: str, datum: Any) -> Items:
    """The region that a cell is of, and where it ends."""
    _, t, y, x = datum
    cells = regions.with_edge(given["field"]["a"][t] > 0.11, (y, x), 8, False)
    return {("a", t, *cell) for cell in cells}


def in_pairs(values: np.ndarray) -> np.ndarray:
    pairs = [values[:, :, x : x + 2] for x in range(0, values.shape[2], 2)]
    return np.concatenate([along(pair, 2, np.mean) for pair in pairs], axis=2)


def along(values: np.ndarray, axis: int, statistic: Callable[[np.ndarray], Any]) -> np.ndarray:
    """A statistic along an axis, which has one place then."""
    lines = np.moveaxis(values, axis, -1)
    made = np.empty(lines.shape[:-1])
    for place in np.ndindex(made.shape):
        made[place] = there(lines[place], statistic)
    return np.expand_dims(made, axis)


def within(values: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), np.nan, (values >= -0.41) & (values <= 0.71))


def masked(given: Plain) -> Plain:
    """What is where the mask is there and not 0; missing elsewhere."""
    mask = given["mask"]["a"]
    return {"a": np.where((mask != 0) & ~np.isnan(mask), given["field"]["a"], np.nan)}


def above(values: np.ndarray) -> Rows:
    return [
        {"time_index": t, "lat_index": y, "lon_index": x, "value": values[t, y, x]}
        for t, y, x in np.ndindex(values.shape)
        if values[t, y, x] > 0.21
    ]


def grouped(rows: Rows) -> Rows:
    steps = sorted({r["time_index"] for r in rows})
    of = {t: [r["value"] for r in rows if r["time_index"] == t] for t in steps}
    return [{"time_index": t, "value_max": max(v), "value_count": len(v)} for t, v in of.items()]


@dataclass(frozen=True)
class Kind:
    """A box, what goes in, and the same by plain loops."""

    box: Box
    takes: tuple[str, ...]
    forward: Callable[[Plain], Any]
    makes: str = "array"
    identity: tuple[str, ...] | None = None
    of: str = "array"  # what is made of a field: most boxes take any, one takes labels
    truth: Truth | None = None


def on_a(work: Callable[[np.ndarray], Any]) -> Callable[[Plain], Any]:
    return lambda given: {"a": work(given["field"]["a"])}


KINDS = (
    Kind(WindowMean(3, 3), ("field",), on_a(lambda a: around(a, np.mean))),
    Kind(WindowExtreme(3, 3, "max"), ("field",), on_a(lambda a: around(a, np.max))),
    Kind(Calculate("2 * a - 1", "a"), ("field",), on_a(lambda a: 2 * a - 1)),
    Kind(
        Combine("a - 2 * other_a", "a"),
        ("field", "other"),
        lambda given: {"a": given["field"]["a"] - 2 * given["other"]["a"]},
    ),
    Kind(WindowMedian(3, 3), ("field",), on_a(lambda a: around(a, np.median))),
    Kind(ResampleMean(by="steps", every=2), ("field",), on_a(by_twos)),
    Kind(Composite(how="latest"), ("field",), on_a(latest)),
    Kind(
        Label(variable="a", threshold=0.11), ("field",),
        lambda given: {"label": numbered(given["field"]["a"])}, "labels", truth=region_behind,
    ),
    Kind(
        Combine("other_a + label / 9", "a"), ("field", "other"),
        lambda given: {"a": given["other"]["a"] + given["field"]["label"] / 9}, of="labels",
    ),
    Kind(Reduce("lon", "mean"), ("field",), on_a(lambda a: along(a, 2, np.mean))),
    Kind(ReduceExtreme("lat", "max"), ("field",), on_a(lambda a: along(a, 1, np.max))),
    Kind(RollingMean(3), ("field",), on_a(rolling)),
    Kind(Select(time=2), ("field",), on_a(lambda a: a[::2])),
    Kind(Subset(south=-30.0), ("field",), on_a(lambda a: a[:, :3])),
    Kind(Coarsen(lat=1), ("field",), on_a(in_pairs)),
    Kind(Threshold("a", -0.41, 0.71, "a"), ("field",), on_a(within), "mask"),
    Kind(Mask(), ("field", "mask"), masked),
    Kind(
        ExtractAbove("a", 0.21), ("field",), lambda given: above(given["field"]["a"]), "table",
        ("time_index", "lat_index", "lon_index"),
    ),
    Kind(
        FilterRows("value > 0.61"), ("rows",),
        lambda given: [r for r in given["rows"] if r["value"] > 0.61], "table",
        ("time_index", "lat_index", "lon_index"),
    ),
    Kind(
        Aggregate("time_index", "value:max, value:count"), ("rows",),
        lambda given: grouped(given["rows"]), "table", ("time_index",),
    ),
)  # fmt: skip

# What arrays are made of needs several others before it to be hard, so the rest comes often.
LIKELY = (*KINDS, *[k for k in KINDS if isinstance(k.box, WindowMean)] * 3,
          *[k for k in KINDS if k.makes == "table"] * 3)  # fmt: skip


@dataclass
class World:
    """A random pipeline over two sources, run, with every step by plain loops beside it."""

    datasets: dict[str, Array | Table] = field(default_factory=dict)
    steps: dict[str, tuple[Kind, dict[str, str]]] = field(default_factory=dict)
    plain: dict[str, Any] = field(default_factory=dict)

    def dataset(self, name: str, version: str | None = None) -> Array | Table:
        return self.datasets[name]

    def source(self, name: str, chance: np.random.Generator, holes: bool = False) -> None:
        values = chance.uniform(-1, 1, SHAPE)
        if holes:
            values[chance.uniform(size=SHAPE) < 0.1] = np.nan
        attributes = (
            Attribute("time", Time, ("time",)),
            Attribute("a", Quantity, ("a",), "1", ("lat", "lon")),
        )
        coordinates = {"time": TIMES, "lat": LAT, "lon": LON}
        chunks = tuple(int(chance.integers(1, n + 1)) for n in SHAPE)
        self.datasets[name] = held_array(name, attributes, coordinates, {"a": values}, chunks)
        self.plain[name] = {"a": values}

    def add(self, name: str, kind: Kind, inputs: dict[str, str]) -> None:
        given = {port: self.datasets[each] for port, each in inputs.items()}
        versions = {port: (each, "held") for port, each in inputs.items()}
        how = Made(kind.box.name, name, kind.box.params(), versions, "run", kind.box.version)
        self.datasets[name] = replace(made_by(kind.box, given, name), made=how)
        self.steps[name] = kind, inputs
        made = self._made(name, self.plain)
        self.plain[name] = made if kind.makes != "table" else self._in_order(name, kind, made)
        if kind.makes != "table":
            for variable, values in made.items():
                boxed = block(cast(Array, self.datasets[name]), variable, {})
                np.testing.assert_allclose(boxed, values, 1e-9, 1e-9)

    def _in_order(self, name: str, kind: Kind, rows: Rows) -> Rows:
        """Plain rows in the order in which the box made them."""
        by = {tuple(r[n] for n in kind.identity or ()): r for r in rows}
        made = self.datasets[name].content.rows.to_pylist()
        assert len(made) == len(rows)
        return [by[tuple(r[n] for n in kind.identity or ())] for r in made]

    def _made(self, name: str, plain: Plain) -> Any:
        kind, inputs = self.steps[name]
        return kind.forward({port: plain[each] for port, each in inputs.items()})

    def again(self, **sources: Any) -> dict[str, Any]:
        """Everything by plain loops, from other sources."""
        plain = {**self.plain, **sources}
        for name in self.steps:
            plain[name] = self._made(name, plain)
        return plain

    def case(self, name: str) -> Case:
        kind, inputs = self.steps[name]
        given = {port: self.datasets[each] for port, each in inputs.items()}
        case = Case(kind.box, given, kind.forward, kind.identity, kind.truth, regular=True)
        case.__dict__["plain"] = {port: self.plain[each] for port, each in inputs.items()}
        case.__dict__["made"] = self.datasets[name]
        return case


def random_world(seed: int) -> World:
    """Three to eight boxes over two fields; of each third one, some cells are missing."""
    chance = np.random.default_rng(seed)
    world = World()
    for name in ("one", "two"):
        world.source(name, chance, holes=seed % 3 == 2)
    for number in range(int(chance.integers(3, 9))):
        while True:
            kind = LIKELY[chance.integers(len(LIKELY))]
            inputs = _inputs(world, kind, chance)
            if inputs is not None:
                break
        world.add(f"step{number}", kind, inputs)
    return world


def _inputs(world: World, kind: Kind, chance: np.random.Generator) -> dict[str, str] | None:
    chosen: list[str] = []
    for port in kind.takes:
        fit = [n for n in world.datasets if _fits(world, n, port, kind)]
        if not fit:
            return None
        # What was made last is likelier to be used, so that paths grow long.
        chosen.append(fit[-1 - int(chance.integers(len(fit)) ** 2 / len(fit))])
    shapes = [getattr(world.datasets[n], "shape", ()) for n in chosen]
    unlike = [n not in (1, m) for a in shapes[1:] for n, m in zip(a, shapes[0], strict=True)]
    return None if any(unlike) else dict(zip(kind.takes, chosen, strict=True))


def _fits(world: World, name: str, port: str, kind: Kind) -> bool:
    """Whether a dataset can be at a port: masks and labels, many of them equal, only as such."""
    makes = world.steps[name][0].makes if name in world.steps else "array"
    columns = {*(kind.identity or ()), "value"}
    wanted = {"rows": "table", "mask": "mask", "field": kind.of}.get(port, "array")
    return makes == wanted and (makes != "table" or columns <= {*world.datasets[name].columns})
