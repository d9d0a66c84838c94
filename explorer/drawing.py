"""What is on the canvas, and how it is changed: a draft with undo, a selection, a path."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import count
from typing import Any

import param

from explorer.draft import Draft, stem_of
from explorer.layout import ACROSS, DOWN, tidy
from explorer.sheet import Place, Sheet
from explorer.shelf import Shelf
from explorer.statuses import Held, Status, remembered
from explorer.undo import Undo
from inverses.registry import Registry
from pipelines.errors import Refused, WhenceError, unknown
from pipelines.workspace import Workspace

BURST = 0.6
GROUP = "group:"


class Drawing(param.Parameterized):
    """The state that the parts of a canvas show; every change of the draft goes through `change`.

    `chosen` holds all that is selected, groups as `group:NAME`; `selected` is the one box or
    source among it, if it is one.
    """

    mode: Any = param.Selector(default="explore", objects=["explore", "edit"])
    selected = param.String("")
    chosen = param.List([], item_type=str)
    draft = param.ClassSelector(class_=Draft, default=Draft(), constant=True)
    path = param.ClassSelector(class_=frozenset, default=None, allow_None=True)
    sought = param.String("")
    notice = param.String("")
    severity: Any = param.Selector(default="info", objects=["info", "success", "warning", "error"])
    statuses = param.Dict({})

    def __init__(
        self, workspace: Workspace | None, registry: Registry, author: bool = True
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.workspace, self.registry, self.author = workspace, registry, author
        self.shelf = Shelf(workspace) if workspace else None
        self.held = Held.by(workspace)
        if not author:
            self.param.mode.objects = ["explore"]
        self._bursts = count(1)
        self._burst = ("", 0.0, 0)
        self._steps = Undo(placed(remembered(workspace, registry, self.held)))
        self._show(self._steps)
        self.param.watch(self._follow_selected, "selected")

    def change(
        self, make: Callable[[Draft], Draft], mark: str = "", chosen: list[str] | None = None
    ) -> bool:
        """Change the draft and what is chosen; a refusal is said, and what showed it redrawn."""
        try:
            self.check_may_edit()
            self._show(self._steps.done(make(self.draft), mark), chosen)
        except WhenceError as error:
            self.say(str(error), "error")
            self.param.trigger("draft")
            return False
        self.notice = ""
        return True

    def burst(self, what: str) -> str:
        """A mark that changes of one sort share while they follow each other quickly."""
        last, then, number = self._burst
        now = time.monotonic()
        if last != what or now - then > BURST:
            number = next(self._bursts)
        self._burst = (what, now, number)
        return f"{what} {number}"

    def undo(self) -> None:
        """Take back the last change."""
        self._stepped(self._steps.undone())

    def redo(self) -> None:
        """Do again what was taken back."""
        self._stepped(self._steps.redone())

    @property
    def can_undo(self) -> bool:
        return bool(self._steps.past)

    @property
    def can_redo(self) -> bool:
        return bool(self._steps.future)

    def add(self, kind: str, at: Place | None = None) -> None:
        """Add a box of some kind and select it."""
        if kind not in self.registry.boxes:
            self.say(str(unknown("box", kind, self.registry.boxes)), "error")
            return
        name = self.draft.free(kind)
        place = at or self._spot()
        box = self.registry.boxes[kind].from_params({})
        self.change(lambda d: _at(d.added(box, name), name, place), chosen=[name])

    def add_source(self, path: str) -> None:
        """Add a source, a file that is read where it lies, and select it."""
        name, place = self.draft.free(stem_of(path)), self._spot()
        self.change(lambda d: _at(d.sourced(path, name), name, place), chosen=[name])

    def delete(self, names: Iterable[str] | None = None) -> None:
        """Remove boxes and sources, by default those chosen."""
        gone = self.boxes_of(self.chosen if names is None else names)
        if gone and self.change(lambda d: d.without(gone), self.burst("delete")):
            self.choose([n for n in self.chosen if n not in gone])

    def rename(self, old: str, new: str) -> None:
        """Call a box or source otherwise."""
        chosen = [new if n == old else n for n in self.chosen]
        self.change(lambda d: d.renamed(old, new), chosen=chosen)

    def copy(self) -> str:
        """The chosen boxes, or all, as text."""
        return self.draft.copied(self.boxes_of(self.chosen) or self.draft.names)

    def paste(self, text: str) -> None:
        """Add the boxes of a text."""
        known = set(self.draft.names)
        if self.change(lambda d: placed(d.pasted(text, self.registry.boxes))):
            new = [n for n in self.draft.names if n not in known]
            self.say(f"pasted {', '.join(new)}", "success")

    def tidy(self) -> None:
        """Lay all boxes out anew."""
        self.change(lambda d: d.drawn(d.sheet.moved(tidy(d.graph()))))

    def group(self) -> None:
        """Group the chosen boxes."""
        members = self.boxes_of(self.chosen)
        if not members:
            self.say("choose boxes to group: Shift and click, or Shift and drag", "info")
            return
        name = next(n for n in (f"group-{k}" for k in count(1)) if n not in self.draft.sheet.groups)
        self.change(lambda d: d.drawn(d.sheet.grouped(name, members)))

    def ungroup(self) -> None:
        """Dissolve the groups of what is chosen."""
        self._for_groups(Sheet.ungrouped)

    def fold(self) -> None:
        """Fold the groups of what is chosen into one box each, or open them."""
        self._for_groups(Sheet.turned)

    def _for_groups(self, changed: Callable[[Sheet, str], Sheet]) -> None:
        names = self.groups_of(self.chosen)
        if not names:
            self.say("choose a group, or a box in one", "info")
            return
        self.change(lambda d: d.drawn(reduce(changed, names, d.sheet)))

    def recall(self) -> None:
        """Draw what the workspace was last run with, if nothing is drawn and nothing undone."""
        if not self.draft.names and not self.can_undo:
            self._show(Undo(placed(remembered(self.workspace, self.registry, self.held))))

    def load(self, text: str) -> None:
        """Open a pipeline from text: one step, so that what was there can be had again."""
        self._open(lambda: Draft.from_text(text, self.registry.boxes))

    def open(self, name: str) -> None:
        """Open a pipeline that is kept in the workspace."""
        self._open(lambda: self._kept().open(name, self.registry.boxes))

    def save(self) -> None:
        """Keep the pipeline in the workspace, as `whence run` reads it."""
        try:
            self.check_author()
            path = self._kept().save(self.draft)
        except WhenceError as error:
            self.say(str(error), "error")
            return
        self.say(f"saved; run it with: whence run {path} -w {path.parent.parent}", "success")

    def choose(self, names: Iterable[str]) -> None:
        """Select boxes, sources and groups."""
        chosen = list(names)
        boxes = [n for n in chosen if n in self.draft.names]
        self.param.update(chosen=chosen, selected=boxes[0] if len(boxes) == 1 else "")

    def find(self) -> None:
        """Select the next box that is sought."""
        found = self.found()
        if found:
            here = found.index(self.selected) + 1 if self.selected in found else 0
            self.choose([found[here % len(found)]])
        elif self.sought:
            self.say(f'nothing here is called "{self.sought}"', "info")

    def found(self) -> list[str]:
        """The boxes and sources whose name or kind holds what is sought."""
        word = self.sought.strip().lower()
        if not word:
            return []
        return [n for n in self.draft.names if word in f"{n} {self.kind_of(n)}".lower()]

    def kind_of(self, name: str) -> str:
        """The box that makes a dataset, or the file it is."""
        step = self.draft.steps.get(name)
        return step.box.name if step else self.draft.sources[name].path.rpartition("/")[2]

    def status(self, name: str) -> Status:
        """How it stands with a box or source now."""
        if name in self.statuses:
            said: Status = self.statuses[name]
            return said
        step = self.draft.steps.get(name)
        if step and (bare := step.bare_ports()):
            return Status("missing", f"nothing at its port {', '.join(bare)}")
        return self.held.status(name, step)

    def boxes_of(self, chosen: Iterable[str]) -> list[str]:
        """The boxes and sources among what is chosen, those of groups included."""
        groups, names = self.draft.sheet.groups, list(chosen)
        inside = {m for n in names for m in groups.get(n.removeprefix(GROUP), ()) if GROUP in n}
        return [n for n in self.draft.names if n in names or n in inside]

    def groups_of(self, chosen: Iterable[str]) -> list[str]:
        """The groups that are chosen, or of which a box is."""
        sheet, names = self.draft.sheet, list(chosen)
        inside = {sheet.group_of(n) for n in names}
        return [g for g in sheet.groups if f"{GROUP}{g}" in names or g in inside]

    def say(self, text: str, severity: str = "info") -> None:
        """Tell the reader something."""
        self.param.update(notice=text, severity=severity)

    def check_author(self) -> None:
        if not self.author:
            raise Refused("this page is for readers: it changes and runs nothing")

    def check_may_edit(self) -> None:
        self.check_author()
        if self.mode != "edit":
            raise Refused("nothing is changed while exploring; switch to Edit")

    def _show(self, steps: Undo[Draft], chosen: list[str] | None = None) -> None:
        """Show a draft and what is chosen at once, so that nobody sees one without the other."""
        self._steps = steps
        with param.edit_constant(self), param.parameterized.batch_call_watchers(self):
            self.draft = steps.present
            there = {*self.draft.names, *(f"{GROUP}{g}" for g in self.draft.sheet.groups)}
            self.choose([n for n in (self.chosen if chosen is None else chosen) if n in there])

    def _stepped(self, steps: Undo[Draft]) -> None:
        try:
            self.check_may_edit()
        except Refused as error:
            self.say(str(error), "error")
            return
        self.notice = ""
        self._show(steps)

    def _open(self, read: Callable[[], Draft]) -> None:
        try:
            self.check_author()
            self._show(self._steps.done(placed(read())))
        except WhenceError as error:
            self.say(str(error), "error")
            return
        self.param.update(path=None, statuses={}, notice="")

    def _kept(self) -> Shelf:
        if self.shelf is None:
            raise Refused("there is no workspace here to keep pipelines in; copy the text")
        return self.shelf

    def _spot(self) -> Place:
        """A free place for a new box: beside the one selected, else below all."""
        places = self.draft.sheet.places
        if not places:
            return (0.0, 0.0)
        x, y = (min(x for x, _ in places.values()), max(y for _, y in places.values()) + DOWN)
        if self.selected in places:
            x, y = places[self.selected][0] + ACROSS, places[self.selected][1]
        while any(
            abs(x - u) < ACROSS / 1.2 and abs(y - v) < DOWN / 1.2 for u, v in places.values()
        ):
            y += DOWN
        return x, y

    def _follow_selected(self, _: param.parameterized.Event) -> None:
        if self.selected and self.selected not in self.chosen:
            self.chosen = [self.selected]
        elif not self.selected and len(self.boxes_of(self.chosen)) == 1:
            self.chosen = []


def placed(draft: Draft) -> Draft:
    """The draft with a place for every box that has none: beside the others, laid out tidily."""
    bare = [n for n in draft.names if n not in draft.sheet.places]
    if not bare:
        return draft
    laid = tidy(draft.graph().subgraph(bare))
    below = max((y + DOWN for _, y in draft.sheet.places.values()), default=0.0)
    return draft.drawn(draft.sheet.moved({n: (x, y + below) for n, (x, y) in laid.items()}))


def _at(draft: Draft, name: str, place: Place) -> Draft:
    return draft.drawn(draft.sheet.moved({name: place}))
