"""Range queries over the labels: ancestors and descendants as SQL, none of it recursive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    ColumnElement,
    CompoundSelect,
    Integer,
    LargeBinary,
    Select,
    Subquery,
    and_,
    cast,
    func,
    literal,
    null,
    or_,
    select,
    union,
    union_all,
)

from inverses.intervals.blocks import BLOCK
from inverses.intervals.tables import blocks, nested, nodes, places, spans
from inverses.intervals.views import POSTGRESQL
from pipelines.run_graph import DATASET, TASK

Asked = int | ColumnElement[int]
Condition = ColumnElement[bool]
Nodes = Select[tuple[int]]
Packed = CompoundSelect[tuple[int, int | None, bytes | None]]
Span = tuple[ColumnElement[int], ColumnElement[int]]

EVERY = ""
KINDS = (EVERY, DATASET, TASK)

MAKERS: Span = (spans.c.maker_from, spans.c.maker_to)
MADE: Span = (spans.c.made_from, spans.c.made_to)


@dataclass(frozen=True, slots=True)
class Queries:
    """The questions in the words of one database.

    A node's ancestors are the makers in all spans over its own place among the made, and those
    whose interval encloses one of its own; none is found twice. Descendants are the reverse.
    """

    dialect: str

    def ancestors(self, asked: Sequence[int]) -> Nodes:
        """The ancestors of a node; of several, each once."""
        if len(asked) != 1:
            return self._ancestors_of_any(self.listed(asked))
        over, inside = self.over_made(asked[0]), _inside(asked[0], enclosing=True)
        return _both(select(places.c.node).where(over, places.c.maker.between(*MAKERS)), inside)

    def descendants(self, asked: Sequence[int]) -> Nodes:
        """The descendants of a node; of several, each once."""
        if len(asked) != 1:
            return self._descendants_of_any(self.listed(asked))
        over, inside = self.over_maker(asked[0]), _inside(asked[0], enclosing=False)
        return _both(select(places.c.node).where(over, places.c.made.between(*MADE)), inside)

    def listed(self, some: Sequence[int]) -> Nodes:
        """Some nodes as rows: a single value to the database, however many they are."""
        if self.dialect == POSTGRESQL:
            array = literal(list(some), ARRAY(BigInteger))
            return select(func.unnest(array).column_valued("node"))
        return select(func.json_each(json.dumps(list(some))).table_valued("value").c.value)

    def _ancestors_of_any(self, asked: Nodes) -> Nodes:
        over = self._over_made(_HERE.c.made, _HERE.c.part)
        held = _held_by_any(asked, over, MAKERS)
        across = select(places.c.node).where(places.c.maker.between(*held.c))
        return _once(across, _inside(asked, enclosing=True))

    def _descendants_of_any(self, asked: Nodes) -> Nodes:
        over = self._over_maker(_HERE.c.maker)
        held = _held_by_any(asked, over, MADE)
        across = select(places.c.node).where(places.c.made.between(*held.c))
        return _once(across, _inside(asked, enclosing=False))

    def packed_ancestors(self, node: Asked) -> Packed:
        """The same nodes as ranges, blocks to look them up in, and those inside the node's part."""
        over = self.over_made(node)
        return _packed(over, MAKERS, blocks.c.makers, _inside(node, enclosing=True))

    def packed_descendants(self, node: Asked) -> Packed:
        """The same nodes as ranges, blocks to look them up in, and those inside the node's part."""
        over = self.over_maker(node)
        return _packed(over, MADE, blocks.c.made, _inside(node, enclosing=False))

    def is_ancestor(self, above: Asked, below: Asked) -> Select[tuple[bool]]:
        """Whether the first is an ancestor of the second."""
        across = select(spans.c.maker_from).where(
            _held(MAKERS, _place(places.c.maker, above)), self.over_made(below)
        )
        inside = _inside(below, enclosing=True).where(_OTHER.c.node == above)
        return select(or_(across.exists(), inside.exists()))

    def count_ancestors(self, node: Asked, kind: str = EVERY) -> Select[tuple[int]]:
        """How many ancestors a node has; it never has more, so these were counted once."""
        here = places.alias("here")
        counted = _of(kind, here.c.ancestors, here.c.tasks)
        kept = select(counted).where(here.c.node == node).scalar_subquery()
        return select(func.coalesce(kept, 0))

    def count_descendants(self, node: Asked, kind: str = EVERY) -> Select[tuple[int]]:
        """How many descendants a node has: those of all spans, and those inside its part."""
        width = _of(kind, spans.c.made_to - spans.c.made_from + 1, spans.c.tasks)
        across = select(func.coalesce(func.sum(width), 0)).where(self.over_maker(node))
        below = _inside(node, enclosing=False).subquery()
        inside = select(func.count()).select_from(below)
        if kind != EVERY:
            inside = inside.join(nodes, nodes.c.id == below.c.node).where(nodes.c.kind == kind)
        return select(cast(across.scalar_subquery() + inside.scalar_subquery(), Integer))

    def over_made(self, node: Asked) -> Condition:
        """Whether a span's makers are above a node."""
        return self._over_made(_place(places.c.made, node), _place(places.c.part, node))

    def over_maker(self, node: Asked) -> Condition:
        """Whether what a span has made is below a node."""
        return self._over_maker(_place(places.c.maker, node))

    def _over_made(self, place: ColumnElement[int], part: ColumnElement[int]) -> Condition:
        """Whether a span is over a place, put so that the database's index answers it."""
        if self.dialect == POSTGRESQL:
            return and_(spans.c.part == part, _held(MADE, place))
        return _held(MADE, place)

    def _over_maker(self, place: ColumnElement[int]) -> Condition:
        """Whether a span is over a place, put so that the database's index answers it."""
        if self.dialect == POSTGRESQL:
            return func.int4range(*MAKERS, "[]").bool_op("@>")(place)
        return _held(MAKERS, place)


def _of(kind: str, every: ColumnElement[int], tasks: ColumnElement[int]) -> ColumnElement[int]:
    """How many there are of a kind: what is no task is a dataset."""
    return {EVERY: every, TASK: tasks, DATASET: every - tasks}[kind]


def _held(span: Span, place: ColumnElement[int]) -> Condition:
    return and_(span[0] <= place, span[1] >= place)


_HERE, _ITSELF, _OTHER = places.alias("here"), nested.alias("itself"), nested.alias("other")


def _place(of: Column[int], node: Asked) -> ColumnElement[int]:
    here = places.alias("here")
    return select(here.c[of.name]).where(here.c.node == node).scalar_subquery()


def _inside(asked: Asked | Nodes, enclosing: bool) -> Nodes:
    """Those of a node's own part whose interval encloses one of its own, or is enclosed by it."""
    itself = _ITSELF.c.node.in_(asked) if isinstance(asked, Select) else _ITSELF.c.node == asked
    outer, inner = (_OTHER, _ITSELF) if enclosing else (_ITSELF, _OTHER)
    return (
        select(_OTHER.c.node)
        .distinct()
        .where(
            itself,
            _OTHER.c.part == _ITSELF.c.part,
            outer.c.left < inner.c.left,
            outer.c.right > inner.c.right,
        )
    )


def _held_by_any(asked: Nodes, over: Condition, span: Span) -> Subquery:
    """The spans over any of some nodes, each once.

    The join is an outer one lest SQLite begin with all the spans that there are.
    """
    joined = _HERE.outerjoin(spans, over)
    return select(*span).distinct().select_from(joined).where(_HERE.c.node.in_(asked)).subquery()


def _both(across: Nodes, inside: Nodes) -> Nodes:
    found = union_all(across, inside).subquery("lineage")
    return select(found.c.node)


def _once(across: Nodes, inside: Nodes) -> Nodes:
    found = union(across, inside).subquery("lineage")
    return select(found.c.node)


def _packed(over: Condition, span: Span, block: ColumnElement[bytes], inside: Nodes) -> Packed:
    """Rows (first, last, nothing) of ranges, (first, nothing, nodes) of blocks, and (node)."""
    low, high = span
    held = blocks.alias("held")
    touched = select(held.c.first).where(over, held.c.first.between(low - BLOCK + 1, high))
    none, nothing = null().cast(Integer), null().cast(LargeBinary)
    within = inside.subquery()
    return union_all(
        select(low, high, nothing).where(over),
        select(blocks.c.first, none, block).where(blocks.c.first.in_(touched)),
        select(within.c.node, none, nothing),
    )
