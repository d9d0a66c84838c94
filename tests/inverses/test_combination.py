"""What several inversions find together is what plain sets say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inverses import planner
from inverses.guarantees import COMPLETE, EXACT, PURE, Guarantee
from inverses.planner import plan
from inverses.registry import AGGREGATE, SCALAR, Registry, Verification, WeakInverse
from inverses.selection import Selection
from inverses.trace import carry_out
from pipelines.boxes.box import Port, TableBox
from pipelines.datasets import TUPLE, Attribute, Made, Table, Type
from pipelines.filters import Filter
from pipelines.here import Here
from pipelines.spans import Span, span
from pipelines.tables import column
from tests import laws, oracles
from tests.inverses.wrong import assert_caught
from tests.strategies import stored_table, table_cuts

SOME = settings().max_examples // 5
PLACES, DATA = range(6), range(2)
SAYING = "found .*, sets say"
PLACE = Attribute("place", Type("Place"), ("place",))

Sets = tuple[frozenset[int], ...]
WAYS = ({}, {"at_once": True}, {"at_once": True, "pointwise": True})


@dataclass(frozen=True)
class Toy(TableBox):
    """Three attributes, each made of some places."""

    name: ClassVar = "toy"
    takes: ClassVar = (Port("places", "table"),)
    makes: ClassVar = tuple(Attribute(n, Type(n), (n,)) for n in ("red", "green", "blue"))
    contributed: ClassVar = "Whatever a test says."

    def run(self, inputs: Any, spark: Any) -> Any:
        raise AssertionError("made by hand")


@dataclass(frozen=True)
class Stated:
    """One attribute: its nature, the truth, and what each function says, datum by datum."""

    nature: str
    truth: Sets
    weak: tuple[Sets, ...]
    verify: tuple[Sets, ...]
    way: Mapping[str, bool]

    def found(self, datum: int, pure: bool) -> set[int]:
        """What plain sets say of one datum."""
        weak = oracles.of_one_attribute([set(s[datum]) for s in self.weak], pure)
        kept = [set(s[datum]) for s in self.verify]
        return weak & oracles.of_one_attribute(kept, pure) if kept else weak


@st.composite
def stated(draw: st.DrawFn, promises: Guarantee) -> Stated:
    """An attribute whose functions keep the promise."""
    some = st.frozensets(st.sampled_from(PLACES))
    truth = tuple(draw(some) for _ in DATA)

    def keeping() -> Sets:
        if promises == EXACT:
            return truth
        others = (draw(some) for _ in DATA)
        each = zip(truth, others, strict=True)
        return tuple(t | o if COMPLETE in promises else t & o for t, o in each)

    weak, verify = draw(st.integers(1, 2)), draw(st.integers(0, 2))
    return Stated(
        draw(st.sampled_from([SCALAR, AGGREGATE])),
        truth,
        tuple(keeping() for _ in range(weak)),
        tuple(keeping() for _ in range(verify)),
        draw(st.sampled_from(WAYS)),
    )


def filter_of(sets: Sets, box: Toy, at: Filter, source: Table) -> Filter:
    """The places that are said to be behind each datum."""
    pairs = [(o, p) for o, d in zip(at.owner, at.spans["red"].low, strict=True) for p in sets[d]]
    owner, place = np.array(pairs, np.int64).reshape(-1, 2).T
    return Filter(owner, {"place": Span(place, place)})


def mask_of(sets: Sets, box: Toy, at: Any, seen: Any, source: Table) -> Any:
    """Which candidates are said to be behind their datum, whether one is asked about or many."""
    data = np.broadcast_to(at["red"], len(seen["place"]))
    return np.array([p in sets[d] for p, d in zip(seen["place"], data, strict=True)], bool)


def registry_of(attributes: list[Stated], promises: Guarantee) -> Registry:
    """All that is stated, registered."""
    weak, verify = [], []
    for made, each in zip(Toy.makes, attributes, strict=False):
        about = (Toy, made.type, each.nature, (PLACE.type,), promises, TUPLE)
        weak += [WeakInverse("says", *about, partial(filter_of, s)) for s in each.weak]
        rest = {"needs": promises, **each.way}
        verify += [Verification("keeps", *about, partial(mask_of, s), **rest) for s in each.verify]
    return Registry({"toy": Toy}, tuple(weak), tuple(verify))


def traced(data: st.DataObject, asked: int, want: Guarantee, registry: Registry, home: Path) -> Any:
    """A trace of both data to the places behind them."""
    places = pa.table({"place": pa.array(PLACES, pa.int64())})
    cuts = data.draw(table_cuts(len(PLACES)))
    source = stored_table("places", places, cuts, home, attributes=(PLACE,))
    made = Made("toy", "toys", {}, {"places": source.key}, "run")
    types = {a.name: "int64" for a in Toy.makes}
    toys = Table(name="toys", version="v1", path="", attributes=Toy.makes, types=types, made=made)
    at = Filter(np.array(DATA), {a.name: span(list(DATA)) for a in Toy.makes})
    names = tuple(a.name for a in Toy.makes[:asked])
    workspace: Any = SimpleNamespace(dataset=lambda name, version=None: source)
    return carry_out(plan(workspace, Selection(toys, None, names, at), want, registry), Here())  # type: ignore[arg-type]


def check(data: st.DataObject, home: Path, spoilt: Any = lambda registry: registry) -> None:
    """One example of the law: up to three attributes that all keep one promise."""
    promises = data.draw(st.sampled_from([frozenset({COMPLETE}), frozenset({PURE}), EXACT]))
    attributes = data.draw(st.lists(stated(promises), min_size=1, max_size=3))
    registry = spoilt(registry_of(attributes, promises))
    answer = traced(data, len(attributes), promises, registry, home)
    assert answer.guarantee("places") == promises
    found = answer.lineage["places"].rows
    for datum in DATA:
        places = set(column(found, "place")[answer.behind(datum)["places"]].tolist())
        said = [(each.nature, each.found(datum, PURE in promises)) for each in attributes]
        true = [(each.nature, set(each.truth[datum])) for each in attributes]
        laws.combination(places, _together(said))
        laws.promised(promises, places, _together(true))


def _together(sets: list[tuple[str, set[int]]]) -> set[int]:
    scalar = [each for nature, each in sets if nature == SCALAR]
    return oracles.across_attributes(scalar, [each for nature, each in sets if nature == AGGREGATE])


@given(data=st.data())
@settings(max_examples=SOME)
def test_inversions_combine_as_sets_do(data: st.DataObject, tmp_path_factory: Any) -> None:
    check(data, tmp_path_factory.getbasetemp())


def _said_to_be(nature: str, registry: Registry) -> Registry:
    weak = tuple(replace(w, nature=nature) for w in registry.weak)
    return replace(
        registry,
        weak=weak,
        verifications=tuple(replace(v, nature=nature) for v in registry.verifications),
    )


@pytest.mark.parametrize("nature", [SCALAR, AGGREGATE])
def test_an_inverse_that_says_another_nature_than_it_has_is_caught(
    nature: str, tmp_path: Path
) -> None:
    assert_caught(lambda data: check(data, tmp_path, partial(_said_to_be, nature)), SAYING)


def test_a_planner_that_never_unites_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "unites", lambda goal: False)
    assert_caught(lambda data: check(data, tmp_path), SAYING)


def test_a_function_that_does_not_keep_its_promise_is_caught(tmp_path: Path) -> None:
    def silenced(registry: Registry) -> Registry:
        says_nothing = partial(filter_of, (frozenset(),) * len(DATA))
        return replace(
            registry, weak=tuple(replace(w, function=says_nothing) for w in registry.weak)
        )

    assert_caught(lambda data: check(data, tmp_path, silenced), SAYING)
