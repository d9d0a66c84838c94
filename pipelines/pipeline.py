"""What shall be done: boxes wired by arrows, read from YAML and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import networkx as nx

from pipelines.boxes.box import ITSELF, OUT, Box, Port, RowBox, boxes_in
from pipelines.datasets import Attribute, Dataset, Table
from pipelines.errors import Refused, unknown
from pipelines.modules import modules
from pipelines.written import LONGEST, checked_name, loaded, mapping, named

KINDS = {"array": "an array", "table": "a table"}


@dataclass(frozen=True, slots=True)
class Source:
    """A dataset that comes from outside: a file, and what its variables are called there."""

    path: str
    kind: str = "array"
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A box in its place: with its parameters, and the dataset at each of its ports.

    What is not to be kept is made, used and let go of; a trace makes again what it needs of it.
    """

    box: Box
    inputs: Mapping[str, str]
    keep: bool = True

    def bare_ports(self) -> list[str]:
        """The ports at which there is nothing yet."""
        return [p.name for p in self.box.takes if p.name not in self.inputs]

    def besides(self, name: str) -> dict[str, Step]:
        """The steps for what the box of this name makes besides, each called after it."""
        made = self.box.besides()
        there = {**self.inputs, ITSELF: name, **{other: f"{name}.{other}" for other in made}}
        return {
            there[other]: replace(
                self,
                box=each.box,
                inputs={p: there[g] for p, g in each.inputs.items() if g in there},
            )
            for other, each in made.items()
        }


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Sources, and steps by the name of the dataset each makes.

    What a box makes besides is called after it: `storms.regions` is made by the step `storms`.

    >>> demo = Pipeline.from_text('''
    ... name: demo
    ... boxes:
    ...   agcm: {box: simulate_agcm}
    ...   minima: {box: extract_minima, inputs: {field: agcm}}
    ... ''')
    >>> [name for name, step in demo.in_order()]
    ['agcm', 'minima']
    """

    name: str
    sources: Mapping[str, Source]
    steps: Mapping[str, Step]
    text: str = ""

    @classmethod
    def from_file(cls, path: Path | str, boxes: Mapping[str, type[Box]] | None = None) -> Pipeline:
        """Read a pipeline; paths in it are relative to its file."""
        try:
            with Path(path).open(encoding="utf-8") as file:
                text = file.read(LONGEST + 1)
        except FileNotFoundError:
            raise Refused(f'no file at "{path}"; name the YAML file of a pipeline') from None
        except (OSError, ValueError):
            raise Refused(f'no pipeline can be read from "{path}"; give a YAML file') from None
        return cls.from_text(text, boxes, Path(path).resolve().parent)

    @classmethod
    def from_text(
        cls, text: str, boxes: Mapping[str, type[Box]] | None = None, base: Path | None = None
    ) -> Pipeline:
        """Read a pipeline from YAML: data only, nothing in it is executed."""
        pipeline = cls.unfinished(text, boxes, base)
        pipeline.check_whole()
        return pipeline

    @classmethod
    def unfinished(
        cls, text: str, boxes: Mapping[str, type[Box]] | None = None, base: Path | None = None
    ) -> Pipeline:
        """Read a pipeline that may lack boxes and inputs; what it has is checked all the same."""
        pipeline = cls.as_written(text, boxes, base)
        pipeline.check_arrows()
        return pipeline

    @classmethod
    def as_written(
        cls, text: str, boxes: Mapping[str, type[Box]] | None = None, base: Path | None = None
    ) -> Pipeline:
        """Read the boxes of a text, each checked by itself, and the arrows as they stand there."""
        known = boxes if boxes is not None else boxes_in(modules())
        plain = mapping(loaded(text), "a pipeline", {"name", "sources", "boxes"})
        if not isinstance(plain.get("name"), str):
            raise Refused("a pipeline needs a name, like: name: cyclones")
        sources = {n: source_of(n, s, base) for n, s in named(plain, "sources")}
        steps = {n: _step(n, s, known) for n, s in named(plain, "boxes")}
        return cls(checked_name(plain["name"]), sources, steps, text)

    def unfolded(self) -> dict[str, Step]:
        """Every dataset that is made, with its step: what boxes make besides has one of its own."""
        return {n: s for name, step in self.steps.items() for n, s in _unfolded(name, step)}

    def maker(self, dataset: str) -> str:
        """The source that a dataset is, or the name of the box that makes it."""
        if dataset in self.sources or dataset in self.steps:
            return dataset
        owner = dataset.rpartition(".")[0]
        return owner if owner in self.steps else dataset

    def step(self, dataset: str) -> Step | None:
        """The step that makes a dataset."""
        maker = self.maker(dataset)
        made = _unfolded(maker, self.steps[maker]) if maker in self.steps else ()
        return dict(made).get(dataset)

    def graph(self) -> nx.DiGraph[str]:
        """Datasets, and an arrow from each to what is made of it."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        made = self.unfolded()
        graph.add_nodes_from([*self.sources, *made])
        graph.add_edges_from((i, n) for n, s in made.items() for i in s.inputs.values())
        return graph

    def makers(self) -> nx.DiGraph[str]:
        """Sources and boxes, and an arrow from each to what takes something of it."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from([*self.sources, *self.steps])
        arrows = [(i, n) for n, s in self.steps.items() for i in s.inputs.values()]
        graph.add_edges_from((self.maker(given), name) for given, name in arrows)
        return graph

    def in_order(self) -> Iterator[tuple[str, Step]]:
        """The steps, each after those it needs."""
        made = self.unfolded()
        for name in nx.lexicographical_topological_sort(self.graph()):
            if name in made:
                yield name, made[name]

    def up_to(self, name: str) -> Pipeline:
        """The part of this pipeline that a dataset is made by."""
        needed = nx.ancestors(self.makers(), self.maker(name)) | {self.maker(name)}
        sources = {n: s for n, s in self.sources.items() if n in needed}
        steps = {n: s for n, s in self.steps.items() if n in needed}
        return Pipeline(self.name, sources, steps, self.text)

    def check_whole(self) -> None:
        """Refuse a pipeline that has no boxes, or one with nothing at a port."""
        if not self.steps:
            raise Refused(f'pipeline "{self.name}" has no boxes')
        for name, step in self.unfolded().items():
            for port in step.bare_ports():
                raise Refused(f'box "{name}" ({step.box.name}) has nothing at its port "{port}"')

    def check_arrows(self) -> None:
        """Refuse two datasets of one name, arrows that do not fit, and arrows in a circle."""
        for name in set(self.sources) & set(self.steps):
            raise Refused(f'"{name}" is both a source and a box; rename one')
        for name, step in self.steps.items():
            _check_besides(step.box)
            for other in set(map(checked_name, step.besides(name))) & {*self.sources, *self.steps}:
                raise Refused(f'"{other}" is what box "{name}" makes besides; rename one')
        for name, step in self.unfolded().items():
            for port, given in step.inputs.items():
                self.check_arrow(name, port, given)
        for cycle in nx.simple_cycles(self.graph()):
            raise Refused(f"the arrows run in a circle: {' -> '.join([*cycle, cycle[0]])}")

    def check_arrow(self, name: str, port: str, given: str) -> None:
        """Refuse an arrow from or to what is not there, or between what does not fit."""
        step = self.step(name)
        assert step is not None
        ports = {p.name: p for p in step.box.takes}
        if port not in ports:
            raise unknown("port", port, ports, f'at box "{name}" ({step.box.name})')
        if given not in self.sources and self.step(given) is None:
            raise unknown("dataset", given, [*self.sources, *self.unfolded()], f'for box "{name}"')
        self._check_fit(name, ports[port], given)

    def _check_fit(self, name: str, port: Port, given: str) -> None:
        """Refuse an arrow whose dataset is of another kind, or lacks a type the port needs."""
        maker = self.step(given)
        kind = maker.box.kind if maker else self.sources[given].kind
        if kind != port.kind:
            raise Refused(
                f'port "{port.name}" of box "{name}" takes {KINDS[port.kind]}, '
                f'"{given}" is {KINDS[kind]}'
            )
        attributes = self.attributes(given) if maker else None
        if attributes is not None:
            _check_types(name, port, given, attributes)

    def attributes(
        self, name: str, found: Mapping[str, Dataset] | None = None
    ) -> tuple[Attribute, ...] | None:
        """The attributes a dataset will have; None while that hangs on what is not known."""
        step = self.step(name)
        if step is None:
            return found[name].attributes if found and name in found else None
        if step.box.makes:
            return step.box.makes
        if step.bare_ports() or self._in_a_circle(name):
            return None
        given = {port: self.attributes(each, found) for port, each in step.inputs.items()}
        known = {port: each for port, each in given.items() if each is not None}
        return step.box.attributes_of(known) if len(known) == len(given) else None

    def _in_a_circle(self, name: str) -> bool:
        graph = self.graph()
        ahead = graph.successors(name)
        return any(after == name or name in nx.descendants(graph, after) for after in ahead)

    def check_sources(self, found: Mapping[str, Dataset]) -> dict[str, Table]:
        """Refuse boxes that sources, now that they are known, do not have what they ask for.

        What is told is all tables whose columns are then known: those made of other tables.
        """
        known = {name: each.attributes for name, each in found.items()}
        tables = {name: each for name, each in found.items() if isinstance(each, Table)}
        for name, step in self.in_order():
            given = {port.name: known[step.inputs[port.name]] for port in step.box.takes}
            for port in step.box.takes:
                source = step.inputs[port.name]
                hint = "; say which of these it is, under variables: in the pipeline"
                _check_types(name, port, source, given[port.name], hint if source in found else "")
            with _saying(name):
                known[name] = step.box.makes or step.box.attributes_of(given)
                inputs = {p: tables[n] for p, n in step.inputs.items() if n in tables}
                if isinstance(step.box, RowBox) and len(inputs) == len(given):
                    tables[name] = step.box.described(name, inputs)
        return tables


@contextmanager
def _saying(name: str) -> Iterator[None]:
    """What a box refuses is said with its name in the pipeline."""
    try:
        yield
    except Refused as error:
        raise Refused(f"{name}: {error}") from None


def _unfolded(name: str, step: Step) -> Iterator[tuple[str, Step]]:
    yield name, step
    yield from step.besides(name).items()


def _check_besides(box: Box) -> None:
    """Refuse names for what a box makes besides that would be taken for something else."""
    taken = {OUT, *(p.name for p in box.takes)}
    for other in box.besides():
        if other in taken or not other.isidentifier():
            raise Refused(f'box "{box.name}" makes "{other}" besides, which means another thing')


def _check_types(
    name: str, port: Port, given: str, attributes: Iterable[Attribute], hint: str = ""
) -> None:
    there = {a.name: a.type for a in attributes}
    for missing in set(port.needs) - set(there.values()):
        raise Refused(
            f'port "{port.name}" of box "{name}" needs a {missing}, "{given}" has none '
            f"(it has: {', '.join(there)}){hint}"
        )


def source_of(name: str, entry: Any, base: Path | None = None) -> Source:
    """A source from its description."""
    plain = mapping(entry, f'source "{name}"', {"path", "kind", "variables"})
    if not isinstance(plain.get("path"), str) or "\0" in plain["path"]:
        raise Refused(f'source "{name}" needs a path')
    kind = plain.get("kind", "table" if plain["path"].endswith(".parquet") else "array")
    if kind not in KINDS:
        raise Refused(f'source "{name}": kind is {kind!r:.60}; a source is an array or a table')
    names = plain.get("variables") or {}
    if not isinstance(names, dict) or not all(isinstance(v, str) for e in names.items() for v in e):
        raise Refused(f'source "{name}": variables maps our names to the names in the file')
    if names and kind == "table":
        raise Refused(f'source "{name}" is a table, whose columns keep their names: no variables')
    path = Path(plain["path"])
    return Source(str(path if path.is_absolute() or base is None else base / path), kind, names)


def _step(name: str, entry: Any, known: Mapping[str, type[Box]]) -> Step:
    plain = mapping(entry, f'box "{name}"', {"box", "inputs", "params", "keep"})
    kind = plain.get("box")
    if not isinstance(kind, str) or kind not in known:
        absent = unknown("box", f"{kind!s:.60}", known)
        raise Refused(f"{absent}; name the module of one of your own with --boxes MODULE")
    keep = plain.get("keep", True)
    if not isinstance(keep, bool):
        raise Refused(f'box "{name}": keep is true or false, not {keep!r:.60}')
    inputs, params = plain.get("inputs") or {}, plain.get("params") or {}
    if not isinstance(inputs, dict) or not isinstance(params, dict):
        raise Refused(f'box "{name}": inputs maps ports to datasets, params names to values')
    wired = {str(p): str(d) for p, d in inputs.items()}
    return Step(known[kind].from_params(params), wired, keep)
