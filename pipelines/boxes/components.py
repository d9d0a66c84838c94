"""Components: what of a field moves together, the box that depends on everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pipelines.arrays import Ranges, block
from pipelines.boxes.box import ArrayBox, Grid, Port, param
from pipelines.datasets import Array, Attribute, Dataset
from pipelines.errors import TooDear
from pipelines.steps import HANDY, Reals, like, precision, variables

LARGEST = 2**31  # bytes of a variable that is held at once
APART = 1e-9  # by which part of the strength of one component another must be weaker


@dataclass(frozen=True, slots=True)
class PrincipalComponents(ArrayBox):
    """A field as its strongest principal components alone make it.

    The components are those of the departures of every cell from its mean over time, each cell
    counting alike; the field is their sum, with the mean added again. Components as strong as the
    strongest one left out are not defined apart from it, and are left out too. Places where a
    step is missing or infinite are left out, and are missing at every step.
    """

    components: int = param(3, "how many are kept at most", low=1)

    name: ClassVar = "principal_components"
    takes: ClassVar = (Port("field", "array"),)
    contributed: ClassVar = (
        "Every cell of the variable, at every step: the components are made of all of them."
    )
    flat: ClassVar = True
    examples: ClassVar = ({"components": 1}, {"components": 2})

    def attributes_of(self, given: Mapping[str, tuple[Attribute, ...]]) -> tuple[Attribute, ...]:
        return variables(given["field"])

    def used(self, attribute: str, port: str, source: Dataset) -> tuple[str, ...]:
        return (attribute,)

    def grid(self, inputs: Mapping[str, Dataset]) -> Grid:
        array: Any = inputs["field"]
        _check_fits(self.name, array)
        # Every chunk takes all that there is, so there are few.
        return like(array, variables(array.attributes), chunks=_large(array))

    def block(self, inputs: Mapping[str, Any], ranges: Ranges) -> Mapping[str, NDArray[Any]]:
        array: Array = inputs["field"]
        part = tuple(slice(*ranges[d]) for d in array.dims)
        fields = {v: block(array, v, {}).astype(np.float64) for v in array.variables}
        return {v: self.rebuilt(f)[part].astype(precision(array)) for v, f in fields.items()}

    def rebuilt(self, field: Reals) -> Reals:
        """The field as the components that are kept make it."""
        found = np.full(field.shape, np.nan)
        whole = np.isfinite(field).all(axis=0)
        mean = field[:, whole].mean(axis=0)
        scores, strength, patterns = np.linalg.svd(field[:, whole] - mean, full_matrices=False)
        kept = _kept(strength, self.components)
        found[:, whole] = mean + (scores[:, :kept] * strength[:kept]) @ patterns[:kept]
        return found


def _check_fits(box: str, array: Array) -> None:
    """Refuse a field that is too large to be held at once."""
    size = int(np.prod(array.shape)) * 8
    if size > LARGEST:
        raise TooDear(
            f'box "{box}" holds a whole variable at once: {size / 2**30:,.1f} GiB of '
            f'"{array.name}", over the limit of {LARGEST >> 30}; coarsen or select first'
        )


def _kept(strength: Reals, most: int) -> int:
    """How many components are kept: those clearly stronger than the first one left out."""
    if most >= len(strength):
        return len(strength)
    return int((strength[:most] > strength[most] * (1 + APART)).sum())


def _large(array: Array) -> dict[str, int]:
    """Chunks of whole steps, as many as are handy."""
    step = int(np.prod(array.shape[1:])) * array.itemsize
    return dict(array.size) | {array.dims[0]: max(1, HANDY // step)}
