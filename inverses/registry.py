"""Registering weak inverses and verifications, and the defaults that every attribute has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, update_wrapper
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from inverses.evidence import Evidence, Known, known, sum_of_pages, weakest
from inverses.guarantees import COMPLETE, FAITHFUL, NOTHING, Guarantee, Property
from inverses.sweeps import Sweep
from pipelines.boxes.box import Box, boxes_in
from pipelines.datasets import TUPLE, Array, Attribute, Dataset, Key, Made, Table, Type
from pipelines.errors import Failed, Refused, WhenceError, ended
from pipelines.filters import Filter
from pipelines.functions import Functions, functions_in
from pipelines.modules import SHIPPED, Stating, modules, stated_in, stating

SCALAR, AGGREGATE = "scalar", "aggregate"
ANY, USED = Type("Any"), Type("Used")
INFERRED = "inferred_window"

Row = Mapping[str, Any]
Seen = Mapping[str, NDArray[Any]]
Mask = NDArray[np.bool_]
Inputs = Mapping[str, Table | Array]


@dataclass(frozen=True, slots=True)
class Registration:
    """What an author states of an inverse: which box and attribute, what it yields and promises.

    `image` is the type of the attribute that is inverted, `yields` the types of what is found in
    the input, `level` the level it is found at. Where two attributes share a type, `named` says
    which one is inverted, and a name in `yields` which one is found. An image of `ANY` is every
    attribute; `USED` among what it yields is what the box says the attribute is made of; what
    yields nothing in particular finds whole rows, or cells of all variables. The function of one
    that differs `per_attribute` is also given the name of the attribute that is asked about.
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
    per_attribute: bool = False
    evidence: Evidence | None = None

    def about(self, attribute: Attribute) -> Self:
        """This inverse, told which attribute it is to invert if it wants to be."""
        if not self.per_attribute:
            return self
        told = partial(self.function, attribute=attribute.name)
        return replace(self, function=update_wrapper(told, self.function))

    def asked(self, *given: Any) -> Any:
        """What an author's function says; why it says nothing, in one line."""
        try:
            return self.function(*given)
        except WhenceError:
            raise
        except Exception as error:
            raise ended(f'"{self.name}" of {self.box.__name__}', error) from error

    def fits(self, attribute: Attribute, port: str, source: Dataset, level: str) -> bool:
        """Whether this inverts an attribute into one level of the dataset at a port."""
        there = {USED, *(n for a in source.attributes for n in (a.type, a.name))}
        return (
            self.image in (ANY, attribute.type)
            and self.named in (None, attribute.name)
            and self.port in (None, port)
            and (self.level == level or self.box.flat)
            and (not self.yields or bool(set(self.yields) & there))
        )


@dataclass(frozen=True, slots=True)
class WeakInverse(Registration):
    """From the selected values of an attribute to a filter, without looking at the data."""

    @property
    def of_regions(self) -> bool:
        """Whether what it says of a region is what it says of all cells there, one by one."""
        return self.box is Box or FAITHFUL in self.promises

    def __call__(self, box: Box, at: Filter, source: Table | Array) -> Filter:
        found = self.asked(box, at, source)
        if not isinstance(found, Filter):
            raise Failed(
                f'weak inverse "{self.name}" of {self.box.__name__} made {type(found).__name__}; '
                "it has to make a filter, like at.to(...)"
            )
        known = source.dims if isinstance(source, Array) else source.columns
        for key, each in found.spans.items():
            if key not in known:
                raise Refused(
                    f'weak inverse "{self.name}" of {self.box.__name__} restricts "{key}"; '
                    f'"{source.name}" has {", ".join(known)}'
                )
            if len(each) != len(found):
                raise Failed(
                    f'weak inverse "{self.name}" of {self.box.__name__} restricts "{key}" '
                    f"{len(each)} times for {len(found)} data; it has to for each, as by "
                    "span(...).repeated(len(at))"
                )
        return found


@dataclass(frozen=True, slots=True)
class Verification(Registration):
    """From those values and what the filter found to the part of it that counts.

    `needs` is its apply condition. One that decides `at_once` is called for many data together:
    each value in `at` is then an array beside the candidates, whose `owner` tells the data
    apart. One that is `pointwise` does so too, and decides each candidate by itself. One that
    looks `beside` decides by the box's other inputs as well: it is given all of them, by port, and
    which port the candidates are from, in place of the source.
    """

    needs: Guarantee = NOTHING
    pointwise: bool = False
    at_once: bool = False
    beside: bool = False

    def __call__(
        self, box: Box, at: Row, seen: Seen, source: Dataset, port: str, inputs: Inputs
    ) -> Mask:
        around = (port, inputs) if self.beside else (source,)
        what = f'verification "{self.name}" of {self.box.__name__}'
        return mask_of(self.asked(box, at, seen, *around), len(seen["owner"]), what)


def mask_of(said: Any, size: int, what: str) -> Mask:
    """What an author's function says of so many candidates, if it is True or False of each."""
    found = np.asarray(said)
    if found.dtype != bool or found.shape != (size,):
        raise Failed(
            f"{what} made {found.dtype} of shape {found.shape} of {size} candidates; "
            "it has to say True or False of each"
        )
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
    per_attribute: bool = False,
) -> Callable[[Stating], Stating]:
    """Register `function(box, at, source) -> Filter` as a weak inverse of `box`."""

    def register(function: Stating) -> Stating:
        stated = WeakInverse(
            function.__name__, box, image, nature, tuple(yields), frozenset(promises), level,
            function, port, named, per_attribute,
        )  # fmt: skip
        return stating(function, stated)

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
    at_once: bool = False,
    beside: bool = False,
    level: str = TUPLE,
    port: str | None = None,
    named: str | None = None,
    per_attribute: bool = False,
) -> Callable[[Stating], Stating]:
    """Register `function(box, at, seen, source) -> mask` as a verification of `box`.

    If it looks beside, it is `function(box, at, seen, port, inputs) -> mask`.
    """

    def register(function: Stating) -> Stating:
        stated = Verification(
            function.__name__, box, image, nature, tuple(yields), frozenset(promises), level,
            function, port, named, per_attribute, None, frozenset(needs), pointwise,
            at_once or pointwise, beside,
        )  # fmt: skip
        return stating(function, stated)

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
    """The boxes that are known, the inverses registered for them, and functions of authors."""

    boxes: Mapping[str, type[Box]]
    weak: tuple[WeakInverse, ...]
    verifications: tuple[Verification, ...]
    inferred: Mapping[tuple[Box, str, Key], WeakInverse] = field(default_factory=dict)
    sweeps: tuple[Sweep, ...] = ()
    functions: Functions = field(default_factory=dict)

    @classmethod
    def of(cls, named: Iterable[str] = (), tested: Iterable[Path] = ()) -> Registry:
        """What is shipped, what is installed, and what the named modules hold.

        With the evidence that is shipped, and that in files of what was `tested` elsewhere.
        """
        found = modules(named)
        facing = [import_module(name.replace("pipelines", "inverses")) for name in SHIPPED]
        return cls.from_modules([*found, *facing]).with_evidence(known(*tested))

    def with_evidence(self, known: Known) -> Registry:
        """The same boxes and inverses, with what testing has shown of them."""
        return replace(
            self,
            weak=tuple(replace(w, evidence=self._evidence(w, known)) for w in self.weak),
            verifications=tuple(
                replace(v, evidence=self._evidence(v, known)) for v in self.verifications
            ),
        )

    def _evidence(self, stated: Registration, known: Known) -> Evidence | None:
        """The weakest of what testing has shown of an inverse for the boxes it is stated of.

        What was shown before the page of either has changed is not of what is there.
        """
        boxes = [box for box in self.boxes.values() if issubclass(box, stated.box)]
        shown = {box: known.get((box.name, box.version, stated.name)) for box in boxes}
        return weakest(
            [e for box, e in shown.items() if e and e.pages == self.pages(box, stated.name)]
        )

    @classmethod
    def from_modules(cls, found: Iterable[ModuleType]) -> Registry:
        """The boxes and inverses that modules define."""
        held = list(found)
        unique = stated_in(held)
        return cls(
            boxes_in(held),
            tuple(r for r in unique if isinstance(r, WeakInverse)),
            tuple(r for r in unique if isinstance(r, Verification)),
            sweeps=tuple(r for r in unique if isinstance(r, Sweep)),
            functions=functions_in(held),
        )

    def box_of(self, made: Made) -> Box:
        """The box that made a dataset, with its parameters; refused if its rule has changed."""
        if made.box not in self.boxes:
            raise Refused(
                f'box "{made.box}" is not known here; name its module with --boxes MODULE'
            )
        now = self.boxes[made.box].version
        if made.box_version.startswith(now):
            box = self.boxes[made.box].from_params(made.params)
            if box.code == made.box_version:
                return box
            now = box.code
        raise Refused(
            f'box "{made.box}" was of version {made.box_version} when it ran and is of version '
            f"{now} now; run again"
        )

    def promises(self, box: type[Box], inverse: str) -> Guarantee:
        """All that an inverse of a box promises, for whatever it is of."""
        every = (*self.weak, *self.verifications)
        mine = [r.promises for r in every if r.name == inverse and issubclass(box, r.box)]
        return frozenset().union(*mine)

    def pages(self, box: type[Box], inverse: str) -> str:
        """The sum of the pages that a box and an inverse of it stand on."""
        every = (*self.weak, *self.verifications)
        mine = [r.function for r in every if r.name == inverse and issubclass(box, r.box)]
        return sum_of_pages([box.__module__, *(function.__module__ for function in mine)])

    def inverts(self, box: Box) -> bool:
        """Whether anybody has registered an inverse of a box."""
        return any(isinstance(box, r.box) for r in (*self.weak, *self.verifications))

    def default_for(
        self, box: Box, attribute: Attribute, port: str, source: Dataset, level: str
    ) -> WeakInverse:
        """What an attribute has when nobody registered anything: what was inferred, or all."""
        seen = self.inferred.get((box, port, source.key)) if self.inferred else None
        return replace(seen, level=level) if seen else default_weak(attribute, level)

    def weak_for(
        self, box: Box, attribute: Attribute, port: str, source: Dataset, level: str
    ) -> list[WeakInverse]:
        """The weak inverses registered for an attribute, a port and a level."""
        mine = (w for w in self.weak if isinstance(box, w.box))
        return [w.about(attribute) for w in mine if w.fits(attribute, port, source, level)]

    def verifications_for(
        self, box: Box, attribute: Attribute, port: str, source: Dataset, level: str
    ) -> list[Verification]:
        """The verifications registered for an attribute, a port and a level."""
        mine = (v for v in self.verifications if isinstance(box, v.box))
        return [v.about(attribute) for v in mine if v.fits(attribute, port, source, level)]

    def sweep_of(self, box: Box) -> Sweep | None:
        """How what is behind very many cells that a box made is found as one, if anybody said."""
        mine = (s for s in self.sweeps if isinstance(box, s.box))
        return max(mine, key=lambda s: len(s.box.__mro__), default=None)

    def faithful(
        self, box: Box, port: str, image: Table | Array, source: Table | Array
    ) -> tuple[WeakInverse, ...]:
        """The weak inverses that keep all a box needs to make a region of what it makes."""
        every = [
            weak
            for attribute in image.attributes
            for level in source.levels
            for weak in self.weak_for(box, attribute, port, source, level)
            if FAITHFUL in weak.promises
        ]
        return tuple({id(w.function): w for w in every}.values())
