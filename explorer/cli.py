"""The command line: what can be asked of Whence, and the one line it says when it cannot be."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any, NoReturn

from explorer.options import (
    add_history,
    boxes_option,
    catalog_option,
    command,
    count_of,
    json_option,
    limit_option,
    spark_option,
    wish_option,
    wishes_option,
    workspace_option,
)
from pipelines.errors import WhenceError
from pipelines.workspace import CATALOG


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code says done (0), failed (1) or asked wrongly (2)."""
    try:
        asked = _parser().parse_args(arguments)
        with _put_off():  # Only here, since it takes seconds, in which a Ctrl-C is still answered.
            commands = import_module(asked.module).COMMANDS
        with _catalog_named(getattr(asked, "catalog", None)):
            return int(commands[asked.command](asked) or 0)
    except WhenceError as error:
        return _said(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _said("cancelled", 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("WHENCE_DEBUG"):
            raise
        return _said(f"{_unforeseen(error)} (WHENCE_DEBUG=1 shows where)", 1)


@contextmanager
def _put_off() -> Iterator[None]:
    """Put off a Ctrl-C: libraries in C lose one that comes while they are loaded, or end by it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def _catalog_named(url: str | None) -> Iterator[None]:
    """Let the catalog that is named in an option be that of every workspace, as the variable is."""
    before = dict(os.environ)
    os.environ.update({CATALOG: url} if url is not None else {})
    try:
        yield
    finally:
        if url is not None:
            os.environ.pop(CATALOG, None)
            os.environ.update({k: v for k, v in before.items() if k == CATALOG})


def _unforeseen(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f': "{error.filename}"' if error.filename else "")
    first = str(error).splitlines()[0] if str(error) else ""
    return f"unexpected {type(error).__name__}: {first}"


def _said(message: str, code: int) -> int:
    """Say one line, in which what files and arguments hold cannot move the cursor."""
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(message.split()))
    print(f"whence: {line}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        sys.exit(_said(f"{message} (see: {self.prog} --help)", 2))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("whence", description="Which cells of which arrays made this datum?")
    parser.add_argument("--version", action="version", version=f"whence {version('whence')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _add_demo(commands)
    _add_serve(commands)
    _add_run(commands)
    _add_question(commands, "trace", "find the cells behind some rows")
    _add_question(commands, "plan", "show what a trace would do; runs nothing")
    _add_impact(commands)
    _add_check(commands)
    _add_open(commands)
    _add_datasets(commands)
    _add_show(commands)
    _add_boxes(commands)
    add_history(commands)
    return parser


def _where_option(parser: Any) -> None:
    parser.add_argument(
        "--where", type=_said_something, metavar="SQL", help="which rows or cells, like: lat > 40"
    )


def _said_something(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; leave it out to select everything")
    return text


def _trials(text: str) -> int:
    """How often to try: at least once."""
    return count_of(text, 1)


def _seconds(text: str) -> float:
    """How long to wait at most."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def _add_demo(commands: Any) -> None:
    parser = command(commands, "demo", "simulate weather, track its cyclones, explore them")
    workspace_option(parser, "whence-demo")
    catalog_option(parser)
    parser.add_argument("--no-serve", action="store_true", help="make the workspace and stop")
    _port_option(parser)
    spark_option(parser)


def _add_serve(commands: Any) -> None:
    parser = command(commands, "serve", "explore a workspace in the browser")
    workspace_option(parser)
    catalog_option(parser)
    _port_option(parser)
    parser.add_argument(
        "--readers-only", action="store_true", help="nobody may change or run pipelines"
    )
    boxes_option(parser)
    spark_option(parser)


def _port_option(parser: Any) -> None:
    parser.add_argument("--port", type=count_of, metavar="N", help="any free one unless given")


def _add_run(commands: Any) -> None:
    parser = command(commands, "run", "run a pipeline and publish what it makes")
    parser.add_argument("pipeline", metavar="PIPELINE.yaml")
    parser.add_argument(
        "--only",
        metavar="FILTER",
        help='make only these rows of one table, like "tracks: lat between 20 and 60"',
    )
    workspace_option(parser)
    catalog_option(parser)
    boxes_option(parser)
    spark_option(parser)


def _add_question(commands: Any, name: str, help: str) -> None:
    parser = command(commands, name, help)
    parser.add_argument("dataset", metavar="DATASET")
    _where_option(parser)
    _attribute_option(parser, "ask about it; 'all' for all")
    wishes_option(parser)
    _answer_options(parser)
    parser.add_argument(
        "--export", metavar="PATH", help="also write: .csv .parquet .nc .zarr .zarr.zip .whence.zip"
    )
    parser.add_argument(
        "--infer",
        action="store_true",
        help="probe boxes that have no inverses, and go by what is seen, with no guarantee",
    )
    parser.add_argument(
        "--prove", action="store_true", help="run the boxes again on the answer alone, and compare"
    )


def _attribute_option(parser: Any, help: str) -> None:
    parser.add_argument("--attribute", action="append", default=[], metavar="A", help=help)


def _answer_options(parser: Any) -> None:
    workspace_option(parser)
    catalog_option(parser)
    boxes_option(parser)
    json_option(parser)
    for what, kind, metavar, told in (
        ("bytes", count_of, "N", "read; 8 GiB"),
        ("cells", count_of, "N", "find, or look at datum by datum; 20,000,000"),
        ("seconds", _seconds, "S", "take; 600"),
    ):
        told = f"the most {what} it may {told} unless given"
        parser.add_argument(f"--limit-{what}", type=kind, metavar=metavar, help=told)
    spark_option(parser)


def _add_impact(commands: Any) -> None:
    parser = command(commands, "impact", "find everything derived from some rows or cells")
    parser.add_argument("dataset", metavar="DATASET")
    _where_option(parser)
    _attribute_option(parser, "ask about it alone in what was derived; about all unless given")
    wish_option(parser)
    _answer_options(parser)


def _add_check(commands: Any) -> None:
    parser = command(
        commands, "check", "test the inverses of boxes, and functions, on generated data"
    )
    parser.add_argument("box", nargs="*", metavar="BOX", help="all of them unless named")
    told = "about how many of each box; 100 unless given"
    parser.add_argument("--trials", type=_trials, default=100, metavar="N", help=told)
    parser.add_argument("--save", metavar="PATH", help="keep the evidence in a file")
    boxes_option(parser)
    json_option(parser)


def _add_open(commands: Any) -> None:
    parser = command(commands, "open", "show the trace in an evidence bundle; needs no workspace")
    parser.add_argument("bundle", metavar="BUNDLE")
    json_option(parser)


def _add_datasets(commands: Any) -> None:
    parser = command(commands, "datasets", "list the datasets of a workspace")
    workspace_option(parser)
    json_option(parser)


def _add_show(commands: Any) -> None:
    parser = command(commands, "show", "print rows of a table, or cells of an array")
    parser.add_argument("dataset", metavar="DATASET")
    _where_option(parser)
    limit_option(parser)
    workspace_option(parser)
    json_option(parser)


def _add_boxes(commands: Any) -> None:
    parser = command(commands, "boxes", "list the boxes and how they can be traced")
    parser.add_argument(
        "box",
        nargs="*",
        metavar="BOX",
        help="tell more, of these alone",
    )
    boxes_option(parser)
    json_option(parser)
