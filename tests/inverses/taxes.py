"""Functions as authors register them, who tell the truth."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from pipelines.functions import Ends, function


@function(rises=True)
def tax(salary: Any) -> Any:
    """What is due of a salary; nothing up to a point."""
    return np.maximum(0.42 * salary - 8000, 0)


@function(falls=True, within=(0.0, inf))
def rate(years: Any) -> Any:
    """What is due for every year, the less the longer."""
    return 100 / years


@function(rises=True)
def squashed(x: Any) -> Any:
    """A number between -1 and 1; there is none for an infinite one."""
    return x / (1 + np.abs(x))


@function(rises=True)
def stepped(x: Any) -> Any:
    """Whole hundreds, from 0 to 1000."""
    return np.clip(np.floor(x / 100) * 100, 0, 1000)


def _ripples(x: Ends) -> Ends:
    low, high = (0.0 if end < 50 else end for end in x)
    return (low - 1.5, high + 1.5)


@function(bounds=_ripples)
def rippled(x: Any) -> Any:
    """Ripples up to 50, and then a slope with ripples."""
    return np.sin(x) + np.where(x < 50, 0, x)


def _farthest(a: Ends, b: Ends) -> Ends:
    far, wide = (max(map(abs, each)) for each in (a, b))
    return (0.0, far + wide)


@function(bounds=_farthest)
def away(a: Any, b: Any) -> Any:
    """How far two numbers are from nothing, together."""
    return np.abs(a) + np.abs(b)


@function(back=lambda degrees: ((degrees[0] - 32) / 1.8, (degrees[1] - 32) / 1.8))
def fahrenheit(celsius: Any) -> Any:
    """Degrees as they are told elsewhere."""
    return celsius * 1.8 + 32


@function()
def bits(x: Any) -> Any:
    """Something of which nothing is known."""
    return np.mod(np.abs(x), 7)
