"""A draft: a pipeline while it is drawn, in which inputs may be missing and nothing is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path, PurePath
from typing import Any

import networkx as nx

from explorer.sheet import Sheet
from explorer.written import text_of
from pipelines.boxes.box import Box
from pipelines.errors import Refused, unknown
from pipelines.pipeline import Pipeline, Source, Step, source_of
from pipelines.written import checked_name

Boxes = Mapping[str, type[Box]]


@dataclass(frozen=True, slots=True)
class Draft:
    """Sources, steps by name, and the sheet they are drawn on.

    Every change makes another draft, checked as the pipeline will be; what is refused says why.

    >>> from pipelines.boxes.cyclones import ExtractMinima, SimulateAgcm
    >>> draft = Draft("demo").added(SimulateAgcm(), "agcm").added(ExtractMinima(), "minima")
    >>> draft.problems()
    {'minima': ['nothing at its port "field"']}
    >>> print(draft.wired("minima", "field", "agcm").to_text())
    name: demo
    boxes:
      agcm: {box: simulate_agcm}
      minima:
        box: extract_minima
        inputs: {field: agcm}
    <BLANKLINE>
    """

    name: str = "untitled"
    sources: Mapping[str, Source] = field(default_factory=dict)
    steps: Mapping[str, Step] = field(default_factory=dict)
    sheet: Sheet = field(default_factory=Sheet)

    @classmethod
    def from_text(cls, text: str, boxes: Boxes | None = None) -> Draft:
        """Read a draft from the YAML of a pipeline, finished or not."""
        found = Pipeline.unfinished(text, boxes)
        return cls(found.name, found.sources, found.steps)

    def to_text(self) -> str:
        """The YAML of the pipeline as it is now."""
        return text_of(self.name, self.sources, self.steps)

    def finished(self, boxes: Boxes | None = None, base: Path | None = None) -> Pipeline:
        """The pipeline that can be run; refused while something is missing."""
        return Pipeline.from_text(self.to_text(), boxes, base)

    def problems(self) -> dict[str, list[str]]:
        """What is still missing, box by box."""
        bare = {n: s.bare_ports() for n, s in self.steps.items()}
        return {
            n: [f'nothing at its port "{p}"' for p in ports] for n, ports in bare.items() if ports
        }

    @property
    def names(self) -> list[str]:
        """Every source, then every box."""
        return [*self.sources, *self.steps]

    @property
    def datasets(self) -> list[str]:
        """Every dataset: the sources, then what the boxes make."""
        return [*self.sources, *self._pipeline().unfolded()]

    def maker(self, dataset: str) -> str:
        """The source that a dataset is, or the box that makes it."""
        return self._pipeline().maker(dataset)

    def graph(self) -> nx.DiGraph[str]:
        """Sources and boxes, and an arrow from each to what takes something of it."""
        return self._pipeline().makers()

    def free(self, stem: str) -> str:
        """A name like this one that nothing has yet."""
        return _free(stem, self.datasets)

    def called(self, name: str) -> Draft:
        """The draft of a pipeline of another name."""
        return replace(self, name=checked_name(name))

    def drawn(self, sheet: Sheet) -> Draft:
        """The same pipeline on another sheet."""
        return replace(self, sheet=sheet.only(self.names))

    def added(self, box: Box, name: str | None = None) -> Draft:
        """The draft with one more box."""
        fresh, step = name or self.free(box.name), Step(box, {})
        self._check_free(fresh, *step.besides(fresh))
        return replace(self, steps={**self.steps, fresh: step})

    def sourced(self, path: str, name: str | None = None) -> Draft:
        """The draft with one more source, a file."""
        fresh = name or self.free(stem_of(path))
        self._check_free(fresh)
        return replace(self, sources={**self.sources, fresh: source_of(fresh, {"path": path})})

    def read_from(self, name: str, path: str, variables: Mapping[str, str]) -> Draft:
        """The draft with a source read from another file, or by other names of variables."""
        self._check_there(name, self.sources)
        changed = source_of(name, {"path": path, "variables": dict(variables)})
        return replace(self, sources={**self.sources, name: changed})

    def without(self, names: Iterable[str]) -> Draft:
        """The draft without some boxes or sources, and without their arrows."""
        gone = set(names)
        kept = self._part(set(self.names) - gone)
        return kept._mapped({n: n for n in kept.names})

    def renamed(self, old: str, new: str) -> Draft:
        """The draft with a box or source called otherwise; its arrows follow."""
        self._check_there(old, self.names)
        if new == old:
            return self
        self._check_free(new, *(self.steps[old].besides(new) if old in self.steps else ()))
        sheet = self.sheet.renamed(old, new)
        return replace(self, sheet=sheet)._mapped({n: n for n in self.names} | {old: new})

    def tuned(self, name: str, params: Mapping[str, Any]) -> Draft:
        """The draft with some parameters of a box set, each checked."""
        self._check_there(name, self.steps)
        step = self.steps[name]
        box = type(step.box).from_params({**step.box.params(), **params})
        return replace(self, steps={**self.steps, name: replace(step, box=box)})

    def wired(self, name: str, port: str, given: str) -> Draft:
        """The draft with one more arrow, from a dataset to a port of a box."""
        if reason := self.refusal(name, port, given):
            raise Refused(reason)
        return self._fed(name, {**self.steps[name].inputs, port: given})

    def unwired(self, name: str, port: str) -> Draft:
        """The draft without the arrow to a port."""
        self._check_there(name, self.steps)
        return self._fed(name, {p: g for p, g in self.steps[name].inputs.items() if p != port})

    def refusal(self, name: str, port: str, given: str) -> str | None:
        """Why an arrow cannot be drawn; None if it can."""
        try:
            self._check_there(name, self.steps)
            self._pipeline().check_arrow(name, port, given)
            self._check_bare(name, port)
            self._check_circle(name, given)
        except Refused as error:
            return str(error)
        return None

    def upto(self, name: str) -> Draft:
        """The part of the draft that a dataset is made by."""
        self._check_there(name, self.names)
        return self._part({name, *self._behind(name)})

    def copied(self, names: Iterable[str]) -> str:
        """Some boxes as text, with the arrows that lead to them."""
        return self._part(set(names)).to_text()

    def pasted(self, text: str, boxes: Boxes | None = None) -> Draft:
        """The draft with the boxes of a text, under names that are free.

        Arrows among them stay; those from elsewhere stay if there is a dataset of that name here.
        """
        found = Pipeline.as_written(text, boxes)
        names = self._freed([*found.sources, *found.steps])
        here = {n: n for n in self.names} | names
        new = Draft("pasted", found.sources, found.steps)._mapped(here)
        merged = replace(
            self, sources={**self.sources, **new.sources}, steps={**self.steps, **new.steps}
        )
        merged._pipeline().check_arrows()
        return merged

    def _pipeline(self) -> Pipeline:
        return Pipeline(self.name, self.sources, self.steps)

    def _part(self, names: set[str]) -> Draft:
        return replace(
            self,
            sources={n: s for n, s in self.sources.items() if n in names},
            steps={n: s for n, s in self.steps.items() if n in names},
            sheet=self.sheet.only(names),
        )

    def _mapped(self, names: Mapping[str, str]) -> Draft:
        """The draft under other names; an arrow from a name that has none is left out."""
        steps = {
            names[n]: replace(s, inputs=dict(_rewired(s.inputs, names)))
            for n, s in self.steps.items()
        }
        return replace(self, sources={names[n]: s for n, s in self.sources.items()}, steps=steps)

    def _fed(self, name: str, inputs: Mapping[str, str]) -> Draft:
        return replace(self, steps={**self.steps, name: replace(self.steps[name], inputs=inputs)})

    def _behind(self, name: str) -> Iterator[str]:
        """Every source and box that one hangs on, however far back."""
        seen, ahead = set[str](), [name]
        while ahead:
            step = self.steps.get(ahead.pop())
            new = set(map(self.maker, step.inputs.values())) - seen if step else set()
            seen |= new
            ahead += new
            yield from new

    def _freed(self, names: Iterable[str]) -> dict[str, str]:
        taken, freed = set(self.datasets), {}
        for name in names:
            freed[name] = _free(name, taken)
            taken.add(freed[name])
        return freed

    def _check_free(self, *names: str) -> None:
        for name in names:
            if checked_name(name) in self.datasets:
                raise Refused(f'"{name}" is there already; choose another name')

    def _check_there(self, name: str, known: Iterable[str]) -> None:
        if name not in known:
            raise unknown("box", name, known)

    def _check_bare(self, name: str, port: str) -> None:
        if given := self.steps[name].inputs.get(port):
            raise Refused(
                f'port "{port}" of box "{name}" has "{given}" already; remove that arrow first'
            )

    def _check_circle(self, name: str, given: str) -> None:
        maker = self.maker(given)
        if name == maker or name in self._behind(maker):
            round_trip = nx.shortest_path(self.graph(), name, maker)
            raise Refused(f"the arrows run in a circle: {' -> '.join([*round_trip, name])}")


def _rewired(inputs: Mapping[str, str], names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The arrows under other names; what a box makes besides is still called after it."""
    for port, given in inputs.items():
        owner, dot, other = given.rpartition(".")
        if given in names:
            yield port, names[given]
        elif owner in names:
            yield port, f"{names[owner]}{dot}{other}"


def stem_of(path: str) -> str:
    """A name for the dataset in a file.

    >>> stem_of("data/ERA5 msl.2020.nc")
    'ERA5_msl.2020'
    """
    return re.sub(r"[^\w.-]+", "_", PurePath(path).stem).strip("._")[:60] or "source"


def _free(stem: str, taken: Iterable[str]) -> str:
    """A name that is not taken: the stem, or the stem and a number.

    >>> _free("minima", ["minima", "minima-2"])
    'minima-3'
    """
    names = set(taken)
    if stem not in names:
        return stem
    numbered = (f"{stem[:70].removesuffix('-')}-{n}" for n in count(2))
    return next(n for n in numbered if n not in names)
