"""Boxes and inverses as authors may write them: right ones that are unlike ours, and wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from inverses.guarantees import COMPLETE, EXACT
from inverses.registry import AGGREGATE, ANY, SCALAR, USED, Registry, Verification, WeakInverse
from pipelines.arrays import Ranges, block
from pipelines.boxes.box import ArrayBox, Grid, Port, param
from pipelines.boxes.extraction import ExtractAbove
from pipelines.datasets import ELEMENT, Array, Attribute, Dataset, Location, Quantity, Type, Wind
from pipelines.errors import Failed, Refused
from pipelines.filters import Filter
from pipelines.grids import grid_like
from pipelines.spans import Span, span

Attributes = tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Hot(ExtractAbove):
    """The cells above a temperature, of which no sample has any."""

    threshold: float = param(300.0, "in kelvins")

    name: ClassVar = "hot"
    examples: ClassVar = ({},)


@dataclass(frozen=True, slots=True)
class Warm(Hot):
    """The same, and what its author has to say for it to be tried."""

    name: ClassVar = "warm"
    examples: ClassVar = ({"threshold": 0.0},)


@dataclass(frozen=True, slots=True)
class Gust(ArrayBox):
    """The speed of the wind."""

    name: ClassVar = "gust"
    takes: ClassVar = (Port("field", "array", (Wind,)),)
    contributed: ClassVar = "The wind there."
    flat: ClassVar = True

    def attributes_of(self, given: Mapping[str, Attributes]) -> Attributes:
        times = tuple(a for a in given["field"] if a.name == "time")
        return (*times, Attribute("gust", Quantity, ("gust",), "m s-1", ("lat", "lon")))

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return tuple(a.name for a in source.attributes if a.type in self.takes[0].needs)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        field = inputs["field"]
        assert isinstance(field, Array)
        return grid_like(field, self.attributes_of({"field": field.attributes}))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, Any]:
        names = self.used("gust", "field", inputs["field"])
        each = [block(inputs["field"], n, ranges).astype(float) for n in names]
        return {"gust": np.sqrt(sum(values**2 for values in each))}


@dataclass(frozen=True, slots=True)
class Gale(Gust):
    """The speed of the wind where it is one that no sample has."""

    name: ClassVar = "gale"

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, Any]:
        made = Gust.block(self, inputs, ranges)["gust"]
        return {"gust": np.where(made > 1e5, made, np.nan)}


@dataclass(frozen=True, slots=True)
class Rise(Gust):
    """By how much the speed of the wind has changed in two steps."""

    name: ClassVar = "rise"

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, Any]:
        low, high = ranges["time"]
        every = Gust.block(self, inputs, {**ranges, "time": (0, high)})["gust"]
        risen = np.full(every.shape, np.nan)
        risen[2:] = every[2:] - every[:-2]
        return {"gust": risen[low:]}


@dataclass(frozen=True, slots=True)
class Broad(Gust):
    """The speed of the wind over nine columns, or fewer at an edge."""

    name: ClassVar = "broad"

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, Any]:
        columns = inputs["field"].size["lon"]
        every = Gust.block(self, inputs, {**ranges, "lon": (0, columns)})["gust"]
        around = (every[:, :, max(0, c - 4) : c + 5] for c in range(*ranges["lon"]))
        return {"gust": np.stack([each.sum(axis=2) for each in around], axis=2)}


@dataclass(frozen=True, slots=True)
class Drift(Gust):
    """The speed of the wind, moved by some columns."""

    by: int = param(0, "how many columns", low=0)

    name: ClassVar = "drift"

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, Any]:
        columns = inputs["field"].size["lon"]
        every = Gust.block(self, inputs, {**ranges, "lon": (0, columns)})["gust"]
        return {"gust": np.roll(every, self.by, axis=2)[:, :, slice(*ranges["lon"])]}


@dataclass(frozen=True, slots=True)
class Damp(Gust):
    """The size of something that only its author knows."""

    name: ClassVar = "damp"
    takes: ClassVar = (Port("field", "array", (Type("Humidity"),)),)


@dataclass(frozen=True, slots=True)
class Traces(Gust):
    """A trillionth of the wind, of which what is missing counts as nothing."""

    name: ClassVar = "traces"

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, Any]:
        names = self.used("gust", "field", inputs["field"])
        return {
            "gust": 1e-12 * sum(np.nan_to_num(block(inputs["field"], n, ranges)) for n in names)
        }


@dataclass(frozen=True, slots=True)
class Picky(Gust):
    """The speed of wind of which none is missing."""

    complaint: ClassVar[type[Exception]] = Refused

    name: ClassVar = "picky"

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, Any]:
        made = Gust.block(self, inputs, ranges)
        if np.isnan(made["gust"]).any():
            raise self.complaint("some wind is missing")
        return made


@dataclass(frozen=True, slots=True)
class Clumsy(Picky):
    """The same, by an author who has not thought of wind that is missing."""

    complaint: ClassVar[type[Exception]] = ValueError

    name: ClassVar = "clumsy"


@dataclass(frozen=True, slots=True)
class Frail(Picky):
    """The same, by one who says that the work has failed where wind is missing."""

    complaint: ClassVar[type[Exception]] = Failed

    name: ClassVar = "frail"


@dataclass(frozen=True, slots=True)
class Closed(Picky):
    """The speed of no wind at all."""

    name: ClassVar = "closed"

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, Any]:
        raise Refused("it is closed")


def there(box: object, at: Filter, source: Array) -> Filter:
    """A cell is made of those at its place."""
    return at.only(*source.dims)


def without(dim: str, forgotten: Callable[[Any], Any]) -> WeakInverse:
    """A cell is made of those at its place, but for some rows, columns or steps."""

    def most(box: object, at: Filter, source: Array) -> Filter:
        places = source.content.coordinates[dim][at.spans[dim].low]
        return at.only(*source.dims)[~forgotten(places)]

    return weak(Gust, most)


def broken(box: object, at: Filter, source: Array) -> Filter:
    """An inverse that its author has not finished."""
    raise KeyError("lat")


def own_cell(box: object, at: Filter, source: Array) -> Filter:
    """A row tells of one cell."""
    return at.to(**{dim: at.span(f"{dim}_index") for dim in source.dims})


def first_step(box: object, at: Filter, source: Array) -> Filter:
    """Whatever step a cell is of, it is made of those in the first."""
    return at.only("lat", "lon") & at.to(time=span(0).repeated(len(at)))


def step_before(box: object, at: Filter, source: Array) -> Filter:
    """A cell is made of those at its place in this step and the one before."""
    return at.only("lat", "lon") & at.to(time=at.spans["time"].grown(1, 0, source.shape[0] - 1))


def seven_columns(box: object, at: Filter, source: Array) -> Filter:
    """A cell is made of those in up to three columns to either side."""
    last = source.size["lon"] - 1
    return at.only("time", "lat") & at.to(lon=at.spans["lon"].grown(3, 0, last))


def moody() -> Callable[..., Filter]:
    """An inverse that makes nothing of the first cells it is asked about, and then does."""
    answered: list[Filter] = []

    def mine(box: object, at: Filter, source: Array) -> Filter:
        answered.append(there(box, at, source))
        return answered[-1] if len(answered) > 1 else answered[-1][:0]

    return mine


def lowest(box: object, at: Filter, source: Array) -> Filter:
    """A cell is made of those at its place, told by the low end alone of where that is."""
    spans = {dim: at.spans[dim] for dim in source.dims}
    return at.to(**{dim: Span(each.low, each.low) for dim, each in spans.items()})


def weak(kind: type, function: Any, **changed: Any) -> WeakInverse:
    """A weak inverse of all that a box makes."""
    stated: dict[str, Any] = {
        "name": function.__name__,
        "box": kind,
        "image": ANY,
        "nature": SCALAR if issubclass(kind, Hot) else AGGREGATE,
        "yields": (USED,),
        "promises": EXACT,
        "level": ELEMENT,
        "function": function,
    }
    return WeakInverse(**{**stated, **changed})


def authored(*stated: WeakInverse, verify: tuple[Verification, ...] = ()) -> Registry:
    """A registry of what one author wrote, and nothing else."""
    boxes = {each.box.name: each.box for each in stated}
    return Registry(boxes, stated, verify)


def verified(function: Any) -> Registry:
    """A registry in which a function verifies what is behind gusts."""
    needed = frozenset({COMPLETE})
    usual = (AGGREGATE, (USED,), EXACT, ELEMENT)
    verification = Verification("checked", Gust, ANY, *usual, function, needs=needed)
    return authored(weak(Gust, there, promises=needed), verify=(verification,))


OF_GUSTS = authored(weak(Gust, there))
OF_THE_LOWEST = authored(weak(Gust, lowest))
OF_GALES = authored(weak(Gale, first_step))
OF_DRIFT = authored(weak(Drift, there))
OF_FAR = {
    "two steps before": authored(weak(Rise, step_before)),
    "four columns away": authored(weak(Broad, seven_columns)),
}
OF_DAMP = authored(weak(Damp, there))
OF_PICKY_GUSTS = authored(*(weak(kind, there) for kind in (Picky, Clumsy, Frail, Closed)))
OF_NONSENSE = {
    'weak inverse "mine" of Gust made NoneType': authored(
        weak(Gust, lambda box, at, source: None, name="mine")
    ),
    'weak inverse "mine" of Gust restricts "lat" 1 times for 2 data': authored(
        weak(Gust, lambda box, at, source: at.to(lat=span(0)), name="mine")
    ),
    "made object of shape ()": verified(lambda box, at, seen, source: None),
    "made bool of shape ()": verified(lambda box, at, seen, source: True),
    "made int64 of shape (0,)": verified(lambda *_: np.zeros(0, int)),
    "made float64 of shape": verified(lambda box, at, seen, source: seen["value"]),
}
OF_BROKEN = authored(weak(Gust, broken))
OF_TRACES = authored(weak(Traces, there))
OF_HALF_OF_THEM = authored(weak(Traces, there, yields=("u10",)))
OF_HEAT = authored(weak(Hot, own_cell))
OF_SOME_HEAT = authored(weak(Warm, own_cell))
OF_NOWHERE = authored(
    weak(Gust, there),
    weak(Gust, there, name="nowhere", image=Location, promises=frozenset({COMPLETE})),
)
FORGOTTEN = {
    "the poles": authored(without("lat", lambda lat: np.abs(lat) == 90)),
    "years before": authored(without("time", lambda time: time < np.datetime64("2000-01-01"))),
    "columns that are not round": authored(without("lon", lambda lon: lon % 1 != 0)),
}
