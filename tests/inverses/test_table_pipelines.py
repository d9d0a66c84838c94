"""Traces through random pipelines of tables hold their guarantees, and prove themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
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
from inverses.trials import data_of
from pipelines.filters import Filter
from pipelines.here import Here
from pipelines.tables import column, matching
from pipelines.workspace import Workspace
from tests import laws
from tests.inverses.tables import (
    SLIGHT,
    Remade,
    Row,
    Rows,
    World,
    made_again,
    made_otherwise,
    random_world,
)
from tests.laws import Items

HERE = cast(SparkSession, Here(1))
REGISTRY = Registry.of()
Otherwise = Callable[[Rows, int], Iterator[Rows]]


def key(row: Row, names: list[str]) -> tuple[Any, ...]:
    return tuple(round(row[n], 9) for n in names)


def without(rows: Rows, number: int) -> Iterator[Rows]:
    """Rows without one of them."""
    yield rows[:number] + rows[number + 1 :]


def otherwise(rows: Rows, number: int) -> Iterator[Rows]:
    """Rows without one of them, and with it slightly changed."""
    yield from without(rows, number)
    for name in ("x", "y"):
        for by in (SLIGHT, -SLIGHT):
            other = {**rows[number], name: rows[number][name] + by}
            yield [*rows[:number], other, *rows[number + 1 :]]


def that_matter(world: World, name: str, datum: Row, made: Remade, others: Otherwise) -> Items:
    """The rows of the sources with which otherwise, or without which, a row is not made."""
    names = [n for n in datum if n != "of"]
    wanted = key(datum, names)
    given = {source: world.plain[source] for source in world.sources}

    def times(rows: Rows) -> int:
        return Counter(key(r, names) for r in rows)[wanted]

    before = times(world.plain[name])
    return {
        (source, number)
        for source, rows in given.items()
        for number in range(len(rows))
        if any(
            times(made(world, {**given, source: other})[name]) < before
            for other in others(rows, number)
        )
    }


def found_in(world: World, answer: Answer) -> Items:
    """The rows of the sources that an answer has, by their numbers."""
    found = set()
    for name in world.sources:
        each = next((f for k, f in answer.found.items() if k[0] == name), None)
        before = np.cumsum([0, *(g.rows for g in world.datasets[name].groups)])
        numbers = column(each.rows, "row") if each is not None else np.zeros(0, np.int64)
        places = before[numbers >> 32] + (numbers & 0xFFFFFFFF)
        found |= {(name, int(n)) for n in places}
    return found


def check(seed: int) -> Counter[str]:
    """Trace a row or two of what a random pipeline makes; how many were traced, and how well."""
    world = random_world(seed)
    last = list(world.steps)[-1]
    names = world.datasets[last].columns
    made = [key(r, names) for r in matching(world.datasets[last], None).to_pylist()]
    plain = [key(r, names) for r in world.plain[last]]
    assert Counter(made) == Counter(plain), f"seed {seed}"
    held: Counter[str] = Counter()
    for number, wanted in zip(range(len(made)), ("exact", "pure"), strict=False):
        try:
            held += _traced(world, last, number, plain.index(made[number]), wanted)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, row {number}: {error}") from None
    return held


def _traced(world: World, last: str, number: int, row: int, wanted: str) -> Counter[str]:
    """What is promised of one trace, which holds."""
    made = world.datasets[last]
    one = Filter(np.arange(1), data_of(made)[np.array([number])].spans)
    selected = Selection(made, None, (), one)
    planned = plan(cast(Workspace, world), selected, wish(wanted), REGISTRY)
    answer = carry_out(planned, HERE)
    found = found_in(world, answer)
    behind = world.behind(last, row, planned.attributes)
    seen = Counter(["traces", *(p.name for p in planned.guarantee & {COMPLETE, PURE})])
    laws.promised(planned.guarantee, found, behind)
    if COMPLETE in planned.guarantee:
        datum = world.plain[last][row]
        laws.complete(found, that_matter(world, last, datum, made_otherwise, otherwise))
        laws.sufficient(1, prove(answer, HERE).given_back)
        absent = that_matter(world, last, datum, made_again, without)
        laws.absence(found, absent, bool(planned.open_to_newcomers))
        seen.update({"newcomers matter": bool(absent - found)})
    return seen


def held(seeds: range) -> Counter[str]:
    return sum(map(check, seeds), Counter())


def test_traces_through_random_pipelines_of_tables_hold_and_prove_themselves() -> None:
    found = held(range(300))
    assert found["complete"] > 450 and found["pure"] > 200, found
    assert 0 < found["newcomers matter"] < found["complete"] / 30, found


@pytest.mark.night
@pytest.mark.parametrize("part", range(10))
def test_many_more_random_pipelines_of_tables_do_too(part: int) -> None:
    found = held(range(500 * part, 500 * (part + 1)))
    assert found["complete"] > 800 and found["pure"] > 350, found
