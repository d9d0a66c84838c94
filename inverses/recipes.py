"""Recipes: how each dataset was made, and what of its inputs a part of it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from inverses.registry import Registry, WeakInverse
from pipelines.boxes.box import Box
from pipelines.copied import Copied
from pipelines.datasets import Array, Key, Table
from pipelines.filters import Filter


@dataclass(frozen=True, slots=True)
class Recipe:
    """By which box, of which inputs, and how regions of what it makes are pushed to them."""

    box: Box
    inputs: Mapping[str, Table | Array]
    pushes: Mapping[str, tuple[WeakInverse, ...]]

    def regions(self, region: Filter) -> dict[str, Filter]:
        """What of each input the box must see to make what lies in a region."""
        return {port: self.region(port, region) for port in self.inputs}

    def region(self, port: str, region: Filter) -> Filter:
        """What of an input the box must see to make what lies in a region."""
        if isinstance(self.box, Copied):
            return self.box.region(region)
        found = [w(self.box, region, self.inputs[port]) for w in self.pushes[port]]
        everything = Filter(np.unique(region.owner), {})
        return reduce(lambda a, b: a & b, found, everything)


Recipes = Mapping[Key, Recipe]


def recipes(datasets: Iterable[Table | Array], registry: Registry) -> Recipes:
    """The recipes of those datasets, of each other, that a box made."""
    known = {each.key: each for each in datasets}
    return {key: _recipe(each, known, registry) for key, each in known.items() if each.made}


def _recipe(image: Table | Array, known: Mapping[Key, Table | Array], registry: Registry) -> Recipe:
    assert image.made is not None
    box = registry.box_of(image.made)
    inputs = {port: known[name, version] for port, (name, version) in image.made.inputs.items()}
    pushes = {port: registry.faithful(box, port, image, each) for port, each in inputs.items()}
    return Recipe(box, inputs, pushes)
