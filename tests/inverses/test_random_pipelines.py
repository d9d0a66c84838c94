"""Traces through random pipelines hold their guarantees end to end, and prove themselves."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import numpy as np
import pytest
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.guarantees import COMPLETE, PURE, wish
from inverses.planner import plan
from inverses.proof import prove
from inverses.registry import Registry
from inverses.selection import Selection
from inverses.trace import carry_out
from inverses.trials import Items, data_of
from pipelines.boxes.box import REMOVAL
from pipelines.datasets import Array, Table
from pipelines.filters import Filter
from pipelines.here import Here
from pipelines.tables import column
from tests import laws
from tests.inverses.cases import FAR, behind
from tests.inverses.worlds import SHAPE, World, random_world

HERE = cast(SparkSession, Here(1))
REGISTRY = Registry.of()
SMALL = 1e-6


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
                other[cell] = by if by in FAR else other[cell] + by
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
        (values,) = made.values()
        return values.ravel()[number]
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
            about = (
                dataset.variables
                if isinstance(dataset, Array)
                else _known(dataset, every, world, source)
            )
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
