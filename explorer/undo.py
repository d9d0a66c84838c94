"""Undo and redo: the states something has been in, before and after the one it is in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State")
DEEPEST = 500


@dataclass(frozen=True, slots=True)
class Undo(Generic[State]):
    """A state with its past and its future.

    >>> steps = Undo(1).done(2).done(3)
    >>> steps.undone().present, steps.undone().redone().present
    (2, 3)
    >>> steps.undone().done(4).future
    ()

    Changes that bear the same mark in a row are one step, as are all moves of one drag.

    >>> Undo(1).done(2, "drag").done(3, "drag").undone().present
    1
    """

    present: State
    past: tuple[State, ...] = ()
    future: tuple[State, ...] = ()
    mark: str = ""

    def done(self, state: State, mark: str = "") -> Undo[State]:
        """What is after a change; the future it had is forgotten. No change is no step."""
        if state == self.present:
            return self
        if mark and mark == self.mark:
            return Undo(state, self.past, (), mark)
        return Undo(state, (*self.past, self.present)[-DEEPEST:], (), mark)

    def undone(self) -> Undo[State]:
        """One step back, if there is one."""
        if not self.past:
            return self
        return Undo(self.past[-1], self.past[:-1], (self.present, *self.future))

    def redone(self) -> Undo[State]:
        """One step forth again, if there is one."""
        if not self.future:
            return self
        return Undo(self.future[0], (*self.past, self.present), self.future[1:])
