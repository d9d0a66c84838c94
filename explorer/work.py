"""Work that takes a while: one Spark for all visitors, a thread for each, shown and cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import param
from pyspark.sql import SparkSession

from pipelines.errors import Cancelled, WhenceError
from pipelines.spark import LOCAL, Progress, session, warm

READY = "Spark is ready"
Result = TypeVar("Result")
Later = Callable[[Callable[[], object]], None]


class Engine:
    """The Spark that all visitors share, started and warmed in the background."""

    def __init__(
        self,
        master: str = LOCAL,
        first: Callable[[SparkSession, Progress], object] = lambda spark, progress: None,
    ) -> None:
        self.master, self._first = master, first
        self.state = "Spark has not been asked for yet"
        self._alone = threading.Lock()
        self._warm: SparkSession | None = None

    def start(self) -> None:
        """Start Spark without waiting for it."""
        threading.Thread(target=self._started, daemon=True).start()

    def spark(self) -> SparkSession:
        """Spark, warm; whoever asks first waits while it starts."""
        with self._alone:
            self.state = self.state if self._warm else "Spark is starting"
            running = session(self.master)
            if running is not self._warm:
                self.state = "Spark is warming its workers"
                warm(running, "inverses.trace")
                self._warm = running
            self.state = READY
            return running

    @property
    def ready(self) -> bool:
        return self.state == READY

    def _started(self) -> None:
        def progress(label: str, done: int, total: int) -> None:
            self.state = f"making {label}: {done} of {total} tasks"

        try:
            self._first(self.spark(), progress)
            self.state = READY
        except WhenceError as error:
            self.state = str(error)
        except Exception as error:
            self.state = f"not foreseen: {type(error).__name__}: {error}"
            raise


class Work(param.Parameterized):
    """What one visitor is waiting for, if anything: a trace, a run, an export.

    `later` brings a call back to the visitor's page; every parameter is changed there alone.
    """

    busy = param.Boolean(False)
    label = param.String("")
    done = param.Integer(0)
    total = param.Integer(0)

    def __init__(self, engine: Engine, later: Later) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.engine = engine
        self.later = later
        self._stop = threading.Event()

    def start(
        self,
        label: str,
        task: Callable[[SparkSession, Progress], Result],
        then: Callable[[Result], None],
        failed: Callable[[str], None],
    ) -> None:
        """Do a task in a thread, then hand its result, or why there is none, to the page."""
        if self.busy:
            failed(f"{self.label} is not done yet; cancel it, or wait")
            return
        self._stop = stop = threading.Event()
        self.param.update(busy=True, label=label, done=0, total=0)
        threading.Thread(target=self._run, args=(task, then, failed, stop), daemon=True).start()

    def aside(self, read: Callable[[], Result], then: Callable[[Result], None]) -> None:
        """Read something in a thread, without Spark, and show it on the page when it is there."""

        def reading() -> None:
            result = read()
            self.later(lambda: then(result))

        threading.Thread(target=reading, daemon=True).start()

    def cancel(self) -> None:
        """Stop what is being done; its cores are free a moment later."""
        self._stop.set()
        if self.busy:
            self.label = "cancelling"

    def _run(
        self, task: Any, then: Callable[[Any], None], failed: Any, stop: threading.Event
    ) -> None:
        def progress(label: str, done: int, total: int) -> None:
            if stop.is_set():
                raise Cancelled("cancelled")
            self.later(lambda: self.param.update(label=label, done=done, total=total))

        try:
            result = task(self.engine.spark(), progress)
        except WhenceError as error:
            self._ended(partial(failed, str(error)))
        except Exception as error:
            self._ended(partial(failed, f"not foreseen: {type(error).__name__}: {error}"))
            raise
        else:
            self._ended(partial(then, result))

    def _ended(self, last: Callable[[], object]) -> None:
        def end() -> None:
            self.busy = False
            last()

        self.later(end)
