"""Modules: where boxes, inverses and functions come from, and what authors state there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, TypeVar

from pipelines.errors import Refused

SHIPPED = tuple(
    f"pipelines.boxes.{family}"
    for family in (
        "cyclones",
        "pointwise",
        "masks",
        "window",
        "regrid",
        "select",
        "reduce",
        "times",
        "landcover",
        "components",
        "relational",
        "mapping",
        "groups",
        "extraction",
        "gridding",
    )
)
Stating = TypeVar("Stating", bound=Callable[..., Any])


def modules(named: Iterable[str] = ()) -> list[ModuleType]:
    """The modules that hold boxes: those shipped, those installed, and those named."""
    installed = [e.value for e in entry_points(group="whence.boxes")]
    return [_imported(name) for name in dict.fromkeys([*SHIPPED, *installed, *named])]


def _imported(name: str) -> ModuleType:
    absent = Refused(f'no module "{name}" to take boxes from; is it installed, or on PYTHONPATH?')
    if not all(part.isidentifier() for part in name.split(".")):
        raise absent
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.split(".")[0] == error.name.split(".")[0]:
            raise absent from None
        raise


def stating(function: Stating, stated: object) -> Stating:
    """The function, carrying one more statement about itself."""
    known: tuple[object, ...] = getattr(function, "registrations", ())
    function.registrations = (*known, stated)  # type: ignore[attr-defined]
    return function


def stated_in(found: Iterable[ModuleType]) -> list[object]:
    """All that authors state of the functions in modules, each once."""
    functions = [f for m in found for f in vars(m).values()]
    stated = [r for f in functions for r in getattr(f, "registrations", ())]
    return list({id(r): r for r in stated}.values())
