"""What the commands about history do: ask the journal, and print."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from explorer.grid import print_grid, print_lines, printable
from inverses.ancestry import Ancestry, Relative, Wanted
from inverses.counting import many
from pipelines.catalog import Catalog
from pipelines.comparison import changed_lines, compare
from pipelines.foreign import files
from pipelines.foreign.graph import Added, add
from pipelines.history import History, Run
from pipelines.run_graph import DATASET, TASK
from pipelines.workspace import CATALOG, Workspace


def _ancestors(asked: argparse.Namespace) -> None:
    ancestry = _asked_of(asked)
    if asked.other is not None:
        _say_whether(asked, ancestry.is_ancestor(asked.other, asked.name))
    elif asked.count:
        _say_count(asked, ancestry.count_ancestors(asked.name, _wanted(asked)))
    else:
        _say(asked, "ancestors", ancestry.ancestors(asked.name, _wanted(asked)))


def _descendants(asked: argparse.Namespace) -> None:
    ancestry = _asked_of(asked)
    if asked.count:
        _say_count(asked, ancestry.count_descendants(asked.name, _wanted(asked)))
    else:
        _say(asked, "descendants", ancestry.descendants(asked.name, _wanted(asked)))


def _affected_by(asked: argparse.Namespace) -> None:
    ancestry, wanted = _asked_of(asked), _wanted(asked)
    asked.name = asked.names[0] if len(asked.names) == 1 else asked.names
    if asked.count:
        _say_count(asked, ancestry.count_affected(*asked.names, wanted=wanted))
    else:
        _say(asked, "affected", ancestry.affected_by(*asked.names, wanted=wanted))


def _made_with(asked: argparse.Namespace) -> None:
    given = {name: _read(value) for name, value in asked.param}
    ancestry, question = _asked_of(asked), (asked.name, given, _wanted(asked), asked.directly)
    if asked.count:
        _say_count(asked, ancestry.count_made_with(*question))
    else:
        _say(asked, "made", ancestry.made_with(*question))


def _asked_of(asked: argparse.Namespace) -> Ancestry:
    return Ancestry.of(Workspace(asked.workspace))


def _wanted(asked: argparse.Namespace) -> Wanted:
    every = asked.tasks or asked.kind == "all"
    return Wanted((DATASET, TASK) if every else (asked.kind,), asked.only or "")


def _read(value: str) -> Any:
    """A value as it is said on the command line: a number, true, false, or text."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _say(asked: argparse.Namespace, what: str, found: list[Relative]) -> None:
    if asked.json:
        listed = [_relative_json(r) for r in found]
        print(json.dumps({"of": asked.name, "count": len(found), what: listed}))
        return
    if found:
        rows = [[r.name, r.version, r.kind, r.run] for r in found]
        print_grid([["name", "version", "kind", "run"], *rows])
    named = asked.name if isinstance(asked.name, str) else ", ".join(asked.name)
    print(f"{len(found):,} {what}: {printable(named)}")


def _relative_json(relative: Relative) -> dict[str, Any]:
    said = {"name": relative.name, "version": relative.version or None, "kind": relative.kind}
    more = {"run": relative.run, "namespace": relative.namespace}
    return {**said, **{k: v for k, v in more.items() if v}}


def _say_count(asked: argparse.Namespace, count: int) -> None:
    print(json.dumps({"of": asked.name, "count": count}) if asked.json else count)


def _say_whether(asked: argparse.Namespace, true: bool) -> None:
    if asked.json:
        print(json.dumps({"of": asked.name, "is": asked.other, "ancestor": true}))
    else:
        print("yes" if true else "no")


def _runs(asked: argparse.Namespace) -> None:
    history = History.asked_of(Workspace(asked.workspace))
    found, total = history.runs(asked.search, asked.limit)
    if asked.json:
        print(json.dumps({"count": total, "runs": [run_json(r) for r in found]}))
        return
    if found:
        head = ["run", "pipeline", "started", "by", "how", "seconds", "made"]
        print_grid([head, *map(run_row, found)])
    print(f"{len(found):,} shown of {many(total, 'run')}")


def run_json(run: Run) -> dict[str, Any]:
    """A run as plain data."""
    made = [{"name": name, "version": version} for name, version in run.made]
    return {**asdict(run), "made": made}


def run_row(run: Run) -> list[str]:
    """A run in a line of a listing."""
    took = "" if run.seconds is None else f"{run.seconds:.1f}"
    how = f"{run.how}: {run.why}" if run.why else run.how
    made = ", ".join(f"{name} {version}" for name, version in run.made)
    what = f"{run.pipeline}, only {run.part}" if run.part else run.pipeline
    return [run.run, what, run.at[:19].replace("T", " "), run.who, how, took, made]


def _compare(asked: argparse.Namespace) -> None:
    history = History.asked_of(Workspace(asked.workspace))
    runs = [history.run(each).run for each in (asked.first, asked.second)]
    found, lines = compare(history, *runs), changed_lines(history, *runs)
    if asked.json:
        told = {"runs": runs, "differences": [asdict(d) for d in found], "text": lines}
        print(json.dumps(told))
        return
    if found:
        rows = [[d.what, d.where, d.before or "-", d.after or "-"] for d in found]
        print_grid([["what", "where", *runs], *rows])
    print_lines(lines)
    print(f"{many(len(found), 'difference')} in code, parameters, inputs and place")


def _import(asked: argparse.Namespace) -> None:
    graph = files.read(asked.file)
    Workspace.check_place(asked.workspace)
    if elsewhere := os.environ.get(CATALOG):
        Catalog(elsewhere)  # if it does not answer, no workspace is made
    history = History.of(Workspace.create(asked.workspace))
    added = add(history.catalog, graph)
    if asked.json:
        print(json.dumps({"file": asked.file, **asdict(added)}))
    else:
        print(f"added {_counted(added)}")


def _counted(added: Added) -> str:
    datasets, tasks = many(added.datasets, "dataset"), many(added.tasks, "task")
    return f"{datasets}, {tasks} and {many(added.arrows, 'arrow')}"


def _export(asked: argparse.Namespace) -> None:
    history = History.asked_of(Workspace(asked.workspace))
    untold = files.write(history.catalog, asked.file, asked.form)
    print(f"wrote {asked.file}")
    if untold:
        print(f"left out {many(untold, 'arrow')} from task to task: OpenLineage has none")


COMMANDS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "ancestors": _ancestors,
    "descendants": _descendants,
    "affected-by": _affected_by,
    "made-with": _made_with,
    "runs": _runs,
    "compare": _compare,
    "import": _import,
    "export": _export,
}
