"""W3C PROV-JSON: entities are datasets, activities are tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipelines.errors import Refused
from pipelines.foreign.graph import Graph, mapping, text
from pipelines.foreign.stored import value_of
from pipelines.run_graph import DATASET, TASK, Identity, Node

DEEPEST = 8  # bundles in bundles
KINDS = {"entity": DATASET, "activity": TASK}
# Of each relation: what was there before, what came of it, and which kinds these are.
RELATIONS = {
    "used": ("prov:entity", DATASET, "prov:activity", TASK),
    "wasGeneratedBy": ("prov:activity", TASK, "prov:entity", DATASET),
    "wasDerivedFrom": ("prov:usedEntity", DATASET, "prov:generatedEntity", DATASET),
    "wasInformedBy": ("prov:informant", TASK, "prov:informed", TASK),
}
OWN = {"name": "whence:name", "version": "whence:version", "namespace": "whence:namespace"}
OWN_TASK = {"run": "whence:run", "step": "whence:step"}
PARAMETER = "whence:param."


def is_one(plain: Any) -> bool:
    """Whether a JSON value looks like a document of PROV."""
    return isinstance(plain, dict) and bool(plain.keys() & {*KINDS, *RELATIONS, "prefix", "bundle"})


def read(plain: Mapping[str, Any]) -> Graph:
    """The graph of a document, with all its bundles."""
    graph, known = Graph(), dict[tuple[str, str], Identity]()
    documents = list(_documents(plain))
    for document in documents:
        for section, kind in KINDS.items():
            _add_nodes(graph, known, document.get(section, {}), section, kind)
    for document in documents:
        for relation in RELATIONS:
            _add_arrows(graph, known, document.get(relation, {}), relation)
    return graph


def _documents(plain: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    yield plain
    for name, bundle in mapping(plain.get("bundle", {}), "bundle").items():
        if depth >= DEEPEST:
            raise Refused(f"bundles nest deeper than {DEEPEST} levels")
        yield from _documents(mapping(bundle, f'bundle "{name:.60}"'), depth + 1)


def _add_nodes(
    graph: Graph, known: dict[tuple[str, str], Identity], plain: Any, section: str, kind: str
) -> None:
    for name, said in mapping(plain, section).items():
        node = _node(text(name, f"the name of an {section}"), kind, _first(said, section, name))
        known[kind, name] = graph.put(node)


def _first(said: Any, section: str, name: str) -> Mapping[str, Any]:
    """What is said of something, the first time if it is said more than once."""
    found = said[0] if isinstance(said, list) and said else said
    return mapping(found, f'{section} "{name:.60}"')


def _node(name: str, kind: str, said: Mapping[str, Any]) -> Node:
    told = OWN | (OWN_TASK if kind == TASK else {})
    own = {k: _text(_value(said[a]), f"{a} of {name:.60}") for k, a in told.items() if a in said}
    given = {k: _value(v) for k, v in said.items() if k.startswith(PARAMETER)}
    params = {k.removeprefix(PARAMETER): value_of(str(v)) for k, v in given.items()}
    node = Node(kind, name, run="" if kind == DATASET else name, params=params)
    return replace(node, **own)  # type: ignore[arg-type]  # they are all texts


def _text(value: Any, what: str) -> str:
    """A text that may be empty."""
    return "" if value == "" else text(value, what)


def _value(said: Any) -> Any:
    """A value of PROV-JSON without its type."""
    first = said[0] if isinstance(said, list) and said else said
    return first.get("$") if isinstance(first, dict) else first


def _add_arrows(
    graph: Graph, known: Mapping[tuple[str, str], Identity], plain: Any, relation: str
) -> None:
    before, kind_before, after, kind_after = RELATIONS[relation]
    for number, said in mapping(plain, relation).items():
        for each in said if isinstance(said, list) else [said]:
            ends = mapping(each, f'{relation} "{number:.60}"')
            if before in ends and after in ends:
                source = _known(graph, known, kind_before, ends[before], relation)
                graph.arrow(source, _known(graph, known, kind_after, ends[after], relation))


def _known(
    graph: Graph, known: Mapping[tuple[str, str], Identity], kind: str, name: Any, relation: str
) -> Identity:
    """What a relation names; PROV lets it name what nothing else is said of."""
    checked = text(name, f"a name in {relation}")
    return known.get((kind, checked)) or graph.put(_node(checked, kind, {}))
