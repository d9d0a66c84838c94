"""Badges: how well each box can be traced, by the best that its inverses promise."""

from __future__ import annotations

from dataclasses import dataclass

from inverses.guarantees import Guarantee, sign
from inverses.promises import promised
from inverses.registry import Registry
from pipelines.boxes.box import Box

WORDS = {"=": "exact", "⊇": "complete", "⊆": "pure", "?": "unknown"}
MEANINGS = {
    "exact": "= exact: a trace can find just what made a datum",
    "complete": "⊇ complete: a trace misses nothing, but may include more",
    "pure": "⊆ pure: a trace includes nothing else, but may miss some",
    "unknown": "? a trace can only hint",
    "origin": "made of parameters alone: a trace ends here",
}


@dataclass(frozen=True, slots=True)
class Badge:
    """A sign, the word for it, and what it means."""

    sign: str
    word: str

    @property
    def meaning(self) -> str:
        return MEANINGS[self.word]


def badge_of(registry: Registry, box: type[Box]) -> Badge:
    """The best that can be promised for a box: of the attributes it asks about, the worst.

    >>> from pipelines.boxes.cyclones import ExtractMinima, SimulateAgcm
    >>> badge_of(Registry.of(), ExtractMinima), badge_of(Registry.of(), SimulateAgcm)
    (Badge(sign='=', word='exact'), Badge(sign='◦', word='origin'))
    """
    if not box.takes:
        return Badge("◦", "origin")
    return _badge(registry, box, verified=True)


def word_of(registry: Registry, box: type[Box], verified: bool) -> str:
    """What is promised of a box without verification or with it, by sign and word.

    >>> from pipelines.boxes.cyclones import ExtractMinima
    >>> [word_of(Registry.of(), ExtractMinima, verified) for verified in (False, True)]
    ['⊇ complete', '= exact']
    """
    found = _badge(registry, box, verified)
    return f"{found.sign} {found.word}"


def _badge(registry: Registry, box: type[Box], verified: bool) -> Badge:
    return badge(promised(registry, box, verified))


def badge(promises: Guarantee) -> Badge:
    """How what is promised is shown."""
    mark = sign(promises)
    return Badge(mark, WORDS[mark])
