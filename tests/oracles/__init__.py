"""Brute-force truth, sharing no code with what it checks."""

from tests.oracles.linking import (
    Point,
    linked_predecessors,
    links,
    removals_that_matter,
    tracks,
)
from tests.oracles.perturbation import same
from tests.oracles.pressure import Cell, cells_behind, is_minimum, minima, minimum
from tests.oracles.sets import across_attributes, held, of_one_attribute

__all__ = [
    "Cell",
    "Point",
    "across_attributes",
    "cells_behind",
    "held",
    "is_minimum",
    "linked_predecessors",
    "links",
    "minima",
    "minimum",
    "of_one_attribute",
    "removals_that_matter",
    "same",
    "tracks",
]
