"""Traces on a Spark of several processes, one of which may be lost; prints the answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inverses.answer import Answer
from inverses.registry import Registry
from inverses.trace import trace
from pipelines.spark import session
from pipelines.workspace import Workspace
from tests.faults.killing import homesick, killing, with_fault

# Together they are answered by every inverse of both boxes.
QUESTIONS = (
    ("minima", "all", "exact"),
    ("tracks", "track", "complete"),
    ("tracks", "track", "pure"),
)
FEW = "time_index < 12"


def said(answer: Answer) -> str:
    """All that an answer says and all that it has found, in a line."""
    cells = {name: answer.cells(name).to_pylist() for name in answer.lineage}
    return json.dumps({"cells": cells, **answer.to_json()}, default=str)


def main(master: str, workspace: str, where: str, marks: str) -> None:
    spark = session(master)
    registry = Registry.of()
    about = [{"marks": Path(marks), "times": 1, "victim": v} for v in ("worker", "executor")]
    faulty = [with_fault(registry, "criterion", killing, **each) for each in about]
    for known in (*faulty, with_fault(registry, "criterion", homesick)):
        print(said(trace(Workspace(workspace), "tracks", where, spark=spark, registry=known)))
    for name, attribute, want in QUESTIONS:
        print(said(trace(Workspace(workspace), name, FEW, [attribute], want, spark=spark)))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
