"""Spark's part, played in this process: whole runs and traces in milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Frame:
    """Rows in as many parts as Spark would give to tasks."""

    parts: tuple[pa.Table, ...]
    schema: StructType | None = None

    @property
    def columns(self) -> list[str]:
        return list(self.toArrow().column_names)

    def toDF(self, *names: str) -> Frame:  # noqa: N802
        return Frame(tuple(part.rename_columns(list(names)) for part in self.parts))

    def mapInArrow(self, work: Callable[[Batches], Batches], schema: StructType) -> Frame:  # noqa: N802
        stored = to_arrow_schema(schema)
        made = (list(work(iter(p.to_batches()))) for p in self.parts)
        whole = (pa.Table.from_batches(m) if m else stored.empty_table() for m in made)
        return Frame(tuple(w.cast(stored) for w in whole), schema)

    def repartition(self, tasks: int, key: str) -> Frame:
        rows = self.toArrow()
        whose = rows[key].to_numpy() % tasks
        return Frame(tuple(rows.filter(pc.equal(whose, n)) for n in range(tasks)), self.schema)

    def toArrow(self) -> pa.Table:  # noqa: N802
        return pa.concat_tables(self.parts)


class Here:
    """What boxes and traces ask of a Spark session and of its context."""

    master = "here"

    def __init__(self, cores: int = 2) -> None:
        self.defaultParallelism = cores

    @property
    def sparkContext(self) -> Here:  # noqa: N802
        return self

    def range(self, first: int, stop: int, step: int, tasks: int) -> Frame:
        numbers = list(range(first, stop, step))
        cuts = [len(numbers) * n // tasks for n in range(tasks + 1)]
        shares = (numbers[a:b] for a, b in pairwise(cuts))
        return Frame(tuple(pa.table({"id": pa.array(s, pa.int64())}) for s in shares))

    def setJobGroup(self, *about: Any, **options: Any) -> None:  # noqa: N802
        """There is one job at a time."""

    def setLocalProperty(self, *about: Any) -> None:  # noqa: N802
        """Nobody looks."""

    def statusTracker(self) -> Here:  # noqa: N802
        return self

    def getJobIdsForGroup(self, group: str) -> list[int]:  # noqa: N802
        return []
