"""What is written in the text of a pipeline: plain YAML and names, of which nothing is executed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from pipelines.errors import Refused, unknown

NAME = re.compile(r"[\w.-]{1,80}")
LONGEST = 200_000
DEEPEST = 20


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


def loaded(text: str) -> Any:
    """What a text says, as plain data."""
    if len(text) > LONGEST:
        raise Refused(f"a pipeline has at most {LONGEST:,} characters")
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise Refused(f"the pipeline is not YAML: {' '.join(str(error).split())}") from None
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise Refused(f"the pipeline has a value that cannot be read: {error}") from None


def mapping(plain: Any, what: str, keys: set[str]) -> dict[str, Any]:
    """Data if they are entries under some of these keys; else refused, as what they are."""
    if not isinstance(plain, dict):
        raise Refused(f"{what} has the keys {', '.join(sorted(keys))}; found {plain!r:.60}")
    for key in plain:
        if key not in keys:
            raise unknown("key", str(key), keys, f"in {what}")
    return plain


def named(plain: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    """The entries under a key, each with its name, checked."""
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
