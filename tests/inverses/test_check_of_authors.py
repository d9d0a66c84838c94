"""`whence check` of boxes that are unlike ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inverses.check import check
from inverses.registry import Registry
from inverses.samples import inputs_for
from pipelines.boxes.box import Box, Port
from pipelines.datasets import Location, Pressure, Text, Time, Type, Wind
from tests.inverses.authored import (
    OF_DAMP,
    OF_GUSTS,
    OF_HALF_OF_THEM,
    OF_TRACES,
    Damp,
    Gust,
    Traces,
)


@pytest.mark.parametrize("registry, kind", [(OF_GUSTS, Gust), (OF_DAMP, Damp), (OF_TRACES, Traces)])
def test_samples_have_all_that_a_port_needs(registry: Registry, kind: type[Box]) -> None:
    found = check(registry, kind, 20)
    assert {"complete", "pure"} <= {f.law for f in found}
    assert [f for f in found if not f.holds] == []


@pytest.mark.parametrize("needs", [(Wind,), (Time,), (Location, Pressure), (Text, Type("Dose"))])
@given(data=st.data())
def test_rows_and_fields_have_what_is_needed_of_them(
    needs: tuple[Type, ...], data: st.DataObject
) -> None:
    for kind in ("table", "array") if not {Text, Location} & {*needs} else ("table",):
        made = data.draw(inputs_for(Port("given", kind, needs), ((1, 2, 2), False)))
        assert {each.type for each in made.attributes} >= {*needs}


def test_differences_of_tiny_values_are_seen() -> None:
    broken = {f.law for f in check(OF_HALF_OF_THEM, Traces, 20) if not f.holds}
    assert broken == {"complete", "sufficient"}
