"""Boxes that nobody wrote inverses for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pipelines.arrays import Ranges, block, coordinate
from pipelines.boxes.box import ArrayBox, Grid, Port, param
from pipelines.datasets import Array, Attribute, Dataset
from pipelines.grids import grid_like


class Bare(ArrayBox):
    """A box over the pressure of a field, which is always made whole."""

    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = "Nobody has said."

    def attributes_of(self, given: Mapping[str, tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
        return given["field"]

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        field = inputs["field"]
        assert isinstance(field, Array)
        return grid_like(field, field.attributes)

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, Any]:
        made = self.whole(block(inputs["field"], "slp", {}).astype(float))
        return {"slp": made[tuple(slice(*ranges[d]) for d in inputs["field"].dims)]}

    @abstractmethod
    def whole(self, values: np.ndarray) -> np.ndarray:
        """All that it makes."""


def moved(values: np.ndarray, axis: int, by: int) -> np.ndarray:
    """What lies `by` further along an axis, and at an end what is last."""
    places = np.clip(np.arange(values.shape[axis]) + by, 0, values.shape[axis] - 1)
    return np.take(values, places, axis)


@dataclass(frozen=True)
class Blurred(Bare):
    """The mean of the cells around each, some to every side."""

    reach: int = param(1, "how many to a side", low=0)

    name: ClassVar = "blurred"

    def whole(self, values: np.ndarray) -> np.ndarray:
        sides = range(-self.reach, self.reach + 1)
        return np.mean([moved(moved(values, 1, y), 2, x) for y in sides for x in sides], axis=0)


@dataclass(frozen=True)
class Drifted(Bare):
    """What was at the place a step ago, and what is two columns further east."""

    name: ClassVar = "drifted"

    def whole(self, values: np.ndarray) -> np.ndarray:
        return moved(values, 0, -1) - 2 * moved(values, 2, 2)


@dataclass(frozen=True)
class Levelled(Bare):
    """How far each cell is from the mean of its step."""

    name: ClassVar = "levelled"

    def whole(self, values: np.ndarray) -> np.ndarray:
        return values - values.mean(axis=(1, 2), keepdims=True)


@dataclass(frozen=True)
class Lately(Bare):
    """The last eight steps, which are all of a small field."""

    name: ClassVar = "lately"

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        field = inputs["field"]
        assert isinstance(field, Array)
        return grid_like(field, field.attributes, {"time": coordinate(field, "time")[-8:]})

    def whole(self, values: np.ndarray) -> np.ndarray:
        return values[-8:]


@dataclass(frozen=True)
class Choosy(Bare):
    """What it is given, if that is a large field."""

    name: ClassVar = "choosy"

    def whole(self, values: np.ndarray) -> np.ndarray:
        if values.size < 1000:
            raise ValueError("too small")
        return values


class Paired(ArrayBox):
    """A box over the first variables of two fields, which is always made whole."""

    takes: ClassVar = (Port("warm", "array"), Port("cold", "array"))
    contributed: ClassVar = "Nobody has said."

    def attributes_of(self, given: Mapping[str, tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
        time, first, *_ = given["warm"]
        return (time, first)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        warm = inputs["warm"]
        assert isinstance(warm, Array)
        return grid_like(warm, self.attributes_of({"warm": warm.attributes}))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, Any]:
        name = inputs["warm"].variables[0]
        fields = (block(inputs[port], name, {}).astype(float) for port in ("warm", "cold"))
        made = self.whole(*fields)
        return {name: made[tuple(slice(*ranges[d]) for d in inputs["warm"].dims)]}

    @abstractmethod
    def whole(self, warm: np.ndarray, cold: np.ndarray) -> np.ndarray:
        """All that it makes."""


@dataclass(frozen=True)
class Apart(Paired):
    """How much warmer it is than what is cold one row before."""

    name: ClassVar = "apart"

    def whole(self, warm: np.ndarray, cold: np.ndarray) -> np.ndarray:
        return warm - moved(cold, 1, -1)


@dataclass(frozen=True)
class Cooled(Paired):
    """What is warm, or where that is more than what is cold, what is cold to the east of it."""

    name: ClassVar = "cooled"

    def whole(self, warm: np.ndarray, cold: np.ndarray) -> np.ndarray:
        return np.where(warm > cold, moved(cold, 2, 1), warm)
