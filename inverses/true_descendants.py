"""Which datasets were truly made from another, as the history knows, or else as they say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from inverses.ancestry import Ancestry
from inverses.true_ancestors import mark
from pipelines.datasets import Array, Key, Table
from pipelines.errors import WhenceError
from pipelines.workspace import Workspace


def true_descendants(workspace: Workspace, origin: Table | Array) -> Iterator[Table | Array]:
    """The current datasets that were made, however indirectly, from this very version.

    What was made from another that only bore its number is none; nor is anything looked at that
    has nothing to do with it.
    """
    known = _known(workspace, origin)
    for each in workspace.datasets():
        if each.made is None or each.key == origin.key:
            continue
        if _led_to(workspace, each, origin.key) if known is None else _key(each) in known:
            yield each


def _known(workspace: Workspace, origin: Table | Array) -> set[tuple[str, str, str]] | None:
    """What the history says, asked once for all; nothing if it does not know this version."""
    with suppress(WhenceError):
        ancestry = Ancestry.of(workspace)
        if found := ancestry.marked(origin.key, mark(origin)):
            return {(r.name, r.version, r.run) for r in ancestry.made_of(found)}
    return None


def _key(dataset: Table | Array) -> tuple[str, str, str]:
    return (*dataset.key, mark(dataset))


def _led_to(workspace: Workspace, dataset: Table | Array, origin: Key) -> bool:
    """Whether a dataset says that it was made from a version, or from what was."""
    seen: set[Key] = set()
    waiting = [dataset]
    while waiting:
        made = waiting.pop().made
        for key in set(made.inputs.values()) - seen if made else ():
            seen.add(key)
            with suppress(WhenceError):
                waiting.append(workspace.dataset(*key))
    return origin in seen
