"""Random pipelines of tables, run, with every step and its sentence by plain loops beside it.

A plain row carries under `of` which rows of the sources it is an image of, and by which way: so
it can be told from others when the sources are otherwise.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any, cast

import numpy as np
import pyarrow as pa

from inverses.making import made_by
from pipelines.boxes.box import Box
from pipelines.boxes.groups import Aggregate, RankRows, TopN
from pipelines.boxes.mapping import MapRows
from pipelines.boxes.relational import Distinct, FilterRows, Join, Project, Union
from pipelines.contents import held_table
from pipelines.datasets import Attribute, Made, Quantity, Table
from pipelines.tables import matching

Row = dict[str, Any]
Rows = list[Row]
Image = frozenset[tuple[Any, ...]]
Remade = Callable[["World", Mapping[str, Rows]], dict[str, Rows]]
MOST_PAIRS = 40
SLIGHT, LEAP = 1e-5, 1e-1
PASSES = {">": operator.gt, "<": operator.lt}
DRAWN: dict[str, Callable[[list[Any]], Any]] = {
    "max": max,
    "min": min,
    "count": len,
    "mean": lambda values: fsum(values) / len(values),
}


def alike(rows: Rows, datum: Row, attribute: str, port: str) -> set[int]:
    """The rows that say the same as a datum, as far as it has what they say."""

    def same(row: Row) -> bool:
        named = [(c, n) for c in row if c != "of" for n in (c, f"{c}_{port}") if n in datum]
        return all(row[c] == datum[n] for c, n in named)

    return {n for n, row in enumerate(rows) if same(row)}


@dataclass(frozen=True)
class Step:
    """A box, what it does to plain rows, what is behind what it makes, and what it compares.

    One of `groups` makes a row of a group as long as it has any.
    """

    box: Box
    inputs: tuple[str, ...]
    forward: Callable[..., Rows]
    behind: Callable[[Rows, Row, str, str], set[int]] = alike
    compares: str | None = None
    groups: bool = False


def kept(one: str, of: str, sign: str, bound: float) -> Step:
    def forward(rows: Rows) -> Rows:
        return [r for r in rows if PASSES[sign](r[of], bound)]

    return Step(FilterRows(f"{of} {sign} {bound}"), (one,), forward, compares=of)


def cut(one: str, names: list[str]) -> Step:
    return Step(
        Project(", ".join(names)),
        (one,),
        lambda rows: [{c: r[c] for c in [*names, "of"]} for r in rows],
    )


def mapped(one: str, of: str, times: int, new: str) -> Step:
    def forward(rows: Rows) -> Rows:
        return [{**r, new: times * r[of] - r["k"]} for r in rows]

    return Step(MapRows(new, f"{times} * {of} - k"), (one,), forward)


def grouped(one: str, of: str, hows: list[str]) -> Step:
    def forward(rows: Rows) -> Rows:
        groups = {r["k"]: [o[of] for o in rows if o["k"] == r["k"]] for r in rows}
        return [
            {"k": k, "of": frozenset({("", "k", k)})} | {f"{of}_{h}": DRAWN[h](v) for h in hows}
            for k, v in groups.items()
        ]

    def behind(rows: Rows, datum: Row, attribute: str, port: str) -> set[int]:
        attained = attribute.endswith(("_max", "_min")) and attribute.startswith(of)
        values = {datum[attribute]} if attained else {r[of] for r in rows}
        return {n for n, r in enumerate(rows) if r["k"] == datum["k"] and r[of] in values}

    box = Aggregate("k", ", ".join(f"{of}:{h}" for h in hows))
    return Step(box, (one,), forward, behind, of, groups=True)


@dataclass(frozen=True)
class Order:
    """How rows come before others: by a column, among all or in a group, lowest first or not."""

    by: str
    keys: str
    least: bool

    def group(self, rows: Rows, row: Row) -> Rows:
        return [o for o in rows if not self.keys or o["k"] == row["k"]]

    def above(self, rows: Rows, row: Row) -> int:
        before = operator.lt if self.least else operator.gt
        return sum(before(o[self.by], row[self.by]) for o in self.group(rows, row))


def highest(one: str, order: Order, n: int) -> Step:
    def forward(rows: Rows) -> Rows:
        return [r for r in rows if order.above(rows, r) < n]

    def behind(rows: Rows, datum: Row, attribute: str, port: str) -> set[int]:
        same = alike(rows, datum, attribute, port)
        level = [r for r in order.group(rows, datum) if r[order.by] == datum[order.by]]
        enough = order.above(rows, datum) + len(level) - len(same) >= n
        return {i for i, r in enumerate(rows) if r in level} if enough else same

    return Step(TopN(order.by, n, order.keys, order.least), (one,), forward, behind, order.by)


def ranked(one: str, order: Order, new: str) -> Step:
    def forward(rows: Rows) -> Rows:
        return [{**r, new: 1 + order.above(rows, r)} for r in rows]

    def behind(rows: Rows, datum: Row, attribute: str, port: str) -> set[int]:
        group = order.group(rows, datum)
        every = {n for n, r in enumerate(rows) if r in group}
        return every if attribute == new else alike(rows, datum, attribute, port)

    return Step(RankRows(order.by, order.keys, order.least, new), (one,), forward, behind)


def once(one: str) -> Step:
    def forward(rows: Rows) -> Rows:
        found: dict[Any, Row] = {}
        for row in rows:
            said = tuple((c, v) for c, v in row.items() if c != "of")
            found[said] = {**row, "of": row["of"] | found.get(said, row)["of"]}
        return list(found.values())

    return Step(Distinct(), (one,), forward)


def by_way(rows: Rows, side: str) -> Rows:
    return [{**r, "of": frozenset((side + way, *rest) for way, *rest in r["of"])} for r in rows]


def united(one: str, two: str) -> Step:
    return Step(Union(), (one, two), lambda a, b: by_way(a, "a") + by_way(b, "b"))


def paired(one: str, two: str) -> Step:
    def forward(left: Rows, right: Rows) -> Rows:
        shared = {*left[0]} & {*right[0]} - {"k", "of"} if left and right else set()
        return [
            {f"{n}_left" if n in shared else n: v for n, v in a.items()}
            | {f"{n}_right" if n in shared else n: v for n, v in b.items() if n != "k"}
            | {"of": a["of"] | b["of"]}
            for a in by_way(left, "a")
            for b in by_way(right, "b")
            if a["k"] == b["k"]
        ]

    return Step(Join("k"), (one, two), forward)


@dataclass
class World:
    """A random pipeline over two tables, with every step by plain loops beside it."""

    chance: np.random.Generator
    datasets: dict[str, Table] = field(default_factory=dict)
    steps: dict[str, Step] = field(default_factory=dict)
    plain: dict[str, Rows] = field(default_factory=dict)

    def dataset(self, name: str, version: str | None = None) -> Table:
        return self.datasets[name]

    @property
    def sources(self) -> list[str]:
        return [n for n in self.datasets if n not in self.steps]

    def source(self, name: str) -> None:
        rows = int(self.chance.integers(3, 8))
        values = {
            "k": self.chance.integers(0, 2, rows),
            "x": self.chance.choice([-1.5, 0.5, 1.0, 2.0], rows),
            "y": self.chance.choice([-1.0, 0.5, 2.0], rows),
        }
        attributes = tuple(Attribute(c, Quantity, (c,)) for c in values)
        held = held_table(name, attributes, pa.table(values), int(self.chance.integers(1, 4)))
        self.datasets[name] = held
        self.plain[name] = [
            {**row, "of": frozenset({("", name, number)})}
            for number, row in enumerate(matching(held, None).to_pylist())
        ]

    def grow(self, name: str) -> None:
        """Add a box that fits what is there; what was made last is likelier to go in."""
        there = list(self.datasets)[::-1]
        one, two = (there[int(self.chance.integers(len(there)) ** 2 / len(there))] for _ in "ab")
        choices = list(self._fitting(name, one, two))
        step = choices[int(self.chance.integers(len(choices)))]
        given = {p.name: self.datasets[i] for p, i in zip(step.box.takes, step.inputs, strict=True)}
        keys = {port: each.key for port, each in given.items()}
        how = Made(step.box.name, name, step.box.params(), keys, "run", step.box.version)
        self.datasets[name] = cast(Table, replace(made_by(step.box, given, name), made=how))
        self.steps[name] = step
        self.plain[name] = step.forward(*(self.plain[i] for i in step.inputs))

    def _fitting(self, new: str, one: str, two: str) -> Iterator[Step]:
        some, pick = self.chance.choice, self.datasets[one].columns
        of = str(some([c for c in pick if c != "k"] or ["k"]))
        order = Order(of, str(some(["", "k"])), bool(some([True, False])))
        yield kept(one, of, str(some([">", "<"])), float(some([0, 1])))
        yield cut(one, ["k", *(c for c in pick if c != "k" and (c == of or some(2)))])
        yield mapped(one, of, int(some([2, -1])), new)
        hows = [str(some(["max", "min", "mean"])), *(["count"] if some(2) else [])]
        yield grouped(one, of, hows)
        yield highest(one, order, int(some([1, 2, 3])))
        yield highest(one, replace(order, keys=""), 2)
        yield ranked(one, order, new)
        yield once(one)
        if set(pick) == set(self.datasets[two].columns):
            yield united(one, two)
        if self._pairs(one, two):
            yield paired(one, two)

    def _pairs(self, one: str, two: str) -> bool:
        """Whether a join makes few rows, and names that are not taken."""
        sides = [self.datasets[one], self.datasets[two]]
        named = any("_" in c for side in sides for c in side.columns)
        return not named and sides[0].rows * sides[1].rows <= MOST_PAIRS

    def behind(self, name: str, number: int, attributes: list[str]) -> set[tuple[str, int]]:
        """The rows of the sources that are behind a plain row, box by box, by their sentences."""
        asked: dict[str, dict[int, set[str]]] = {name: {number: set(attributes)}}
        for each, step in reversed(self.steps.items()):
            rows = asked.pop(each, {})
            questions = [(self.plain[each][n], a) for n, names in rows.items() for a in names]
            for port, source in zip(step.box.takes, step.inputs, strict=True):
                into = asked.setdefault(source, {})
                for datum, attribute in questions:
                    used = step.box.used(attribute, port.name, self.datasets[source])
                    for found in step.behind(self.plain[source], datum, attribute, port.name):
                        into.setdefault(found, set()).update(used)
        return {(source, number) for source, found in asked.items() for number in found}


def random_world(seed: int) -> World:
    """A pipeline of three to eight boxes over two tables."""
    world = World(np.random.default_rng(seed))
    for name in ("p", "q"):
        world.source(name)
    for number in range(int(world.chance.integers(3, 9))):
        world.grow("abcdefgh"[number])
    return world


def made_again(world: World, sources: Mapping[str, Rows]) -> dict[str, Rows]:
    """What a pipeline makes of other sources, what newly comes up with all else."""
    made = dict(sources)
    for name, step in world.steps.items():
        made[name] = step.forward(*(made[i] for i in step.inputs))
    return made


def made_otherwise(world: World, sources: Mapping[str, Rows]) -> dict[str, Rows]:
    """What a pipeline makes of the rows that were there, when the sources are slightly otherwise.

    What would newly come up is left out; and so is, where a box compares it, what would be more
    than slightly otherwise: neither is the row that was there.
    """
    made = dict(sources)
    before = {name: {r["of"]: r for r in rows} for name, rows in world.plain.items()}
    for name, step in world.steps.items():
        given = [_comparable(made[i], before[i], step) for i in step.inputs]
        made[name] = [r for r in step.forward(*given) if _was(r, before[name])]
    return made


def _was(row: Row, before: Mapping[Image, Row]) -> Row | None:
    """What a row was before, or one of those that it was."""
    parts = (b for image, b in before.items() if image <= row["of"])
    return before.get(row["of"]) or next(parts, None)


def _comparable(rows: Rows, before: Mapping[Image, Row], step: Step) -> Rows:
    """Rows without those that are more than slightly otherwise in what a step compares."""
    if step.compares is None:
        return rows
    pairs = [(r, cast(Row, _was(r, before))) for r in rows]
    left = [r for r, was in pairs if abs(r[step.compares] - was[step.compares]) < LEAP]
    there = {r["k"] for r in left}
    return [r for r in rows if r in left or (step.groups and r["k"] not in there)]
