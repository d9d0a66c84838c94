"""A bundle that is damaged or means harm ends in one line, and nothing of it is written."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from explorer import archive, evidence
from explorer.bundle import bundle
from explorer.cli import main
from explorer.evidence import opened
from pipelines.errors import Failed, Refused, WhenceError
from pipelines.workspace import Workspace
from tests.faults.bundler import untraced

Entries = dict[str, bytes]
Change = Callable[[Entries], Entries]
DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000


@pytest.fixture(scope="module")
def whole(demo: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that is what it should be."""
    return bundle(untraced(demo.path), tmp_path_factory.mktemp("whole") / "whole.whence.zip")


@pytest.fixture
def entries(whole: Path) -> Entries:
    with ZipFile(whole) as file:
        return {name: file.read(name) for name in file.namelist()}


def written(path: Path, entries: Entries, *more: tuple[ZipInfo | str, bytes]) -> Path:
    """A bundle of these entries, whose sums are right, so that nothing else gives it away."""
    sums = {n: hashlib.sha256(c).hexdigest() for n, c in entries.items() if n != "whence.json"}
    manifest = json.loads(entries["whence.json"])
    manifest["files"] = {n: sums.get(n, s) for n, s in {**manifest["files"], **sums}.items()}
    manifest["files"] = {n: s for n, s in manifest["files"].items() if n in entries}
    with ZipFile(path, "w", ZIP_DEFLATED) as file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Duplicate name")
        for name, content in {**entries, "whence.json": json.dumps(manifest).encode()}.items():
            file.writestr(name, content)
        for name, content in more:
            file.writestr(name, content)
    return path


def said(kind: type[WhenceError], path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a bundle is answered with; nothing is written beside it."""
    before = {p: p.read_bytes() for p in path.parent.iterdir()}
    assert main(["open", str(path)]) == kind.exit_code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "unexpected" not in err
    assert {p: p.read_bytes() for p in path.parent.iterdir()} == before
    return err


def entry(name: str, mode: int = stat.S_IFREG, packed: int = ZIP_DEFLATED) -> ZipInfo:
    info = ZipInfo(name)
    info.external_attr = (mode | 0o644) << 16
    info.compress_type = packed
    return info


def test_entries_packed_by_another_program_are_opened(entries: Entries, tmp_path: Path) -> None:
    assert opened(written(tmp_path / "b.whence.zip", entries)).cells["agcm"].num_rows > 0


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (entry("../outside.json"), "leads out of it"),
        (entry("cells/../../outside.json"), "leads out of it"),
        (entry("cells\\..\\outside.json"), "leads out of it"),
        (entry("/etc/passwd"), "absolute path"),
        (entry("C:/outside.json"), "absolute path"),
        (entry("README.txt.exe"), "does not belong"),
        (entry("cells/"), "does not belong"),
        (entry("cells/a/b.parquet"), "does not belong"),
        (entry("run.py"), "does not belong"),
        (entry("cells/\x1b[31m.nc"), "does not belong"),
        (entry("datasets/link-v1.json", stat.S_IFLNK), "is a link"),
        (entry("datasets/pipe-v1.json", stat.S_IFIFO), "is a link or no plain file"),
        (entry("datasets/odd-v1.json", packed=ZIP_BZIP2), "strangely packed"),
        (entry("answer.json"), "twice"),
    ],
    ids=lambda value: value.filename if isinstance(value, ZipInfo) else "",
)
def test_an_entry_that_does_not_belong_is_refused(
    more: ZipInfo, reason: str, entries: Entries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "b.whence.zip", entries, (more, b"{}"))
    assert reason in said(Refused, path, capsys)


def test_a_bomb_is_refused_before_it_goes_off(
    entries: Entries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bomb = {**entries, "plan.json": b" " * 50_000_000}
    assert "would unpack to 50,000,000" in said(Refused, written(tmp_path / "b", bomb), capsys)


def test_more_than_the_limits_is_refused(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.whence.zip"
    path.write_bytes(whole.read_bytes())
    for where, limit, most, reason in (
        (archive, "MOST_ENTRIES", 3, "entries, over the limit"),
        (archive, "MOST_BYTES", 1000, "bytes, over the limit"),
        (archive, "MOST_BYTES", path.stat().st_size, "would unpack to more than"),
        (evidence, "MOST_JSON", 10, "has more than 10 bytes"),
        (evidence, "MOST_ROWS", 10, "rows of 8 columns"),
        (evidence, "MOST_TABLE_BYTES", 1000, "rows of 8 columns"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, limit, most)
            assert reason in said(Refused, path, capsys)


def test_entries_that_share_their_bytes_are_refused(
    entries: Entries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every entry of the list points at the same large one, as in the best known bombs."""
    path = written(tmp_path / "b", entries)
    raw = bytearray(path.read_bytes())
    with ZipFile(path) as file:
        large = max(file.infolist(), key=lambda e: e.compress_size)
    start = struct.unpack("<I", raw[-6:-2])[0]
    while raw[start : start + 4] == b"PK\1\2":
        name, extra, comment = struct.unpack("<HHH", raw[start + 28 : start + 34])
        sizes = struct.pack("<III", large.CRC, large.compress_size, large.file_size)
        raw[start + 16 : start + 28] = sizes
        start += 46 + name + extra + comment
    path.write_bytes(raw)
    assert "overlap" in said(Refused, path, capsys)


def test_texts_that_are_short_only_in_the_file_are_refused(
    entries: Entries,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = pa.table({"text": pa.DictionaryArray.from_arrays([0] * 5000, ["x" * 20_000])})
    buffer = io.BytesIO()
    pq.write_table(rows.cast(pa.schema([("text", pa.string())])), buffer)
    monkeypatch.setattr(evidence, "MOST_TABLE_BYTES", 50_000_000)
    bomb = {**entries, "cells/agcm.parquet": buffer.getvalue()}
    assert "would unpack" in said(Refused, written(tmp_path / "b", bomb), capsys)


def test_columns_of_other_than_numbers_times_and_texts_are_refused(
    entries: Entries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"nested": [[1, 2], [3]]}), buffer)
    nested = {**entries, "cells/agcm.parquet": buffer.getvalue()}
    assert "has a column of list" in said(Refused, written(tmp_path / "b", nested), capsys)


@pytest.mark.parametrize("kept", [0, 1, 21, 22, 1000, 0.5, 0.99, -1])
def test_a_truncated_bundle_is_damaged(
    kept: float, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = whole.read_bytes()
    path = tmp_path / "b.whence.zip"
    path.write_bytes(content[: int(kept * len(content)) if 0 < kept < 1 else int(kept)])
    assert "is damaged" in said(Failed, path, capsys)


def test_any_flipped_byte_of_content_is_noticed(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = whole.read_bytes()
    with ZipFile(whole) as file:
        starts = [e.header_offset + 30 + len(e.filename) + 5 for e in file.infolist()]
    path = tmp_path / "b.whence.zip"
    for start in starts:
        path.write_bytes(content[:start] + bytes([content[start] ^ 255]) + content[start + 1 :])
        assert "is damaged" in said(Failed, path, capsys)


def changed(name: str, change: Callable[[dict[str, Any]], object]) -> Change:
    """Entries in one of which something is different."""

    def apply(entries: Entries) -> Entries:
        plain = json.loads(entries[name])
        change(plain)
        return {**entries, name: json.dumps(plain).encode()}

    return apply


WRONG: dict[str, tuple[Change, str]] = {
    "no JSON": (lambda e: {**e, "answer.json": b"{"}, "is not JSON"),
    "no text": (lambda e: {**e, "answer.json": b"\xff\xfe"}, "is not JSON"),
    "too deep": (lambda e: {**e, "answer.json": DEEP[:400_000]}, "is not JSON"),
    "deep": (lambda e: {**e, "plan.json": b'{"a":' * 50 + b"1" + b"}" * 50}, "what it should"),
    "not a number": (lambda e: {**e, "plan.json": b'{"a": NaN}'}, "is not JSON"),
    "a huge number": (lambda e: {**e, "plan.json": b'{"a": ' + b"9" * 9999 + b"}"}, "not JSON"),
    "a list": (lambda e: {**e, "answer.json": b"[]"}, "what it should"),
    "no selection": (changed("answer.json", lambda a: a.pop("selection")), "what was selected"),
    "no lineage": (changed("answer.json", lambda a: a.update(lineage=[])), "not of the datasets"),
    "other cells": (
        changed("answer.json", lambda a: a["lineage"]["agcm"].update(cells=9)),
        "its answer says 9",
    ),
    "no promise": (
        changed("answer.json", lambda a: a["lineage"]["agcm"].pop("guarantee")),
        "what is promised",
    ),
    "other plan": (changed("plan.json", lambda p: p.pop("selection")), "not the plan"),
    "no words": (changed("whence.json", lambda w: w.update(words="?")), "what it should"),
    "no texts": (changed("whence.json", lambda w: w.update(words=[1])), "what it should"),
    "no Parquet": (lambda e: {**e, "cells/agcm.parquet": b"PAR1?PAR1"}, "is not Parquet"),
    "no answer": (lambda e: {n: c for n, c in e.items() if n != "answer.json"}, "has no"),
    "no cells": (
        lambda e: {n: c for n, c in e.items() if not n.endswith("parquet")},
        "not of the datasets",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_does_not_hang_together_is_damaged(
    wrong: str, entries: Entries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, reason = WRONG[wrong]
    assert reason in said(Failed, written(tmp_path / "b", change(entries)), capsys)


def test_a_later_format_is_refused_with_who_made_it(
    entries: Entries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = changed("whence.json", lambda w: w.update(format=2, made_by="whence 9"))(entries)
    err = said(Refused, written(tmp_path / "b", later), capsys)
    assert "format 2" in err and "whence 9" in err


def test_words_cannot_move_the_cursor(
    entries: Entries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loud = changed("whence.json", lambda w: w.update(words=["a\x1b[2Jb\rc\nd"]))(entries)
    assert main(["open", str(written(tmp_path / "b", loud))]) == 0
    assert capsys.readouterr().out == "a\\x1b[2Jb\\rc\\nd\n"


@pytest.mark.parametrize("name", ["nothing.whence.zip", "."])
def test_what_is_no_file_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["open", str(tmp_path / name)]) == 2
    assert "no bundle at" in capsys.readouterr().err


def test_a_zip_of_something_else_is_not_a_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ZipFile(tmp_path / "b", "w", ZIP_STORED) as file:
        file.writestr("README.txt", "hello")
    assert 'it has no "answer.json"' in said(Failed, tmp_path / "b", capsys)
