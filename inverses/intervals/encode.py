"""The encoder: part by part it takes whichever labels are fewest, and says why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from inverses.intervals.cover import Range, Seats, Span, made_order, maker_order, spans
from inverses.intervals.cut import Parents, by_ancestry, by_descent, by_number, crossing, cut
from inverses.intervals.parts import Beyond
from inverses.intervals.poset import Poset
from inverses.intervals.ranges import NONE, Ranges, ranges, size, united
from inverses.intervals.tally import NOTHING, Tally, ends_of
from inverses.intervals.unfold import Row, TooManyCopies, nest_or_say

WHOLE = 3_000
"""A graph of at most so many nodes is also tried without a cut."""

COPIES = 4
"""A part is unfolded into at most so many rows for each of its nodes."""

NESTED, COPIED, COVERED = "nested", "copied", "covered"


@dataclass(frozen=True, slots=True)
class Past:
    """What was encoded before: the first place and part that are free, and where the others are.

    `above` gives the places of each of some nodes and of all its ancestors, `passed` how many
    tasks there are up to each of some places.
    """

    place: int = 0
    part: int = 0
    above: Callable[[Iterable[int]], Mapping[int, Ranges]] = lambda nodes: {}
    passed: Callable[[Iterable[int]], Mapping[int, int]] = lambda places: NOTHING


BEGINNING = Past()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands: among makers, among the made; in which part, below how many.

    So many of its ancestors are tasks, and so many tasks have passed among makers up to it.
    """

    node: int
    maker: int
    made: int
    part: int
    ancestors: int
    tasks: int
    passed: int

    def row(self) -> tuple[int, ...]:
        here = self.node, self.maker, self.made, self.part
        return *here, self.ancestors, self.tasks, self.passed


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes encoded as one: the rows they take among each other, and from other parts, and why."""

    number: int
    way: str
    nodes: int
    rows: int
    across: int
    why: str


@dataclass(frozen=True, slots=True)
class Labels:
    """All that is stored: intervals one inside another within parts, and spans of places.

    Of two nodes in a part one is above the other if an interval of its encloses one of the
    other's: `nested` holds (part, left, right, node). All makers in a span are above all that
    is in it among the made.
    """

    places: list[Place] = field(default_factory=list)
    nested: list[tuple[int, int, int, int]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    tasks: Collection[int] = ()

    @property
    def tuples(self) -> int:
        return len(self.nested) + len(self.spans)


def encode(parents: Parents, tasks: Collection[int] = (), past: Past = BEGINNING) -> Labels:
    """Labels for new nodes, given the parents of each, and which of them are tasks.

    A parent that is not among the new nodes was encoded before: its labels are asked of the
    past, and stay as they are.

    >>> labels = encode({1: [], 2: [1], 3: [1], 4: [2, 3]})
    >>> labels.spans
    [(2, 2, 1, 1), (1, 3, 2, 2), (2, 2, 3, 3)]
    >>> labels.parts[0].why
    '3 spans are fewer than one interval for each node'
    """
    inside = {n: [p for p in above if p in parents] for n, above in parents.items()}
    order = by_number(inside)
    makers = maker_order(order, inside)
    older = past.above({p for above in parents.values() for p in above if p not in parents})
    passed = past.passed({past.place - 1, *ends_of(list(older.values()))})
    tally = Tally.of([node in tasks for node in makers], passed)
    seats = {node: n for n, node in enumerate(makers, past.place)}
    ways = [
        _Encoder(parents, tasks, seats, tally, past, older).encoded(pieces)
        for pieces in _cuts(order, inside)
    ]
    return min(ways, key=lambda labels: labels.tuples)


def _cuts(order: list[int], parents: Parents) -> Iterator[list[list[int]]]:
    """The ways to cut a graph that are worth a try."""
    tried = [list(cut(way, parents)) for way in (order, by_ancestry(parents), by_descent(parents))]
    yield min(tried, key=lambda pieces: crossing(pieces, parents))
    if len(order) <= WHOLE and len(tried[0]) > 1:
        yield [order]


def poset_of(nodes: Sequence[int], parents: Parents) -> Poset:
    """Some nodes, each after its parents, as an order of their own."""
    number = {node: n for n, node in enumerate(nodes)}
    return Poset.of([number[p] for p in parents[n] if p in number] for n in nodes)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some nodes as the encoder sees them: their order, their seats, and what leads in."""

    nodes: Sequence[int]
    poset: Poset
    seats: Seats
    masks: Sequence[int]
    entries: Sequence[frozenset[int]]
    made: Sequence[int]
    tasks: int

    @classmethod
    def of(
        cls,
        nodes: Sequence[int],
        parents: Parents,
        places: Mapping[int, int],
        tasks: Collection[int],
    ) -> _Piece:
        poset = poset_of(nodes, parents)
        entries = _entries(nodes, poset, parents)
        seats = Seats(places[node] for node in nodes)
        masks = _masks(poset, [seats.bit(places[node]) for node in nodes])
        made = sorted(made_order(poset), key=lambda n: sorted(entries[n]))
        among = sum(seats.bit(places[node]) for node in nodes if node in tasks)
        return cls(nodes, poset, seats, masks, entries, made, among)


def _entries(nodes: Sequence[int], poset: Poset, parents: Parents) -> list[frozenset[int]]:
    """For each node the nodes of earlier parts from which it is reached within this one."""
    here = set(nodes)
    found: list[frozenset[int]] = []
    for node, inside in zip(nodes, poset.parents, strict=True):
        outside = (p for p in parents[node] if p not in here)
        found.append(frozenset(outside).union(*(found[p] for p in inside)))
    return found


def _masks(poset: Poset, seat: Sequence[int]) -> list[int]:
    """For each node the seats of its ancestors within the piece, as bits."""
    found: list[int] = []
    for parents in poset.parents:
        mask = 0
        for parent in parents:
            mask |= found[parent] | seat[parent]
        found.append(mask)
    return found


class _Encoder:
    """Encodes pieces one after another, each knowing where its ancestors in earlier ones are."""

    def __init__(
        self,
        parents: Parents,
        tasks: Collection[int],
        seats: Mapping[int, int],
        tally: Tally,
        past: Past,
        older: Mapping[int, Ranges],
    ) -> None:
        self.parents, self.tasks, self.seats, self.tally = parents, tasks, seats, tally
        self.place, self.part = past.place, past.part
        self.closed = dict(older)
        self.within: dict[int, tuple[Ranges, Seats, int]] = {}
        self.labels = Labels(tasks=tasks)

    def encoded(self, pieces: Iterable[Sequence[int]]) -> Labels:
        for nodes in pieces:
            self._encode(_Piece.of(nodes, self.parents, self.seats, self.tasks))
            self.place += len(nodes)
            self.part += 1
        return self.labels

    def _encode(self, piece: _Piece) -> None:
        outside = {each: self._outside(each) for each in set(piece.entries)}
        self._put(piece, outside)
        shared = {each: _pairs(found) for each, found in outside.items()}
        across = list(spans((shared[piece.entries[n]] for n in piece.made), self.place))
        near = {mask: piece.seats.ranges(mask) for mask in set(piece.masks)}
        covered = list(spans((near[piece.masks[n]] for n in piece.made), self.place))
        rows, hindered = _nested(piece.poset, dearest(len(covered), len(piece.nodes)))
        self.labels.spans.extend(across if rows is not None else across + covered)
        self.labels.nested.extend((self.part, a, b, piece.nodes[n]) for n, a, b in rows or ())
        counts = len(piece.nodes), len(covered)
        way, taken, why = _chosen(rows, *counts) if rows else _covered(hindered, *counts)
        self.labels.parts.append(Part(self.part, way, counts[0], taken, len(across), why))

    def _outside(self, entries: frozenset[int]) -> Ranges:
        """The places of nodes in earlier parts, and of all their ancestors."""
        return united([self._closed(node) for node in entries]) if entries else NONE

    def _closed(self, node: int) -> Ranges:
        if node not in self.closed:
            outside, seats, mask = self.within[node]
            self.closed[node] = united([outside, ranges(seats.ranges(mask))])
        return self.closed[node]

    def _put(self, piece: _Piece, outside: Mapping[frozenset[int], Ranges]) -> None:
        sizes = {each: size(found) for each, found in outside.items()}
        tasks = {each: int(self.tally.counts(found).sum()) for each, found in outside.items()}
        for made, n in enumerate(piece.made, self.place):
            node, mask, entries = piece.nodes[n], piece.masks[n], piece.entries[n]
            above, maker = sizes[entries] + mask.bit_count(), self.seats[node]
            known = tasks[entries] + (mask & piece.tasks).bit_count()
            passed = self.tally.up_to(maker)
            self.labels.places.append(Place(node, maker, made, self.part, above, known, passed))
            itself = mask | piece.seats.bit(maker)
            self.within[node] = (outside[entries], piece.seats, itself)


def dearest(covered: int, nodes: int) -> int:
    """The most rows that nested intervals may take: no more than a cover, and few copies."""
    return min(covered, COPIES * nodes)


def _nested(poset: Poset, most: int) -> tuple[list[Row] | None, Beyond | None]:
    """Rows of nested intervals, or what is in the way of them."""
    try:
        return nest_or_say(poset, most), None
    except Beyond as hindered:
        return None, hindered


Choice = tuple[str, int, str]


def _chosen(rows: list[Row], nodes: int, covered: int) -> Choice:
    """Which way intervals are nested in, how many rows it takes, and why it was taken."""
    if len(rows) == nodes:
        why = f"its dimension is at most 2; a cover would take {covered} spans"
        return NESTED, nodes, why
    copies = f"with {len(rows) - nodes} rows copied it takes no more than"
    return COPIED, len(rows), f"its dimension exceeds 2, but {copies} a cover of {covered} spans"


def _covered(hindered: Beyond | None, nodes: int, covered: int) -> Choice:
    """A cover, how many rows it takes, and why nothing else was taken."""
    if covered < nodes:
        return COVERED, covered, f"{covered} spans are fewer than one interval for each node"
    capped = isinstance(hindered, TooManyCopies) and COPIES * nodes < covered
    limit = f"; there may be {COPIES} rows for each node" if capped else ""
    return COVERED, covered, f"{covered} spans: {hindered}{limit}"


def _pairs(found: Ranges) -> list[Range]:
    return [(first, last) for first, last in found.tolist()]
