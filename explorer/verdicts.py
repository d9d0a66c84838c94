"""Commands that test what is stated: `check` on inverses, `impact` on what cells have led to."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from explorer.grid import print_lines
from inverses.check import Finding, check
from inverses.evidence import Shown, gathered, with_others
from inverses.functions import check_function
from inverses.guarantees import COMPLETE, EXACT, names
from inverses.impact import Impact, impact
from inverses.limits import Limits
from inverses.probing import probe
from inverses.registry import Registry
from inverses.untried import unvaried
from inverses.words import many
from pipelines.boxes.box import Box, made_besides
from pipelines.disk import write_whole
from pipelines.errors import unknown
from pipelines.spark import LOCAL, session
from pipelines.workspace import Workspace


def check_boxes(asked: argparse.Namespace) -> int:
    """Test the inverses of some boxes, and some functions, or all; 1 if a law does not hold."""
    registry = Registry.of(asked.boxes)
    known = {*registry.boxes, *registry.functions}
    for name in set(asked.box) - known:
        raise unknown("box", name, known)
    found = [*_of_boxes(registry, asked), *_of_functions(registry, asked)]
    if asked.json:
        print(json.dumps([each.to_json() for each in found]))
    if asked.save:
        _save(registry, found, Path(asked.save))
    return 0 if all(each.holds for each in found) else 1


def _of_boxes(registry: Registry, asked: argparse.Namespace) -> Iterator[Finding]:
    named = asked.box or registry.boxes
    for kind in _with_besides(kind for name, kind in registry.boxes.items() if name in named):
        _say(f"checking {kind.name} ...")
        mine = check(registry, kind, asked.trials)
        if not (asked.json or any(each.inverse for each in mine)):
            _print_bare(kind)
        if not asked.json:
            _print_unvaried(kind)
        yield from _printed(mine, asked)


def _with_besides(kinds: Iterable[type[Box]]) -> Iterator[type[Box]]:
    """Boxes that take something, and those by which they make other datasets, each once."""
    every = [made for kind in kinds for made in (kind, *made_besides(kind).values())]
    yield from {kind.name: kind for kind in every if kind.takes}.values()


def _of_functions(registry: Registry, asked: argparse.Namespace) -> Iterator[Finding]:
    for name, stated in registry.functions.items():
        if not asked.box or name in asked.box:
            _say(f"checking function {name} ...")
            yield from _printed(check_function(stated, asked.trials), asked)


def _say(line: str) -> None:
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


def _print_bare(kind: type[Box]) -> None:
    print(f"{kind.name}: no inverse could be tried; a trace takes everything as its source")
    for seen in probe(kind):
        print(f"  {seen.text()}")


def _print_unvaried(kind: type[Box]) -> None:
    for name, value in unvaried(kind).items():
        print(f"{kind.name}: {name} is {value!r} in all its examples, and was tried as no other")


def _printed(found: list[Finding], asked: argparse.Namespace) -> list[Finding]:
    """What was found, told to people unless a program asks."""
    for each in () if asked.json else found:
        law = f"{each.inverse}, {each.law}" if each.inverse else each.law
        print(f"{each.box}: {law}: {_verdict(each)}")
        if each.counterexample:
            print(f"  {each.counterexample}")
    return found


def _verdict(found: Finding) -> str:
    if not found.trials:
        return "NOT TRIED"
    return f"{'holds' if found.holds else 'DOES NOT HOLD'} in {many(found.trials, 'trial')}"


def _save(registry: Registry, found: list[Finding], path: Path) -> None:
    """Keep what was shown of inverses, beside what the file has of boxes that were not checked.

    Answers do not tell of boxes alone, nor of functions.
    """
    tried = [each for each in found if each.trials and each.inverse]
    inverses = [each for each in tried if each.box in registry.boxes]
    told = [_tested(registry, each) for each in inverses]
    kept = with_others(path, {each.box for each in found}, gathered(told))
    write_whole(path, json.dumps(kept, indent=1) + "\n")


def _tested(registry: Registry, found: Finding) -> Shown:
    box = registry.boxes[found.box]
    promises = registry.promises(box, found.inverse) & EXACT
    told = (found.inverse, found.law, found.trials, found.holds)
    pages = registry.pages(box, found.inverse)
    return Shown(found.box, box.version, *told, frozenset(names(promises)), pages)


def show_impact(asked: argparse.Namespace, limits: Limits) -> None:
    """Print what some rows or cells have had a part in."""
    workspace, registry = Workspace(asked.workspace), Registry.of(asked.boxes)
    found = impact(
        workspace,
        asked.dataset,
        asked.where,
        asked.want,
        attributes=asked.attribute,
        spark=session(asked.master or LOCAL),
        registry=registry,
        limits=limits,
    )
    if asked.json:
        print(json.dumps(found.to_json()))
    else:
        print_lines(_told(found))


def _told(found: Impact) -> Iterator[str]:
    selection = found.selection
    yield f"{len(selection):,} of {selection.dataset.name} had a part in:"
    for (name, _), each in found.reached.items():
        what = "cell" if each.dataset.kind == "array" else "row"
        promised = " and ".join(names(each.guarantee)) or "no guarantee"
        unkept = "" if each.dataset.kept else ", not kept"
        about = ", ".join(each.attributes)
        yield f"  {name}: {many(each.rows.num_rows, what)} ({promised} of {about}){unkept}"
    for (name, _), held in found.elsewhere.items():
        yield f"  nothing of {name}{'' if COMPLETE in held else ' was found, but it may have some'}"
    if not (found.reached or found.elsewhere):
        yield "  nothing: no dataset was made of it"
