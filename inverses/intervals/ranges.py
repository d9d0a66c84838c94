"""Sets of places as sorted ranges that neither meet nor touch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Ranges = Numbers
"""A row for each range: its first and its last place."""

NONE: Ranges = np.empty((0, 2), np.int64)


def ranges(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges from pairs that are in order already."""
    return np.array(list(pairs), np.int64).reshape(-1, 2)


def united(sets: Sequence[Ranges]) -> Ranges:
    """All places of all sets, in as few ranges as can be.

    >>> united([ranges([(0, 3), (8, 9)]), ranges([(2, 5), (6, 6)])]).tolist()
    [[0, 6], [8, 9]]
    """
    if len(sets) == 1:
        return sets[0]
    every = np.concatenate([NONE, *sets])
    if len(every) < 2:
        return every
    every = every[np.argsort(every[:, 0], kind="stable")]
    reach = np.maximum.accumulate(every[:, 1])
    begins = np.flatnonzero(np.concatenate([[True], every[1:, 0] > reach[:-1] + 1]))
    ends = np.concatenate([begins[1:], [len(every)]]) - 1
    return np.stack([every[begins, 0], reach[ends]], axis=1)


def size(places: Ranges) -> int:
    """How many places there are."""
    return int((places[:, 1] - places[:, 0] + 1).sum())
