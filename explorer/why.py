"""Why: a plan or an answer in words, hop by hop, with what it could not meet said first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import panel as pn
import panel_material_ui as pmui

from explorer.asking import Asking, Planned, Traced
from explorer.card import button
from explorer.state import WISHES, State
from explorer.text import badge, meaning, prose
from inverses import words
from inverses.answer import Found
from inverses.guarantees import names
from inverses.plans import Hop
from pipelines.datasets import Array

EMPTY = (
    "Click any point, row or cell to ask where it came from. A dashed frame shows at once where "
    "the answer must lie; Trace back finds the exact cells."
)
Lines = Iterator[tuple[str, str]]


class Why:
    """The panel that explains what is asked and what was found."""

    def __init__(self, state: State, asking: Asking, trace: Callable[[], None]) -> None:
        self.state, self.asking = state, asking
        self.head, self.body, self.pins = (_text() for _ in range(3))
        self.wish = pmui.RadioButtonGroup(
            label="Guarantee wished for", options=list(WISHES), value=state.want, size="small",
            margin=(6, 0),
        )  # fmt: skip
        self.go = button("Trace back", trace, variant="contained", icon="history")
        self.look = button("Show what to look at first", self._look, icon="visibility")
        self.tighten = button("Tighten", self._tighten, icon="filter_alt")
        self.prove = button("Prove it by replay", asking.prove, icon="verified")
        self.pin = button("Pin this answer", asking.pin, icon="push_pin")
        self.unpin = button("Let go of all pins", asking.let_go)
        buttons = pmui.FlexBox(self.go, self.look, self.tighten, self.prove, self.pin)
        self.view = pn.Column(
            self.head, self.wish, buttons, self.body, self.pins, self.unpin,
            sizing_mode="stretch_width", margin=(0, 8),
        )  # fmt: skip
        self.wish.param.watch(lambda event: self._wished(event.new), "value")
        asking.after(self._told, "planned", "traced", "trouble", "pinned")
        self._told()

    def _wished(self, want: str) -> None:
        if want != self.state.want:
            self.state.param.update(want=want, traced=0)
            self.asking.wished(want)

    def _told(self, *_: Any) -> None:
        planned, traced = self.asking.planned, self.asking.traced
        with pn.io.hold():
            self.head.object = prose(self._summary())
            self.body.object = prose(self._details())
            self.pins.object = prose(self._pinned())
            self.wish.param.update(value=self.state.want, visible=planned is not None)
            self.go.visible = planned is not None and traced is None
            self.look.visible = bool(traced and traced.suspects)
            self.prove.visible = traced is not None and traced.answer.proof is None
            self.pin.visible = traced is not None and traced not in self.asking.pinned
            self.unpin.visible = bool(self.asking.pinned)
            self._offer()

    def _summary(self) -> Lines:
        planned, traced = self.asking.planned, self.asking.traced
        if self.asking.trouble:
            yield "error", self.asking.trouble
        if planned is None:
            yield "line", EMPTY
            return
        if planned.plan.unmet:
            yield "warn", words.unmet(planned.plan)
        if traced is None:
            yield "strong", words.selected(planned.plan)
            held = planned.plan.guarantee
            yield "line", f"Promised: {badge(held)}, {meaning(held)}."
        else:
            yield from _found(traced)
            if traced.answer.proof is not None:
                kind = "strong" if traced.answer.proof.holds else "warn"
                yield kind, f"{traced.answer.proof.text().capitalize()}."
            yield from _suspicions(traced)

    def _details(self) -> Lines:
        planned, traced = self.asking.planned, self.asking.traced
        if traced is not None:
            yield from _hops(traced)
            yield "strong", "The same as a command"
            yield "code", traced.question.command(self.asking.workspace.path)
            yield "strong", "The same in Python"
            yield "code", traced.question.python(self.asking.workspace.path)
        elif planned is not None:
            yield from _plan(planned)

    def _pinned(self) -> Lines:
        if self.asking.pinned:
            yield "strong", "Pinned"
        for traced in self.asking.pinned:
            yield "line", f"{traced.question.dataset}: {traced.question.where}"
            for found in traced.answer.lineage.values():
                yield "faint", _sentence(found)

    def _look(self) -> None:
        """Bring the step and the variable of the first suspect into view."""
        suspect = self.asking.traced.suspects[0]
        array = self.asking.workspace.dataset(suspect.dataset)
        assert isinstance(array, Array)
        self.state.param.update(
            field=suspect.dataset, variable=suspect.variable, time=suspect.at[array.dims[0]]
        )

    def _offer(self) -> None:
        """Offer what an answer lacks, if asking for that alone would get it."""
        want = self._missing()
        self.tighten.visible = bool(want)
        self.tighten.label = f"Ask for {want} instead: see its price" if want else ""

    def _missing(self) -> str:
        planned = self.asking.planned
        if planned is None or not planned.plan.unmet:
            return ""
        lacking = [n for n in names(planned.plan.unmet) if n != planned.question.want]
        return next((n for n in lacking if n in WISHES), "")

    def _tighten(self) -> None:
        if want := self._missing():
            self._wished(want)


def _plan(planned: Planned) -> Lines:
    for step in words.steps(planned.prices):
        named = f" by {step.functions}" if step.functions else ""
        held = f" {step.guarantee}." if step.guarantee else ""
        reads = f" Reads {step.reads}." if step.reads else ""
        yield "faint", f"{step.hop}, {step.level} level: {step.does}{named}.{held}{reads}"
    yield "strong", f"Price: {words.price_in_words(planned.prices)}"
    for note in (words.asked_as_one, words.newcomers):
        yield from (("faint", said) for said in note(planned.plan))


def _found(traced: Traced) -> Lines:
    """What was found, sources first."""
    for name, found in reversed(traced.answer.lineage.items()):
        held = traced.answer.guarantee(name)
        yield "strong", _sentence(found)
        yield "line", f"{badge(held)}: {meaning(held)}."


def _suspicions(traced: Traced) -> Lines:
    if not traced.suspects:
        yield "faint", "No contributing value stands out against its surroundings."
    for number, suspect in enumerate(traced.suspects):
        where = ", ".join(f"{d} {i}" for d, i in suspect.at.items())
        first = "Look here first: " if number == 0 else ""
        yield "warn", f"{first}{suspect.variable} at {where}: {suspect.why}"


def _hops(traced: Traced) -> Lines:
    yield from (("faint", said) for said in words.newcomers(traced.planned.plan))
    for number, hop in enumerate(traced.planned.plan.hops, 1):
        yield "strong", f"{number}. {hop.image.name} → {hop.source.name}, by {hop.box.name}"
        yield "line", f"{badge(hop.guarantee)}; {_counted(traced, hop)}"
        yield "faint", f"What contributed means here: {hop.box.contributed}"
        for level in hop.levels:
            used = dict.fromkeys(r for i in level.inversions for r in (*i.weak, *i.verify))
            said = " ".join(f"{r.name}: {words.first_line(r)}" for r in used)
            yield "faint", f"{level.name} level. {said} {words.tested(used)}".rstrip()
        params = ", ".join(f"{k} = {v}" for k, v in hop.box.params().items())
        yield "faint", f"Parameters: {params or 'none'}"
    answer = traced.answer
    jobs, master = answer.spark["jobs"], answer.spark["master"]
    done = words.many(int(jobs), "Spark job")
    yield "faint", f"{answer.seconds['total']:.2f} s, {done} on {master}"


def _counted(traced: Traced, hop: Hop) -> str:
    """How many went into a hop and how many came out, and what was read for it."""
    ends = [traced.answer.found.get(d.key) for d in (hop.image, hop.source)]
    before, after = (_many(f) if f else "?" for f in ends)
    if (found := ends[1]) is None:
        return f"from {before} to {after}"
    chunks, size = words.many(found.chunks_read, "chunk"), words.size(found.bytes_read)
    return f"from {before} to {after}; read {chunks}, {size}"


def _many(found: Found) -> str:
    if found.cells is not None:
        return words.many(found.cells, "cell")
    return words.many(found.tuples, "row")


def _sentence(found: Found) -> str:
    """What was found in a dataset, of how much, and where."""
    whole = found.dataset.cells if isinstance(found.dataset, Array) else found.dataset.rows
    return f"{_many(found)} of {whole:,} in {found.dataset.name}: {found.text()}"


def _text() -> Any:
    return pn.pane.HTML("", sizing_mode="stretch_width", margin=0)
