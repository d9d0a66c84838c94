"""Traces through random pipelines hold their guarantees end to end, and prove themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pytest
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.guarantees import COMPLETE, PURE, wish
from inverses.making import made_by
from inverses.planner import plan
from inverses.proof import prove
from inverses.registry import Registry
from inverses.selection import Selection
from inverses.trace import carry_out
from inverses.trials import Items, data_of
from pipelines.arrays import block
from pipelines.boxes.box import REMOVAL, Box
from pipelines.boxes.extraction import ExtractAbove
from pipelines.boxes.groups import Aggregate
from pipelines.boxes.masks import Mask, Threshold
from pipelines.boxes.pointwise import Calculate, Combine
from pipelines.boxes.reduce import Reduce, ReduceExtreme
from pipelines.boxes.regrid import Coarsen
from pipelines.boxes.relational import FilterRows
from pipelines.boxes.select import Select, Subset
from pipelines.boxes.times import RollingMean
from pipelines.boxes.window import WindowExtreme, WindowMean
from pipelines.contents import held_array
from pipelines.datasets import Array, Attribute, Made, Quantity, Table, Time
from pipelines.filters import Filter
from pipelines.here import Here
from pipelines.tables import column
from tests import laws
from tests.inverses.cases import FAR, Case, behind

HERE = cast(SparkSession, Here(1))
REGISTRY = Registry.of()
SHAPE = (2, 4, 6)
SMALL = 1e-6
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
    whole: bool = False  # of arrays whose dimensions were not reduced


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

    def source(self, name: str, chance: np.random.Generator) -> None:
        values = chance.uniform(-1, 1, SHAPE)
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
            boxed = block(cast(Array, self.datasets[name]), "a", {})
            np.testing.assert_allclose(boxed, made["a"], 1e-9, 1e-9)

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
        case = Case(kind.box, given, kind.forward, kind.identity, regular=True)
        case.__dict__["plain"] = {port: self.plain[each] for port, each in inputs.items()}
        case.__dict__["made"] = self.datasets[name]
        return case


def random_world(seed: int) -> World:
    chance = np.random.default_rng(seed)
    world = World()
    for name in ("one", "two"):
        world.source(name, chance)
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
    """Whether a dataset can be at a port: masks, in which many cells are equal, only as such."""
    makes = world.steps[name][0].makes if name in world.steps else "array"
    columns = {*(kind.identity or ()), "value"}
    wanted = {"rows": "table", "mask": "mask"}.get(port, "array")
    return makes == wanted and (makes != "table" or columns <= {*world.datasets[name].columns})


def matter(world: World, last: str, number: int, names: list[str]) -> dict[str, Items]:
    """The source cells that change what a datum says, through everything in between."""
    tries = (SMALL, -SMALL) if _by_removal(world, last) else (SMALL, -SMALL, *FAR)
    return _changing(world, last, number, names, tries)


def matter_if_absent(world: World, last: str, number: int, names: list[str]) -> dict[str, Items]:
    """The source cells without which a datum is not what it is, whatever then newly comes up."""
    return _changing(world, last, number, names, (np.nan,))


def _changing(
    world: World, last: str, number: int, names: list[str], tries: tuple[float, ...]
) -> dict[str, Items]:
    before = _told(world, last, world.plain[last], number, names)
    found: dict[str, Items] = {"one": set(), "two": set()}
    for name, items in found.items():
        values = world.plain[name]["a"]
        for cell in np.ndindex(SHAPE):
            for by in tries:
                other = values.copy()
                other[cell] += by
                made = world.again(**{name: {"a": other}})[last]
                if not _still(before, _told(world, last, made, number, names)):
                    items.add(("a", *cell))
                    break
    return found


def _by_removal(world: World, last: str) -> bool:
    """Whether some box on the way says that what is beaten does not count, however it might."""
    if last not in world.steps:
        return False
    kind, inputs = world.steps[last]
    return kind.box.influence == REMOVAL or any(_by_removal(world, n) for n in inputs.values())


def _told(world: World, last: str, made: Any, number: int, names: list[str]) -> Any:
    if isinstance(world.datasets[last], Array):
        return made["a"].ravel()[number]
    return {tuple(round(r[n], 8) for n in names) for r in made}, _row(world, last, number, names)


def _row(world: World, last: str, number: int, names: list[str]) -> Any:
    row = world.datasets[last].content.rows.slice(number, 1).to_pylist()[0]
    return tuple(round(row[n], 8) for n in names)


def _still(before: Any, after: Any) -> bool:
    if isinstance(before, tuple):
        return before[1] in after[0]
    return bool(before == after or (before != before and after != after))


def composed(world: World, last: str, numbers: set[int], asked: list[str]) -> dict[str, Items]:
    """What is behind some data, box by box by brute force, down to the sources."""
    found: dict[str, Items] = {"one": set(), "two": set()}
    waiting = {last: (numbers, asked)}
    cases = {name: world.case(name) for name in world.steps}
    for name in reversed(world.steps):
        if name not in waiting:
            continue
        mine, attributes = waiting.pop(name)
        for port, source in world.steps[name][1].items():
            items: Items = set()
            for attribute in attributes:
                of = cases[name].made.attribute(attribute)
                items |= set().union(*(behind(cases[name], port, of, n) for n in mine))
            if source in found:
                found[source] |= items
                continue
            dataset = world.datasets[source]
            every = [a.name for a in dataset.attributes]
            about = ["a"] if isinstance(dataset, Array) else _known(dataset, every, world, source)
            more, _ = waiting.get(source, (set(), []))
            waiting[source] = more | {_number(dataset, item) for item in items}, about
    return found


def _number(dataset: Array | Table, item: Any) -> int:
    if isinstance(dataset, Table):
        return int(item[0])
    return int(np.ravel_multi_index(item[1:], dataset.shape))


def cells(answer: Answer, name: str) -> Items:
    if name not in answer.lineage:
        return set()
    rows = answer.lineage[name].rows
    places = zip(*(column(rows, d).tolist() for d in ("time", "lat", "lon")), strict=True)
    return {("a", *place) for place in places}


def hold(seed: int) -> Counter[str]:
    """One trace through a random pipeline, if there is anything to trace, and what was seen."""
    world = random_world(seed)
    chance = np.random.default_rng(seed)
    last = list(world.steps)[-1]
    dataset = world.datasets[last]
    every = data_of(dataset)
    if not len(every):
        return Counter()
    number = int(chance.integers(len(every)))
    at = Filter(np.zeros(1, np.int64), every[np.array([number])].spans)
    wanted = str(chance.choice(["exact", "complete", "pure"]))
    selection = Selection(dataset, None, (), at)
    planned = plan(cast(Any, world), selection, wish(wanted), REGISTRY)
    answer = carry_out(planned, HERE)
    names = sorted({c for n in planned.attributes for c in dataset.attribute(n).columns})
    kind, _ = world.steps[last]
    names = [*dict.fromkeys([*(kind.identity or ()), *names])] if kind.makes == "table" else []
    names = [n for n in names if n in world.plain[last][0]] if names else names
    changing = matter(world, last, number, names)
    truth = composed(world, last, {number}, _known(dataset, planned.attributes, world, last))
    for name in ("one", "two"):
        found, guarantee = cells(answer, name), answer.guarantee(name)
        if COMPLETE in guarantee and name in answer.lineage:
            laws.complete(found, changing[name])
        if PURE in guarantee:
            laws.pure(found, truth[name])
        assert name in answer.lineage or not changing[name]
    if COMPLETE not in planned.guarantee:
        return Counter(["traces"])
    proof = prove(answer, HERE)
    assert proof.holds, proof.text()
    absent = matter_if_absent(world, last, number, names)
    for name in ("one", "two"):
        laws.absence(cells(answer, name), absent[name], bool(planned.open_to_newcomers))
    mattered = any(absent[name] - cells(answer, name) for name in absent)
    told = {"newcomers matter": mattered, "proved by steps": proof.by_steps}
    return Counter({"traces": 1, "complete": 1, **told})


def _known(dataset: Any, asked: list[str], world: World, last: str) -> list[str]:
    """The attributes asked about that the plain loops speak of too."""
    if isinstance(dataset, Array):
        return asked
    there = set(world.plain[last][0]) if world.plain[last] else set()
    return [n for n in asked if set(dataset.attribute(n).columns) <= there]


def test_traces_through_random_pipelines_hold_and_prove_themselves() -> None:
    seen = sum(map(hold, range(90)), Counter())
    assert seen["traces"] >= 80, "too few had anything to trace"
    assert 0 < seen["newcomers matter"] < seen["complete"] / 3
    assert 0 < seen["proved by steps"] < seen["complete"] / 10


@pytest.mark.night
@pytest.mark.parametrize("part", range(10))
def test_five_hundred_traces_hold_and_prove_themselves(part: int) -> None:
    assert sum(map(hold, range(60 * part, 60 * (part + 1))), Counter())["traces"] >= 50
