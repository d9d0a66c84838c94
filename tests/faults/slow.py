"""A box whose lineage takes for ever, for who wants to interrupt it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inverses.guarantees import COMPLETE, PURE
from inverses.registry import AGGREGATE, Mask, Row, Seen, verifies
from pipelines.boxes.cyclones import ExtractMinima
from pipelines.datasets import ELEMENT, Array, Location, Pressure


@dataclass(frozen=True)
class SlowMinima(ExtractMinima):
    """Minima whose verification marks that it began, and does not end."""

    name = "slow_minima"


@verifies(
    SlowMinima,
    image=Location,
    yields=[Pressure],
    nature=AGGREGATE,
    promises=[COMPLETE, PURE],
    level=ELEMENT,
)
def someday(box: SlowMinima, at: Row, seen: Seen, source: Array) -> Mask:
    """All of it, after an hour."""
    Path(os.environ["WHENCE_TEST_MARK"]).touch()
    time.sleep(3600)
    return np.ones(len(seen["value"]), bool)
