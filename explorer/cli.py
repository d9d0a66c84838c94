"""The command line: everything Whence can do, one command each."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from importlib.metadata import version
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar

from explorer.demo import demo
from explorer.export import check_target, export
from explorer.shown import dataset_json, dataset_row, first_rows
from inverses import words
from inverses.answer import Limits, hops_json
from inverses.guarantees import WISHES, names, wish
from inverses.outline import prices
from inverses.planner import Plan
from inverses.planner import plan as planned
from inverses.registry import Registry
from inverses.selection import select
from inverses.trace import trace
from pipelines.boxes.box import default_of
from pipelines.errors import WhenceError
from pipelines.pipeline import Pipeline
from pipelines.run import run
from pipelines.spark import LOCAL, Progress, session, warm
from pipelines.workspace import Workspace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code says done (0), failed (1) or asked wrongly (2)."""
    try:
        asked = _parser().parse_args(arguments)
        command: Callable[[argparse.Namespace], None] = asked.command
        command(asked)
    except WhenceError as error:
        return _said(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _said("cancelled; nothing was published", 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("WHENCE_DEBUG"):
            raise
        first = str(error).splitlines()[0] if str(error) else ""
        kind = type(error).__name__
        return _said(f"unexpected {kind}: {first} (WHENCE_DEBUG=1 shows where)", 1)
    return 0


def _said(message: str, code: int) -> int:
    print(f"whence: {' '.join(message.split())}", file=sys.stderr)
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
    _add_run(commands)
    _add_question(commands, "trace", "find the cells behind some rows", _trace)
    _add_question(commands, "plan", "show what a trace would do; runs nothing", _plan)
    _add_datasets(commands)
    _add_show(commands)
    _add_boxes(commands)
    return parser


def _command(commands: Any, name: str, help: str, does: Callable[..., None]) -> Any:
    parser = commands.add_parser(name, help=help, description=help)
    parser.set_defaults(command=does)
    return parser


def _workspace_option(parser: Any, default: str = ".") -> None:
    parser.add_argument("-w", "--workspace", default=default, metavar="DIR", help="the workspace")


def _spark_option(parser: Any) -> None:
    parser.add_argument("--master", default=LOCAL, metavar="URL", help=f"Spark to use ({LOCAL})")


def _boxes_option(parser: Any) -> None:
    parser.add_argument(
        "--boxes", action="append", default=[], metavar="MODULE", help="a module with your boxes"
    )


def _json_option(parser: Any) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_demo(commands: Any) -> None:
    parser = _command(
        commands, "demo", "simulate weather, track its cyclones, trace the strangest", _demo
    )
    _workspace_option(parser, "whence-demo")
    parser.add_argument("--no-serve", action="store_true", help="make the workspace and stop")
    parser.add_argument("--port", type=int, help="for the explorer, once there is one")
    _spark_option(parser)


def _add_run(commands: Any) -> None:
    parser = _command(commands, "run", "run a pipeline and publish what it makes", _run)
    parser.add_argument("pipeline", metavar="PIPELINE.yaml")
    _workspace_option(parser)
    _boxes_option(parser)
    _spark_option(parser)


def _add_question(commands: Any, name: str, help: str, does: Callable[..., None]) -> None:
    parser = _command(commands, name, help, does)
    parser.add_argument("dataset", metavar="DATASET")
    parser.add_argument("--where", metavar="SQL", help="which rows or cells, like: lat > 40")
    parser.add_argument(
        "--attribute", action="append", default=[], metavar="A", help="ask about it; 'all' for all"
    )
    parser.add_argument("--want", default="exact", choices=list(WISHES))
    _workspace_option(parser)
    _boxes_option(parser)
    _json_option(parser)
    limits = Limits()
    parser.add_argument("--limit-bytes", type=int, default=limits.bytes, metavar="N")
    parser.add_argument("--limit-cells", type=int, default=limits.cells, metavar="N")
    parser.add_argument("--limit-seconds", type=float, default=limits.seconds, metavar="S")
    parser.add_argument("--export", metavar="PATH", help="also write: .csv .parquet .nc .zarr")
    _spark_option(parser)


def _add_datasets(commands: Any) -> None:
    parser = _command(commands, "datasets", "list the datasets of a workspace", _datasets)
    _workspace_option(parser)
    _json_option(parser)


def _add_show(commands: Any) -> None:
    parser = _command(commands, "show", "print rows of a table, or cells of an array", _show)
    parser.add_argument("dataset", metavar="DATASET")
    parser.add_argument("--where", metavar="SQL")
    parser.add_argument("--limit", type=int, default=20, metavar="N")
    _workspace_option(parser)
    _json_option(parser)


def _add_boxes(commands: Any) -> None:
    parser = _command(commands, "boxes", "list the boxes and how they can be traced", _boxes)
    _boxes_option(parser)
    _json_option(parser)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on the terminal that follows Spark's tasks."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Spark", total=None)
        yield lambda label, done, total: bar.update(
            task, description=label, completed=done, total=total or None
        )


def _demo(asked: argparse.Namespace) -> None:
    workspace = Workspace.create(asked.workspace)
    with _progress() as progress:
        answer, where = demo(workspace, session(asked.master), progress)
    print(f"The demo is in {asked.workspace}: {', '.join(workspace.names())}.")
    if not asked.no_serve:
        print("\nThe deepest point of all tracks cannot be right. Where did it come from?")
        command = f'whence trace tracks --where "{where}" -w {asked.workspace}'
        print(f"\n  $ {command}\n")
        _print_answer(words.told(answer))


def _run(asked: argparse.Namespace) -> None:
    registry = Registry.of(asked.boxes)
    pipeline = Pipeline.from_file(asked.pipeline, registry.boxes)
    workspace = Workspace.create(asked.workspace)
    with _progress() as progress:
        made = run(pipeline, workspace, session(asked.master), progress)
    for dataset in made.values():
        print(f"{dataset.name} {dataset.version}")


def _trace(asked: argparse.Namespace) -> None:
    target = check_target(asked.export) if asked.export else None
    workspace, registry = Workspace(asked.workspace), Registry.of(asked.boxes)
    limits = Limits(asked.limit_bytes, asked.limit_cells, asked.limit_seconds)
    _checked_plan(workspace, asked, registry, limits)
    with _progress() as progress:
        spark = session(asked.master)
        warm(spark, "inverses.trace")
        answer = trace(
            workspace, asked.dataset, asked.where, asked.attribute, asked.want,
            spark=spark, registry=registry, limits=limits, progress=progress,
        )  # fmt: skip
    if target is not None:
        export(answer, target)
    if asked.json:
        print(json.dumps(answer.to_json()))
    else:
        _print_answer([*words.told(answer), *([f"wrote {target}"] if target else [])])


def _print_answer(lines: list[str]) -> None:
    for line in lines:
        print(line)


def _checked_plan(
    workspace: Workspace, asked: argparse.Namespace, registry: Registry, limits: Limits
) -> Plan:
    """The plan for a question, refused if it is too dear: before Spark has to start."""
    selection = select(workspace, asked.dataset, asked.where, asked.attribute)
    found = planned(workspace, selection, wish(asked.want), registry)
    limits.check(found, prices(found))
    return found


def _plan(asked: argparse.Namespace) -> None:
    workspace, registry = Workspace(asked.workspace), Registry.of(asked.boxes)
    limits = Limits(asked.limit_bytes, asked.limit_cells, asked.limit_seconds)
    found = _checked_plan(workspace, asked, registry, limits)
    if asked.json:
        print(json.dumps(_plan_json(found)))
        return
    if found.unmet:
        print(words.unmet(found))
    print(f"{words.selected(found)}:")
    _print_grid(_plan_rows(found))
    print(f"{words.price_in_words(prices(found))}")


def _plan_rows(found: Plan) -> list[list[str]]:
    head = ["", "hop", "level", "step", "functions", "promised", "reads"]
    steps = enumerate(words.steps(found, prices(found)), 1)
    return [head, *([str(n), *astuple(s)] for n, s in steps)]


def _print_grid(rows: list[list[str]]) -> None:
    """Rows in columns as wide as they need; a terminal wraps, nothing is cut."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _plan_json(found: Plan) -> dict[str, Any]:
    priced = [
        {"chunks": p.chunks, "bytes": p.bytes, "rows": p.rows, "cells": p.cells}
        for p in prices(found)
    ]
    hops = [{**h, "reads": p} for h, p in zip(hops_json(found), priced, strict=True)]
    return {
        "selection": {
            "dataset": found.selection.dataset.name,
            "where": found.selection.where,
            "attributes": found.attributes,
            "rows": len(found.selection),
        },
        "want": names(found.wish),
        "unmet": names(found.unmet),
        "guarantee": names(found.guarantee),
        "hops": hops,
        "steps": [s.does for s in words.steps(found, prices(found))],
    }


def _datasets(asked: argparse.Namespace) -> None:
    found = Workspace(asked.workspace).datasets()
    if asked.json:
        print(json.dumps([dataset_json(d) for d in found]))
        return
    head = ["name", "version", "kind", "size", "chunks", "attributes"]
    _print_grid([head, *(dataset_row(d) for d in found)])


def _show(asked: argparse.Namespace) -> None:
    dataset = Workspace(asked.workspace).dataset(asked.dataset)
    rows, total = first_rows(dataset, asked.where, asked.limit)
    if asked.json:
        print(json.dumps(rows.to_pylist(), default=str))
        return
    shown = [[_shown(v) for v in row.values()] for row in rows.to_pylist()]
    _print_grid([rows.column_names, *shown])
    print(f"{rows.num_rows:,} shown of {total:,}")


def _shown(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _boxes(asked: argparse.Namespace) -> None:
    registry = Registry.of(asked.boxes)
    listed = [_box_json(registry, name) for name in sorted(registry.boxes)]
    if asked.json:
        print(json.dumps(listed))
        return
    for box in listed:
        print(f"{box['name']}: {box['about']}")
        print(f"  contributed: {box['contributed']}")
        for param in box["params"]:
            value = f"{param['default']} {param['unit']}".strip()
            print(f"  {param['name']} = {value}: {param['help']}")
        for inverse in box["inverses"]:
            promise = ", ".join(inverse["promises"])
            found = f"{inverse['image']} into the {inverse['level']} level"
            print(f"  {inverse['name']} ({found}): {promise}")


def _box_json(registry: Registry, name: str) -> dict[str, Any]:
    box = registry.boxes[name]
    inverses = [r for r in (*registry.weak, *registry.verifications) if r.box is box]
    return {
        "name": name,
        "about": (box.__doc__ or "").strip().split("\n")[0],
        "contributed": box.contributed,
        "params": [
            {"name": f.name, "default": default_of(f), **dict(f.metadata)} for f in box.parameters()
        ],
        "inverses": [
            {"name": r.name, "image": r.image.name, "level": r.level, "promises": names(r.promises)}
            for r in inverses
        ],
    }
