"""What can be promised of a box at best: by its weak inverses alone, and with verification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inverses.guarantees import COMPLETE, EXACT, NOTHING, PURE, Guarantee, names
from inverses.registry import ANY, Registration, Registry
from pipelines.boxes.box import Box
from pipelines.datasets import Attribute


def promised(registry: Registry, box: type[Box], verified: bool = True) -> Guarantee:
    """Of all ports and attributes that are asked about, the worst of what can be had at best.

    >>> from pipelines.boxes.cyclones import ExtractMinima
    >>> names(promised(Registry.of(), ExtractMinima, verified=False))
    ['complete']
    >>> names(promised(Registry.of(), ExtractMinima))
    ['complete', 'pure']
    """
    if not box.deterministic:
        return NOTHING
    stated = [*registry.weak, *(registry.verifications if verified else ())]
    mine = [r for r in stated if issubclass(box, r.box)]
    return frozenset.intersection(EXACT, *(_best(each) for each in _questions(box, mine)))


def natures(registry: Registry, box: type[Box]) -> list[str]:
    """Whether its inverses are scalar, aggregate or both."""
    stated = (*registry.weak, *registry.verifications)
    return sorted({r.nature for r in stated if issubclass(box, r.box)}, reverse=True)


def when_named(registry: Registry, box: type[Box]) -> dict[str, list[Guarantee]]:
    """The attributes asked about only by name of which less can be had, and what: one or another.

    >>> from pipelines.boxes.cyclones import IdentifyTracks
    >>> [names(each) for each in when_named(Registry.of(), IdentifyTracks)["track"]]
    [['complete'], ['pure']]
    """
    if isinstance(box.asks, property) or not box.asks:
        return {}
    every = (*registry.weak, *registry.verifications)
    mine = [r for r in every if issubclass(box, r.box)]
    others = {a.name: _of(a, mine) for a in box.makes if a.name not in box.asks}
    least = promised(registry, box)
    return {name: _had(each) for name, each in others.items() if not _best(each) >= least}


def _of(attribute: Attribute, stated: list[Registration]) -> list[Registration]:
    """The registrations that can answer for an attribute."""
    fitting = (r for r in stated if r.image in (ANY, attribute.type))
    return [r for r in fitting if r.named in (None, attribute.name)]


def _had(stated: list[Registration]) -> list[Guarantee]:
    """Each guarantee that some inverse gives and none exceeds, the complete one first."""
    given = {r.promises & EXACT for r in stated}
    best = [p for p in given if not any(other > p for other in given)]
    return sorted(best, key=names)


def _questions(box: type[Box], stated: list[Registration]) -> Iterator[list[Registration]]:
    """The registrations that can answer for each port and attribute asked about."""
    asks = () if isinstance(box.asks, property) else box.asks
    asked = [a for a in box.makes if a.name in asks] or list(box.makes)
    for port in box.takes:
        there = [r for r in stated if r.port in (None, port.name)]
        if not asked:
            yield [r for r in there if r.named is None]
        for attribute in asked:
            yield _of(attribute, there)


def _best(stated: list[Registration]) -> Guarantee:
    """What the inverses of one attribute can promise at each level, and so together."""
    levels = {r.level for r in stated}
    promised_ = [_of_level([r for r in stated if r.level == level]) for level in levels]
    return frozenset.intersection(*promised_) if promised_ else frozenset({COMPLETE})


def _of_level(stated: list[Registration]) -> Guarantee:
    return max(
        (r.promises for r in stated), key=lambda p: (COMPLETE in p) + (PURE in p), default=NOTHING
    )


def table(registry: Registry) -> str:
    """All boxes with what they take, what contributed means there, and what is promised."""
    rows = [_row(registry, name, box) for name, box in sorted(registry.boxes.items())]
    head = ["box", "takes", "what contributed to a datum", "nature", "unverified", "verified"]
    return "\n".join(_line(row) for row in [head, ["---"] * len(head), *rows])


def _row(registry: Registry, name: str, box: type[Box]) -> list[str]:
    takes = ", ".join(port.kind for port in box.takes) or "nothing"
    if not box.takes:
        return [f"`{name}`", takes, box.contributed, "", "", ""]
    weak, best = (names(promised(registry, box, verified)) for verified in (False, True))
    nature = ", ".join(natures(registry, box))
    lesser = (
        f"; {named}: {' or '.join(_words(names(p)) for p in each)}"
        for named, each in when_named(registry, box).items()
    )
    verified = _words(best) + "".join(lesser)
    return [f"`{name}`", takes, box.contributed, nature, _words(weak), verified]


def _words(promises: Iterable[str]) -> str:
    return ", ".join(promises) or "nothing"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
