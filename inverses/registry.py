"""Registering weak inverses and verifications, and the defaults that every attribute has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from inverses.guarantees import COMPLETE, NOTHING, Guarantee, Property
from pipelines.boxes.box import SHIPPED, Box, boxes_in, modules
from pipelines.datasets import TUPLE, Attribute, Dataset, Type
from pipelines.errors import Refused
from pipelines.filters import Filter

SCALAR, AGGREGATE = "scalar", "aggregate"

Row = Mapping[str, Any]
Seen = Mapping[str, NDArray[Any]]
Mask = NDArray[np.bool_]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Registration:
    """What an author states of an inverse: which box and attribute, what it yields and promises.

    `image` is the type of the attribute that is inverted, `yields` the types of what is found in
    the input, `level` the level it is found at. Where two attributes share a type, `named` says
    which one is inverted, and a name in `yields` which one is found.
    """

    name: str
    box: type[Box]
    image: Type
    nature: str
    yields: tuple[Type | str, ...]
    promises: Guarantee
    level: str
    function: Callable[..., Any]
    port: str | None = None
    named: str | None = None

    def fits(self, attribute: Attribute, port: str, source: Dataset, level: str) -> bool:
        """Whether this inverts an attribute into one level of the dataset at a port."""
        there = {n for a in source.attributes for n in (a.type, a.name)}
        return (
            attribute.type == self.image
            and self.named in (None, attribute.name)
            and self.port in (None, port)
            and self.level == level
            and set(self.yields) <= there
        )


@dataclass(frozen=True, slots=True)
class WeakInverse(Registration):
    """From the selected values of an attribute to a filter, without looking at the data."""

    def __call__(self, box: Box, at: Filter, source: Dataset) -> Filter:
        found: Filter = self.function(box, at, source)
        return found


@dataclass(frozen=True, slots=True)
class Verification(Registration):
    """From those values and what the filter found to the part of it that counts.

    `needs` is its apply condition. One that is `pointwise` decides each candidate by itself, and
    is called for many data at once: each value in `at` is then an array beside the candidates.
    """

    needs: Guarantee = NOTHING
    pointwise: bool = False

    def __call__(self, box: Box, at: Row, seen: Seen, source: Dataset) -> Mask:
        found: Mask = self.function(box, at, seen, source)
        return found


def weakly_inverts(
    box: type[Box],
    *,
    image: Type,
    yields: Iterable[Type | str] = (),
    nature: str = SCALAR,
    promises: Iterable[Property] = (),
    level: str = TUPLE,
    port: str | None = None,
    named: str | None = None,
) -> Callable[[Function], Function]:
    """Register `function(box, at, source) -> Filter` as a weak inverse of `box`."""

    def register(function: Function) -> Function:
        function.registration = WeakInverse(  # type: ignore[attr-defined]
            function.__name__, box, image, nature, tuple(yields), frozenset(promises), level,
            function, port, named,
        )  # fmt: skip
        return function

    return register


def verifies(
    box: type[Box],
    *,
    image: Type,
    yields: Iterable[Type | str] = (),
    nature: str = SCALAR,
    promises: Iterable[Property] = (),
    needs: Iterable[Property] = (),
    pointwise: bool = False,
    level: str = TUPLE,
    port: str | None = None,
    named: str | None = None,
) -> Callable[[Function], Function]:
    """Register `function(box, at, seen, source) -> mask` as a verification of `box`."""

    def register(function: Function) -> Function:
        function.registration = Verification(  # type: ignore[attr-defined]
            function.__name__, box, image, nature, tuple(yields), frozenset(promises), level,
            function, port, named, frozenset(needs), pointwise,
        )  # fmt: skip
        return function

    return register


def everything(box: Box, at: Filter, source: Dataset) -> Filter:
    """The default weak inverse: no restriction, so complete."""
    return at.to()


def default_weak(attribute: Attribute, level: str) -> WeakInverse:
    """The weak inverse that an attribute has when nobody registered one."""
    promise = frozenset({COMPLETE})
    return WeakInverse("everything", Box, attribute.type, AGGREGATE, (), promise, level, everything)


@dataclass(frozen=True, slots=True)
class Registry:
    """The boxes that are known and the inverses registered for them."""

    boxes: Mapping[str, type[Box]]
    weak: tuple[WeakInverse, ...]
    verifications: tuple[Verification, ...]

    @classmethod
    def of(cls, named: Iterable[str] = ()) -> Registry:
        """What is shipped, what is installed, and what the named modules hold."""
        found = modules(named)
        facing = [import_module(name.replace("pipelines", "inverses")) for name in SHIPPED]
        return cls.from_modules([*found, *facing])

    @classmethod
    def from_modules(cls, found: Iterable[ModuleType]) -> Registry:
        """The boxes and inverses that modules define."""
        held = list(found)
        stated = [getattr(f, "registration", None) for m in held for f in vars(m).values()]
        unique = list({id(r): r for r in stated if isinstance(r, Registration)}.values())
        return cls(
            boxes_in(held),
            tuple(r for r in unique if isinstance(r, WeakInverse)),
            tuple(r for r in unique if isinstance(r, Verification)),
        )

    def box(self, name: str, params: Mapping[str, Any]) -> Box:
        """The box of a dataset's making, as it was."""
        if name not in self.boxes:
            raise Refused(f'box "{name}" is not known here; name its module with --boxes MODULE')
        return self.boxes[name].from_params(params)

    def weak_for(
        self, box: Box, attribute: Attribute, port: str, source: Dataset, level: str
    ) -> list[WeakInverse]:
        """The weak inverses registered for an attribute, a port and a level."""
        mine = (w for w in self.weak if isinstance(box, w.box))
        return [w for w in mine if w.fits(attribute, port, source, level)]

    def verifications_for(
        self, box: Box, attribute: Attribute, port: str, source: Dataset, level: str
    ) -> list[Verification]:
        """The verifications registered for an attribute, a port and a level."""
        mine = (v for v in self.verifications if isinstance(box, v.box))
        return [v for v in mine if v.fits(attribute, port, source, level)]
