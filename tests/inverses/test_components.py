"""Principal components make what another way to find them makes, of every cell there is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from inverses.guarantees import COMPLETE, EXACT
from inverses.making import made_by
from pipelines.boxes.components import PrincipalComponents
from pipelines.contents import held_array
from pipelines.datasets import Array
from pipelines.errors import TooDear
from pipelines.filters import Filter
from tests.files import pressures
from tests.inverses import wrong
from tests.inverses.cases import Case, Plain, check, small_arrays
from tests.inverses.families import (
    MANY,
    PATIENCE,
    cells,
    in_parts,
    params_of,
    proves_itself,
    traced,
)
from tests.inverses.grids import changed, plain_array
from tests.inverses.wrong import REGISTRY

pytestmark = PATIENCE


def rebuilt(box: PrincipalComponents) -> Callable[[Plain], Any]:
    """The field projected on the leading eigenvectors of how its steps go together."""

    def make(given: Plain) -> Any:
        return {name: _projected(values, box.components) for name, values in given["field"].items()}

    return make


def _projected(field: np.ndarray, most: int) -> np.ndarray:
    made = np.full(field.shape, np.nan)
    places = [p for p in np.ndindex(field.shape[1:]) if not np.isnan(field[:, *p]).any()]
    if not places:
        return made
    columns = np.array([field[:, *p] for p in places]).T
    mean = columns.mean(axis=0)
    apart = columns - mean
    found, vectors = np.linalg.eigh(apart @ apart.T)
    strongest = np.argsort(found)[::-1][:most]
    vectors = vectors[:, strongest[_clear(found, most)]]
    for place, column in zip(places, (vectors @ vectors.T @ apart + mean).T, strict=True):
        made[:, *place] = column
    return made


def _clear(found: np.ndarray, most: int) -> np.ndarray:
    """Which of the strongest are stronger than the strongest left out."""
    ordered = np.sqrt(np.maximum(np.sort(found)[::-1], 0))
    left = ordered[most] if most < len(ordered) else -1.0
    return ordered[:most] > left + 1e-6


@st.composite
def fields(draw: st.DrawFn) -> Case:
    box = draw(params_of(PrincipalComponents))
    array = draw(small_arrays(draw(st.sampled_from([("a",)] * 4 + [("a", "b")])), most=(4, 2, 2)))
    return Case(box, {"field": array}, rebuilt(box))


WORLDS = {PrincipalComponents: fields()}


@given(data=st.data())
@settings(max_examples=MANY)
def test_every_cell_may_be_behind_a_principal_component(data: st.DataObject) -> None:
    check(data.draw(WORLDS[PrincipalComponents]), REGISTRY)


@given(data=st.data())
@settings(max_examples=MANY)
def test_principal_components_are_made_and_inverted_in_parts_of_any_shape(
    data: st.DataObject,
) -> None:
    in_parts(data.draw(WORLDS[PrincipalComponents]), REGISTRY, data)


def own_step(box: PrincipalComponents, at: Filter, source: Array) -> Filter:
    """It takes each step for a world of its own."""
    return at.only("time")


@pytest.mark.parametrize("changed", [{"function": own_step}, {"promises": EXACT}])
def test_a_wrong_inverse_of_components_is_caught(changed: dict[str, Any]) -> None:
    registry = wrong.registry_with("all_cells", **changed)
    law = "missing|not behind it"
    wrong.assert_caught(lambda data: check(data.draw(WORLDS[PrincipalComponents]), registry), law)


def test_components_are_traced_to_the_whole_field_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    field = pressures()[:3, :4, :5]
    boxes = "  main: {box: principal_components, inputs: {field: world}, params: {components: 1}}"
    answer = traced({"world": field}, boxes, "main", "lat = 90 and lon = 0", spark, tmp_path)
    assert cells(answer, "world") == set(np.ndindex(field.shape))
    assert answer.guarantee("world") == frozenset({COMPLETE})
    assert proves_itself(answer)


def test_a_place_with_an_infinite_step_is_left_out_and_missing() -> None:
    field = plain_array((3, 2, 2))
    cells = field.content.variables["a"] ** 2
    without, infinite = cells.copy(), cells.copy()
    without[1, 0, 0], infinite[1, 0, 0] = np.nan, -np.inf
    box = PrincipalComponents(1)
    made = made_by(box, {"field": changed(field, None, {"a": infinite})})
    expected = _projected(without, 1)
    assert isinstance(made, Array) and np.isnan(expected[:, 0, 0]).all()
    np.testing.assert_allclose(made.content.variables["a"], expected)


def test_a_field_that_cannot_be_held_is_refused_before_it_is_read() -> None:
    places = {"time": np.arange(10_000), "lat": np.arange(721), "lon": np.arange(1440)}
    huge = held_array("era", (), places, {})
    with pytest.raises(TooDear, match=r'77\.4 GiB of "era", over the limit of 2; coarsen'):
        PrincipalComponents().grid({"field": huge})
