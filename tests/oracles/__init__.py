"""Brute-force truth, sharing no code with what it checks."""

from tests.oracles.linking import (
    Point,
    linked_predecessors,
    links,
    removals_that_matter,
    tracks,
)
from tests.oracles.perturbation import perturbed_answers
from tests.oracles.pressure import Cell, cells_behind, is_minimum, minima
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
    "of_one_attribute",
    "perturbed_answers",
    "removals_that_matter",
    "tracks",
]
