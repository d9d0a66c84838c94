"""W3C PROV-JSON: entities are datasets, activities are tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipelines.errors import Refused
from pipelines.foreign.graph import Graph, mapping, text
from pipelines.foreign.stored import seconds_of, value_of
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
OWN = {
    "name": "whence:name",
    "version": "whence:version",
    "namespace": "whence:namespace",
    "at": "whence:at",
}
WHOLE = "whence:pipeline"  # what is said of a whole run of ours, whose tasks are there as well
SECONDS = "whence:seconds"
OWN_TASK = {"run": "whence:run", "step": "whence:step"}
PARAMETER = "whence:param."
DEFAULT = "default"  # the prefix of names that have none
Name = tuple[str, str]  # a namespace, and a name in it
Prefixes = Mapping[str, str]
Known = dict[tuple[str, Name], Identity]


def is_one(plain: Any) -> bool:
    """Whether a JSON value looks like a document of PROV."""
    return isinstance(plain, dict) and bool(plain.keys() & {*KINDS, *RELATIONS, "prefix", "bundle"})


def read(plain: Mapping[str, Any]) -> Graph:
    """The graph of a document, with all its bundles."""
    graph, known = Graph(), Known()
    documents = list(_documents(plain, {}))
    for document, prefixes in documents:
        for section, kind in KINDS.items():
            _add_nodes(graph, known, prefixes, document.get(section, {}), section, kind)
    for document, prefixes in documents:
        for relation in RELATIONS:
            _add_arrows(graph, known, prefixes, document.get(relation, {}), relation)
    return graph


def _documents(
    plain: Mapping[str, Any], outer: Prefixes, depth: int = 0
) -> Iterator[tuple[Mapping[str, Any], Prefixes]]:
    """A document and all its bundles, each with the prefixes that hold in it."""
    declared = mapping(plain.get("prefix", {}), "prefix").items()
    prefixes = {**outer, **{p: text(uri, f'prefix "{p:.60}"') for p, uri in declared}}
    yield plain, prefixes
    for name, bundle in mapping(plain.get("bundle", {}), "bundle").items():
        if depth >= DEEPEST:
            raise Refused(f"bundles nest deeper than {DEEPEST} levels")
        yield from _documents(mapping(bundle, f'bundle "{name:.60}"'), prefixes, depth + 1)


def _qualified(name: str, prefixes: Prefixes) -> Name:
    """A name with what its prefix stands for, as far as that is declared.

    >>> _qualified("ex:tidy", {"ex": "http://example.org/"})
    ('http://example.org/', 'tidy')
    >>> _qualified("ex:tidy:1", {"default": "http://example.org/"})
    ('', 'ex:tidy:1')
    """
    prefix, _, local = name.partition(":") if ":" in name else (DEFAULT, "", name)
    return (prefixes[prefix], local) if local and prefix in prefixes else ("", name)


def _add_nodes(
    graph: Graph, known: Known, prefixes: Prefixes, plain: Any, section: str, kind: str
) -> None:
    for said_name, said in mapping(plain, section).items():
        name = _qualified(text(said_name, f"the name of an {section}"), prefixes)
        first = _first(said, section, said_name)
        if WHOLE not in first:
            known[kind, name] = graph.put(_node(name, kind, first))


def _first(said: Any, section: str, name: str) -> Mapping[str, Any]:
    """What is said of something, the first time if it is said more than once."""
    found = said[0] if isinstance(said, list) and said else said
    return mapping(found, f'{section} "{name:.60}"')


def _node(qualified: Name, kind: str, said: Mapping[str, Any]) -> Node:
    namespace, name = qualified
    told = OWN | (OWN_TASK if kind == TASK else {})
    own = {k: _text(_value(said[a]), f"{a} of {name:.60}") for k, a in told.items() if a in said}
    given = {k: _value(v) for k, v in said.items() if k.startswith(PARAMETER)}
    params = {k.removeprefix(PARAMETER): value_of(str(v)) for k, v in given.items()}
    run = "" if kind == DATASET else namespace + name
    took = seconds_of(value_of(str(_value(said.get(SECONDS)))))
    node = Node(kind, name, namespace=namespace, run=run, seconds=took, params=params)
    return replace(node, **own)  # type: ignore[arg-type]  # they are all texts


def _text(value: Any, what: str) -> str:
    """A text that may be empty."""
    return "" if value == "" else text(value, what)


def _value(said: Any) -> Any:
    """A value of PROV-JSON without its type."""
    first = said[0] if isinstance(said, list) and said else said
    return first.get("$") if isinstance(first, dict) else first


def _add_arrows(graph: Graph, known: Known, prefixes: Prefixes, plain: Any, relation: str) -> None:
    before, kind_before, after, kind_after = RELATIONS[relation]
    for number, said in mapping(plain, relation).items():
        for each in said if isinstance(said, list) else [said]:
            ends = mapping(each, f'{relation} "{number:.60}"')
            if before in ends and after in ends:
                named = ((kind_before, ends[before]), (kind_after, ends[after]))
                names = [(kind, text(name, f"a name in {relation}")) for kind, name in named]
                graph.arrow(*(_known(graph, known, k, _qualified(n, prefixes)) for k, n in names))


def _known(graph: Graph, known: Known, kind: str, checked: Name) -> Identity:
    """What a relation names; PROV lets it name what nothing else is said of."""
    return known.get((kind, checked)) or graph.put(_node(checked, kind, {}))
