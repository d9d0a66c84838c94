"""What each command does: ask the packages below, and print."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple, replace
from inspect import cleandoc
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar

from explorer.demo import demo
from explorer.evidence import opened
from explorer.export import check_target, export
from explorer.grid import print_grid, print_lines
from explorer.shown import dataset_json, dataset_row, extent, first_rows, plans_json
from explorer.verdicts import check_boxes, show_impact
from inverses import words
from inverses.answer import plain_value
from inverses.guarantees import names
from inverses.inferring import inferable
from inverses.limits import Limits
from inverses.outline import Price
from inverses.partial import Only, run_only
from inverses.plans import Plan
from inverses.proof import prove
from inverses.registry import Registry
from inverses.selection import select
from inverses.trace import carry_out_each, check_sources
from inverses.wishes import Plans, checked_plans
from pipelines.boxes.box import default_of, made_besides
from pipelines.errors import Failed, unknown
from pipelines.pipeline import KINDS, Pipeline
from pipelines.run import run
from pipelines.sources import recognised
from pipelines.spark import LOCAL, Progress, session, warm
from pipelines.workspace import Workspace


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on the terminal that follows Spark's tasks."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting Spark", total=None)
        yield lambda label, done, total: bar.update(
            task, description=label, completed=done, total=total or None
        )


def _demo(asked: argparse.Namespace) -> None:
    if asked.no_serve:
        with _published(asked) as (workspace, spark, progress):
            demo(workspace, spark, progress)
        print(f"The demo is in {asked.workspace}: {', '.join(workspace.names())}.")
        return
    workspace = Workspace.create(asked.workspace)
    _explore(asked, workspace, Registry.of(), lambda spark, told: demo(workspace, spark, told))


def _serve(asked: argparse.Namespace) -> None:
    workspace, registry = Workspace(asked.workspace), Registry.of(asked.boxes)
    _explore(asked, workspace, registry, lambda spark, told: None, not asked.readers_only)


def _explore(
    asked: argparse.Namespace,
    workspace: Workspace,
    registry: Registry,
    first: Callable[[SparkSession, Progress], object],
    author: bool = True,
) -> None:
    """Serve the explorer, which is loaded only now: other commands start faster without it."""
    from explorer.serving import serving
    from explorer.work import Engine

    def said(url: str) -> None:
        print(f"Whence explores {asked.workspace} at {url}\nCtrl-C stops it.", flush=True)

    with suppress(KeyboardInterrupt):
        serving(workspace, registry, Engine(asked.master or LOCAL, first), asked.port, author, said)


def _run(asked: argparse.Namespace) -> None:
    registry = Registry.of(asked.boxes)
    pipeline = Pipeline.from_file(asked.pipeline, registry.boxes)
    tables = pipeline.check_sources({n: recognised(n, s) for n, s in pipeline.sources.items()})
    if asked.only is not None:
        Only.from_text(asked.only).check(pipeline, tables)
    with _published(asked) as (workspace, spark, progress):
        if asked.only is None:
            made = run(pipeline, workspace, spark, progress)
        else:
            made = run_only(pipeline, workspace, spark, asked.only, registry, progress)
    for dataset in made.values():
        print(f"{dataset.name} {dataset.version}, {extent(dataset)}")


@contextmanager
def _published(asked: argparse.Namespace) -> Iterator[tuple[Workspace, SparkSession, Progress]]:
    """All that a run needs; nothing is written before Spark is there, and Ctrl-C says what is."""
    Workspace.check_place(asked.workspace)
    with _progress() as progress:
        spark = session(asked.master or LOCAL)
        workspace = Workspace.create(asked.workspace)
        before = set(_versions(workspace))
        try:
            yield workspace, spark, progress
        except KeyboardInterrupt:
            new = sorted(set(_versions(workspace)) - before)
            what = f"published before that: {', '.join(new)}" if new else "nothing was published"
            raise Failed(f"cancelled; {what}") from None


def _versions(workspace: Workspace) -> Iterator[str]:
    for name in workspace.names():
        with suppress(Failed):
            yield f"{name} {workspace.dataset(name).version}"


def _trace(asked: argparse.Namespace) -> None:
    target = check_target(asked.export) if asked.export else None
    workspace, registry = Workspace(asked.workspace), Registry.of(asked.boxes)
    limits = _limits(asked)
    found, _ = _checked_plans(workspace, asked, registry, limits)
    hints = _hints(asked, found, registry)
    with _progress() as progress:
        spark = session(asked.master or LOCAL)
        warm(spark, "inverses.trace")
        answer = carry_out_each(found, spark, limits, progress)
        if asked.prove:
            answer = replace(answer, proof=prove(answer, spark))
    if target is not None:
        export(answer, target)
    if asked.json:
        print(json.dumps(answer.to_json()))
    else:
        print_lines([*words.told(answer), *hints, *([f"wrote {target}"] if target else [])])


def _open(asked: argparse.Namespace) -> None:
    evidence = opened(asked.bundle)
    if asked.json:
        print(json.dumps(evidence.answer))
    else:
        print_lines(evidence.words)


def _limits(asked: argparse.Namespace) -> Limits:
    given = {n: getattr(asked, f"limit_{n}") for n in ("bytes", "cells", "seconds")}
    return Limits(**{n: limit for n, limit in given.items() if limit is not None})


def _checked_plans(
    workspace: Workspace, asked: argparse.Namespace, registry: Registry, limits: Limits
) -> tuple[Plans, list[list[Price]]]:
    """The plans for a question and their prices, refused before Spark has to start."""
    selection = select(workspace, asked.dataset, asked.where, asked.attribute)
    own = dict(asked.want)
    want = own.pop("", "exact")
    found, priced = checked_plans(
        workspace, selection, want, own, registry, limits, infer=asked.infer
    )
    for each, price in zip(found.every, priced, strict=True):
        check_sources(each, price)
    return found, priced


def _plan(asked: argparse.Namespace) -> None:
    workspace, registry = Workspace(asked.workspace), Registry.of(asked.boxes)
    found, priced = _checked_plans(workspace, asked, registry, _limits(asked))
    if asked.json:
        print(json.dumps(plans_json(found.plan, found.own)))
        return
    for each, price in zip(found.every, priced, strict=True):
        _print_plan(each, [n for n, own in found.own.items() if own is each], price)
    print_lines(_hints(asked, found, registry))


def _hints(asked: argparse.Namespace, found: Plans, registry: Registry) -> list[str]:
    """What else could be asked for."""
    return [] if asked.infer else words.to_infer(inferable(found.every, registry))


def _print_plan(found: Plan, own: list[str], priced: list[Price]) -> None:
    """A plan step by step; one for a wish of their own says for which datasets it is."""
    if found.unmet:
        print_lines([words.unmet(found, own)])
    which = f", back to {', '.join(own)} ({words.wished(found)})" if own else ""
    print_lines([f"{words.selected(found)}{which}:"])
    print_grid(_plan_rows(priced))
    if priced:
        print_lines(words.restrictions(found, priced))
    notes = (words.inferred, words.asked_as_one, words.newcomers)
    print_lines([line for note in notes for line in note(found)])
    print(words.price_in_words(priced))


def _plan_rows(priced: list[Price]) -> list[list[str]]:
    head = ["", "hop", "level", "step", "functions", "promised", "reads"]
    steps = enumerate(words.steps(priced), 1)
    return [head, *([str(n), *astuple(s)] for n, s in steps)]


def _datasets(asked: argparse.Namespace) -> None:
    found = Workspace(asked.workspace).datasets()
    if asked.json:
        print(json.dumps([dataset_json(d) for d in found]))
        return
    head = ["name", "version", "kind", "size", "chunks", "attributes", "path"]
    print_grid([head, *(dataset_row(d) for d in found)])


def _show(asked: argparse.Namespace) -> None:
    dataset = Workspace(asked.workspace).dataset(asked.dataset)
    rows, total = first_rows(dataset, asked.where, asked.limit)
    if asked.json:
        plain = [{n: plain_value(v) for n, v in row.items()} for row in rows.to_pylist()]
        print(json.dumps(plain, default=str))
        return
    shown = [[_shown(v) for v in row.values()] for row in rows.to_pylist()]
    print_grid([rows.column_names, *shown])
    print(f"{rows.num_rows:,} shown of {total:,}")


def _shown(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _boxes(asked: argparse.Namespace) -> None:
    registry = Registry.of(asked.boxes)
    for name in set(asked.box) - set(registry.boxes):
        raise unknown("box", name, registry.boxes)
    listed = [_box_json(registry, name) for name in asked.box or sorted(registry.boxes)]
    if asked.json:
        print(json.dumps(listed))
        return
    for box in listed:
        whole = cleandoc(registry.boxes[box["name"]].__doc__ or "")
        _print_box(box, whole if asked.box else box["about"])
    for name, stated in sorted(registry.functions.items()) if not asked.box else ():
        print(f"{name}({', '.join(stated.operands)}): {stated.about}")
        print(f"  in formulas; {stated.stated}")


def _print_box(box: Mapping[str, Any], about: str) -> None:
    print(f"{box['name']}: {about}")
    for port, kind in box["takes"].items():
        print(f"  takes: {KINDS[kind]} as {port}")
    print(f"  contributed: {box['contributed']}")
    for other, kind in box["besides"].items():
        print(f"  makes besides: {other}, as {kind} does")
    for param in box["params"]:
        value = f"{param['default']} {param['unit']}".strip()
        print(f"  {param['name']} = {value}: {param['help']}")
    for inverse in box["inverses"]:
        promise = ", ".join(inverse["promises"])
        found = f"{inverse['image']} into the {inverse['level']} level"
        print(f"  {inverse['name']} ({found}): {promise}")


def _box_json(registry: Registry, name: str) -> dict[str, Any]:
    box = registry.boxes[name]
    stated = (*registry.weak, *registry.verifications)
    inverses = [r for r in stated if issubclass(box, r.box)]
    return {
        "name": name,
        "about": (box.__doc__ or "").strip().split("\n")[0],
        "takes": {port.name: port.kind for port in box.takes},
        "contributed": box.contributed,
        "besides": {n: b.name for n, b in made_besides(box).items()},
        "params": [
            {"name": f.name, "default": default_of(f), **dict(f.metadata)} for f in box.parameters()
        ],
        "inverses": [
            {"name": r.name, "image": r.image.name, "level": r.level, "promises": names(r.promises)}
            for r in inverses
        ],
    }


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int | None]] = {
    "demo": _demo,
    "serve": _serve,
    "run": _run,
    "trace": _trace,
    "plan": _plan,
    "open": _open,
    "datasets": _datasets,
    "show": _show,
    "boxes": _boxes,
    "check": check_boxes,
    "impact": lambda asked: show_impact(asked, _limits(asked)),
}
