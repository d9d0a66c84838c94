"""The answer of a trace: the cells and rows behind a selection, and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inverses.guarantees import Guarantee, names
from inverses.plans import Level, Plan
from pipelines.arrays import coordinate
from pipelines.datasets import Array, Key, Table
from pipelines.errors import Refused
from pipelines.filters import Filter
from pipelines.spans import Span, extremes
from pipelines.tables import column

SAMPLE = 10
Links = NDArray[np.int64] | None
NO_LINKS: Links = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class Found:
    """What a trace found in one dataset: each row or cell once, and what it is behind.

    Its `links` are pairs of a datum's number and a row's here, for each dataset it was found
    from; None where all data there were asked about as one.
    """

    dataset: Table | Array
    rows: pa.Table
    at: Filter
    links: Mapping[Key, Links]
    chunks_read: int
    bytes_read: int
    outline: Filter

    @property
    def cells(self) -> int | None:
        return int(self.rows.num_rows) if isinstance(self.dataset, Array) else None

    @property
    def tuples(self) -> int:
        if isinstance(self.dataset, Table):
            return int(self.rows.num_rows)
        return len(np.unique(column(self.rows, self.dataset.dims[0])))

    def table(self) -> pa.Table:
        """The rows as people read them: coordinates beside indices, variables by name."""
        if isinstance(self.dataset, Table):
            return self.rows.select(self.dataset.columns)
        array = self.dataset
        kinds = np.array(array.variables, object)[column(self.rows, "variable")]
        index = {d: column(self.rows, d) for d in array.dims}
        named = {d: in_column(shown(coordinate(array, d)[i])) for d, i in index.items()}
        numbered = {f"{d}_index": i for d, i in index.items()}
        value = self.rows["value"]
        return pa.table({"variable": in_column(kinds), **named, **numbered, "value": value})

    def text(self) -> str:
        """Where the weak inverses looked, in coordinates."""
        if isinstance(self.dataset, Table):
            return self.outline.text()
        return in_coordinates(self.dataset, self.outline).text()


def shown(values: NDArray[Any]) -> NDArray[Any]:
    """Coordinates as people read them and tables hold them: dates of other calendars as texts."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]")
    return values if values.dtype.kind != "O" else np.array([str(v) for v in values], object)


def in_column(values: NDArray[Any]) -> pa.Array:
    """Values as a column holds them, of texts even where there are none."""
    return pa.array(values, pa.string() if values.dtype.kind == "O" else None)


def in_coordinates(array: Array, filter_: Filter) -> Filter:
    """A filter on an array's indices as one on its coordinates, in whichever order these are."""
    spans = {}
    for dim, each in filter_.spans.items():
        values = shown(coordinate(array, dim))
        last = len(values) - 1
        low, high = np.clip(each.low, 0, last), np.clip(each.high, 0, last)
        spans[dim] = Span(*extremes(values, low, high))
    return Filter(filter_.owner, spans)


@dataclass(frozen=True, slots=True)
class Proof:
    """How many of the selected data came back when the boxes ran again on an answer alone.

    Or `by_steps`, each on what was found before it, where only so nothing new is in the way.
    """

    selected: int
    given_back: int
    why: str = ""
    by_steps: bool = False

    @property
    def holds(self) -> bool:
        return self.given_back == self.selected

    def to_json(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "selected": self.selected,
            "given_back": self.given_back,
            "why": self.why,
            "by_steps": self.by_steps,
        }

    def text(self) -> str:
        """The verdict in one line."""
        if self.holds and self.by_steps:
            return (
                "proved step by step: run again on nothing but what was found before it, each box "
                "gives back all that was found next (of the ends alone, something new comes up)"
            )
        if self.holds:
            return "proved: run again on this alone, the boxes give the selection back"
        reason = f": {self.why}" if self.why else ""
        return f"not proved: {self.given_back:,} of {self.selected:,} came back{reason}"


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """Where a selection came from; datasets with a wish of their `own` have an answer of it."""

    plan: Plan
    found: Mapping[Key, Found]
    seconds: dict[str, float]
    spark: Mapping[str, Any]
    proof: Proof | None = None
    own: Mapping[str, Answer] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Answer({'; '.join(map(self._line, self.lineage))})"

    def _line(self, name: str) -> str:
        promised = " and ".join(names(self.guarantee(name))) or "no guarantee"
        return f"{self.lineage[name].rows.num_rows:,} of {name}, {promised}"

    @property
    def parts(self) -> list[Answer]:
        """This answer, and those to wishes of their own, each once."""
        found: dict[int, Answer] = {}
        for each in (self, *self.own.values()):
            found.setdefault(id(each.plan), each)
        return list(found.values())

    @property
    def lineage(self) -> dict[str, Found]:
        """What was found, by the name of the dataset; for a source, the selection itself."""
        selected = self.plan.selection.dataset
        behind = {key[0]: found for key, found in self.found.items() if key != selected.key}
        own = {name: each.lineage[name] for name, each in self.own.items()}
        return {**behind, **own} or {selected.name: self.found[selected.key]}

    def guarantee(self, dataset: str) -> Guarantee:
        """What holds of the rows or cells found in a dataset."""
        plan = self.own[dataset].plan if dataset in self.own else self.plan
        return plan.guarantee_of(dataset)

    @property
    def wishes(self) -> dict[str, dict[str, list[str]]]:
        """For each dataset with a wish of its own, that wish and what of it is not promised."""
        own = {name: each.plan for name, each in self.own.items()}
        return {n: {"want": names(p.wish), "unmet": names(p.unmet_of(n))} for n, p in own.items()}

    def cells(self, dataset: str) -> pa.Table:
        """The rows or cells found in a dataset."""
        return self.lineage[dataset].table()

    def behind(self, row: int) -> dict[str, NDArray[np.int64]]:
        """For one selected row, the positions in `cells(dataset)` of what is behind it."""
        selected = self.plan.selection.dataset
        if len(self.plan.selection) == 1:
            every = {name: np.arange(found.rows.num_rows) for name, found in self.lineage.items()}
            return {name: rows for name, rows in every.items() if name != selected.name}
        mine: dict[Key, NDArray[np.int64]] = {selected.key: np.array([row])}
        for key, found in self.found.items():
            for image, links in found.links.items():
                if links is None:
                    raise Refused(
                        f'"{image[0]}" was asked about as one, since so much of it is behind the '
                        "selection; trace the row by itself to see what is behind it"
                    )
                reached = links[np.isin(links[:, 0], mine.get(image, [])), 1]
                mine[key] = np.union1d(mine.get(key, np.zeros(0, np.int64)), reached)
        own = {name: each.behind(row)[name] for name, each in self.own.items()}
        return {n: where for (n, _), where in mine.items() if n != selected.name} | own

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data, in the form that other tools rely on."""
        return {
            **asked_json(self.plan),
            "hops": self.hops(),
            "lineage": {n: self._found_json(n, f) for n, f in self.lineage.items()},
            "seconds": {
                k: round(self.seconds.get(k, 0.0), 3) for k in ("plan", "weak", "verify", "total")
            },
            "spark": dict(self.spark),
            **({"proof": self.proof.to_json()} if self.proof else {}),
        }

    def hops(self) -> list[dict[str, Any]]:
        """Its hops as plain data; those for a wish that only some datasets have say which."""
        _, *own = (each.plan for each in self.parts)
        wished = [{**hop, "want": names(each.wish)} for each in own for hop in hops_json(each)]
        return [*hops_json(self.plan), *wished]

    def _found_json(self, name: str, found: Found) -> dict[str, Any]:
        sample = found.table().slice(0, SAMPLE).to_pylist()
        return {
            "kind": found.dataset.kind,
            "rows": found.tuples,
            "cells": found.cells,
            "filter": found.text(),
            **self.wishes.get(name, {}),
            "guarantee": names(self.guarantee(name)),
            "chunks_read": found.chunks_read,
            "bytes_read": found.bytes_read,
            "sample": [{k: plain_value(v) for k, v in row.items()} for row in sample],
        }


def asked_json(plan: Plan) -> dict[str, Any]:
    """What was asked, and what of it cannot be promised, as plain data."""
    selection = plan.selection
    return {
        "selection": {
            "dataset": selection.dataset.name,
            "where": selection.where,
            "attributes": plan.attributes,
            "rows": len(selection),
        },
        "want": names(plan.wish),
        "unmet": names(plan.unmet),
    }


def hops_json(plan: Plan) -> list[dict[str, Any]]:
    """The hops of a plan as plain data, one entry for each level."""
    opened = {id(hop) for hop in plan.open_to_newcomers}
    return [
        {
            "box": hop.box.name,
            "from": hop.image.name,
            "to": hop.source.name,
            "level": level.name,
            "attributes": [i.attribute for i in level.inversions],
            "weak": [w.name for i in level.inversions for w in i.weak],
            "verify": [v.name for i in level.inversions for v in i.verify],
            "guarantee": names(level.guarantee),
            "evidence": _evidence(level),
            **({"inferred": _seen(level)} if level.inferred else {}),
            **({"newcomers": True} if id(hop) in opened else {}),
        }
        for hop in plan.hops
        for level in hop.levels
    ]


def _seen(level: Level) -> dict[str, str]:
    """What was seen of a box that has no inverses, by the name of what stands for them."""
    return {w.name: w.function.__doc__ or "" for w in level.inferred}


def _evidence(level: Level) -> dict[str, Any]:
    """In how many trials the functions of a level have held, by name."""
    used = [f for i in level.inversions for f in (*i.weak, *i.verify)]
    return {f.name: f.evidence.trials for f in used if f.evidence is not None and f.evidence.held}


def plain_value(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else value
