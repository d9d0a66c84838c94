"""The pipelines that are kept in a workspace, each a YAML file with its layout beside it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from explorer.draft import Draft
from explorer.sheet import Sheet
from pipelines.boxes.box import Box
from pipelines.disk import write_whole
from pipelines.errors import Failed, Refused, unknown
from pipelines.workspace import Workspace
from pipelines.written import LONGEST, NAME, checked_name


class Shelf:
    """Saved pipelines, by name; `whence run` runs them where they lie."""

    def __init__(self, workspace: Workspace) -> None:
        self.home = workspace.path / "pipelines"

    def names(self) -> list[str]:
        """The pipelines that can be opened."""
        found = sorted(p for p in self.home.glob("*.yaml") if p.is_file() and not p.is_symlink())
        return [p.stem for p in found if NAME.fullmatch(p.stem)]

    def save(self, draft: Draft) -> Path:
        """Keep a pipeline and its layout, each written whole."""
        path = self._path(draft.name)
        try:
            self.home.mkdir(exist_ok=True)
            write_whole(path, draft.to_text())
            write_whole(_layout(path), draft.sheet.to_text())
        except OSError as error:
            raise Failed(f'cannot save "{draft.name}": {error.strerror}') from None
        return path

    def open(self, name: str, boxes: Mapping[str, type[Box]]) -> Draft:
        """A saved pipeline, on the sheet it was drawn on."""
        if name not in self.names():
            raise unknown("pipeline", name, self.names(), "saved here")
        draft = Draft.from_text(_read(self._path(name)), boxes)
        with suppress(Refused):
            return draft.drawn(Sheet.from_text(_read(_layout(self._path(name)))))
        return draft

    def _path(self, name: str) -> Path:
        path = self.home / f"{checked_name(name)}.yaml"
        if self.home.is_symlink() or path.is_symlink() or _layout(path).is_symlink():
            raise Refused(f'"{name}" is a link here; pipelines are kept in files')
        return path


def _layout(path: Path) -> Path:
    return path.with_name(f"{path.stem}.layout.json")


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(LONGEST + 1)
    except (OSError, ValueError):
        raise Refused(f'"{path.stem}" cannot be read; is it a text file?') from None
