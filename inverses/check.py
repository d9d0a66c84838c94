"""Testing what authors state: every registered inverse against its box, on generated data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.planner import Hop
from inverses.registry import Registration, Registry
from inverses.samples import Sample, samples
from inverses.trials import Item, Items, data_of, found_by, inversions, made_by
from pipelines.boxes.box import CHANGE, REMOVAL, STATED, Box
from pipelines.contents import HeldCells, held_table
from pipelines.datasets import Array, Attribute, Table
from pipelines.filters import Filter, Span
from pipelines.tables import column, held, matching, rows_in

TRIALS = 100
AT_MOST = 12  # items looked at in one trial
SLIGHT, FAR = 1e-3, 1234.5
Stated = tuple[str, str]


class Violation(Exception):
    """A law that does not hold, with the data that show it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What testing one law of one inverse has shown."""

    box: str
    inverse: str
    law: str
    trials: int
    counterexample: str | None = None

    @property
    def holds(self) -> bool:
        return self.counterexample is None

    def to_json(self) -> dict[str, Any]:
        return {
            "box": self.box,
            "inverse": self.inverse,
            "law": self.law,
            "trials": self.trials,
            "holds": self.holds,
            "counterexample": self.counterexample,
        }


def check(registry: Registry, kind: type[Box], trials: int = TRIALS) -> list[Finding]:
    """Test all inverses of a box; what does not hold comes with the smallest data that show it."""
    tested: Counter[Stated] = Counter()
    broken: dict[Stated, str] = {}

    def try_all(sample: Sample) -> None:
        for stated, law, violation in _violations(registry, sample):
            tested[stated, law] += 1
            if violation is not None:
                broken.setdefault((stated, law), violation)

    _explore(samples(kind), try_all, trials)
    return [
        Finding(kind.name, *each, times, _shrunk(registry, kind, each, broken[each], trials))
        if each in broken
        else Finding(kind.name, *each, times)
        for each, times in tested.items()
    ]


def _explore(found: st.SearchStrategy[Sample], test: Callable[[Sample], None], trials: int) -> None:
    quiet = settings(
        max_examples=trials,
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        print_blob=False,
    )
    quiet(given(found)(test))()


def _shrunk(registry: Registry, kind: type[Box], wanted: Stated, violated: str, trials: int) -> str:
    """The smallest data that show a violation, in words; without data if it is not found again."""

    def test(sample: Sample) -> None:
        for stated, law, violation in _violations(registry, sample):
            if (stated, law) == wanted and violation is not None:
                raise Violation(f"{violation}; with {_described(sample)}")

    try:
        _explore(samples(kind), test, trials)
    except Violation as violation:
        return str(violation)
    return violated


def _violations(registry: Registry, sample: Sample) -> Iterator[tuple[str, str, str | None]]:
    """Each law that was tested, with what violates it."""
    made = made_by(sample.box, sample.inputs)
    at = data_of(made)
    if not len(at):
        return
    for port, source in sample.inputs.items():
        influences = _Influences(sample, port, made)
        every = inversions(registry, sample.box, port, made, source, sample.inputs)
        for stated, attribute, hop in every:
            few = _few(at)
            found = found_by(hop, few)
            yield from _promises(stated, attribute, hop, few, found, influences)
            yield stated.name, "monotony", _monotony(hop, few, found)
            if FAITHFUL in stated.promises and isinstance(made, Table):
                yield stated.name, "faithful", _faithful(registry, sample, made)


def _few(at: Filter) -> Filter:
    """A few data, spread over all of them."""
    numbers = np.unique(np.linspace(0, len(at) - 1, 3).astype(int))
    return Filter(np.arange(len(numbers)), {**at[numbers].spans, "": Span(numbers, numbers)})


def _promises(
    stated: Registration,
    attribute: Attribute,
    hop: Hop,
    at: Filter,
    found: list[Items],
    influences: _Influences,
) -> Iterator[tuple[str, str, str | None]]:
    for law in (COMPLETE, PURE):
        if law not in stated.promises or (law == PURE and hop.box.influence == STATED):
            continue
        broken = None
        for owner, items in enumerate(found):
            datum = int(at.spans[""].low[owner])
            broken = broken or influences.contradicting(law == PURE, attribute, datum, items)
        yield stated.name, law.name, broken


def _monotony(hop: Hop, at: Filter, found: list[Items]) -> str | None:
    alone = found_by(hop, at[np.array([0])])[0]
    lost = alone - found[0]
    return f"asked with others, a datum loses {sorted(lost, key=str)[:3]}" if lost else None


class _Influences:
    """What a box makes when one item of an input is otherwise, tried once and remembered."""

    def __init__(self, sample: Sample, port: str, made: Table | Array) -> None:
        self.sample, self.port, self.made = sample, port, made
        self.known: dict[tuple[Item, int], list[Table | Array]] = {}

    def contradicting(
        self, pure: bool, attribute: Attribute, datum: int, items: Items
    ) -> str | None:
        """An item that is found and cannot matter, or that is not found and matters."""
        if pure and self._missing(attribute, datum):
            return None  # what is missing because others are shows no difference
        every = _items(self.sample.inputs[self.port])
        looked_at = sorted(items, key=str) if pure else [i for i in every if i not in items]
        step = max(1, len(looked_at) // AT_MOST)
        for item in looked_at[::step]:
            if self.matters(item, attribute, datum, elsewhere=pure) != pure:
                what = "cannot change it" if pure else "can change it and is not in the answer"
                return f"{item} of {self.port} {what}: datum {datum}, {attribute.name}"
        return None

    def _missing(self, attribute: Attribute, datum: int) -> bool:
        if isinstance(self.made, Array):
            return bool(np.isnan(self.made.content.variables[attribute.name].ravel()[datum]))
        rows = matching(self.made, None)
        return any(rows[c][datum].as_py() != rows[c][datum].as_py() for c in attribute.columns)

    def matters(self, item: Item, attribute: Attribute, datum: int, elsewhere: bool) -> bool:
        """Whether an item can change a datum; if need be, with other numbers in all cells.

        There, no NaN or zero is in the way of seeing a difference.
        """
        regular = isinstance(self.made, Array) and self.sample.box.influence == CHANGE
        here = self._changes(item, attribute, datum, self.sample.inputs, self.made)
        if here or not (elsewhere and regular):
            return here
        return any(self._changes(item, attribute, datum, *world) for world in self.elsewhere)

    def _changes(
        self,
        item: Item,
        attribute: Attribute,
        datum: int,
        inputs: Mapping[str, Table | Array],
        made: Table | Array,
    ) -> bool:
        box, key = self.sample.box, (item, id(made))
        if key not in self.known:
            others = _otherwise(inputs[self.port], item, box.influence)
            self.known[key] = [made_by(box, {**inputs, self.port: each}) for each in others]
        told = _told(box, made, attribute, datum)
        return any(not told.holds_in(after) for after in self.known[key])

    @cached_property
    def elsewhere(self) -> list[tuple[Mapping[str, Table | Array], Table | Array]]:
        """Other numbers in all cells, none missing or equal, and what they make.

        At the other ports, once with zeros, once without: they may say what counts.
        """
        sown = np.random.default_rng(0)
        given_ = self.sample.inputs
        worlds = [
            {p: _resown(each, sown, 0.0 if p != self.port and zero else 1.0)
             for p, each in given_.items()}
            for zero in (False, True)
        ]  # fmt: skip
        return [(inputs, made_by(self.sample.box, inputs)) for inputs in worlds]


def _resown(source: Table | Array, sown: np.random.Generator, times: float) -> Table | Array:
    if isinstance(source, Table):
        return source
    values = {v: times * sown.uniform(0.5, 2.0, source.shape) for v in source.variables}
    return replace(source, content=HeldCells(source.content.coordinates, values))


@dataclass(frozen=True, slots=True)
class _Told:
    """What a datum says of an attribute, to be looked for in what else was made."""

    box: Box
    attribute: Attribute
    datum: int
    value: Any
    names: tuple[str, ...] = ()
    times: int = 1

    def holds_in(self, made: Table | Array) -> bool:
        if isinstance(made, Array):
            values = made.content.variables[self.attribute.name]
            return _same(values.ravel()[self.datum], self.value)
        times = Counter(_keys(made, self.names))[self.value]
        gone = self.box.influence == STATED and times == 0
        return times >= self.times or gone


def _told(box: Box, made: Table | Array, attribute: Attribute, datum: int) -> _Told:
    if isinstance(made, Array):
        value = made.content.variables[attribute.name].ravel()[datum]
        return _Told(box, attribute, datum, value)
    names = tuple(dict.fromkeys([*box.identity(made.columns), *attribute.columns]))
    keys = _keys(made, names)
    return _Told(box, attribute, datum, keys[datum], names, keys.count(keys[datum]))


def _keys(table: Table, names: Iterable[str]) -> list[Any]:
    columns = [matching(table, None)[n].to_pylist() for n in names]
    return [tuple(_plain(v) for v in row) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if value != value else round(value, 9) + 0.0
    return value


def _same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


def _items(source: Table | Array) -> list[Item]:
    if isinstance(source, Table):
        return [(n,) for n in range(source.rows)]
    return [(v, *cell) for v in source.variables for cell in np.ndindex(source.shape)]


def _otherwise(source: Table | Array, item: Item, influence: str) -> Iterator[Table | Array]:
    """A source without one item, or with other values in it."""
    by = [SLIGHT, -SLIGHT] if influence != CHANGE else [SLIGHT, -SLIGHT, FAR, -FAR]
    if isinstance(source, Array):
        variable, *cell = item
        was = source.content.variables[variable][tuple(cell)]
        for value in (np.nan, *(was + each for each in by), *by[2:]):
            yield _with_cell(source, variable, tuple(cell), value)
        return
    rows = matching(source, None).to_pylist()
    (number,) = item
    yield _with_rows(source, [*rows[:number], *rows[number + 1 :]])
    if influence == STATED:
        return
    for name, value in rows[number].items():
        changeable = isinstance(value, float) and (influence != REMOVAL or value == value)
        for each in by if changeable else ():
            other = {**rows[number], name: (0.0 if value != value else value) + each}
            yield _with_rows(source, [*rows[:number], other, *rows[number + 1 :]])


def _with_cell(source: Array, variable: str, cell: tuple[int, ...], value: float) -> Array:
    values = source.content.variables[variable].copy()
    values[cell] = value
    variables = {**source.content.variables, variable: values}
    return replace(source, content=HeldCells(source.content.coordinates, variables))


def _with_rows(source: Table, rows: list[dict[str, Any]]) -> Table:
    schema = matching(source, None).schema
    return held_table(source.name, source.attributes, pa.Table.from_pylist(rows, schema))


def _faithful(registry: Registry, sample: Sample, made: Table) -> str | None:
    """A region in which the box makes other rows of what faithful weak inverses keep."""
    whole = matching(made, None)
    for name in whole.column_names:
        values = column(whole, name)
        ordered = np.sort(values[values == values])
        if not len(ordered):
            continue
        region = Filter(
            np.zeros(1, np.int64), {name: Span(ordered[:1], ordered[len(ordered) // 2 :][:1])}
        )
        parts = {
            port: _part(registry, sample.box, port, made, each, region)
            for port, each in sample.inputs.items()
        }
        again = made_by(sample.box, parts)
        assert isinstance(again, Table)
        if _counted(matching(again, None), region) != _counted(whole, region):
            return f"of its part alone the box makes other rows where {region}"
    return None


def _part(
    registry: Registry,
    box: Box,
    port: str,
    made: Table,
    source: Table | Array,
    region: Filter,
) -> Table | Array:
    kept = Filter(np.zeros(1, np.int64), {})
    for weak in registry.faithful(box, port, made, source):
        kept = kept & weak(box, region, source)
    if isinstance(source, Array):
        return source
    return held_table(source.name, source.attributes, held(source, kept))


def _counted(rows: pa.Table, region: Filter) -> Counter[Any]:
    inside = rows.take(np.unique(rows_in(rows, region)[1]))
    columns = [inside[n].to_pylist() for n in inside.column_names]
    return Counter(tuple(_plain(v) for v in row) for row in zip(*columns, strict=True))


def _described(sample: Sample) -> str:
    """A sample in one line."""
    params = ", ".join(f"{k}={v!r}" for k, v in sample.box.params().items())
    return f"{sample.box.name}({params}) over " + "; ".join(
        f"{port} {_shown(each)}" for port, each in sample.inputs.items()
    )


def _shown(source: Table | Array) -> str:
    if isinstance(source, Table):
        return str(matching(source, None).to_pylist())
    values: Mapping[str, Any] = source.content.variables
    return ", ".join(f"{v}={a.tolist()}" for v, a in values.items())
