"""Moments: times of any calendar between limits, halfway between others, and in words."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import Refused

MOMENT = re.compile(
    r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}(T[0-9]{2}(:[0-9]{2}(:[0-9]{2})?)?)?)?)?", re.ASCII
)
FORM = "a time is written like 2000-01-14, 2000-01 or 2000-01-14T06"


def between(times: NDArray[Any], first: str, last: str, box: str) -> NDArray[np.int64]:
    """The positions of times from one to another, of which the last counts whole.

    >>> days = np.arange("2000-01-30", "2000-02-03", dtype="datetime64[D]")
    >>> between(days, "2000-01-31", "2000-02", "subset").tolist()
    [1, 2, 3]
    """
    if (first or last) and times.dtype.kind not in "MO":
        raise Refused(
            f'box "{box}": the times are {times.dtype} numbers, which lie in no part between '
            "dates; leave out start and end, or give dates"
        )
    kept = np.ones(len(times), bool)
    for limit, sign in ((first, 1), (last, -1)):
        if limit:
            kept &= sign * _compared(times, checked_moment(limit, box)) >= 0
    return np.flatnonzero(kept)


def checked_moment(text: str, box: str) -> str:
    """A time as it is written; refused if it is none."""
    written = text.strip().replace(" ", "T")
    if not MOMENT.fullmatch(written):
        raise Refused(f'box "{box}": {text!r:.40} is no time; {FORM}')
    return written


def _compared(times: NDArray[Any], limit: str) -> NDArray[np.int64]:
    """-1, 0 or 1 for times before, within or after what a limit names: a moment, day or month."""
    if times.dtype.kind == "M":
        named, cut = _date(limit), times.astype(_date(limit).dtype)
        return (cut > named).astype(np.int64) - (cut < named)
    # Dates of other calendars, of which numpy knows nothing, are in order as texts.
    texts = np.array([t.isoformat()[: len(limit)] for t in times])
    return (texts > limit).astype(np.int64) - (texts < limit)


def _date(limit: str) -> np.datetime64:
    try:
        return moment(limit)
    except ValueError:
        raise Refused(f"there is no {limit} in the calendar; {FORM}") from None


def moment(text: str) -> np.datetime64:
    """A date as it is written; words like `now`, which mean another each time, are none."""
    if not text or text[:1].isalpha():
        raise ValueError(text)
    return np.datetime64(text)


def same_places(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether numbers or times are the same ones; dates of two calendars never are.

    >>> same_places(np.array([1, 2]), np.array([1.0, 2.0]))
    True
    """
    return _calendars(one) == _calendars(other) and bool(np.array_equal(one, other))


def _calendars(times: NDArray[Any]) -> set[str]:
    """The calendars of dates of which numpy knows nothing."""
    return {getattr(t, "calendar", "") for t in times} if times.dtype.kind == "O" else set()


def middle(first: NDArray[Any], last: NDArray[Any]) -> NDArray[Any]:
    """Halfway between each two numbers or times."""
    return np.asarray(first + (last - first) / 2)


def in_words(value: np.datetime64) -> str:
    """A time, told no finer than it is.

    >>> in_words(np.datetime64("2000-01-16T06:00:00.000000"))
    '2000-01-16T06:00'
    """
    coarse = (value.astype(f"datetime64[{unit}]") for unit in ("m", "s"))
    return str(next((each for each in coarse if each == value), value))
