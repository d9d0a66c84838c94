"""Brute-force truth, sharing no code with what it checks."""

from tests.oracles.linking import (
    Point,
    linked_predecessors,
    links,
    removals_that_matter,
    tracks,
)
from tests.oracles.perturbation import perturbed_answers
from tests.oracles.pressure import Cell, cells_behind, minima

__all__ = [
    "Cell",
    "Point",
    "cells_behind",
    "linked_predecessors",
    "links",
    "minima",
    "perturbed_answers",
    "removals_that_matter",
    "tracks",
]
