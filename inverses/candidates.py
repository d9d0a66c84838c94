"""Candidates on a worker: read a chunk once, verify what filters found there, combine, keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inverses.outline import Check, Part
from inverses.registry import Inputs, Mask, Seen, mask_of
from inverses.sweeps import Sweep
from pipelines import arrays, tables
from pipelines.arrays import Chunk
from pipelines.boxes.box import Box
from pipelines.datasets import Array, Table
from pipelines.filters import Filter
from pipelines.tables import column, numbered

Piece = tuple[Chunk | tuple[int, ...], Filter]
BEFORE_ROW = 32
MOST_ROWS = 2**20  # that are looked at together, however many are asked about


@dataclass(frozen=True, slots=True)
class Question:
    """All that a worker has to know: the box, the dataset, what was selected, what to check."""

    box: Box | None
    source: Table | Array
    at: Mapping[str, NDArray[Any]]
    checks: tuple[tuple[Check, ...], ...]
    scalar: tuple[bool, ...]
    variables: tuple[tuple[str, ...], ...]
    combines: bool
    port: str = ""
    inputs: Inputs = field(default_factory=dict)
    sweep: Sweep | None = None

    @classmethod
    def about(
        cls,
        box: Box,
        source: Table | Array,
        at: Filter,
        parts: list[Part],
        sweep: Sweep | None = None,
    ) -> Question:
        """The question that some parts ask, of each datum or of all that a sweep is for."""
        checked = any(p.checks for p in parts) or sweep is not None
        values = {**{k: s.low for k, s in at.spans.items()}, "owner": at.owner} if checked else {}
        return cls(
            box,
            source,
            values,
            tuple(p.checks for p in parts),
            tuple(p.scalar for p in parts),
            tuple(p.variables for p in parts),
            checked or len(parts) > 1,
            sweep=sweep,
        )

    @property
    def checked(self) -> bool:
        """Whether not all candidates count."""
        return self.sweep is not None or any(self.checks)

    @property
    def at_once(self) -> bool:
        """Whether all data are decided on together, and so soon that no Spark job is needed.

        Rows are; and cells of a box that is looked at beside its other ports, since a job for each
        port costs more than running the box again, which is one.
        """
        checks = [v for each in self.checks for c in each for v in c.verify]
        soon = isinstance(self.source, Table) or any(v.beside for v in checks)
        return soon and all(v.at_once for v in checks)

    @property
    def together(self) -> bool:
        """Whether all candidates of a datum must be seen at once, to tell which of them count."""
        checks = (v for each in self.checks for c in each for v in c.verify)
        return self.sweep is not None or any(not v.pointwise for v in checks)

    @property
    def around(self) -> tuple[Table | Array, str, Inputs]:
        """The source that candidates are from, the port it is at, and all inputs, if need be."""
        return self.source, self.port, self.inputs

    @property
    def identity(self) -> list[str]:
        """The columns that tell one candidate from another."""
        return ["row"] if isinstance(self.source, Table) else ["variable", *self.source.dims]

    @property
    def schema(self) -> pa.Schema:
        """The columns of candidates."""
        whole = [(n, pa.int64()) for n in ("owner", "part", *self.identity)]
        if isinstance(self.source, Table):
            return pa.schema([*whole, *tables.schema_of(self.source)])
        return pa.schema([*whole, ("value", pa.float64())])


def asking(parts: list[Part]) -> Filter:
    """All parts as one filter, whose owners tell selected datum and part."""
    coded = [Filter(p.filter.owner * len(parts) + n, p.filter.spans) for n, p in enumerate(parts)]
    whole = coded[0]
    for each in coded[1:]:
        whole = whole | each
    return whole


def pieces_of(source: Table | Array, parts: list[Part]) -> list[Piece]:
    """The chunks or row groups that some parts need, each with the filters that need it."""
    if isinstance(source, Table):
        return list(_in_stretches(source, asking(parts)))
    found: list[Piece] = []
    for variable in dict.fromkeys(v for p in parts for v in p.variables):
        mine = [p if variable in p.variables else _silent(p) for p in parts]
        whole = arrays.inside(source, asking(mine))
        found += [(c, whole[boxes]) for c, boxes in arrays.touched(source, variable, whole)]
    return found


def _in_stretches(source: Table, whole: Filter) -> Iterator[Piece]:
    """Row groups one by one; but in stretches that have as many rows as boxes touch any there.

    So very many boxes that may be anywhere are looked for a few times, and not in every group.
    """
    numbers: list[int] = []
    touching, rows = np.zeros(len(whole), bool), 0
    for number, boxes in tables.touched(source, whole):
        numbers.append(number)
        touching[boxes] = True
        rows += source.groups[number].rows
        if rows >= min(touching.sum(), MOST_ROWS):
            yield tuple(numbers), whole[touching]
            numbers, rows = [], 0
            touching[:] = False
    if numbers:
        yield tuple(numbers), whole[touching]


def read_of(pieces: Iterable[Piece]) -> Iterator[Chunk | int]:
    """The chunks, or the numbers of the row groups, that are read for some pieces."""
    for where, _ in pieces:
        yield from (where,) if isinstance(where, Chunk) else where


def _silent(part: Part) -> Part:
    """A part that asks nothing."""
    return Part(part.filter[np.zeros(0, np.int64)], part.checks, part.scalar, part.variables)


def straddles(pieces: list[Piece], parts: int) -> bool:
    """Whether some datum's candidates lie in more than one piece."""
    owners = [np.unique(filter_.owner // parts) for _, filter_ in pieces]
    together = np.concatenate(owners) if owners else np.zeros(0)
    return len(np.unique(together)) < len(together)


def read(question: Question, piece: Piece) -> pa.Table:
    """The candidates in one chunk or row group, which is read once."""
    where, filter_ = piece
    parts = len(question.checks)
    if isinstance(question.source, Table):
        assert not isinstance(where, Chunk)
        rows, numbers = _rows_of(question.source, where)
        found = [tables.rows_in(rows, each) for each in _by_part(filter_, parts)]
        owner, position = map(np.concatenate, zip(*found, strict=True))
        values = rows.take(position).columns
        columns = [owner // parts, owner % parts, numbers[position], *values]
        return pa.table(columns, schema=question.schema)
    assert isinstance(where, Chunk)
    owner, points, values = arrays.cells_in(question.source, where, filter_)
    variable = np.full(len(owner), question.source.variables.index(where.variable))
    columns = [owner // parts, owner % parts, variable, *points.T, values.astype(float)]
    return pa.table(columns, schema=question.schema)


def _by_part(filter_: Filter, parts: int) -> Iterator[Filter]:
    """The boxes of each part, without the restrictions that others alone have."""
    for number in range(parts):
        mine = filter_[filter_.owner % parts == number]
        yield mine.only(*(key for key, each in mine.spans.items() if not each.open.all()))


def _rows_of(source: Table, numbers: tuple[int, ...]) -> tuple[pa.Table, NDArray[np.int64]]:
    """The rows of some row groups, and for each its group and its place there, as one number."""
    groups = [tables.read_group(source, source.groups[n]) for n in numbers]
    first = [n << BEFORE_ROW for n in numbers]
    each = [np.arange(g.num_rows) + f for g, f in zip(groups, first, strict=True)]
    return pa.concat_tables(groups), np.concatenate(each)


def settled(question: Question, candidates: pa.Table) -> pa.Table:
    """The candidates that count, each once for each selected datum."""
    if not question.combines or not candidates.num_rows:
        return candidates
    if question.checked:
        candidates = candidates.sort_by([("part", "ascending"), ("owner", "ascending")])
    seen = {n: column(candidates, n) for n in candidates.column_names}
    kept = np.flatnonzero(_counting(question, seen))
    kept = kept[_in_all_scalar_parts(question, seen, kept)]
    if len(question.checks) > 1:
        same = numbered([seen[n][kept] for n in ("owner", *question.identity)])
        kept = kept[np.unique(same, return_index=True)[1]]
    return candidates.take(kept)


def _counting(question: Question, seen: Seen) -> Mask:
    """Which candidates count: those that a sweep tells, that pass their checks, or all."""
    if question.sweep is not None:
        return _swept(question, question.sweep, seen)
    return _verified(question, seen) if question.checked else np.ones(len(seen["owner"]), bool)


def _swept(question: Question, sweep: Sweep, seen: Seen) -> Mask:
    """Which candidates a sweep tells to be behind any of the data of their groups."""
    mine = np.isin(question.at["owner"], seen["owner"])
    asked = {name: values[mine] for name, values in question.at.items()}
    found = sweep.function(question.box, asked, seen, question.source)
    return mask_of(found, len(seen["owner"]), f'sweep "{sweep.name}" of {sweep.box.__name__}')


def _verified(question: Question, seen: Seen) -> Mask:
    """Which candidates pass the checks of their part; they come sorted by part and datum."""
    keep = np.ones(len(seen["owner"]), bool)
    for start, stop in _runs(question, seen):
        checks = question.checks[seen["part"][start]]
        mine = {k: v[start:stop] for k, v in seen.items()}
        # One datum's values if the run is one datum's, else a value for each candidate.
        owner = seen["owner"][start] if mine["owner"][-1] == mine["owner"][0] else mine["owner"]
        keep[start:stop] = _passes(question, owner, checks, mine)
    return keep


def _runs(question: Question, seen: Seen) -> Iterator[tuple[int, int]]:
    """Where candidates that are checked together start and stop: a datum's, or all of a part."""
    alone = [not all(v.at_once for c in each for v in c.verify) for each in question.checks]
    changes = np.diff(seen["part"]) != 0
    changes |= np.array(alone)[seen["part"][1:]] & (np.diff(seen["owner"]) != 0)
    cuts = [0, *(np.flatnonzero(changes) + 1).tolist(), len(seen["part"])]
    return pairwise(cuts)


def _passes(question: Question, owner: Any, checks: Iterable[Check], seen: Seen) -> Mask:
    assert question.box is not None
    row = {k: v[owner] for k, v in question.at.items()}
    passed = np.ones(len(seen["owner"]), bool)
    for check in checks:
        masks = [v(question.box, row, seen, *question.around) for v in check.verify]
        passed &= np.any(masks, axis=0) if check.unites else np.all(masks, axis=0)
    return passed


def _in_all_scalar_parts(question: Question, seen: Seen, kept: NDArray[np.int64]) -> Mask:
    """Which candidates are in every scalar part that looks at their variable, or in another."""
    scalar = np.array(question.scalar)[seen["part"][kept]]
    if sum(question.scalar) < 2:
        return np.ones(len(kept), bool)
    identity = [seen[n][kept] for n in ("owner", *question.identity)]
    _, first, which = np.unique(numbered(identity), return_index=True, return_inverse=True)
    found = np.column_stack(identity)[first]
    in_parts = np.zeros((len(found), len(question.scalar)), bool)
    in_parts[which.ravel(), seen["part"][kept]] = True
    in_parts |= ~_concerned(question, found)
    everywhere = np.asarray(in_parts[:, np.array(question.scalar)].all(axis=1))
    return np.asarray(~scalar | everywhere[which.ravel()])


def _concerned(question: Question, found: NDArray[np.int64]) -> Mask:
    """For each candidate, by owner and identity, which parts look at its variable."""
    if isinstance(question.source, Table) or not any(question.variables):
        return np.ones((len(found), len(question.scalar)), bool)
    names = np.array(question.source.variables)[found[:, 1]]
    return np.column_stack([np.isin(names, list(v)) for v in question.variables])


def settled_batches(
    question: Question, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """`settled` for candidates that a shuffle brought together."""
    together = pa.Table.from_batches(list(batches), question.schema)
    yield from settled(question, together).to_batches()
