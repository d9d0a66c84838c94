"""Evidence: in how many trials the laws held for an inverse, when, and on which pages."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from inspect import getsource
from pathlib import Path
from sys import modules
from typing import Any

SHIPPED = Path(__file__).with_name("evidence.json")
Known = Mapping[tuple[str, str, str], "Evidence"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What testing has shown of what an author states; not of promises that were `untried`.

    It is of box and inverse as they stood on pages that have this sum, and of no others.
    """

    trials: int
    held: bool
    date: str
    untried: tuple[str, ...] = ()
    pages: str = ""

    def text(self) -> str:
        """In words.

        >>> Evidence(5000, True, "2000-01-01").text()
        'stated by the author, held in 5,000 trials on 2000-01-01'
        >>> Evidence(9, True, "2000-01-01", ("pure",)).text()
        'stated by the author, held in 9 trials on 2000-01-01, which cannot show that it is pure'
        """
        verdict = "held in" if self.held else "BROKEN within"
        blind = f", which cannot show that it is {' and '.join(self.untried)}"
        said = f"stated by the author, {verdict} {self.trials:,} trials on {self.date}"
        return said + (blind if self.untried else "")


def weakest(found: Collection[Evidence]) -> Evidence | None:
    """What is shown of all by what was shown of each: the least, and nothing of what one was not.

    >>> weakest([Evidence(9, True, "2000-01-01"), Evidence(50, True, "2000-01-01", ("pure",))])
    Evidence(trials=9, held=True, date='2000-01-01', untried=('pure',), pages='')
    """
    if not found:
        return None
    untried = tuple(sorted({law for each in found for law in each.untried}))
    return replace(min(found, key=lambda each: (each.held, each.trials)), untried=untried)


def known(*files: Path) -> Known:
    """The evidence in some files, by box, version and inverse; a damaged file is no evidence."""
    found: dict[tuple[str, str, str], Evidence] = {}
    for file in (SHIPPED, *files):
        found |= {_key(entry): _evidence(entry) for entry in _entries(file)}
    return found


def _entries(file: Path) -> list[dict[str, Any]]:
    """What a file says, entry by entry; nothing if it is damaged."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        entries = json.loads(file.read_text())
        return [dict(e) for e in entries if _key(e) and _evidence(e)]
    return []


def _key(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(entry["box"]), str(entry["version"]), str(entry["inverse"])


def _evidence(entry: Mapping[str, Any]) -> Evidence:
    untried = tuple(str(law) for law in entry.get("untried", ()))
    told = int(entry["trials"]), bool(entry["held"]), str(entry["date"])
    return Evidence(*told, untried, str(entry.get("pages", "")))


def sum_of_pages(names: Iterable[str]) -> str:
    """A short sum of the texts of some modules, which is another one once any of them changes."""
    texts = "".join(_sum(name) for name in sorted({*names}))
    return sha256(texts.encode()).hexdigest()[:12]


@cache
def _sum(module: str) -> str:
    with suppress(OSError, TypeError, LookupError):
        return sha256(getsource(modules[module]).encode()).hexdigest()
    return ""


@dataclass(frozen=True, slots=True)
class Shown:
    """What testing one law of an inverse has shown, and all that the inverse promises."""

    box: str
    version: str
    inverse: str
    law: str
    trials: int
    held: bool
    promises: frozenset[str]
    pages: str = ""


def gathered(findings: Iterable[Shown]) -> list[dict[str, Any]]:
    """From findings, law by law, to evidence to be kept."""
    by_inverse: dict[tuple[str, str, str], list[Shown]] = {}
    for each in findings:
        by_inverse.setdefault((each.box, each.version, each.inverse), []).append(each)
    return [
        {"box": box, "version": version, "inverse": inverse, **asdict(_together(every))}
        for (box, version, inverse), every in by_inverse.items()
    ]


def _together(every: list[Shown]) -> Evidence:
    today = datetime.now(UTC).date().isoformat()
    untried = sorted(every[0].promises - {each.law for each in every})
    shown = min(each.trials for each in every), all(each.held for each in every)
    return Evidence(*shown, today, tuple(untried), every[0].pages)


def with_others(file: Path, boxes: Collection[str], found: list[dict[str, Any]]) -> list[Any]:
    """What was found of some boxes, with what a file has of others."""
    others = [entry for entry in _entries(file) if entry["box"] not in boxes]
    return sorted([*others, *found], key=_key)
