"""Traces on a Spark of several processes, one of which may be lost; prints the answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inverses.registry import Registry
from inverses.trace import trace
from pipelines.spark import session
from pipelines.workspace import Workspace
from tests.faults.killing import homesick, killing, with_fault


def main(master: str, workspace: str, where: str, marks: str) -> None:
    spark = session(master)
    registry = Registry.of()
    about = [{"marks": Path(marks), "times": 1, "victim": v} for v in ("worker", "executor")]
    faulty = [with_fault(registry, "criterion", killing, **each) for each in about]
    for known in (*faulty, with_fault(registry, "criterion", homesick)):
        answer = trace(Workspace(workspace), "tracks", where, spark=spark, registry=known)
        print(
            json.dumps({"cells": answer.cells("agcm").to_pylist(), **answer.to_json()}, default=str)
        )
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
