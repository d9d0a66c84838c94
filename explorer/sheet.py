"""The sheet a pipeline is drawn on: where its boxes lie and which are grouped, but no science."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from pipelines.errors import Refused
from pipelines.written import LONGEST, checked_name

Place = tuple[float, float]
FARTHEST = 1e6


@dataclass(frozen=True, slots=True)
class Sheet:
    """Places of boxes, groups of them, and the groups that are folded into one box.

    >>> sheet = Sheet().moved({"agcm": (0, 40)}).grouped("weather", ["agcm"])
    >>> sheet.renamed("agcm", "era5").groups
    {'weather': frozenset({'era5'})}
    """

    places: Mapping[str, Place] = field(default_factory=dict)
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    folded: frozenset[str] = frozenset()

    def moved(self, places: Mapping[str, Place]) -> Sheet:
        """The sheet with some boxes elsewhere."""
        return replace(self, places={**self.places, **places})

    def without(self, names: Iterable[str]) -> Sheet:
        """The sheet without some boxes, and without the groups that only they were in."""
        gone = set(names)
        places = {n: p for n, p in self.places.items() if n not in gone}
        return replace(self, places=places)._regrouped({g: m - gone for g, m in self._each()})

    def renamed(self, old: str, new: str) -> Sheet:
        """The sheet with a box called otherwise."""
        places = {new if n == old else n: p for n, p in self.places.items()}
        groups = {g: m - {old} | {new} if old in m else m for g, m in self._each()}
        return replace(self, places=places, groups=groups)

    def grouped(self, name: str, members: Iterable[str]) -> Sheet:
        """The sheet with some boxes in a group of their own, and in no other."""
        taken = frozenset(members)
        groups = {g: m - taken for g, m in self._each() if g != checked_name(name)}
        return self._regrouped({**groups, name: taken})

    def ungrouped(self, name: str) -> Sheet:
        """The sheet without a group; its boxes stay."""
        return self._regrouped({g: m for g, m in self._each() if g != name})

    def turned(self, name: str) -> Sheet:
        """The sheet with a group folded, or opened if it was."""
        return replace(self, folded=self.folded ^ ({name} & self.groups.keys()))

    def group_of(self, box: str) -> str | None:
        """The group a box is in."""
        return next((g for g, m in self._each() if box in m), None)

    def only(self, names: Iterable[str]) -> Sheet:
        """The sheet without all boxes but these."""
        drawn = {*self.places, *(n for _, members in self._each() for n in members)}
        return self.without(drawn - set(names))

    def _each(self) -> Iterable[tuple[str, frozenset[str]]]:
        return self.groups.items()

    def _regrouped(self, groups: Mapping[str, frozenset[str]]) -> Sheet:
        kept = {g: members for g, members in groups.items() if members}
        return replace(self, groups=kept, folded=self.folded & kept.keys())

    def to_text(self) -> str:
        """The sheet as JSON, the same for the same sheet."""
        plain = {
            "places": {n: [round(x, 1), round(y, 1)] for n, (x, y) in sorted(self.places.items())},
            "groups": {g: sorted(m) for g, m in sorted(self._each())},
            "folded": sorted(self.folded),
        }
        return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Sheet:
        """Read a sheet; it is foreign, so every part of it is looked at."""
        if len(text) > LONGEST:
            raise Refused(f"a layout has at most {LONGEST:,} characters")
        try:
            plain = json.loads(text)
            places = {checked_name(n): _place(p) for n, p in plain.get("places", {}).items()}
            groups = {g: frozenset(map(str, m)) for g, m in plain.get("groups", {}).items()}
            folded = frozenset(map(str, plain.get("folded", ())))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise Refused(
                "the layout is not one that was saved here; tidy makes a new one"
            ) from None
        sheet = cls(places)
        for group, members in groups.items():
            sheet = sheet.grouped(group, members)
        return replace(sheet, folded=folded & sheet.groups.keys())


def _place(plain: Any) -> Place:
    x, y = (float(end) for end in plain)
    if not (isfinite(x) and isfinite(y) and max(abs(x), abs(y)) < FARTHEST):
        raise ValueError(plain)
    return x, y
