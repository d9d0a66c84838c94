"""The kin of a dataset: what it was made from, shown one level at a time and never all at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape

import networkx as nx

from explorer.layout import tidy
from inverses.ancestry import Ancestry, Relative
from pipelines.run_graph import TASK

MOST = 60  # boxes that are drawn at once
WIDE, HIGH = 210, 46
LONGEST = 26  # letters of a name that fit in a box


@dataclass(frozen=True, slots=True)
class Kin:
    """The part of the run graph that a visitor has opened, from one dataset backwards."""

    of: Relative
    shown: Mapping[int, Relative] = field(default_factory=dict)
    arrows: frozenset[tuple[int, int]] = frozenset()
    behind: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of_dataset(cls, ancestry: Ancestry, named: str) -> Kin:
        """A dataset, the task that made it, and what that used."""
        found = ancestry.find(named)
        kin = cls(found, {found.id: found})._noted(ancestry, [found]).opened(ancestry, found.id)
        for task in [r.id for r in kin.shown.values() if r.kind == TASK]:
            kin = kin.opened(ancestry, task)
        return kin

    def opened(self, ancestry: Ancestry, node: int) -> Kin:
        """One level more: what a node was made from."""
        used = ancestry.used(node)
        room = [r for r in used if r.id in self.shown][:MOST]
        room += [r for r in used if r.id not in self.shown][: MOST - len(self.shown)]
        shown = {**self.shown, **{r.id: r for r in room}}
        arrows = self.arrows | {(r.id, node) for r in room}
        return replace(self, shown=shown, arrows=arrows)._noted(ancestry, room)

    def _noted(self, ancestry: Ancestry, nodes: list[Relative]) -> Kin:
        """Note what is behind nodes that came into view."""
        new = [n.id for n in nodes if n.id not in self.behind]
        return replace(self, behind={**self.behind, **ancestry.behind(new)})

    def hidden(self, node: int) -> int:
        """How many of those directly behind a node are not shown."""
        return sum((other, node) not in self.arrows for other in self.behind[node])

    @property
    def closed(self) -> list[Relative]:
        """What can be opened further, nearest to the dataset first."""
        return [r for r in sorted(self.shown.values(), key=_newest_first) if self.hidden(r.id)]


def _newest_first(relative: Relative) -> int:
    return -relative.id


def label(relative: Relative) -> str:
    """A node in a few words."""
    return f"{relative.name} {relative.version}".strip()


def drawn(kin: Kin) -> str:
    """The opened part as a picture, from sources at the left to the dataset at the right."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(str(n) for n in kin.shown)
    graph.add_edges_from((str(s), str(t)) for s, t in kin.arrows)
    places = {int(n): place for n, place in tidy(graph).items()}
    wide = max(x for x, _ in places.values()) + WIDE
    high = max(y for _, y in places.values()) + HIGH
    parts = [_arrow(places[s], places[t]) for s, t in sorted(kin.arrows)]
    parts += [_box(kin, relative, places[n]) for n, relative in kin.shown.items()]
    return (
        f'<svg viewBox="-4 -4 {wide + 8:.0f} {high + 8:.0f}" role="img" '
        f'aria-label="run graph of {escape(label(kin.of))}" fill="none" stroke="currentColor" '
        f'style="max-width:{wide:.0f}px;width:100%">{"".join(parts)}</svg>'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    x, y = start[0] + WIDE, start[1] + HIGH / 2
    to_x, to_y = end[0], end[1] + HIGH / 2
    bend = (x + to_x) / 2
    line = f"M{x:.0f} {y:.0f} C{bend:.0f} {y:.0f} {bend:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"
    return f'<path d="{line}" opacity="0.5"/>'


def _box(kin: Kin, relative: Relative, at: tuple[float, float]) -> str:
    """A node by shape and word: tasks have square corners, datasets round ones."""
    x, y = at
    chosen = relative.id == kin.of.id
    corner, width = 2 if relative.kind == TASK else 16, 3 if chosen else 1
    more = kin.hidden(relative.id)
    told = f"{relative.kind}{f', {more} more behind' if more else ''}"
    name = label(relative)
    short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
    return (
        f'<g><title>{escape(name)}</title><rect x="{x:.0f}" y="{y:.0f}" width="{WIDE}" '
        f'height="{HIGH}" rx="{corner}" stroke-width="{width}"/>'
        f'<g stroke="none" fill="currentColor" font-family="sans-serif">'
        f'<text x="{x + 12:.0f}" y="{y + 20:.0f}" font-size="14">{escape(short)}</text>'
        f'<text x="{x + 12:.0f}" y="{y + 37:.0f}" font-size="11" opacity="0.75">{told}</text>'
        "</g></g>"
    )
