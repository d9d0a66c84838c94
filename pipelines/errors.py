"""What can go wrong, grouped by what the reader does next."""

from collections.abc import Iterable
from difflib import get_close_matches


class WhenceError(Exception):
    """Anything Whence says no to, in one line a person can act on."""

    exit_code = 1


class Refused(WhenceError):
    """The request was wrong: ask differently."""

    exit_code = 2


class TooDear(Refused):
    """The request would cost more than its limit: select less, or raise the limit."""


class Failed(WhenceError):
    """The work failed: look at the data or the machine, then try again."""


class Cancelled(Failed):
    """The reader stopped the work: nothing to mend."""


class SourceChanged(Failed):
    """A source is not what it was when the run read it: run again."""


def ended(what: str, error: Exception) -> Failed:
    """The error for something of an author's that has ended in one, in one line.

    >>> print(ended('function "tax"', ZeroDivisionError("division by zero")))
    function "tax" failed: ZeroDivisionError: division by zero
    """
    reason = (str(error).splitlines() or [""])[0]
    said = f"{what} failed: {type(error).__name__}"
    return Failed(f"{said}: {reason:.200}" if reason else said)


def unknown(kind: str, name: str, known: Iterable[str], where: str = "") -> Refused:
    """The error for a name that is not there, with the nearest one that is.

    >>> print(unknown("dataset", "trakcs", ["agcm", "tracks"], "in this workspace"))
    no dataset "trakcs" in this workspace; did you mean "tracks"? (datasets: agcm, tracks)
    """
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    place = f" {where}" if where else ""
    hint = f'; did you mean "{near[0]}"?' if near else ""
    plural = f"{kind}es" if kind.endswith("x") else f"{kind}s"
    return Refused(f'no {kind} "{name}"{place}{hint} ({plural}: {", ".join(names) or "none"})')
