"""Influence: what else a box makes when one cell, step or row of an input is otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from functools import cached_property

import numpy as np

from inverses.making import made_unless_refused
from inverses.perturbing import items_of, only, otherwise, resown, slightly_otherwise, without
from inverses.samples import Sample
from inverses.told import Told, new_in, told, told_alike
from inverses.trials import Item, Items
from pipelines.boxes.box import CHANGE, INSTEAD, RowBox
from pipelines.datasets import Array, Attribute, Table
from pipelines.tables import matching

AT_MOST = 20  # items looked at in one trial, of those that are found or are not


class Influences:
    """What a box makes when one item of an input is otherwise, tried once and remembered.

    Items are the rows of a table, and the cells of an array or, if so said, its steps.
    """

    def __init__(self, sample: Sample, port: str, made: Table | Array, steps: bool = False) -> None:
        self.sample, self.port, self.made, self.steps = sample, port, made, steps
        self.known: dict[tuple[Item, int], list[Table | Array]] = {}

    @property
    def source(self) -> Table | Array:
        return self.sample.inputs[self.port]

    @cached_property
    def some(self) -> list[Item]:
        """Some of all items, the same whichever datum is asked about."""
        return _some(items_of(self.source, self.steps))

    @cached_property
    def loose(self) -> Set[str]:
        """The columns in which another word or whole number leaves a row where it is.

        These are not those by which a box, where it says so, takes rows together and knows them.
        """
        box = self.sample.box
        if box.influence != CHANGE or not isinstance(box, RowBox) or isinstance(self.made, Array):
            return frozenset()
        known = {*(box.together(self.port) or ()), *box.identity(self.made.columns)}
        return {c for c in self.source.columns if c not in known}

    def contradicting(
        self, pure: bool, attribute: Attribute, datum: int, items: Items
    ) -> str | None:
        """An item that is found and cannot matter, or that is not found and matters."""
        if pure:
            odd = self._impure(attribute, datum, items)
        else:
            outside = [i for i in self.some if i not in items]
            odd = [i for i in outside if self.matters(i, attribute, datum, False)]
        what = "cannot change it" if pure else "can change it and is not in the answer"
        if odd:
            return f"{odd[0]} of {self.port} {what}: datum {datum}, {attribute.name}"
        return None if pure else self._made_of_others(attribute, datum, items)

    def _made_of_others(self, attribute: Attribute, datum: int, items: Items) -> str | None:
        """That a row of which one of several would have done is made without all those found."""
        if not items or isinstance(self.source, Array) or self.sample.box.influence != INSTEAD:
            return None
        made = self._remade(without(self.source, items))
        if made is None or not told(self.sample.box, self.made, attribute, datum).is_in(made):
            return None
        return f"without all that is found of {self.port}, it is made: datum {datum}"

    def _impure(self, attribute: Attribute, datum: int, items: Items) -> list[Item]:
        if self.missing(attribute, datum):
            return []  # what is missing because others are shows no difference
        found = sorted(items, key=str)
        odd = [i for i in _some(found) if not self.matters(i, attribute, datum, True)]
        return self._idle(odd, found, attribute, datum) if odd else []

    def _idle(
        self, odd: list[Item], found: list[Item], attribute: Attribute, datum: int
    ) -> list[Item]:
        """Those of some items that cannot matter, not even together with others that are found."""
        if isinstance(self.source, Array):
            return odd
        said = told(self.sample.box, self.made, attribute, datum)
        if self.sample.box.influence == INSTEAD:
            return self._needless(odd, found, said)
        alone = {n for (n,) in found if not self.matters((n,), attribute, datum, True)}
        ties = _Together(lambda rows: self._rise(rows, said))
        return [item for item in odd if not ties.turn_on(item[0], alone, sorted(alone))]

    def _needless(self, odd: list[Item], found: list[Item], said: Told) -> list[Item]:
        """Rows without which every few rows that make a datum make it too."""
        mine = [n for (n,) in found]
        others = [n for (n,) in items_of(self.source, False) if n not in mine]
        few = _Together(lambda rows: self._make(rows, said))
        return [i for i in odd if not few.turn_on(i[0], {*others, *mine}, [*others, *mine])]

    def _rise(self, rows: Set[int], said: Told) -> bool:
        """Whether some rows that are all a little otherwise change a datum."""
        assert isinstance(self.source, Table)
        made = (self._remade(each) for each in slightly_otherwise(self.source, rows))
        return any(after is not None and not said.holds_in(after) for after in made)

    def _make(self, rows: Set[int], said: Told) -> bool:
        """Whether some rows alone make a datum."""
        made = self._remade(only(self.source, {(n,) for n in rows}))
        return made is not None and said.is_in(made)

    def _remade(self, other: Table | Array) -> Table | Array | None:
        return made_unless_refused(self.sample.box, {**self.sample.inputs, self.port: other})

    def missing(self, attribute: Attribute, datum: int) -> bool:
        """Whether a datum says nothing of an attribute."""
        if isinstance(self.made, Array):
            return bool(np.isnan(self.made.content.variables[attribute.name].ravel()[datum]))
        rows = matching(self.made, None)
        return any(rows[c][datum].as_py() != rows[c][datum].as_py() for c in attribute.columns)

    def matters(self, item: Item, attribute: Attribute, datum: int, elsewhere: bool) -> bool:
        """Whether an item can change a datum; if need be, with other numbers in all cells.

        There, no NaN or zero is in the way of seeing a difference. Nor is it if a step need only
        change how often a value is made, since an attribute alone does not say of which row it is.
        """
        regular = isinstance(self.made, Array) and self.sample.box.influence == CHANGE
        alike = elsewhere and self.steps and isinstance(self.made, Table)
        here = self._changes(item, attribute, datum, self.sample.inputs, self.made, alike)
        if here or not (elsewhere and regular):
            return here
        return any(self._changes(item, attribute, datum, *world) for world in self.elsewhere)

    def _changes(
        self,
        item: Item,
        attribute: Attribute,
        datum: int,
        inputs: Mapping[str, Table | Array],
        made: Table | Array,
        alike: bool = False,
    ) -> bool:
        if alike:
            assert isinstance(made, Table)
            said = told_alike(made, attribute, datum)
        else:
            said = told(self.sample.box, made, attribute, datum)
        return any(not said.holds_in(after) for after in self._tried(item, inputs, made))

    def _tried(
        self, item: Item, inputs: Mapping[str, Table | Array], made: Table | Array
    ) -> list[Table | Array]:
        """What is made without an item, and with it otherwise, unless the box refuses that."""
        box, key = self.sample.box, (item, id(made))
        if key not in self.known:
            others = otherwise(inputs[self.port], item, box.influence, self.loose)
            tried = (made_unless_refused(box, {**inputs, self.port: each}) for each in others)
            self.known[key] = [each for each in tried if each is not None]
        return self.known[key]

    def newcomer(self) -> str | None:
        """An item without which the box makes what it has not made with it."""
        for item in self.some:
            less = self._remade(next(otherwise(self.source, item, self.sample.box.influence)))
            if less is not None and (said := new_in(less, self.made)):
                return f"without {item} of {self.port} it makes {said}"
        return None

    @cached_property
    def elsewhere(self) -> list[tuple[Mapping[str, Table | Array], Table | Array]]:
        """Other numbers in all cells, none missing or equal, and what they make.

        At the other ports, once with zeros, once without: they may say what counts.
        """
        sown = np.random.default_rng(0)
        given_ = self.sample.inputs
        worlds = [
            {p: resown(each, sown, 0.0 if p != self.port and zero else 1.0)
             for p, each in given_.items()}
            for zero in (False, True)
        ]  # fmt: skip
        made = [(inputs, made_unless_refused(self.sample.box, inputs)) for inputs in worlds]
        return [(inputs, each) for inputs, each in made if each is not None]


def _some(items: list[Item]) -> list[Item]:
    """A few of many items from anywhere among them, always the same."""
    chosen = np.random.default_rng(len(items)).permutation(len(items))[:AT_MOST]
    return [items[n] for n in sorted(chosen)]


class _Together:
    """Whether rows of which none is needed alone are needed for something together."""

    def __init__(self, holds: Callable[[Set[int]], bool]) -> None:
        self.holds = holds
        self.known: dict[frozenset[int], bool] = {}

    def turn_on(self, row: int, among: Set[int], order: Iterable[int]) -> bool:
        """Whether a row is in a set of which it holds, and of which it would not without the row.

        Which rows are left out first decides which set is found, so two orders are tried.
        """
        others = [other for other in order if other != row]
        smallest = (self._smallest(among, each) for each in (others, others[::-1]))
        return self._holds(among) and any(not self._holds(s - {row}) for s in smallest)

    def _smallest(self, among: Set[int], order: Iterable[int]) -> Set[int]:
        """What is left if some are left out while it still holds of the rest."""
        left = among
        for other in order:
            left = left - {other} if self._holds(left - {other}) else left
        return left

    def _holds(self, rows: Set[int]) -> bool:
        key = frozenset(rows)
        if key not in self.known:
            self.known[key] = self.holds(key)
        return self.known[key]
