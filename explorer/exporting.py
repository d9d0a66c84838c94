"""Exporting from the page: a format, its size before it starts, and a link to fetch it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

from explorer.asking import Asking, Traced
from explorer.export import export
from explorer.gate import Parcels
from explorer.sizes import estimated_bytes
from explorer.text import code, plain
from explorer.work import Work
from inverses.words import size
from pipelines.errors import WhenceError

FORMATS = {
    "NetCDF": ".nc",
    "Zarr, zipped": ".zarr.zip",
    "Parquet": ".parquet",
    "CSV": ".csv",
    "Evidence bundle": ".whence.zip",
}
EMPTY = "Trace something first; then its cells can be exported here."


class Exporting:
    """The panel that hands out traced cells."""

    def __init__(self, asking: Asking, work: Work, parcels: Parcels) -> None:
        self.asking, self.work, self.parcels = asking, work, parcels
        self.format = pmui.Select(
            label="Format", options=list(FORMATS), value="NetCDF", size="small", width=200
        )
        self.start = pmui.Button(label="Prepare the file", variant="contained", size="small")
        self.start.on_click(self._started)
        self.ready = pn.Column(sizing_mode="stretch_width")
        self.view = pn.Column(sizing_mode="stretch_width", margin=(0, 8))
        asking.after(self._shown, "traced")
        self.format.param.watch(self._shown, "value")
        self._shown()

    def _shown(self, *_: Any) -> None:
        traced: Traced | None = self.asking.traced
        self.ready.objects = []
        if traced is None:
            self.view.objects = [plain(EMPTY)]
            return
        suffix = FORMATS[self.format.value]
        about = _size_before(traced, suffix)
        command = f"{traced.question.command(self.asking.workspace.path)} --export cells{suffix}"
        same = [plain("The same from the command line:"), code(command)]
        self.view.objects = [self.format, plain(about), self.start, self.ready, *same]

    def _started(self, _: Any) -> None:
        traced: Traced | None = self.asking.traced
        if traced is None:
            return
        name = f"{traced.question.dataset}-cells{FORMATS[self.format.value]}"

        def task(spark: Any, progress: Any) -> Path:
            target = Path(tempfile.mkdtemp(prefix="whence-")) / name
            export(traced.answer, target)
            return target

        self.work.start("writing the export", task, self._done, self._failed)

    def _done(self, path: Path) -> None:
        address = self.parcels.leave(path, path.name)
        link = f'<a href="{address}" download>Fetch {path.name} ({size(path.stat().st_size)})</a>'
        self.ready.objects = [pn.pane.HTML(link)]

    def _failed(self, why: str) -> None:
        self.ready.objects = [pmui.Alert(plain(why), severity="error")]


def _size_before(traced: Traced, suffix: str) -> str:
    """About how large an export will be, or why there cannot be one."""
    try:
        return f"About {size(estimated_bytes(traced.answer, f'cells{suffix}'))}."
    except WhenceError as error:
        return str(error)
