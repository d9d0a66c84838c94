"""The laws that every inverse must hold, each once, as a named assertion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from inverses.candidates import Question, pieces_of, read, settled, straddles
from inverses.guarantees import COMPLETE, PURE, Guarantee
from inverses.inverting import steps_of
from inverses.outline import parts_of
from inverses.plans import Hop, Inversion, Level
from inverses.registry import Registration, Registry, Verification, WeakInverse
from pipelines.boxes.box import Box
from pipelines.datasets import ELEMENT, TUPLE, Array, Table
from pipelines.filters import Filter
from pipelines.tables import as_filter, column, matching

INDEX = ("time_index", "lat_index", "lon_index")

Item = tuple[object, ...]
Items = set[Item]


def complete(found: Items, truth: Items) -> None:
    """Nothing that contributed is missing."""
    assert not truth - found, f"missing: {sorted(truth - found, key=str)}"


def pure(found: Items, truth: Items) -> None:
    """Nothing else is in it."""
    assert not found - truth, f"not behind it: {sorted(found - truth, key=str)}"


def narrowing(answer: Items, said: Items) -> None:
    """Nothing is answered but what the weak inverses, asked about the datum alone, had said."""
    assert answer <= said, f"answered but never said: {sorted(answer - said, key=str)}"


def sufficient(datum: object, replayed: object) -> None:
    """The box run on the answer alone gives the datum back."""
    assert datum == replayed, f"selected {datum}, replay gave {replayed}"


def composition(hop_by_hop: Items, fused: Items) -> None:
    """Inverting hop by hop finds every source cell that can change the datum through all boxes."""
    assert hop_by_hop >= fused, f"lost between hops: {sorted(fused - hop_by_hop, key=str)}"


def monotony(of_some: Items, of_more: Items) -> None:
    """Whoever selects more is answered more."""
    assert of_some <= of_more, f"lost by selecting more: {sorted(of_some - of_more, key=str)}"


def as_one(together: Items, one_by_one: Items) -> None:
    """Asked about as one, data have behind them what each has, and nothing else."""
    lost, gained = one_by_one - together, together - one_by_one
    assert not lost, f"lost as one: {sorted(lost, key=str)}"
    assert not gained, f"gained as one: {sorted(gained, key=str)}"


def chunking(answers: Iterable[object]) -> None:
    """The answer is the same for every chunk grid and every cut into files and row groups."""
    first, *rest = answers
    for each in rest:
        assert each == first, "other chunks or row groups, another answer"


def absence(found: Items, without: Items, newcomers: bool) -> None:
    """Nothing outside a complete answer matters if it is absent, unless newcomers are told of."""
    lost = without - found
    assert newcomers or not lost, f"matter if absent: {sorted(lost, key=str)}"


def combination(found: Items, algebra: Items) -> None:
    """What several inversions find together is what plain sets say.

    Of one attribute, complete sets intersect and pure sets unite; of several, scalar ones
    intersect, aggregate ones unite, and both results unite.
    """
    assert found == algebra, f"found {sorted(found)}, sets say {sorted(algebra)}"


def cluster(here: object, there: object) -> None:
    """The answer is the same on a local Spark and on a cluster."""
    assert here == there, "another Spark, another answer"


def promised(guarantee: Guarantee, found: Items, truth: Items) -> None:
    """Whatever is promised holds."""
    if COMPLETE in guarantee:
        complete(found, truth)
    if PURE in guarantee:
        pure(found, truth)


def inversions_of(registry: Registry, box: Box) -> Iterator[tuple[Registration, Inversion]]:
    """Every registration for a box, as an inversion that uses it and, to verify, what it needs."""
    for weak in registry.weak:
        if isinstance(box, weak.box):
            yield weak, _inversion(weak, (weak,), ())
    for verify in registry.verifications:
        if isinstance(box, verify.box):
            yield verify, _inversion(verify, tuple(_needed(registry, verify)), (verify,))


def _needed(registry: Registry, verify: Verification) -> Iterator[WeakInverse]:
    for weak in registry.weak:
        same = (weak.box, weak.image, weak.level) == (verify.box, verify.image, verify.level)
        if same and weak.promises >= verify.needs:
            yield weak


def _inversion(
    stated: Registration, weak: tuple[WeakInverse, ...], verify: tuple[Verification, ...]
) -> Inversion:
    attribute = next(a for a in stated.box.makes if a.type == stated.image)
    return Inversion(attribute.name, stated.nature, weak, verify, stated.promises)


def found_by(
    box: Box, source: Array | Table, at: Filter, level: str, *inversions: Inversion
) -> list[Items]:
    """What inversions find behind each selected datum, read as workers read, without Spark."""
    hop = Hop(box, box.takes[0].name, source, source, ())
    # Elements are looked for in the tuples that the level above found: here, the datum's own step.
    above = at.to(time=at.spans["time_index"]) if level == ELEMENT else None
    parts = parts_of(hop, Level(level, inversions, frozenset()), at, above)
    question = Question.about(box, source, at, parts)
    if isinstance(source, Array) and level == TUPLE:
        steps = steps_of(source, question, parts)
        span = steps.spans.get("time")
        pairs = _expanded(steps) if span is not None else []
        return _by_owner(pairs, at)
    pieces = pieces_of(source, parts)
    tables = [read(question, piece) for piece in pieces]
    if straddles(pieces, len(parts)):
        tables = [settled(question, pa.concat_tables(tables))]
    else:
        tables = [settled(question, table) for table in tables]
    rows = pa.concat_tables([question.schema.empty_table(), *tables])
    return _by_owner(_named(rows, source), at)


def _expanded(steps: Filter) -> list[tuple[int, Item]]:
    span = steps.spans["time"]
    boxes = zip(steps.owner, span.low, span.high, strict=True)
    return [(int(o), (t,)) for o, low, high in boxes for t in range(low, high + 1)]


def _named(rows: pa.Table, source: Array | Table) -> list[tuple[int, Item]]:
    """Each candidate with its owner, under a name that oracles use too."""
    keys = INDEX if isinstance(source, Table) else source.dims
    columns = [column(rows, k).tolist() for k in keys]
    if isinstance(source, Array):
        columns.insert(0, [source.variables[v] for v in column(rows, "variable")])
    return list(zip(column(rows, "owner").tolist(), zip(*columns, strict=True), strict=True))


def _by_owner(pairs: list[tuple[int, Item]], at: Filter) -> list[Items]:
    found: list[Items] = [set() for _ in range(len(at))]
    for owner, item in pairs:
        found[owner].add(item)
    return found


def rows_of(table: Table) -> pa.Table:
    """All rows of a table."""
    return matching(table, None)


def selection_of(rows: pa.Table) -> Filter:
    """All rows as one selection."""
    return as_filter(rows)


def indices(rows: pa.Table) -> list[tuple[int, int, int]]:
    """Step, row and column of each row of minima or tracks."""
    return list(zip(*(column(rows, n).astype(np.int64).tolist() for n in INDEX), strict=True))
