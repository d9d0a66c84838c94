"""Testing what authors state: every registered inverse against its box, on generated data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from inverses import lawful, regions
from inverses.as_one import able
from inverses.guarantees import COMPLETE, FAITHFUL, PURE, Property
from inverses.influence import Influences
from inverses.making import made_by, made_unless_refused
from inverses.plans import Hop
from inverses.registry import AGGREGATE, Registration, Registry, WeakInverse
from inverses.samples import Sample, samples
from inverses.told import says_anything
from inverses.trials import Items, data_of, found_by, intersections, inversions, tuples_of_array
from inverses.untried import laws_of, never_tried, reason
from pipelines.boxes.box import INSTEAD, STATED, Box
from pipelines.datasets import Array, Attribute, Table
from pipelines.filters import Filter
from pipelines.spans import Span
from pipelines.tables import matching

TRIALS = 100
Stated = tuple[str, str]
RUNS: Stated = ("", "runs")  # of a box, whatever inverses it has; so is the next
NO_NEWCOMERS: Stated = ("", "no newcomers")
Made = Table | Array
Tried = TypeVar("Tried")


class Violation(Exception):
    """A law that does not hold, with the data that show it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What testing one law of one inverse has shown, or of the box itself if none is named."""

    box: str
    inverse: str
    law: str
    trials: int
    counterexample: str | None = None

    @property
    def holds(self) -> bool:
        return self.counterexample is None

    def to_json(self) -> dict[str, Any]:
        return {
            "box": self.box,
            "inverse": self.inverse,
            "law": self.law,
            "trials": self.trials,
            "holds": self.holds,
            "counterexample": self.counterexample,
        }


def check(registry: Registry, kind: type[Box], trials: int = TRIALS) -> list[Finding]:
    """Test all inverses of a box; what does not hold comes with the smallest data that show it.

    What an inverse promises and no sample could try is found not to hold. The laws are those of
    one inverse over data in memory. That of composition takes several boxes, that of the cluster
    another Spark: both are left to the test suite.
    """
    tested: Counter[Stated] = Counter()
    broken: dict[Stated, str] = {}
    tried: set[Registration] = set()

    def try_all(sample: Sample) -> None:
        for stated, law, violation in violations(registry, sample):
            each = (stated.name if stated else "", law)
            tested[each] += 1
            tried.update([stated] if stated else [])
            if violation is not None:
                broken.setdefault(each, f"{violation}; with {_described(sample)}")

    explore(samples(kind), try_all, trials)
    found = [
        Finding(kind.name, *each, times, _shrunk(registry, kind, each, broken[each], trials))
        if each in broken
        else Finding(kind.name, *each, times)
        for each, times in tested.items()
    ]
    return [*found, *_untried(registry, kind, tried, trials)]


def _untried(
    registry: Registry, kind: type[Box], tried: Set[Registration], trials: int
) -> Iterator[Finding]:
    """What is promised and was never tried, which is not to be taken for held."""
    never = never_tried(registry, kind, tried)
    fruitless = _fruitless(kind, trials) if never else None
    for stated in never:
        for law in laws_of(kind, stated):
            yield Finding(kind.name, stated.name, law, 0, reason(stated, trials, fruitless))


def _fruitless(kind: type[Box], trials: int) -> str | None:
    """What there is of all samples if a box makes nothing of any: nothing, or words of refusal."""
    told: set[str] = set()

    def make(sample: Sample) -> None:
        try:
            made = made_by(sample.box, sample.inputs)
            told.add("something" if says_anything(made) else "nothing")
        except Exception as error:
            told.add(f"nothing: {error}")

    explore(samples(kind), make, trials)
    return None if "something" in told else max(told, key=len)


def explore(found: st.SearchStrategy[Tried], test: Callable[[Tried], None], trials: int) -> None:
    """Try what is generated, the same for every test, and shrink what one fails for."""
    quiet = settings(
        max_examples=trials,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        print_blob=False,
    )
    seed(0)(quiet(given(found)(test)))()


def _shrunk(registry: Registry, kind: type[Box], wanted: Stated, violated: str, trials: int) -> str:
    """The smallest data that show a violation, in words; else those that did."""

    def test(sample: Sample) -> None:
        for _, _, violation in violations(registry, sample, wanted):
            if violation is not None:
                raise Violation(f"{violation}; with {_described(sample)}")

    try:
        explore(samples(kind), test, trials)
    except Violation as violation:
        return str(violation)
    return violated


def violations(
    registry: Registry, sample: Sample, wanted: Stated | None = None
) -> Iterator[tuple[Registration | None, str, str | None]]:
    """Each law that was tested, or only the one wanted, of which inverse, and what violates it.

    Where all that is asked about is missing, a law that nothing violates was not tested.
    """
    made, failed = _made(sample)
    if wanted in (None, RUNS):
        yield None, RUNS[1], failed
    if made is None:
        return
    if sample.box.monotone and wanted in (None, NO_NEWCOMERS):
        yield None, NO_NEWCOMERS[1], broken_by(lambda: _newcomer(sample, made))
    for trial in _trials(registry, sample, made):
        for law, violation in _laws(trial):
            if wanted in (None, (trial.stated.name, law)):
                said = broken_by(violation)
                if said is not None or trial.telling:
                    yield trial.stated, law, said


def _made(sample: Sample) -> tuple[Made | None, str | None]:
    """What a box makes of a sample, unless it refuses it or fails, and how it failed."""
    try:
        return made_unless_refused(sample.box, sample.inputs), None
    except Exception as error:
        return None, _raised(error)


def broken_by(law: Callable[[], str | None]) -> str | None:
    """What violates a law: what it says, or that something its author wrote ends in an error."""
    try:
        return law()
    except Exception as error:
        return _raised(error)


def _raised(error: Exception) -> str:
    return f"it raises {type(error).__name__}: {error}"


def _newcomer(sample: Sample, made: Made) -> str | None:
    """What a box makes only of less."""
    said = (Influences(sample, port, made).newcomer() for port in sample.inputs)
    return next(filter(None, said), None)


def _trials(registry: Registry, sample: Sample, made: Made) -> Iterator[_Trial]:
    """Every inverse that can be tried on a sample."""
    if not len(data_of(made)):
        return
    unfaithful = cache(lambda: regions.faithful(registry, sample, made))
    for port, source in sample.inputs.items():
        tried = {steps: Influences(sample, port, made, steps) for steps in (False, True)}
        given_ = (registry, sample.box, port, made, source, sample.inputs)
        every = [(False, each) for each in inversions(*given_)]
        every += [(True, each) for each in intersections(*given_)]
        for cut, (stated, attribute, hop) in every:
            influences = tried[tuples_of_array(hop)]
            yield _Trial(sample, stated, attribute, hop, influences, unfaithful, cut)


@dataclass(frozen=True)
class _Trial:
    """An inverse of an attribute, what it finds behind a few data, and what matters to them."""

    sample: Sample
    stated: Registration
    attribute: Attribute
    hop: Hop
    influences: Influences
    unfaithful: Callable[[], str | None]
    cut: bool  # by what is behind another attribute

    @cached_property
    def every(self) -> Filter:
        return data_of(self.hop.image)

    @cached_property
    def at(self) -> Filter:
        """A few data, spread over all of them, or over all that are there if none of those is."""
        every = list(range(len(self.every)))
        few = _few(every)
        numbers = np.array(few if self.there(few) else _few(self.there(every) or every))
        spans = self.every[numbers].spans
        return Filter(np.arange(len(numbers)), {**spans, "": Span(numbers, numbers)})

    def there(self, numbers: list[int]) -> list[int]:
        """Those of some data that are not missing, so that something can be behind them."""
        return [n for n in numbers if not self.influences.missing(self.attribute, n)]

    @cached_property
    def telling(self) -> bool:
        """Whether any of them is there."""
        return bool(self.there(self.at.spans[""].low.tolist()))

    @cached_property
    def found(self) -> list[Items]:
        return found_by(self.hop, self.at)

    def contradicted(self, law: Property) -> str | None:
        """What contradicts that the answers are complete, or pure."""
        for datum, items in zip(self.at.spans[""].low.tolist(), self.found, strict=True):
            said = self.influences.contradicting(law == PURE, self.attribute, datum, items)
            if said is not None:
                return said
        return None


def _few(numbers: list[int]) -> list[int]:
    """The first of some numbers, one in the middle and the last."""
    last = len(numbers) - 1
    return [numbers[n] for n in sorted({0, last // 2, last})]


def _laws(trial: _Trial) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """The laws that a trial can test, each with what does."""
    sample, hop, made, promises = trial.sample, trial.hop, trial.hop.image, trial.stated.promises
    if trial.cut:
        yield "natures", lambda: _lost(trial)
        return
    if COMPLETE in promises:
        yield "complete", lambda: trial.contradicted(COMPLETE)
    if PURE in promises and _shows_pure(trial):
        yield "pure", lambda: trial.contradicted(PURE)
    yield "monotony", lambda: lawful.monotony(hop, trial.at, trial.found)
    yield "narrowing", lambda: lawful.narrowing(hop, trial.at, trial.found)
    yield "chunking", lambda: lawful.chunking(hop, trial.at, trial.found)
    if COMPLETE in promises and lawful.replayable(sample.box, made, trial.attribute):
        enough = lawful.sufficient
        yield "sufficient", lambda: enough(sample, trial.attribute, hop, trial.at, trial.found)
    if able(hop):
        some = np.arange(len(trial.every)) % 5 != 3
        yield "as one", lambda: lawful.as_one(hop, trial.every[some])
    if FAITHFUL in promises:
        yield "faithful", trial.unfaithful
    stated = trial.stated
    if isinstance(stated, WeakInverse):
        yield "regions", lambda: regions.held_whole(stated, hop)


def _lost(trial: _Trial) -> str | None:
    """What an answer about one scalar attribute loses where another is asked about, too."""
    asked = {i.attribute for i in trial.hop.inversions} - {trial.attribute.name}
    said = trial.contradicted(COMPLETE)
    return said and f"asked together with {' and '.join(sorted(asked))}, {said}"


def _shows_pure(trial: _Trial) -> bool:
    """Whether other inputs can show that an inverse is pure.

    Not by the author's word; nor if one would do instead of another and a scalar attribute says
    less than which row it is: then what it finds are all that might have been that row.
    """
    box, made = trial.sample.box, trial.hop.image
    if box.influence != INSTEAD or isinstance(made, Array):
        return box.influence != STATED
    whole = set(box.identity(made.columns)) >= set(made.columns)
    return whole or trial.stated.nature == AGGREGATE


def _described(sample: Sample) -> str:
    """A sample in one line."""
    params = ", ".join(f"{k}={v!r}" for k, v in sample.box.params().items())
    return f"{sample.box.name}({params}) over " + "; ".join(
        f"{port} {_shown(each)}" for port, each in sample.inputs.items()
    )


def _shown(source: Table | Array) -> str:
    if isinstance(source, Table):
        return str(matching(source, None).to_pylist())
    values: Mapping[str, Any] = source.content.variables
    return ", ".join(f"{v}={a.tolist()}" for v, a in values.items())
