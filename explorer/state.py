"""What one visitor has open: which datasets, which time, which hop; nothing here draws."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import numpy as np
import param

from explorer.asking import Question
from explorer.glances import PLACE, has_places
from pipelines.arrays import coordinate
from pipelines.conditions import RESERVED
from pipelines.datasets import Array, Table, TrackId
from pipelines.errors import Refused
from pipelines.workspace import Workspace

GRID = {"lat", "lon"}
WISHES = ("exact", "complete", "pure")
LEVELS = ("dataset", "tuple", "cell")


class State(param.Parameterized):
    """The choices of one visitor, each of which is part of the page's address."""

    field = param.String("", doc="the array on the map")
    variable = param.String("")
    points = param.String("", doc="the table whose rows are points on the map")
    table = param.String("", doc="the dataset in the table view")
    time = param.Integer(0, bounds=(0, None))
    hop = param.Integer(0, bounds=(0, None), doc="how many hops back are shown")
    level: Any = param.Selector(default="cell", objects=list(LEVELS))
    dataset = param.String("", doc="what is asked about")
    where = param.String("")
    attributes = param.String("", doc="names with commas between")
    want: Any = param.Selector(default="exact", objects=list(WISHES))
    pins = param.String("", doc="what is pinned, in letters that an address leaves as they are")
    traced = param.Integer(0, doc="1 if the question is to be answered, not only planned")

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.workspace = workspace
        self.reset()

    def reset(self) -> None:
        """Open what a workspace has: its last field with a map, and the points made from it."""
        fields = [d.name for d in self.workspace.datasets() if d.kept and is_field(d)]
        tables = [d.name for d in self.workspace.datasets() if d.kept and has_places(d)]
        self.field = self.field if self.field in fields else next(iter(fields), "")
        self.points = self.points if self.points in tables else self._last(tables)
        if isinstance(array := self.array, Array) and self.variable not in array.variables:
            self.variable = array.variables[0]
        names = self.workspace.names()
        self.table = self.table if self.table in names else self.points or next(iter(names), "")

    def _last(self, tables: list[str]) -> str:
        """The table that no other of these was made from."""
        made = [self.workspace.dataset(t).made for t in tables]
        used = {name for each in made if each for name, _ in each.inputs.values()}
        return next((t for t in tables if t not in used), "")

    @property
    def array(self) -> Array | None:
        found = self.workspace.dataset(self.field) if self.field else None
        return found if isinstance(found, Array) else None

    @property
    def question(self) -> Question | None:
        """What is asked; None if nothing is."""
        if not self.dataset:
            return None
        named = tuple(a for a in self.attributes.split(",") if a)
        return Question(self.dataset, self.where, named, self.want)

    @property
    def pinned(self) -> list[Question]:
        """The questions whose answers are pinned."""
        try:
            known = json.loads(urlsafe_b64decode(self.pins)) if self.pins else []
            return [Question.of(each) for each in known]
        except (ValueError, TypeError, Refused):
            return []

    def pin(self, questions: list[Question]) -> None:
        """Note which questions are pinned."""
        plain = json.dumps([q.plain() for q in questions])
        self.pins = urlsafe_b64encode(plain.encode()).decode() if questions else ""

    def asked(self, question: Question | None) -> None:
        """Note what is asked, so that it becomes part of the address."""
        asked = question or Question("", "")
        self.param.update(
            dataset=asked.dataset, where=asked.where, want=asked.want,
            attributes=",".join(asked.attributes), traced=0,
        )  # fmt: skip


def is_field(dataset: Table | Array) -> bool:
    """Whether a dataset can be drawn on a map."""
    return isinstance(dataset, Array) and set(dataset.dims) >= GRID


def about_row(table: Table, row: dict[str, Any]) -> Question:
    """The question about one row: by its track and time, its place, or all that it says."""
    tracks = [c for a in table.attributes if a.type == TrackId for c in a.columns]
    if tracks and "time" in row:
        keys = [*tracks, "time"]
    elif set(PLACE) <= set(row):
        keys = list(PLACE)
    else:
        keys = table.columns
    return Question(table.name, " and ".join(_saying(k, row[k]) for k in keys))


def _saying(column: str, value: Any) -> str:
    """That a column has a value, as predicates write it; what is missing is not up to infinity."""
    plain = column.isidentifier() and column.lower() not in RESERVED
    name = column if plain else '"' + column.replace('"', '""') + '"'
    return f"{name} = {literal(value)}" if value == value else f"not {name} <= 'inf'"


def about_track(table: Table, row: dict[str, Any]) -> Question | None:
    """The question about the whole track of a row; None if it is in none."""
    for attribute in table.attributes:
        if attribute.type == TrackId:
            (name,) = attribute.columns
            return Question(table.name, f"{name} = {literal(row[name])}")
    return None


def about_cell(array: Array, variable: str, at: dict[str, int]) -> Question:
    """The question about one cell, by its coordinates."""
    values = {d: coordinate(array, d)[at[d]] for d in array.dims}
    where = " and ".join(f"{d} = {literal(v)}" for d, v in values.items())
    return Question(array.name, where, (variable,))


def about_box(table: Table, step: int, box: list[float]) -> Question:
    """The question about all points of one step in a rectangle of the map."""
    left, right, bottom, top = box
    lon = f"lon between {left:.4f} and {right:.4f}"
    lat = f"lat between {bottom:.4f} and {top:.4f}"
    return Question(table.name, f"time_index = {step} and {lat} and {lon}")


def literal(value: Any) -> str:
    """A value as predicates write it.

    >>> literal(np.datetime64("2000-01-01T06:00:00")), literal("it's"), literal(2.5), literal(True)
    ("'2000-01-01 06:00:00'", "'it''s'", '2.5', 'true')
    """
    if isinstance(value, np.datetime64):
        return f"'{value.astype('datetime64[us]').item()}'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return repr(float(value))
    return "'" + str(value).replace("'", "''") + "'"
