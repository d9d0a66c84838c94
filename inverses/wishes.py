"""Different wishes for different sources: each is answered by a trace that can keep it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from inverses.answer import Answer
from inverses.trace import trace
from pipelines.errors import unknown
from pipelines.workspace import Workspace


def trace_each(
    workspace: Workspace,
    dataset: str,
    where: str | None,
    wants: Mapping[str, str],
    attributes: Iterable[str] = (),
    **options: Any,
) -> dict[str, Answer]:
    """For each dataset named in `wants`, an answer that was traced with its wish.

    Inverses that keep one guarantee may not keep another, so only what has the same wish is
    traced together.
    """
    asked = list(attributes)
    by_wish = {
        want: trace(workspace, dataset, where, asked, want, **options)
        for want in dict.fromkeys(wants.values())
    }
    for name, want in wants.items():
        if name not in by_wish[want].lineage:
            raise unknown("dataset", name, by_wish[want].lineage, f'behind "{dataset}"')
    return {name: by_wish[want] for name, want in wants.items()}
