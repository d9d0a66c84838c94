"""Testing what authors state: every registered inverse against its box, on generated data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from inverses.as_one import able
from inverses.guarantees import COMPLETE, FAITHFUL, PURE
from inverses.influence import Influences, plain
from inverses.making import made_by
from inverses.plans import Hop
from inverses.registry import Registration, Registry
from inverses.samples import Sample, samples
from inverses.trials import Items, data_of, found_as_one, found_by, inversions
from pipelines.boxes.box import STATED, Box
from pipelines.contents import held_table
from pipelines.datasets import Array, Attribute, Table
from pipelines.filters import Filter, Span
from pipelines.tables import column, held, matching, rows_in

TRIALS = 100
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
        influences = Influences(sample, port, made)
        every = inversions(registry, sample.box, port, made, source, sample.inputs)
        for stated, attribute, hop in every:
            few = _few(at)
            found = found_by(hop, few)
            yield from _promises(stated, attribute, hop, few, found, influences)
            yield stated.name, "monotony", _monotony(hop, few, found)
            if able(hop):
                yield stated.name, "as one", _as_one(hop, at[np.arange(len(at)) % 5 != 3])
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
    influences: Influences,
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


def _as_one(hop: Hop, at: Filter) -> str | None:
    at = Filter(np.arange(len(at)), at.spans)
    one_by_one: Items = set().union(*found_by(hop, at))
    together = found_as_one(hop, at)
    if lost := one_by_one - together:
        return f"asked about as one, data lose {sorted(lost, key=str)[:3]}"
    more = together - one_by_one
    return f"asked about as one, data gain {sorted(more, key=str)[:3]}" if more else None


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
    return Counter(tuple(plain(v) for v in row) for row in zip(*columns, strict=True))


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
