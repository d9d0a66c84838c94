"""Proof by replay: the boxes, run again on an answer alone, must give the selected data back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from inverses.answer import Answer, Found, Proof
from inverses.plans import Hop
from inverses.recipes import Recipe, Recipes
from inverses.replay import available
from pipelines.arrays import cells_at, coordinate
from pipelines.contents import FewCells, held_table
from pipelines.datasets import Array, Key, Table
from pipelines.errors import WhenceError
from pipelines.filters import Filter
from pipelines.tables import column, held


def prove(answer: Answer, spark: SparkSession) -> Proof:
    """Run the boxes again on what an answer found, with everything else absent, and compare."""
    selection = answer.plan.selection
    if not answer.plan.hops:
        return Proof(len(selection), len(selection))
    known = _alone(answer)
    image = replace(selection.dataset, kept=False)
    try:
        again = available(image, _region(answer), known, spark)
        same = _given_back(answer, again)
    except WhenceError as error:
        return Proof(len(selection), 0, str(error))
    return Proof(len(selection), int(same.sum()))


def _region(answer: Answer) -> Filter:
    """Where the selected data lie, by the attributes that were asked about."""
    selection = answer.plan.selection
    if isinstance(selection.dataset, Array):
        return selection.at
    asked = [selection.dataset.attribute(n) for n in answer.plan.attributes]
    return selection.at.only(*(c for a in asked for c in a.columns)).loose()


def _alone(answer: Answer) -> Recipes:
    """The recipes of a plan with nothing kept, and at their ends only what was found."""
    made = {hop.image.key for hop in _hops(answer)}
    asked = _asked(answer)
    own = [answer.lineage[name] for name in answer.own]
    every = {**answer.found, **{found.dataset.key: found for found in own}}
    ends = {key: _few(found) for key, found in every.items() if key not in made}

    def instead(each: Table | Array) -> Table | Array:
        return ends[each.key] if each.key in ends else replace(each, kept=False)

    return {
        key: Recipe(
            recipe.box.alone(asked[key]) if key in asked else recipe.box,
            {port: instead(each) for port, each in recipe.inputs.items()},
            recipe.pushes,
        )
        for key, recipe in answer.plan.recipes.items()
        if key in made
    }


def _hops(answer: Answer) -> list[Hop]:
    return [hop for each in answer.parts for hop in each.plan.hops]


def _asked(answer: Answer) -> Mapping[Key, set[str]]:
    """The attributes that are asked about in each dataset."""
    asked: dict[Key, set[str]] = {}
    for hop in _hops(answer):
        names = {i.attribute for level in hop.levels for i in level.inversions}
        asked.setdefault(hop.image.key, set()).update(names)
    return asked


def _few(found: Found) -> Table | Array:
    """A dataset that has only what was found in it."""
    dataset = found.dataset
    if isinstance(dataset, Table):
        rows = found.rows.select(dataset.columns)
        few = held_table(dataset.name, dataset.attributes, rows)
        return replace(dataset, groups=few.groups, content=few.content)
    index = np.column_stack([column(found.rows, d) for d in dataset.dims])
    which, values = column(found.rows, "variable"), column(found.rows, "value")
    cells = {v: index[which == n] for n, v in enumerate(dataset.variables)}
    kept = {v: values[which == n] for n, v in enumerate(dataset.variables)}
    coordinates = {d: coordinate(dataset, d) for d in dataset.dims}
    return replace(dataset, content=FewCells(cells, kept, coordinates))


def _given_back(answer: Answer, again: Table | Array) -> NDArray[np.bool_]:
    """Which of the selected data the boxes have made again."""
    selection = answer.plan.selection
    asked = [selection.dataset.attribute(n) for n in answer.plan.attributes]
    if isinstance(again, Array):
        assert isinstance(selection.dataset, Array)
        index = np.column_stack([selection.at.spans[d].low for d in again.dims])
        pairs = [
            (cells_at(selection.dataset, a.name, index), cells_at(again, a.name, index))
            for a in asked
            if a.dims
        ]
        return np.asarray(np.all([_same(one, other) for one, other in pairs], axis=0))
    names = list(dict.fromkeys(c for a in asked for c in a.columns))
    rows = held(again, _region(answer))
    return _among(pa.table({n: selection.at.spans[n].low for n in names}), rows.select(names))


def _same(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(np.isclose(one.astype(float), other.astype(float), 1e-6, equal_nan=True))


def _among(wanted: pa.Table, rows: pa.Table) -> NDArray[np.bool_]:
    """Which rows are among others, by all their columns."""
    there = {_key(row) for row in rows.to_pylist()}
    return np.array([_key(row) in there for row in wanted.to_pylist()], bool)


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple("nan" if value != value else value for value in row.values())
