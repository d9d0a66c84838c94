"""Tables of truths, times, texts and large numbers are made and traced like those of floats."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from math import nan
from types import SimpleNamespace
from typing import cast

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from inverses.guarantees import EXACT
from inverses.making import made_by
from inverses.planner import plan
from inverses.proof import prove
from inverses.registry import Registry
from inverses.selection import Selection
from inverses.trace import carry_out
from inverses.trials import data_of
from pipelines.boxes.box import RowBox
from pipelines.boxes.groups import Aggregate, RankRows, TopN
from pipelines.boxes.mapping import MapRows
from pipelines.boxes.relational import Distinct, FilterRows, Join, Project, Union
from pipelines.contents import held_table
from pipelines.datasets import Attribute, Made, Quantity, Table, Text, Time
from pipelines.filters import Filter
from pipelines.here import Here
from pipelines.workspace import Workspace

HERE = cast(SparkSession, Here(2))
REGISTRY = Registry.of()
ROWS = pa.table(
    {
        "b": [True, False, True, True],
        "t": pa.array([datetime(2000, 1, d) for d in (1, 2, 1, 3)], pa.timestamp("us")),
        "f": pa.array([1.5, nan, 1.5, 0.1], pa.float32()),
        "s": ["a", "", "a", "ü"],
        "i": pa.array([2**60 + 1, 2**60, 2**60 + 1, 3], pa.int64()),
    }
)
MEANINGS = {"t": Time, "s": Text}
TABLE = held_table(
    "odd", tuple(Attribute(c, MEANINGS.get(c, Quantity), (c,)) for c in ROWS.column_names), ROWS, 2
)
BOXES = {
    FilterRows("b = true"): 3,
    FilterRows("t >= '2000-01-02'"): 2,
    FilterRows("f <> 1 and s > ''"): 3,
    FilterRows("t > '2100-01-01'"): 0,
    Distinct(): 3,
    Project("b, f"): 4,
    Aggregate("b, s", "f:max, t:min, s:count"): 3,
    Aggregate("t", "i:max, f:sum"): 3,
    TopN("t", 1): 1,
    TopN("s", 2): 3,
    TopN("i", 1, least=True): 1,
    RankRows("t", "s"): 4,
    RankRows("f", "b"): 4,
    Join("b, t"): 6,
    Join("f"): 6,
    Union(): 8,
    MapRows("z", "f * 2 + i"): 4,
}


@pytest.mark.parametrize("box", BOXES, ids=str)
def test_every_kind_of_column_is_made_and_traced(box: RowBox) -> None:
    inputs = {port.name: TABLE for port in box.takes}
    how = Made(box.name, "made", box.params(), dict.fromkeys(inputs, TABLE.key), "run")
    made = cast(Table, replace(made_by(box, inputs, "made"), made=how))
    assert box.run(inputs, HERE).toArrow().num_rows == made.rows == BOXES[box]
    datasets = {"odd": TABLE, "made": made}
    workspace = SimpleNamespace(dataset=lambda name, version=None: datasets[name])
    for number in range(made.rows):
        one = Filter(np.arange(1), data_of(made)[np.array([number])].spans)
        selected = Selection(made, None, (), one)
        planned = plan(cast(Workspace, workspace), selected, EXACT, REGISTRY)
        assert planned.guarantee >= EXACT
        assert prove(carry_out(planned, HERE), HERE).given_back == 1, f"row {number}"
