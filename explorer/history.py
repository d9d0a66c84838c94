"""The history view: what was run, what is different between runs, and the kin of any dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from typing import Any, TypeVar

import panel as pn
import panel_material_ui as pmui

from explorer.card import button
from explorer.history_commands import run_row
from explorer.kin import Kin, drawn, label
from explorer.text import plain, prose
from explorer.work import Work
from inverses.ancestry import Ancestry, Relative, Wanted
from inverses.counting import many
from pipelines.comparison import changed_lines, compare
from pipelines.errors import WhenceError
from pipelines.history import History, Run
from pipelines.run_graph import DATASET, TASK
from pipelines.workspace import Workspace

MOST = 50
HEAD = ("run", "pipeline", "started", "by", "how it ended", "seconds", "made")
NOTHING = "Nothing was run here yet. Run a pipeline, or import what was run elsewhere."
ASK = "Name a dataset to see what it was made from, and what was made of it."
TASKS = Wanted((TASK,))
Lines = Iterator[tuple[str, str]]
Result = TypeVar("Result")


class HistoryView:
    """Runs at the left, the kin of a dataset at the right; the database is asked in a thread."""

    def __init__(self, workspace: Workspace, work: Work) -> None:
        self.workspace, self.work = workspace, work
        self.runs = RunList(self.ask)
        self.relatives = Relatives(workspace, self.ask)
        self.view = pn.Row(
            self.runs.view, self.relatives.view, sizing_mode="stretch_both", scroll=True
        )
        self.runs.refresh()

    def refresh(self) -> None:
        """Follow what was run since."""
        self.runs.refresh()
        self.relatives.refresh()

    def ask(
        self,
        question: Callable[[Ancestry], Result],
        then: Callable[[Result], None],
        failed: Callable[[str], None],
    ) -> None:
        """Ask the history without keeping the page waiting; what it cannot say is said in words."""

        def read() -> tuple[Result | None, str]:
            try:
                return question(Ancestry.of(self.workspace)), ""
            except WhenceError as error:
                return None, str(error)

        def answered(result: tuple[Any, str]) -> None:
            found, trouble = result
            failed(trouble) if trouble else then(found)

        self.work.aside(read, answered)


class RunList:
    """The runs that a search finds, and what is different between two of them."""

    def __init__(self, ask: Callable[..., None]) -> None:
        self.ask = ask
        self.search = pmui.TextInput(
            label="Search runs", placeholder="a pipeline, box, dataset, person or day, then Enter",
            size="small", sizing_mode="stretch_width",
        )  # fmt: skip
        self.count = plain("")
        self.table = _text(**{"overflow-x": "auto"})
        self.first, self.second = (_chooser(word) for word in ("Compare run", "with run"))
        self.go = button("Compare", self._compare, icon="difference")
        self.differences = _text()
        self.search.param.watch(lambda *_: self.refresh(), "value")
        choice = pmui.FlexBox(self.first, self.second, self.go, align_items="center")
        self.view = pn.Column(
            self.search, self.count, self.table, choice, self.differences,
            sizing_mode="stretch_width", margin=(0, 12),
        )  # fmt: skip

    def refresh(self) -> None:
        """Look for what is searched for."""
        text = self.search.value or ""
        self.ask(lambda a: a.history.runs(text, MOST), self._listed, self._failed)

    def _listed(self, found: tuple[list[Run], int]) -> None:
        runs, total = found
        none = f'No run mentions "{self.search.value}".' if self.search.value else NOTHING
        self.count.object = escape(f"{len(runs)} shown of {many(total, 'run')}" if runs else none)
        self.table.object = _table(runs)
        self._offer({f"{r.run} {r.pipeline} {r.at[:16]}": r.run for r in runs})

    def _offer(self, found: dict[str, str]) -> None:
        """Offer to compare the two newest, or any that were listed since the page was opened."""
        names = {**found, **self.first.options}
        newest = list(names)[1::-1]
        for chooser, name in zip((self.first, self.second), newest, strict=False):
            chooser.param.update(options=names, value=chooser.value or names[name])
        self.go.disabled = len(names) < 2

    def _failed(self, why: str) -> None:
        self.count.object = prose([("error", why)])

    def _compare(self) -> None:
        runs = self.first.value, self.second.value
        if all(runs):
            self.ask(lambda a: list(_compared(a.history, *runs)), self._told, self._failed)

    def _told(self, lines: list[tuple[str, str]]) -> None:
        self.differences.object = prose(lines)


class Relatives:
    """What a dataset was made from, opened a level at a time, and all that it has affected."""

    def __init__(self, workspace: Workspace, ask: Callable[..., None]) -> None:
        self.workspace, self.ask = workspace, ask
        self.name = pmui.AutocompleteInput(
            label="Dataset, like tracks or tracks@v1", options=workspace.names(), restrict=False,
            min_characters=1, size="small", sizing_mode="stretch_width",
        )  # fmt: skip
        self.told, self.picture, self.affected = (_text() for _ in range(3))
        self.more = pmui.MenuList(
            items=[], sizing_mode="stretch_width", label="Open further", visible=False
        )
        self.kin: Kin | None = None
        self.name.param.watch(lambda *_: self.show(self.name.value or ""), "value")
        self.more.on_click(self._clicked)
        self.told.object = prose([("line", ASK)])
        self.view = pn.Column(
            self.name, self.told, self.picture, self.more, self.affected,
            sizing_mode="stretch_width", margin=(0, 12),
        )  # fmt: skip

    def refresh(self) -> None:
        """Offer the datasets that there are now."""
        self.name.options = self.workspace.names()

    def show(self, named: str) -> None:
        """Show the kin of a dataset."""
        if not named.strip():
            return

        def question(ancestry: Ancestry) -> tuple[Kin, str, str]:
            kin = Kin.of_dataset(ancestry, named.strip())
            told = prose(_counted(ancestry, named.strip(), kin.of))
            return kin, told, prose(_affected(named, ancestry.affected_by(named.strip())))

        self.ask(question, self._shown, self._failed)

    def _shown(self, found: tuple[Kin, str, str]) -> None:
        kin, self.told.object, self.affected.object = found
        self._draw(kin)

    def _failed(self, why: str) -> None:
        self.told.object = prose([("error", why)])
        self.picture.object = self.affected.object = ""
        self.more.visible, self.kin = False, None

    def _draw(self, kin: Kin) -> None:
        self.kin, self.picture.object = kin, drawn(kin)
        self.more.visible = bool(kin.closed)
        self.more.items = [
            {
                "label": f"Open {label(r)}",
                "secondary": _told_apart(kin, r),
                "node": r.id,
                "icon": "expand_more",
                "selectable": False,
            }
            for r in kin.closed
        ]

    def _clicked(self, item: Any) -> None:
        if (kin := self.kin) is not None:
            self.ask(lambda a: kin.opened(a, item["node"]), self._draw, self._failed)


def _told_apart(kin: Kin, relative: Relative) -> str:
    """What is behind a node, and which run it is of: a box may have run more than once."""
    behind = f"{kin.hidden(relative.id)} more behind"
    return f"{behind}, run {relative.run}" if relative.run else behind


def _counted(ancestry: Ancestry, named: str, of: Relative) -> Lines:
    """How many kin there are, counted without listing them."""
    made, by = ancestry.count_ancestors(named), ancestry.count_ancestors(named, TASKS)
    after = ancestry.count_descendants(named)
    yield "strong", label(of)
    yield "line", f"Made from {many(made, 'dataset')} by {many(by, 'task')}."
    yield "line", f"{many(after, 'dataset')} {'was' if after == 1 else 'were'} made of it."


def _affected(named: str, found: list[Relative]) -> Lines:
    """What bad data in any version of a dataset has spoiled, counted by name."""
    yield "strong", f"Affected by {named}: {many(len(found), 'dataset version')}"
    counts = Counter(r.name for r in found if r.kind == DATASET)
    for name, count in counts.most_common(MOST):
        versions = sorted((r.version for r in found if r.name == name), key=lambda v: (len(v), v))
        yield "line", f"{name}: {many(count, 'version')} ({', '.join(filter(None, versions[:8]))})"
    if len(counts) > MOST:
        yield "faint", f"{MOST} names shown of {len(counts):,}"


def _compared(history: History, first: str, second: str) -> Lines:
    found = compare(history, first, second)
    yield "strong", f"{many(len(found), 'difference')} in code, parameters, inputs and place"
    for each in found:
        ends = f"{each.before or 'not there'} → {each.after or 'not there'}"
        yield "line", f"{each.what}, {each.where}: {ends}"
    if lines := changed_lines(history, first, second):
        yield "code", "\n".join(lines)


def _table(runs: list[Run]) -> str:
    """The runs as a table in which every text is shown as it is."""
    if not runs:
        return ""
    head = "".join(f"<th>{escape(word)}</th>" for word in HEAD)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in run_row(run))}</tr>" for run in runs
    )
    return f'<table style="font-size:13px;text-align:left"><tr>{head}</tr>{body}</table>'


def _chooser(word: str) -> Any:
    return pmui.Select(label=word, options={}, size="small", width=190)


def _text(**look: str) -> Any:
    return pn.pane.HTML("", sizing_mode="stretch_width", margin=0, styles=look)
