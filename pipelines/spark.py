"""The one place where a Spark session is made, sized, warmed, watched and stopped."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from math import inf
from typing import Any, TypeVar

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkContext, java_gateway
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pipelines.errors import Cancelled, Failed, TooDear, WhenceError
from pipelines.java import java_home

LOCAL = "local[*,4]"
# What calls to a Spark raise when it refuses, fails or is no longer there.
TROUBLE = (PySparkException, Py4JError, ConnectionError)
Piece = TypeVar("Piece")
Progress = Callable[[str, int, int], None]
Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def session(master: str = LOCAL) -> SparkSession:
    """The Spark session of this process, started if there is none, or none that lives."""
    running = SparkSession._instantiatedSession
    if running is not None and _lives(running):
        return running
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local") or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("whence").master(master)
    for key, value in _settings(master).items():
        builder = builder.config(key, value)
    try:
        with _java_unheard(), _java_ended_if_interrupted():
            return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        why = f"{_reason(error)} (WHENCE_SPARK_LOG=1 shows what Java says)"
        raise Failed(f"Spark did not start on {master}: {why}") from None


def _lives(spark: SparkSession) -> bool:
    """Whether a session can still be asked; one whose Java has died is let go of."""
    gateway: Any = SparkContext._gateway
    with suppress(*TROUBLE):
        if gateway.proc.poll() is None and not spark.sparkContext._jsc.sc().isStopped():
            return True
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    return False


@contextmanager
def _java_unheard() -> Iterator[None]:
    """Start Java with its stderr closed to people, who hear from us; WHENCE_SPARK_LOG opens it."""
    if os.environ.get("WHENCE_SPARK_LOG"):
        yield
        return
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _java_ended_if_interrupted() -> Iterator[None]:
    """See to it that a Java whose start is cut short does not wait for us for ever."""
    started: list[subprocess.Popen[bytes]] = []
    gateway: Any = java_gateway
    popen = gateway.Popen

    def noted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        return started[-1]

    try:
        gateway.Popen = noted
        yield
    except KeyboardInterrupt:
        for java in started:
            java.kill()
        raise
    finally:
        gateway.Popen = popen


def _settings(master: str) -> dict[str, str]:
    local = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        # Two seconds by default, in which a cancelled worker would keep its core.
        "spark.python.task.killTimeout": "200ms",
        # One job per hop: adaptive execution would run every stage as a job of its own.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        **(local if master.startswith("local") else {}),
    }


def warm(spark: SparkSession, module: str = __name__) -> None:
    """Run an empty job, so that Python workers are up, with `module` imported, before a wait."""

    def nothing(piece: int) -> Iterator[pa.RecordBatch]:
        import_module(module)
        yield pa.record_batch({"n": pa.array([piece])})

    every = list(range(spark.sparkContext.defaultParallelism))
    over(spark, every, nothing, pa.schema([("n", pa.int64())])).toArrow()


@cache
def spared() -> None:
    """Spare what a worker has imported from the full collection Spark makes after every task.

    It takes 65 ms of a worker that has imported xarray and Spark, and the next task waits for it.
    """
    gc.collect()
    gc.freeze()


def over(
    spark: SparkSession,
    pieces: Sequence[Piece],
    work: Callable[[Piece], Iterable[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """The rows that `work` makes of each piece, in order; Spark carries piece numbers."""
    cores = spark.sparkContext.defaultParallelism
    # A task costs a tenth of a second: little work is cut by cores, much of it finer.
    tasks = max(1, min(len(pieces), cores if len(pieces) <= 32 * cores else 4 * cores))

    def each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from work(pieces[number])
        spared()

    numbers = spark.range(0, len(pieces), 1, tasks)
    return numbers.mapInArrow(each, from_arrow_schema(schema, prefer_timestamp_ntz=True))


def mapped(
    frame: DataFrame, work: Work, schema: StructType, together: str = "", tasks: int = 1
) -> DataFrame:
    """The rows that `work` makes of those of a frame, equal ones in a column `together` if asked.

    Spark knows the columns by number meanwhile. By name it would take `a` and `A` for the same,
    and `a.b` for a part of `a`.
    """
    names = frame.columns
    numbered = frame.toDF(*(f"c{number}" for number in range(len(names))))
    if together:
        numbered = numbered.repartition(tasks, f"c{names.index(together)}")

    def named(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return work(batch.rename_columns(names) for batch in batches)

    return numbered.mapInArrow(named, schema)


@dataclass(slots=True)
class Watch:
    """What a piece of Spark work did: how many jobs it took."""

    group: str
    jobs: int = 0
    stopped: WhenceError | None = None
    done: threading.Event = field(default_factory=threading.Event)


@contextmanager
def watched(
    spark: SparkSession,
    label: str,
    progress: Progress | None = None,
    seconds: float | None = None,
) -> Iterator[Watch]:
    """Run jobs as one group: shown as they go, cancelled by Ctrl-C or after `seconds`.

    A `progress` that raises `Cancelled` cancels them too.
    """
    watch = Watch(f"whence-{uuid.uuid4().hex}")
    context = spark.sparkContext
    context.setJobGroup(watch.group, label, interruptOnCancel=True)
    follow = threading.Thread(target=_follow, args=(context, watch, label, progress), daemon=True)
    stop = threading.Thread(target=_stop_after, args=(context, watch, label, seconds), daemon=True)
    if progress is not None:
        follow.start()
    if seconds is not None and seconds < inf:
        stop.start()
    try:
        yield watch
    except KeyboardInterrupt:
        context.cancelJobGroup(watch.group)
        raise
    except TROUBLE as error:
        raise _told(error, spark, watch, label) from None
    finally:
        watch.done.set()
        with suppress(*TROUBLE):
            watch.jobs = len(context.statusTracker().getJobIdsForGroup(watch.group))
            context.setLocalProperty("spark.jobGroup.id", "")


def _told(error: BaseException, spark: SparkSession, watch: Watch, label: str) -> BaseException:
    """Trouble in Spark as those who asked are told of it, who may have stopped it themselves."""
    if _interrupted(error):
        return KeyboardInterrupt()
    if watch.stopped is not None:
        return watch.stopped
    if not _lives(spark):
        return Failed(f"{label}: Spark has ended; ask again, and it starts anew")
    return Failed(f"{label}: {_reason(error)}")


def _follow(context: Any, watch: Watch, label: str, progress: Progress) -> None:
    """Tell the progress of a group's tasks a few times a second."""
    while not watch.done.wait(0.25):
        try:
            progress(label, *_tasks(context.statusTracker(), watch.group))
        except Cancelled as stop:
            watch.stopped = stop
            context.cancelJobGroup(watch.group)
            return
        except TROUBLE:
            return


def _tasks(tracker: Any, group: str) -> tuple[int, int]:
    jobs = [j for j in map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)) if j]
    stages = [s for j in jobs for s in map(tracker.getStageInfo, j.stageIds) if s]
    return sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)


def _stop_after(context: Any, watch: Watch, label: str, seconds: float) -> None:
    if not watch.done.wait(seconds):
        watch.stopped = too_long(label, seconds)
        context.cancelJobGroup(watch.group)


def too_long(label: str, seconds: float) -> TooDear:
    """The error for work that is stopped because its time is up."""
    return TooDear(
        f"{label}: not done after the {seconds:,.0f} s that were left for it; select fewer "
        "rows, or raise --limit-seconds"
    )


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C came first, and what Spark says is only that it was cancelled."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _reason(error: BaseException) -> str:
    """The one line of a Spark error that a person can act on."""
    told = (line.strip().removeprefix("Caused by:").strip(": ") for line in str(error).splitlines())
    lines = [line for line in told if line and not line.startswith(("at ", "... "))]
    ours = [m[1] for m in (re.match(r"pipelines\.errors\.\w+: (.*)", x) for x in lines) if m]
    if ours:
        return ours[-1]
    python = [x for x in lines if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", x)]
    return (python or lines or [type(error).__name__])[-1][:300]


def whereabouts(spark: SparkSession) -> dict[str, str]:
    """On which Spark something ran."""
    return {"master": str(spark.sparkContext.master), "version": pyspark.__version__}
