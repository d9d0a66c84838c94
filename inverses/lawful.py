"""The laws besides complete and pure, each a function that says what breaks it, of single data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from inverses.making import made_by
from inverses.perturbing import cut_otherwise, only
from inverses.plans import Hop
from inverses.samples import Sample
from inverses.told import told
from inverses.trials import Items, found_as_one, found_by
from pipelines.boxes.box import Box
from pipelines.datasets import Array, Attribute, Table
from pipelines.errors import WhenceError
from pipelines.filters import Filter


def monotony(hop: Hop, at: Filter, found: list[Items]) -> str | None:
    """What a datum is answered alone it is answered beside others too."""
    lost = _alone(hop, at, 0) - found[0]
    return f"asked with others, a datum loses {_few(lost)}" if lost else None


def narrowing(hop: Hop, at: Filter, found: list[Items]) -> str | None:
    """Nothing is answered but what the weak inverses, asked about the datum alone, have said."""
    *above, last = hop.levels
    weak = replace(last, inversions=tuple(replace(i, verify=()) for i in last.inversions))
    unverified = replace(hop, levels=(*above, weak))
    for datum in sorted({0, len(found) - 1}):
        if more := found[datum] - _alone(unverified, at, datum):
            return f"answered, and never said of the datum alone: {_few(more)}"
    return None


def _alone(hop: Hop, at: Filter, datum: int) -> Items:
    one = at[np.array([datum])]
    return found_by(hop, Filter(np.zeros(1, np.int64), one.spans))[0]


def chunking(hop: Hop, at: Filter, found: list[Items]) -> str | None:
    """The answer is the same if what it is found in is cut into chunks or groups otherwise."""
    source = cut_otherwise(hop.source)
    other = replace(hop, source=source, inputs={**hop.inputs, hop.port: source})
    for one, again in zip(found, found_by(other, at), strict=True):
        if one != again:
            return f"found in some chunks and not in others: {_few(one ^ again)}"
    return None


def replayable(box: Box, made: Table | Array, attribute: Attribute) -> bool:
    """Whether what is behind an attribute alone has to make it again.

    Not if the box knows rows by other attributes: then it takes what is behind those, too.
    """
    own = isinstance(made, Array) or box.lost is None or attribute.name in box.lost
    return own or box.alone({attribute.name}) is not box


def sufficient(
    sample: Sample, attribute: Attribute, hop: Hop, at: Filter, found: list[Items]
) -> str | None:
    """The box run on the answer alone gives the datum back."""
    box = sample.box.alone({attribute.name})
    for owner in sorted({0, len(found) - 1}):
        datum = int(at.spans[""].low[owner])
        part = only(hop.source, found[owner])
        try:
            again = made_by(box, {**sample.inputs, hop.port: part})
        except WhenceError as error:
            return f"of the answer alone, nothing is made: {error}"
        if not told(sample.box, hop.image, attribute, datum).is_in(again):
            return f"of the answer alone, {attribute.name} is not made again: datum {datum}"
    return None


def as_one(hop: Hop, at: Filter) -> str | None:
    """Asked about as one, data have behind them what each has, and nothing else."""
    at = Filter(np.arange(len(at)), at.spans)
    one_by_one: Items = set().union(*found_by(hop, at))
    together = found_as_one(hop, at)
    if lost := one_by_one - together:
        return f"asked about as one, data lose {_few(lost)}"
    more = together - one_by_one
    return f"asked about as one, data gain {_few(more)}" if more else None


def _few(items: Items) -> list[Any]:
    return sorted(items, key=str)[:3]
