"""A run that is under way, and what its journal has done beside it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from pipelines.datasets import Dataset, Key
from pipelines.disk import alone, opened
from pipelines.fingerprints import content
from pipelines.journal import lock_of
from pipelines.workspace import Workspace

if TYPE_CHECKING:
    from pipelines.history import History


class Entry:
    """A run that is under way: its name, and what it has made so far.

    What the journal asks for is done beside it, best while Spark has the word: the journal is
    opened and the start written, sources are named.
    """

    def __init__(
        self,
        run: str,
        beside: Executor,
        opening: Callable[[], History],
        naming: Callable[[], dict[str, Dataset]],
    ) -> None:
        self.run, self.began = run, time.monotonic()
        self.made: dict[str, Dataset] = {}
        self._beside, self._opening, self._naming = beside, opening, naming

    def begin(self) -> None:
        """Have the run written down as begun while Spark has the word, unless that was done."""
        _ = self._sources

    @cached_property
    def _journal(self) -> Future[History]:
        return self._beside.submit(self._opening)

    @cached_property
    def _sources(self) -> Future[dict[str, Dataset]]:
        opened = self._journal

        def named() -> dict[str, Dataset]:
            opened.result()
            return self._naming()

        return self._beside.submit(named)

    def journal(self) -> History:
        """The journal, once it says that the run has begun."""
        return self._journal.result()

    def sources(self) -> dict[str, Dataset]:
        """The sources as they are named: nothing is published before the journal is ready."""
        return self._sources.result()

    def add(self, name: str, dataset: Dataset) -> None:
        """Note a dataset that was published."""
        self.made[name] = dataset

    @property
    def used(self) -> set[Key]:
        """All that something was made from, whoever made it."""
        return {key for d in self.made.values() if d.made for key in d.made.inputs.values()}

    def contents(self) -> list[tuple[Dataset, str]]:
        """The sources and what was made, each with its fingerprint.

        Where sources could not be named the run has failed, and has made nothing.
        """
        named = {} if self._sources.exception() else self.sources()
        return [(each, content(each)) for each in (*named.values(), *self.made.values())]


@contextmanager
def under_way(workspace: Workspace, run: str) -> Iterator[None]:
    """Hold a lock that ends with this process, however it ends."""
    lock = lock_of(workspace.path, run)
    lock.parent.mkdir(exist_ok=True)
    handle = opened(lock)
    try:
        alone(handle)
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)
