"""Measure Whence beside its peers, and print the table."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from pipelines.spark import session, warm
from tests.speed.benchmarks import BENCHMARKS as CORE
from tests.speed.benchmarks import FULL, QUICK
from tests.speed.fields import Bench
from tests.speed.journals import journal
from tests.speed.library import BENCHMARKS as LIBRARY
from tests.speed.pages import page
from tests.speed.rows import table

BENCHMARKS = {**CORE, **LIBRARY, "page": page, "journal": journal}


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks asked for; the exit code says nothing of aims."""
    asked = _parser().parse_args(arguments)
    scale = QUICK if asked.quick else FULL
    rows = []
    with ExitStack() as stack:
        folder = asked.cache or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        spark = session()
        stack.callback(spark.stop)
        warm(spark, "inverses.trace")
        for name in asked.only or BENCHMARKS:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            rows += BENCHMARKS[name](Bench(spark, folder.resolve()), scale)
    print(table(rows))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less weather, fewer turns")
    parser.add_argument(
        "--only", action="append", choices=[*BENCHMARKS], metavar="NAME", help=", ".join(BENCHMARKS)
    )
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="keep the weather here, so that the next time it need not be made",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
