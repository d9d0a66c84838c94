"""A trace that loses part of Spark on the way answers as if nothing had happened, or says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from inverses.answer import Answer
from inverses.limits import Limits
from inverses.registry import Registry
from inverses.trace import trace
from pipelines.errors import Failed, TooDear
from pipelines.workspace import Workspace
from tests import laws
from tests.faults.cluster import FEW, QUESTIONS, said
from tests.faults.killing import dawdling, killing, with_fault

ROOT = Path(__file__).parents[2]
WHERE = "time_index < 60"


@pytest.fixture(scope="module")
def undisturbed(demo: Workspace, spark: SparkSession) -> Answer:
    return trace(demo, "tracks", WHERE, spark=spark)


def told(answer: Answer) -> dict[str, Any]:
    """All that an answer says, but for how long it took and where."""
    plain = answer.to_json()
    return {k: v for k, v in plain.items() if k not in ("seconds", "spark")}


def plainly(answer: Answer) -> dict[str, Any]:
    """The same, and all that it has found, as another process tells it."""
    plain: dict[str, Any] = json.loads(said(answer))
    return {k: v for k, v in plain.items() if k not in ("seconds", "spark")}


def assert_same(one: Answer, other: Answer) -> None:
    assert told(one) == told(other)
    for name in one.lineage:
        assert one.cells(name).equals(other.cells(name))


@pytest.mark.parametrize(("victim", "times"), [("worker", 1), ("worker", 3), ("daemon", 1)])
def test_a_killed_python_does_not_change_the_answer(
    demo: Workspace,
    spark: SparkSession,
    registry: Registry,
    undisturbed: Answer,
    tmp_path: Path,
    victim: str,
    times: int,
) -> None:
    faulty = with_fault(registry, "criterion", killing, marks=tmp_path, times=times, victim=victim)
    answer = trace(demo, "tracks", WHERE, spark=spark, registry=faulty)
    assert len(list(tmp_path.iterdir())) == times
    assert_same(answer, undisturbed)


def test_a_python_that_is_killed_every_time_ends_in_one_line(
    demo: Workspace, spark: SparkSession, registry: Registry, undisturbed: Answer, tmp_path: Path
) -> None:
    about = {"marks": tmp_path, "times": 100, "victim": "worker"}
    faulty = with_fault(registry, "criterion", killing, **about)
    with pytest.raises(Failed) as failure:
        trace(demo, "tracks", "time_index < 5", spark=spark, registry=faulty)
    assert str(failure.value).startswith("minima to agcm: ")
    assert "\n" not in str(failure.value)
    assert "\tat " not in str(failure.value)
    assert len(list(tmp_path.iterdir())) >= 4
    assert_same(trace(demo, "tracks", WHERE, spark=spark), undisturbed)


def test_a_job_that_outlives_its_limit_is_cancelled(
    demo: Workspace, spark: SparkSession, registry: Registry, undisturbed: Answer
) -> None:
    faulty = with_fault(registry, "criterion", dawdling, seconds=60)
    began = time.monotonic()
    with pytest.raises(TooDear, match=r": not done after the [1-4] s .*raise --limit-seconds"):
        trace(demo, "tracks", WHERE, spark=spark, registry=faulty, limits=Limits(seconds=4))
    assert time.monotonic() - began < 30
    assert_same(trace(demo, "tracks", WHERE, spark=spark), undisturbed)


@pytest.fixture
def own_spark_home(tmp_path: Path) -> dict[str, str]:
    """An environment in which executors write below a path of ours, not beside Spark's code."""
    home = tmp_path / "spark"
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        (home / each.name).symlink_to(each)
    (home / "work").unlink(missing_ok=True)
    return {**os.environ, "SPARK_HOME": str(home)}


@pytest.mark.night
def test_a_lost_executor_does_not_change_the_answer(
    demo: Workspace,
    spark: SparkSession,
    undisturbed: Answer,
    tmp_path: Path,
    own_spark_home: dict[str, str],
) -> None:
    """Nor does a cluster, of any inverse, unless one answers otherwise there than here."""
    command = [sys.executable, "-m", "tests.faults.cluster", "local-cluster[2,1,1024]"]
    ended = subprocess.run(
        [*command, str(demo.path), WHERE, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=240,
        env=own_spark_home,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert {p.name for p in tmp_path.iterdir()} >= {"worker-0", "executor-0"}
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    for there in answers:
        assert there.pop("spark")["master"] == "local-cluster[2,1,1024]"
        del there["seconds"]
    here = plainly(undisturbed)
    *honest, homesick = answers[: -len(QUESTIONS)]
    assert len(honest) == 2
    for there in honest:
        laws.cluster(here, there)
    for (name, attribute, want), there in zip(QUESTIONS, answers[-len(QUESTIONS) :], strict=True):
        laws.cluster(plainly(trace(demo, name, FEW, [attribute], want, spark=spark)), there)
    with pytest.raises(AssertionError, match="another Spark, another answer"):
        laws.cluster(here, homesick)
