"""Why: a plan or an answer in words, hop by hop, with what it could not meet said first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import panel as pn
import panel_material_ui as pmui

from explorer.asking import Asking, Planned, Traced
from explorer.state import WISHES, State
from explorer.suspects import Suspect
from explorer.text import badge, code, meaning, plain
from inverses import words
from inverses.answer import Found
from inverses.planner import Hop
from inverses.words import price_in_words, size
from pipelines.datasets import Array

EMPTY = (
    "Click any point, row or cell to ask where it came from. A dashed frame shows at once where "
    "the answer must lie; Trace back finds the exact cells."
)
STRONG = {"font-weight": "600"}
FAINT = {"opacity": "0.75", "font-size": "13px"}


class Why:
    """The panel that explains what is asked and what was found."""

    def __init__(self, state: State, asking: Asking, trace: Callable[[], None]) -> None:
        self.state, self.asking, self._trace = state, asking, trace
        self.view = pn.Column(sizing_mode="stretch_width", margin=(0, 8))
        self.wish = pmui.RadioButtonGroup(
            label="Guarantee wished for", options=list(WISHES), value=state.want, size="small",
            margin=(6, 0),
        )  # fmt: skip
        self.wish.param.watch(self._wished, "value")
        asking.param.watch(self._told, ["planned", "traced", "found", "trouble", "pinned"])
        self._told()

    def _wished(self, event: Any) -> None:
        if event.new != self.state.want:
            self.state.param.update(want=event.new, traced=False)
            self.asking.wished(event.new)

    def _told(self, *_: Any) -> None:
        self.wish.value = self.state.want
        self.view.objects = list(self._lines())

    def _lines(self) -> Iterator[Any]:
        if self.asking.trouble:
            yield pmui.Alert(plain(self.asking.trouble), severity="error", margin=(4, 0))
        if self.asking.traced is not None:
            yield from self._answer(self.asking.traced)
        elif self.asking.planned is not None:
            yield from self._plan(self.asking.planned)
        elif not self.asking.trouble:
            yield plain(EMPTY)
        yield from self._pins()

    def _plan(self, planned: Planned) -> Iterator[Any]:
        yield from _unmet(planned)
        yield plain(words.selected(planned.plan), **STRONG)
        yield self.wish
        yield plain(f"Promised: {badge(planned.plan.guarantee)}, "
                    f"{meaning(planned.plan.guarantee)}.")  # fmt: skip
        for step in words.steps(planned.prices):
            told = [step.hop, step.level, step.does]
            named = f" by {step.functions}" if step.functions else ""
            yield plain(f"{', '.join(told)}{named}. {step.guarantee} {step.reads}", **FAINT)
        yield plain(f"Price: {price_in_words(planned.prices)}", **STRONG)
        yield _button("Trace back", self._trace, variant="contained", icon="history")

    def _answer(self, traced: Traced) -> Iterator[Any]:
        planned, answer = traced.planned, traced.answer
        yield from _unmet(planned)
        for name, found in answer.lineage.items():
            yield plain(_sentence(found), **STRONG)
            held = answer.guarantee(name)
            yield plain(f"{badge(held)}: {meaning(held)}")
        yield from self._suspects(traced)
        yield self.wish
        yield from self._tighten(planned)
        for number, hop in enumerate(planned.plan.hops, 1):
            yield from self._hop(traced, number, hop)
        seconds = answer.seconds["total"]
        jobs = answer.spark["jobs"]
        yield plain(f"{seconds:.2f} s, {jobs} Spark jobs on {answer.spark['master']}", **FAINT)
        yield _button("Pin this answer", self.asking.pin, icon="push_pin", variant="outlined")
        workspace = self.asking.workspace.path
        yield pmui.Accordion(
            ("Copy as a command", code(traced.question.command(workspace))),
            ("Copy as Python", code(traced.question.python(workspace))),
        )

    def _suspects(self, traced: Traced) -> Iterator[Any]:
        if not traced.suspects:
            yield plain("No contributing value stands out against its surroundings.", **FAINT)
            return
        lines: list[Any] = [plain("Look here first", **STRONG)]
        for suspect in traced.suspects:
            where = ", ".join(f"{d} {i}" for d, i in suspect.at.items())
            lines.append(plain(f"{suspect.variable} at {where}: {suspect.why}"))
            lines.append(_button("Show in view", lambda s=suspect: self._look_at(s)))  # type: ignore[misc]
        yield pmui.Alert(*lines, severity="warning", margin=(4, 0))

    def _look_at(self, suspect: Suspect) -> None:
        """Bring the step and the variable of a suspect into view."""
        array = self.asking.workspace.dataset(suspect.dataset)
        assert isinstance(array, Array)
        self.state.param.update(
            field=suspect.dataset, variable=suspect.variable, time=suspect.at[array.dims[0]]
        )

    def _tighten(self, planned: Planned) -> Iterator[Any]:
        """Offer another guarantee where this one leaves something out, with its price."""
        held = {p.name for p in planned.plan.guarantee}
        for want in ("complete", "pure"):
            if want not in held and planned.question.want != want:
                label = f"Ask for {want} instead"
                yield _button(label, lambda w=want: self._ask_again(w), variant="outlined")  # type: ignore[misc]

    def _ask_again(self, want: str) -> None:
        self.state.param.update(want=want, traced=False)
        self.asking.wished(want)

    def _hop(self, traced: Traced, number: int, hop: Hop) -> Iterator[Any]:
        found = traced.answer.found.get(hop.source.key)
        params = ", ".join(f"{k} = {v}" for k, v in hop.box.params().items())
        yield plain(f"{number}. {hop.image.name} → {hop.source.name} ({hop.box.name})", **STRONG)
        yield plain(f"{badge(hop.guarantee)}; {_counted(traced, hop)}")
        yield plain(f"Contributed: {hop.box.contributed}", **FAINT)
        for level in hop.levels:
            used = dict.fromkeys(r for i in level.inversions for r in (*i.weak, *i.verify))
            said = " ".join(f"{r.name}: {_first_line(r)}" for r in used)
            yield plain(f"{level.name} level. {said}", **FAINT)
        if params:
            yield plain(f"Parameters: {params}", **FAINT)
        if found is not None:
            yield plain(f"Read {found.chunks_read} chunks, {size(found.bytes_read)}", **FAINT)
        yield _button("Show in view", lambda: self.state.param.update(hop=number))

    def _pins(self) -> Iterator[Any]:
        if self.asking.pinned:
            yield plain("Pinned", **STRONG)
        for traced in self.asking.pinned:
            counts = "; ".join(_sentence(f) for f in traced.answer.lineage.values())
            yield plain(f"{traced.question.dataset}: {traced.question.where}. {counts}", **FAINT)
            yield pn.Row(
                _button("Ask again", lambda t=traced: self._again(t)),  # type: ignore[misc]
                _button("Unpin", lambda t=traced: self.asking.unpin(t)),  # type: ignore[misc]
            )

    def _again(self, traced: Traced) -> None:
        self.state.asked(traced.question)
        self.asking.ask(traced.question)


def _unmet(planned: Planned) -> Iterator[Any]:
    if planned.plan.unmet:
        yield pmui.Alert(plain(words.unmet(planned.plan)), severity="warning", margin=(4, 0))


def _counted(traced: Traced, hop: Hop) -> str:
    """How many went into a hop and how many came out."""
    ends = [traced.answer.found.get(d.key) for d in (hop.image, hop.source)]
    told = [_many(f) if f else "?" for f in ends]
    return f"from {told[0]} to {told[1]}"


def _many(found: Found) -> str:
    count, noun = (found.cells, "cell") if found.cells is not None else (found.tuples, "row")
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _sentence(found: Found) -> str:
    """What was found in a dataset, of how much, and where."""
    whole = found.dataset.cells if isinstance(found.dataset, Array) else found.dataset.rows
    return f"{_many(found)} of {whole:,} in {found.dataset.name}: {found.text()}"


def _first_line(registration: Any) -> str:
    return (registration.function.__doc__ or "").strip().split("\n")[0]


def _button(label: str, act: Callable[[], Any], **look: Any) -> Any:
    made = pmui.Button(label=label, size="small", margin=(4, 4, 4, 0), **look)
    made.on_click(lambda _: act())
    return made
