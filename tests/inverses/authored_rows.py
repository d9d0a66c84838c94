"""Boxes from rows to rows as authors may write them, with inverses that are right and wrong."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from inverses.guarantees import COMPLETE, EXACT, FAITHFUL
from inverses.registry import AGGREGATE, USED, Verification
from pipelines.boxes.box import CHANGE, Port, RowBox
from pipelines.boxes.groups import TopN
from pipelines.datasets import TUPLE, Attribute, Dataset, Measure, Table
from pipelines.filters import Filter
from tests.inverses.authored import Attributes, authored, weak

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Ten(TopN):
    """The ten highest rows."""

    name: ClassVar = "ten"
    examples: ClassVar = ({},)


class Telling(RowBox):
    """Something that is told of all rows that have the same key."""

    key: ClassVar[str]
    takes: ClassVar = (Port("rows", "table"),)
    contributed: ClassVar = "Every row that has its key: with another value, more or less is told."
    influence: ClassVar = CHANGE
    flat: ClassVar = True

    @abstractmethod
    def told(self, rows: Rows) -> float:
        """What is told of some rows."""

    def together(self, port: str) -> tuple[str, ...]:
        return (self.key,)

    def identity(self, columns: Iterable[str]) -> tuple[str, ...]:
        return (self.key,)

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        known = tuple(a for a in given["rows"] if a.name == self.key)
        return (*known, Attribute("told", Measure, ("told",)))

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (self.key,)

    def schema(self, inputs: Mapping[str, Any]) -> pa.Schema:
        kind = pa.string() if self.key == "s" else pa.int64()
        return pa.schema([(self.key, kind), ("told", pa.float64())])

    def rows(self, inputs: Mapping[str, pa.Table]) -> pa.Table:
        groups: dict[Any, Rows] = {}
        for row in inputs["rows"].to_pylist():
            groups.setdefault(row[self.key], []).append(row)
        made = [{self.key: key, "told": self.told(rows)} for key, rows in groups.items()]
        return pa.Table.from_pylist(made, self.schema(inputs))


@dataclass(frozen=True, slots=True)
class Spoken(Telling):
    """How many of them say p."""

    name: ClassVar = "spoken"
    key: ClassVar = "k"

    def told(self, rows: Rows) -> float:
        return float(sum(row["s"] == "p" for row in rows))


@dataclass(frozen=True, slots=True)
class Summed(Telling):
    """The sum of their whole numbers."""

    name: ClassVar = "summed"
    key: ClassVar = "s"

    def told(self, rows: Rows) -> float:
        return float(sum(row["k"] for row in rows))


class Nameless(Telling):
    """How many they are, by an author who has not named it."""

    key: ClassVar = "k"

    def told(self, rows: Rows) -> float:
        return float(len(rows))


def alike(box: Telling, at: Filter, source: Table) -> Filter:
    """What is told is told of all rows that have its key."""
    return at.only(box.key)


def not_nought(box: object, at: object, seen: Mapping[str, Any], source: object) -> Any:
    """It forgets rows whose number is nought, though another would change the sum."""
    return np.asarray(seen["k"] != 0)


def itself(box: object, at: Filter, source: Table) -> Filter:
    """It forgets that other rows decide which are the highest."""
    return at.only(*source.columns)


TOLD: dict[str, Any] = {"image": Measure, "level": TUPLE}
OF_TEN = authored(weak(Ten, itself, level=TUPLE, promises=frozenset({COMPLETE, FAITHFUL})))
OF_SPOKEN = authored(weak(Spoken, alike, **TOLD))
OF_SUMMED = authored(weak(Summed, alike, **TOLD))
OF_SUMMED_IN_PART = authored(
    weak(Summed, alike, **{**TOLD, "promises": frozenset({COMPLETE})}),
    verify=(
        Verification(
            "not_nought", Summed, Measure, AGGREGATE, (USED,), EXACT, TUPLE, not_nought,
            needs=frozenset({COMPLETE}),
        ),
    ),
)  # fmt: skip
