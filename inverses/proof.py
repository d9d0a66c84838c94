"""Proof by replay: the boxes, run again on an answer alone, must give the selected data back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from inverses.answer import Answer, Found, Proof
from inverses.plans import Hop
from inverses.recipes import Recipe, Recipes
from inverses.replay import available
from pipelines.arrays import cells_at, coordinate
from pipelines.contents import FewCells, NoCells, held_table
from pipelines.datasets import Array, Key, Table
from pipelines.errors import Failed, WhenceError
from pipelines.filters import Filter
from pipelines.tables import column, held, matching

MadeAgain = Callable[[Answer, SparkSession], Table | Array]


def prove(answer: Answer, spark: SparkSession) -> Proof:
    """Run the boxes again on what an answer found, with everything else absent, and compare.

    They run on the ends of the answer alone. Where something that newly comes up for want of all
    else may be in the way, they run step by step too: each on nothing but what was found before
    it, of which it must make all that was found next.
    """
    if not answer.plan.hops:
        return Proof(len(answer.plan.selection), len(answer.plan.selection))
    proof = _compared(answer, _at_once, spark)
    if proof.holds or not any(each.plan.open_to_newcomers for each in answer.parts):
        return proof
    by_steps = _compared(answer, _step_by_step, spark)
    return replace(by_steps, by_steps=True) if by_steps.holds else proof


def _compared(answer: Answer, made_again: MadeAgain, spark: SparkSession) -> Proof:
    """How much of a selection there is in what is made again."""
    selected = len(answer.plan.selection)
    try:
        same = _given_back(answer, made_again(answer, spark), spark)
    except WhenceError as error:
        return Proof(selected, 0, str(error))
    return Proof(selected, int(same.sum()))


def _at_once(answer: Answer, spark: SparkSession) -> Table | Array:
    """The selected dataset made again of nothing but what was found at the ends."""
    ends = _ends(answer)

    def instead(each: Table | Array) -> Table | Array:
        return ends[each.key] if each.key in ends else _unmade(each)

    known = {key: _of(recipe, instead) for key, recipe in _boxes(answer).items()}
    image = _unmade(answer.plan.selection.dataset)
    return available(image, _region(answer), known, spark)


def _step_by_step(answer: Answer, spark: SparkSession) -> Table | Array:
    """The selected dataset made again of what was found right before it, if all that was too."""
    boxes, selected = _boxes(answer), answer.plan.selection.dataset
    behind = {key: found for key, found in _found(answer).items() if key != selected.key}
    few = {key: _few(found) for key, found in behind.items()}

    def again(image: Table | Array, region: Filter) -> Table | Array:
        known = {image.key: _of(boxes[image.key], lambda each: few[each.key])}
        return available(_unmade(image), region, known, spark)

    for found in (behind[key] for key in boxes if key in behind):
        if not _is_in(again(found.dataset, found.outline), found, answer):
            raise Failed(f'not all that was found in "{found.dataset.name}" comes back')
    return again(selected, _region(answer))


def _unmade(dataset: Table | Array) -> Table | Array:
    """A dataset that has to be made again, whatever is there of it."""
    if isinstance(dataset, Table):
        return replace(dataset, kept=False, content=None)
    return replace(dataset, kept=False, content=NoCells(_places(dataset)))


def _places(array: Array) -> dict[str, NDArray[Any]]:
    return {d: coordinate(array, d) for d in array.dims}


def _of(recipe: Recipe, instead: Callable[[Table | Array], Table | Array]) -> Recipe:
    """A recipe with other inputs."""
    return replace(recipe, inputs={port: instead(each) for port, each in recipe.inputs.items()})


def _region(answer: Answer) -> Filter:
    """Where the selected data lie, by the attributes that were asked about."""
    selection = answer.plan.selection
    if isinstance(selection.dataset, Array):
        return selection.at
    return selection.at.only(*_names(answer, selection.dataset)).loose()


def _boxes(answer: Answer) -> Recipes:
    """The recipes of all that was inverted, each with its box as it is for what was asked."""
    made = {hop.image.key for hop in _hops(answer)}
    return {
        key: replace(recipe, box=recipe.box.alone(_asked(answer, key)))
        for key, recipe in answer.plan.recipes.items()
        if key in made
    }


def _found(answer: Answer) -> dict[Key, Found]:
    """What was found, dataset by dataset; to a wish of their own in those that have one."""
    own = [answer.lineage[name] for name in answer.own]
    return {**answer.found, **{found.dataset.key: found for found in own}}


def _ends(answer: Answer) -> dict[Key, Table | Array]:
    """The datasets behind which nothing was looked for, with only what was found in them."""
    made = {hop.image.key for hop in _hops(answer)}
    return {key: _few(found) for key, found in _found(answer).items() if key not in made}


def _hops(answer: Answer) -> list[Hop]:
    return [hop for each in answer.parts for hop in each.plan.hops]


def _asked(answer: Answer, image: Key) -> set[str]:
    """The attributes that are asked about in a dataset."""
    hops = [hop for hop in _hops(answer) if hop.image.key == image]
    return {i.attribute for hop in hops for i in hop.inversions}


def _names(answer: Answer, table: Table) -> list[str]:
    """The columns of a table that are asked about."""
    asked = _asked(answer, table.key)
    return [c for a in table.attributes if a.name in asked for c in a.columns]


def _few(found: Found) -> Table | Array:
    """A dataset that has only what was found in it."""
    dataset = found.dataset
    if isinstance(dataset, Table):
        few = held_table(dataset.name, dataset.attributes, found.rows.select(dataset.columns))
        return replace(dataset, groups=few.groups, content=few.content)
    cells = {v: _cells(found, n) for n, v in enumerate(dataset.variables)}
    index = {v: np.column_stack(list(at.values())) for v, (at, _) in cells.items()}
    values = {v: kept for v, (_, kept) in cells.items()}
    return replace(dataset, content=FewCells(index, values, _places(dataset)))


def _cells(found: Found, variable: int) -> tuple[dict[str, NDArray[np.int64]], NDArray[Any]]:
    """The cells of a variable that were found, by an index along each dimension, with values."""
    mine = column(found.rows, "variable") == variable
    index = {d: column(found.rows, d)[mine] for d in cast(Array, found.dataset).dims}
    return index, column(found.rows, "value")[mine]


def _is_in(again: Table | Array, found: Found, answer: Answer) -> bool:
    """Whether all that was found is in a dataset that was made again, as it was."""
    if isinstance(again, Table):
        names = _names(answer, again)
        there, wanted = (_counted(t.select(names)) for t in (matching(again, None), found.rows))
        return wanted <= there
    cells = ((v, *_cells(found, n)) for n, v in enumerate(again.variables))
    return all(_same(cells_at(again, v, at), kept).all() for v, at, kept in cells)


def _given_back(answer: Answer, again: Table | Array, spark: SparkSession) -> NDArray[np.bool_]:
    """Which of the selected data the boxes have made again."""
    selection = answer.plan.selection
    if isinstance(again, Table):
        names = _names(answer, again)
        selected = pa.table({n: selection.at.spans[n].low for n in names})
        return _among(selected, held(again, _region(answer)).select(names))
    assert isinstance(selection.dataset, Array)
    index = {d: selection.at.spans[d].low for d in again.dims}
    asked = _asked(answer, again.key) & set(again.variables)
    if not asked:
        raise Failed("coordinates alone have no values that could come back")
    was = cast(Array, available(selection.dataset, _region(answer), answer.plan.recipes, spark))
    pairs = [(cells_at(each, v, index) for each in (was, again)) for v in asked]
    return np.asarray(np.all([_same(one, other) for one, other in pairs], axis=0))


def _same(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(np.isclose(one.astype(float), other.astype(float), 1e-6, 0, equal_nan=True))


def _among(wanted: pa.Table, rows: pa.Table) -> NDArray[np.bool_]:
    """Which rows are among others, by all their columns."""
    there = _counted(rows)
    return np.array([_key(row) in there for row in wanted.to_pylist()], bool)


def _counted(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """How often each row comes."""
    return Counter(map(_key, rows.to_pylist()))


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple("nan" if value != value else value for value in row.values())
