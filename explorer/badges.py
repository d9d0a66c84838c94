"""Badges: how well each box can be traced, by the best that its inverses promise."""

from __future__ import annotations

from dataclasses import dataclass

from inverses.guarantees import COMPLETE, NOTHING, PURE, Guarantee, sign
from inverses.registry import Registration, Registry
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
    asked = [a for a in box.makes if a.name in box.asks] or list(box.makes)
    stated = [r for r in (*registry.weak, *registry.verifications) if issubclass(box, r.box)]
    best = [
        _best([r for r in stated if r.image == a.type and r.named in (None, a.name)]) for a in asked
    ]
    mark = sign(frozenset.intersection(*best) if box.deterministic else NOTHING)
    return Badge(mark, WORDS[mark])


def _best(stated: list[Registration]) -> Guarantee:
    """What the inverses of one attribute can promise at each level, and so together."""
    levels = {r.level for r in stated}
    promised = [_of_level([r for r in stated if r.level == level]) for level in levels]
    return frozenset.intersection(*promised) if promised else frozenset({COMPLETE})


def _of_level(stated: list[Registration]) -> Guarantee:
    return max(
        (r.promises for r in stated), key=lambda p: (COMPLETE in p) + (PURE in p), default=NOTHING
    )
