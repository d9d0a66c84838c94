"""What shall be done: boxes wired by arrows, read from YAML and checked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networkx as nx
import yaml

from pipelines.boxes.box import Box, Port, boxes_in, modules
from pipelines.datasets import Attribute, Dataset
from pipelines.errors import Refused, unknown

NAME = re.compile(r"[\w.-]{1,80}")
LONGEST = 200_000
DEEPEST = 20
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


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Sources, and steps by the name of the dataset each makes.

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
        plain = _mapping(_loaded(text), "a pipeline", {"name", "sources", "boxes"})
        if not isinstance(plain.get("name"), str):
            raise Refused("a pipeline needs a name, like: name: cyclones")
        sources = {n: source_of(n, s, base) for n, s in _named(plain, "sources")}
        steps = {n: _step(n, s, known) for n, s in _named(plain, "boxes")}
        return cls(checked_name(plain["name"]), sources, steps, text)

    def graph(self) -> nx.DiGraph[str]:
        """Datasets, and an arrow from each to what is made of it."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from([*self.sources, *self.steps])
        graph.add_edges_from((i, n) for n, s in self.steps.items() for i in s.inputs.values())
        return graph

    def in_order(self) -> Iterator[tuple[str, Step]]:
        """The steps, each after those it needs."""
        for name in nx.lexicographical_topological_sort(self.graph()):
            if name in self.steps:
                yield name, self.steps[name]

    def up_to(self, name: str) -> Pipeline:
        """The part of this pipeline that a dataset is made by."""
        needed = nx.ancestors(self.graph(), name) | {name}
        sources = {n: s for n, s in self.sources.items() if n in needed}
        steps = {n: s for n, s in self.steps.items() if n in needed}
        return Pipeline(self.name, sources, steps, self.text)

    def check_whole(self) -> None:
        """Refuse a pipeline that has no boxes, or one with nothing at a port."""
        if not self.steps:
            raise Refused(f'pipeline "{self.name}" has no boxes')
        for name, step in self.steps.items():
            for port in step.bare_ports():
                raise Refused(f'box "{name}" ({step.box.name}) has nothing at its port "{port}"')

    def check_arrows(self) -> None:
        """Refuse two datasets of one name, arrows that do not fit, and arrows in a circle."""
        for name in set(self.sources) & set(self.steps):
            raise Refused(f'"{name}" is both a source and a box; rename one')
        for name, step in self.steps.items():
            for port, given in step.inputs.items():
                self.check_arrow(name, port, given)
        for cycle in nx.simple_cycles(self.graph()):
            raise Refused(f"the arrows run in a circle: {' -> '.join([*cycle, cycle[0]])}")

    def check_arrow(self, name: str, port: str, given: str) -> None:
        """Refuse an arrow from or to what is not there, or between what does not fit."""
        box = self.steps[name].box
        ports = {p.name: p for p in box.takes}
        if port not in ports:
            raise unknown("port", port, ports, f'at box "{name}" ({box.name})')
        if given not in self.sources and given not in self.steps:
            raise unknown("dataset", given, [*self.sources, *self.steps], f'for box "{name}"')
        self._check_fit(name, ports[port], given)

    def _check_fit(self, name: str, port: Port, given: str) -> None:
        """Refuse an arrow whose dataset is of another kind, or lacks a type the port needs."""
        kind = self.steps[given].box.kind if given in self.steps else self.sources[given].kind
        if kind != port.kind:
            raise Refused(
                f'port "{port.name}" of box "{name}" takes {KINDS[port.kind]}, '
                f'"{given}" is {KINDS[kind]}'
            )
        attributes = self.attributes(given) if given in self.steps else None
        if attributes is not None:
            _check_types(name, port, given, attributes)

    def attributes(
        self, name: str, found: Mapping[str, Dataset] | None = None
    ) -> tuple[Attribute, ...] | None:
        """The attributes a dataset will have; None while that hangs on what is not known."""
        if name not in self.steps:
            return found[name].attributes if found and name in found else None
        step = self.steps[name]
        if step.box.makes:
            return step.box.makes
        if step.bare_ports() or self._in_a_circle(name):
            return None
        given = {port: self.attributes(each, found) for port, each in step.inputs.items()}
        known = {port: each for port, each in given.items() if each is not None}
        return step.box.attributes_of(known) if len(known) == len(given) else None

    def _in_a_circle(self, name: str) -> bool:
        graph = self.graph()
        return any(name in nx.descendants(graph, after) for after in graph.successors(name))

    def check_sources(self, found: Mapping[str, Dataset]) -> None:
        """Refuse an arrow from a source that turns out to lack a type the port needs."""
        for name, step in self.steps.items():
            for port in step.box.takes:
                given = step.inputs[port.name]
                attributes = self.attributes(given, found)
                if attributes is not None:
                    hint = "; say which of these it is, under variables: in the pipeline"
                    _check_types(name, port, given, attributes, hint if given in found else "")


def _check_types(
    name: str, port: Port, given: str, attributes: Iterable[Attribute], hint: str = ""
) -> None:
    there = {a.name: a.type for a in attributes}
    for missing in set(port.needs) - set(there.values()):
        raise Refused(
            f'port "{port.name}" of box "{name}" needs a {missing}, "{given}" has none '
            f"(it has: {', '.join(there)}){hint}"
        )


class _Loader(yaml.SafeLoader):
    """Plain YAML: not deep, no key twice, and no aliases, by which little text grows large."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise Refused("a pipeline has no aliases, like *name; write out what they stand for")
        self.depth += 1
        if self.depth > DEEPEST:
            raise Refused(f"the pipeline nests deeper than {DEEPEST} levels")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = Counter(str(key.value) for key, _ in node.value)
        for key in (k for k, times in keys.items() if times > 1):
            raise Refused(f'"{key:.60}" is there twice in line {node.start_mark.line + 1} and on')
        return super().construct_mapping(node, deep)


def _loaded(text: str) -> Any:
    if len(text) > LONGEST:
        raise Refused(f"a pipeline has at most {LONGEST:,} characters")
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise Refused(f"the pipeline is not YAML: {' '.join(str(error).split())}") from None
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise Refused(f"the pipeline has a value that cannot be read: {error}") from None


def _mapping(plain: Any, what: str, keys: set[str]) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise Refused(f"{what} has the keys {', '.join(sorted(keys))}; found {plain!r:.60}")
    for key in plain:
        if key not in keys:
            raise unknown("key", str(key), keys, f"in {what}")
    return plain


def _named(plain: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    entries = plain.get(key) or {}
    if not isinstance(entries, dict):
        raise Refused(f"{key} maps names to descriptions; found {entries!r:.60}")
    for name, entry in entries.items():
        yield checked_name(name), entry


def checked_name(name: Any) -> str:
    """A name if it may be one: of a pipeline, a source or a box."""
    if (
        not isinstance(name, str)
        or not NAME.fullmatch(name)
        or len(name.encode()) > 240
        or set(name) <= {"."}
    ):
        raise Refused(
            f"{name!r:.90} is not a name: up to 80 letters, digits, dots, dashes, underscores"
        )
    return name


def source_of(name: str, entry: Any, base: Path | None = None) -> Source:
    """A source from its description."""
    plain = _mapping(entry, f'source "{name}"', {"path", "kind", "variables"})
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
    plain = _mapping(entry, f'box "{name}"', {"box", "inputs", "params", "keep"})
    kind = plain.get("box")
    if not isinstance(kind, str) or kind not in known:
        raise unknown("box", f"{kind!s:.60}", known)
    keep = plain.get("keep", True)
    if not isinstance(keep, bool):
        raise Refused(f'box "{name}": keep is true or false, not {keep!r:.60}')
    inputs, params = plain.get("inputs") or {}, plain.get("params") or {}
    if not isinstance(inputs, dict) or not isinstance(params, dict):
        raise Refused(f'box "{name}": inputs maps ports to datasets, params names to values')
    wired = {str(p): str(d) for p, d in inputs.items()}
    return Step(known[kind].from_params(params), wired, keep)
