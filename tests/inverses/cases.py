"""A box over small data in memory, held against a plain function that does the same by itself.

A family's tests give each box a `Case`: its inputs, and a `forward` function written without the
box's code. Everything else follows: that the box makes what the function makes, and that every
registered inverse finds what brute force says (change every cell, drop every row, and look).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inverses.guarantees import FAITHFUL
from inverses.making import made_by
from inverses.registry import Registry
from inverses.trials import Items, data_of, found_by, inversions
from pipelines.boxes.box import REMOVAL, STATED, Box
from pipelines.contents import held_array, held_table
from pipelines.datasets import Array, Attribute, Quantity, Table, Text, Time
from pipelines.filters import Filter
from pipelines.spans import Span
from pipelines.tables import column, held, matching, rows_in
from tests import laws

Plain = Mapping[str, Any]
Forward = Callable[[Plain], Any]
Truth = Callable[[Plain, str, Any], Items]
VALUES = st.sampled_from([np.nan, -3.0, -1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 4.0, 7.0])
FAR = (-1234.5, 1234.5)
SLIGHT = 1e-3


@dataclass(frozen=True)
class Case:
    """A box, its inputs, and what it should make of them.

    `forward` takes, for each port, the variables of an array by name or the rows of a table as
    dictionaries, and gives the same for what is made. `identity` names the columns by which an
    output row is still the same one when others change (all of them, unless said). `truth` is for
    boxes whose contributions are stated: from plain inputs, a port and a datum to its items;
    `besides` adds for single attributes what is stated and brute force cannot see. A
    `regular` box uses the same cells whatever their values are: what brute force cannot see for a
    NaN or a zero in the way, it then sees with other numbers in all cells.
    """

    box: Box
    inputs: Mapping[str, Array | Table]
    forward: Forward
    identity: tuple[str, ...] | None = None
    truth: Truth | None = None
    besides: Mapping[str, Truth] = field(default_factory=dict)
    regular: bool = False

    @cached_property
    def plain(self) -> dict[str, Any]:
        return {port: plain(each) for port, each in self.inputs.items()}

    @cached_property
    def made(self) -> Array | Table:
        return made_by(self.box, self.inputs)

    @cached_property
    def made_plain(self) -> Any:
        return plain(self.made)


def plain(dataset: Array | Table) -> Any:
    """A dataset as oracles see it."""
    if isinstance(dataset, Table):
        return matching(dataset, None).to_pylist()
    return {v: np.array(dataset.content.variables[v], float) for v in dataset.variables}


def check(case: Case, registry: Registry, most: int = 6) -> None:
    """Everything that is promised of a box and of its inverses, for a few data of what it made."""
    agrees(case)
    for port, source in case.inputs.items():
        hops = list(inversions(registry, case.box, port, case.made, source, case.inputs))
        assert hops, f"no inverse of {case.box.name} fits port {port}"
        all_is_stated(case, port, {attribute for _, attribute, _ in hops})
        for stated, attribute, hop in hops:
            at, numbers = _some(case, attribute, most)
            found = found_by(hop, at) if len(at) else []
            for number, items in zip(numbers, found, strict=True):
                expected = behind(case, port, attribute, number)
                try:
                    laws.promised(stated.promises, items, expected)
                except AssertionError as error:
                    raise AssertionError(f"{stated.name} of {attribute.name}: {error}") from None
    faithful(case, registry)


def all_is_stated(case: Case, port: str, attributes: Iterable[Attribute]) -> None:
    """Where contributions are stated, nothing else can change a datum."""
    for attribute in attributes if case.truth else ():
        changing: dict[int, Items] = {}
        for item, data in _influences(case, port, attribute):
            for number in data:
                changing.setdefault(number, set()).add(item)
        for number, items in changing.items():
            stated = case.truth(case.plain, port, _datum(case, attribute, number))
            assert items <= stated, f"{sorted(items - stated)} can change what is stated"


def agrees(case: Case) -> None:
    """The box makes what the plain function makes."""
    expected, found = case.forward(case.plain), case.made_plain
    if isinstance(case.made, Table):
        names = case.made.columns
        one, other = (Counter(_key(r, names) for r in rows) for rows in (found, expected))
        assert one == other, f"made {one - other}, not {other - one}"
        return
    for variable in case.made.variables:
        np.testing.assert_allclose(found[variable], expected[variable], 1e-9, 1e-9)


def _some(case: Case, attribute: Attribute, most: int) -> tuple[Filter, list[int]]:
    """Some data of what was made, spread over all of them, each an owner to itself."""
    every = data_of(case.made)
    numbers = np.unique(np.linspace(0, len(every) - 1, most).astype(int)) if len(every) else []
    index = np.array(numbers, dtype=np.int64)
    return Filter(np.arange(len(index)), every[index].spans), index.tolist()


def behind(case: Case, port: str, attribute: Attribute, number: int) -> Items:
    """What is behind a datum, by brute force."""
    if case.truth is not None:
        return case.truth(case.plain, port, _datum(case, attribute, number))
    assert case.box.influence != STATED, "a stated contribution needs a truth"
    influenced = _influences(case, port, attribute)
    seen = {item for item, data in influenced if number in data}
    stated = case.besides.get(attribute.name)
    return seen | stated(case.plain, port, _datum(case, attribute, number)) if stated else seen


def _datum(case: Case, attribute: Attribute, number: int) -> Any:
    """A cell by variable and indices, a row by its values."""
    if isinstance(case.made, Table):
        return case.made_plain[number]
    place = np.unravel_index(number, case.made.shape)
    return (attribute.name, *(int(i) for i in place))


def _influences(case: Case, port: str, attribute: Attribute) -> list[tuple[Any, set[int]]]:
    """Each item of an input with the numbers of the data that it can change."""
    known = case.__dict__.setdefault("influences", {})
    if (port, attribute.name) not in known:
        known[port, attribute.name] = [
            (item, _differing(case, attribute, before, made))
            for before, item, made in _remade(case, port)
        ]
    found: list[tuple[Any, set[int]]] = known[port, attribute.name]
    return found


def _differing(case: Case, attribute: Attribute, before: Any, made: list[Any]) -> set[int]:
    told = _told(case, attribute, before)
    return set().union(*(_changed(told, _told(case, attribute, after)) for after in made))


def _remade(case: Case, port: str) -> list[tuple[Any, Any, list[Any]]]:
    """What is made of the inputs, and of them with each item of a port changed."""
    known = case.__dict__.setdefault("remade", {})
    if port not in known:
        worlds = [case.plain, _other_numbers(case.plain)] if case.regular else [case.plain]
        known[port] = [
            (case.forward(world), item, made)
            for world in worlds
            for item, made in _perturbed(case, world, port)
        ]
    found: list[tuple[Any, Any, list[Any]]] = known[port]
    return found


def _other_numbers(given: Plain) -> Plain:
    """The same cells with numbers of which none is missing, zero or equal to another."""
    sown = np.random.default_rng(0)
    return {
        port: {v: sown.uniform(0.5, 2.0, a.shape) for v, a in each.items()}
        if isinstance(each, dict)
        else each
        for port, each in given.items()
    }


def _told(case: Case, attribute: Attribute, made: Any) -> Any:
    """What a datum says of an attribute, for all data."""
    if not isinstance(case.made, Table):
        return np.asarray(made[attribute.name], float).ravel()
    identity = case.made.columns if case.identity is None else case.identity
    names = list(dict.fromkeys([*identity, *attribute.columns]))
    return [_key(r, names) for r in case.made_plain], Counter(_key(r, names) for r in made)


def _changed(before: Any, after: Any) -> set[int]:
    if isinstance(before, np.ndarray):
        same = (before == after) | ((before != before) & (after != after))
        return set(np.flatnonzero(~same).tolist())
    rows, counted = before
    return {n for n, row in enumerate(rows) if after[1][row] < counted[row]}


def _perturbed(case: Case, every: Plain, port: str) -> Iterator[tuple[Any, list[Any]]]:
    """What the plain function makes when one cell or row is changed or not there."""
    given, stated = every[port], case.truth is not None
    if isinstance(given, list):
        for number in range(len(given)):
            by = [SLIGHT, -SLIGHT] if case.box.influence == REMOVAL else [SLIGHT, -SLIGHT, *FAR]
            rest = [given[:number] + given[number + 1 :], *_otherwise(given, number, by)]
            yield (number,), [case.forward({**every, port: rows}) for rows in rest]
        return
    for variable, values in given.items():
        for cell in np.ndindex(values.shape):
            tries = [np.nan, values[cell] + SLIGHT, values[cell] - SLIGHT, *([0.0] * stated)]
            made = []
            for value in tries if case.box.influence == REMOVAL else [*tries, *FAR]:
                other = values.copy()
                other[cell] = value
                made.append(case.forward({**every, port: {**given, variable: other}}))
            yield (variable, *cell), made


def _otherwise(
    rows: list[dict[str, Any]], number: int, by: list[float]
) -> Iterator[list[dict[str, Any]]]:
    """The rows with one number of one of them changed."""
    for name, value in rows[number].items():
        slight = len(by) == 2
        for each in by if isinstance(value, float) and not (slight and value != value) else ():
            other = {**rows[number], name: (0.0 if value != value else value) + each}
            yield [*rows[:number], other, *rows[number + 1 :]]


def _key(row: Mapping[str, Any], names: Any) -> tuple[Any, ...]:
    return tuple(_comparable(row[n]) for n in names)


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if value != value else round(value, 9) + 0.0
    return value


def faithful(case: Case, registry: Registry) -> None:
    """What a box makes of the part that faithful weak inverses keep is, there, all it makes."""
    if not any(isinstance(each, Table) for each in case.inputs.values()):
        return
    for region in _regions(case.made):
        parts = {
            port: _part(case, registry, port, source, region)
            for port, source in case.inputs.items()
        }
        again = made_by(case.box, parts)
        if isinstance(case.made, Table):
            assert isinstance(again, Table)
            one, other = (_counted(matching(t, None), region) for t in (again, case.made))
            assert one == other, f"unfaithful in {region}: made {one - other}, not {other - one}"
        else:
            _same_cells(case, plain(again), region)


def _regions(made: Array | Table) -> Iterator[Filter]:
    """Parts of what was made: by each column or all dimensions, to the middle, from it, and it."""
    if isinstance(made, Table):
        whole = matching(made, None)
        ordered = {c: np.sort([v for v in column(whole, c) if v == v]) for c in whole.column_names}
        for name, values in ordered.items():
            yield from (_within({name: each}) for each in _about_the_middle(values))
        return
    places = {d: _about_the_middle(np.arange(n)) for d, n in made.size.items()}
    for number in range(max(map(len, places.values()))):
        yield _within({d: spans[number % len(spans)] for d, spans in places.items()})


def _about_the_middle(ordered: np.ndarray) -> list[tuple[Any, Any]]:
    """The lower and the upper half of some values, and the one in the middle."""
    if not len(ordered):
        return []
    low, middle, high = ordered[0], ordered[len(ordered) // 2], ordered[-1]
    return list(dict.fromkeys([(low, middle), (middle, high), (middle, middle)]))


def _within(ends: Mapping[str, tuple[Any, Any]]) -> Filter:
    spans = {c: Span(np.array([low]), np.array([high])) for c, (low, high) in ends.items()}
    return Filter(np.zeros(1, np.int64), spans)


def _same_cells(case: Case, again: Any, region: Filter) -> None:
    """Of the rows that were kept, the cells of a region are what they are of all."""
    part = tuple(slice(int(s.low[0]), int(s.high[0]) + 1) for s in region.spans.values())
    for variable, values in case.made_plain.items():
        one, other = again[variable][part], values[part]
        assert np.array_equal(one, other, equal_nan=True), f"unfaithful in {region}"


def _part(case: Case, registry: Registry, port: str, source: Any, region: Filter) -> Any:
    weak = {
        w.name: w
        for _, _, hop in inversions(registry, case.box, port, case.made, source)
        for level in hop.levels
        for i in level.inversions
        for w in i.weak
        if FAITHFUL in w.promises
    }
    if not isinstance(source, Table) or not weak:
        return source
    found = [w(case.box, region, source) for w in weak.values()]
    kept = found[0]
    for each in found[1:]:
        kept = kept & each
    return held_table(source.name, source.attributes, held(source, kept))


def _counted(rows: pa.Table, region: Filter) -> Counter[Any]:
    inside = rows.take(np.unique(rows_in(rows, region)[1]))
    return Counter(_key(r, rows.column_names) for r in inside.to_pylist())


@st.composite
def small_arrays(
    draw: st.DrawFn,
    variables: tuple[str, ...] = ("a",),
    shape: tuple[int, int, int] | None = None,
    values: st.SearchStrategy[float] = VALUES,
    most: tuple[int, int, int] = (2, 4, 5),
    circular: bool | None = None,
) -> Array:
    """A small array in memory: chunked anyhow, on a circle or not, with missing cells."""
    sizes = shape or tuple(draw(st.integers(1, n)) for n in most)
    round_ = draw(st.booleans()) if circular is None else circular
    t, y, x = sizes
    coordinates = {
        "time": np.datetime64("2000-01-01", "ns") + np.arange(t) * np.timedelta64(6, "h"),
        "lat": np.linspace(60, -60, y) if y > 1 else np.array([0.0]),
        "lon": np.arange(x) * (360 / x if round_ else 10.0),
    }
    described = tuple(Attribute(v, Quantity, (v,), "1", ("lat", "lon")) for v in variables)
    held_values = {v: draw(arrays(np.float64, sizes, elements=values)) for v in variables}
    chunks = tuple(draw(st.integers(1, n)) for n in sizes)
    attributes = (Attribute("time", Time, ("time",)), *described)
    return held_array(
        "field", attributes, coordinates, held_values, chunks, ("lon",) if round_ else ()
    )


COLUMNS = {
    "k": (st.integers(0, 2), pa.int64(), Quantity),
    "s": (st.sampled_from(["p", "q"]), pa.string(), Text),
    "x": (VALUES, pa.float64(), Quantity),
    "y": (VALUES, pa.float64(), Quantity),
}


@st.composite
def small_tables(
    draw: st.DrawFn,
    columns: tuple[str, ...] = ("k", "s", "x", "y"),
    most: int = 7,
    least: int = 0,
    name: str = "rows",
) -> Table:
    """A small table in memory, in groups of any size, with equal rows and missing numbers."""
    strategies = {c: COLUMNS[c][0] for c in columns}
    rows = draw(st.lists(st.fixed_dictionaries(strategies), min_size=least, max_size=most))
    schema = pa.schema([(c, COLUMNS[c][1]) for c in columns])
    attributes = tuple(Attribute(c, COLUMNS[c][2], (c,)) for c in columns)
    in_group = draw(st.integers(1, max(1, len(rows))))
    return held_table(name, attributes, pa.Table.from_pylist(rows, schema), in_group)
