"""Opening an evidence bundle: everything in it is checked, and none of it is believed unchecked."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn
from zipfile import BadZipFile, ZipFile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from explorer.archive import check_end, check_entries
from pipelines.errors import Failed, Refused

FORMAT = 1
SUFFIX = ".whence.zip"
MOST_JSON = 16 * 2**20
MOST_ROWS, MOST_TABLE_BYTES = 20_000_000, 2 * 2**30
NUMBERS = (types.is_integer, types.is_floating, types.is_boolean, types.is_temporal)
TEXTS = (types.is_string, types.is_large_string)
DEEPEST = 40
PIECE = 2**20
NEEDED = {"answer.json", "plan.json", "whence.json"}
KNOWN = NEEDED | {
    "README.txt", "guarantee.json", "pipeline.yaml", "provenance.json", "ro-crate-metadata.json",
}  # fmt: skip
OF_DATASETS = re.compile(
    r"cells/[\w.-]{1,80}\.(parquet|nc)|datasets/[\w.-]{1,80}-v[1-9][0-9]*\.json"
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A trace that was made elsewhere: its answer, plan and cells, and the words it was told in."""

    answer: Mapping[str, Any]
    plan: Mapping[str, Any]
    cells: Mapping[str, pa.Table]
    pipeline: str | None
    words: tuple[str, ...]


def opened(path: Path | str) -> Evidence:
    """What is in a bundle, if it is one, is whole, and holds nothing that it should not."""
    if not Path(path).is_file():
        raise Refused(f'no bundle at "{path}"; give a file that ends in {SUFFIX}')
    try:
        return checked(Path(path))
    except Refused as error:
        raise Refused(f'the bundle "{path}" is refused: {error}') from None
    except Failed as error:
        raise Failed(f'the bundle "{path}" is damaged: {error}; have it sent again') from None
    except OSError as error:
        raise Failed(f'cannot read "{path}": {error.strerror or error}') from None


def checked(path: Path) -> Evidence:
    """What is in a bundle; every way in which it can be wrong is an error that says so."""
    with _entries(path) as file:
        manifest = _manifest(file)
        _check_sums(file, manifest["files"])
        answer = _object(file, "answer.json")
        plan = _object(file, "plan.json")
        tables = {n[6:-8]: _table(file, n) for n in file.namelist() if n.endswith(".parquet")}
        text = _text(file, "pipeline.yaml") if "pipeline.yaml" in file.namelist() else None
    _check_answer(answer, tables)
    _check_plan(plan, answer)
    return Evidence(answer, plan, tables, text, tuple(manifest["words"]))


@contextmanager
def _entries(path: Path) -> Iterator[ZipFile]:
    """The archive, once its list of entries is known to be harmless."""
    try:
        with path.open("rb") as raw:
            check_end(raw)
            with ZipFile(raw) as file:
                check_entries(file.infolist(), raw.seek(0, 2))
                _check_names({e.orig_filename for e in file.infolist()})
                yield file
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeError) as error:
        raise Failed(str(error) or "it ends too early") from None


def _check_names(names: set[str]) -> None:
    for name in sorted(names - KNOWN):
        if not OF_DATASETS.fullmatch(name):
            raise Refused(f'its entry "{name}" does not belong in a bundle')
    for name in sorted(NEEDED - names):
        raise Failed(f'it has no "{name}"')


def _manifest(file: ZipFile) -> Mapping[str, Any]:
    plain = _object(file, "whence.json")
    if plain.get("format") != FORMAT:
        raise Refused(
            f"it has format {plain.get('format')!r:.20}, this Whence reads format {FORMAT}; "
            f"open it with {plain.get('made_by')!r:.40}"
        )
    words, files = plain.get("words"), plain.get("files")
    if not _texts(words) or not isinstance(files, dict) or not _texts(list(files.values())):
        raise Failed('"whence.json" does not say what it should')
    return plain


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _check_sums(file: ZipFile, sums: Mapping[str, str]) -> None:
    """See that every file is the one that was written; none is held in memory."""
    if set(sums) != set(file.namelist()) - {"whence.json"}:
        raise Failed("its files are not those that were written")
    for name, expected in sums.items():
        total = sha256()
        with file.open(name) as content:
            while piece := content.read(PIECE):
                total.update(piece)
        if total.hexdigest() != expected:
            raise Failed(f'"{name}" is not what was written')


def _text(file: ZipFile, name: str) -> str:
    if file.getinfo(name).file_size > MOST_JSON:
        raise Refused(f'its entry "{name}" has more than {MOST_JSON:,} bytes')
    return file.read(name).decode()


def _object(file: ZipFile, name: str) -> dict[str, Any]:
    """A JSON object that is neither large nor deep, and has numbers where it says so."""
    try:
        plain = json.loads(_text(file, name), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Failed(f'"{name}" is not JSON') from None
    if not isinstance(plain, dict) or not _is_flat(plain, DEEPEST):
        raise Failed(f'"{name}" does not say what it should')
    return plain


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _is_flat(plain: Any, levels: int) -> bool:
    inner = plain.values() if isinstance(plain, dict) else plain if isinstance(plain, list) else ()
    return levels > 0 and all(_is_flat(each, levels - 1) for each in inner)


def _table(file: ZipFile, name: str) -> pa.Table:
    """The rows of a Parquet file, which may claim more of them than it has bytes for."""
    try:
        content = pa.BufferReader(file.read(name))
        schema = pq.read_schema(content)
        texts = [f.name for f in schema if _is_text(f.type)]
        # Read so, each text is held once, however often it comes.
        with pq.ParquetFile(content, read_dictionary=texts) as table:
            _check_claims(name, table.metadata, schema)
            rows = pa.Table.from_batches(_batches(name, table), table.schema_arrow)
        _check_texts(name, rows.select(texts))
        return rows.cast(schema)
    except (pa.ArrowException, OSError) as error:
        raise Failed(f'"{name}" is not Parquet: {str(error).splitlines()[0]}') from None


def _batches(name: str, table: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    size = 0
    for batch in table.iter_batches():
        size += batch.nbytes
        _check_table_bytes(name, size)
        yield batch


def _is_text(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in TEXTS)


def _check_claims(name: str, about: pq.FileMetaData, schema: pa.Schema) -> None:
    """Refuse a table of other than numbers, times and texts, or of too many."""
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    rows = max(about.num_rows, sum(g.num_rows for g in groups))
    if rows > MOST_ROWS or 8 * rows * about.num_columns > MOST_TABLE_BYTES:
        raise Refused(f'its entry "{name}" claims {rows:,} rows of {about.num_columns:,} columns')
    for field in schema:
        if not any(is_kind(field.type) for is_kind in (*NUMBERS, *TEXTS)):
            raise Refused(f'its entry "{name}" has a column of {field.type!s:.40}')


def _check_texts(name: str, rows: pa.Table) -> None:
    """Refuse texts that are short where each is held once, but not spelled out."""
    size = 0
    for each in (chunk for column in rows.columns for chunk in column.chunks):
        longest = pc.max(pc.binary_length(each.dictionary)).as_py() or 0
        size += longest * len(each)
    _check_table_bytes(name, size)


def _check_table_bytes(name: str, size: int) -> None:
    if size > MOST_TABLE_BYTES:
        raise Refused(f'its entry "{name}" would unpack to more than {MOST_TABLE_BYTES:,} bytes')


def _check_answer(answer: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
    """See that an answer is one, and that its cells are those that it counts."""
    selection, lineage = answer.get("selection"), answer.get("lineage")
    if not isinstance(selection, dict) or not isinstance(selection.get("dataset"), str):
        raise Failed('"answer.json" does not say what was selected')
    if not isinstance(lineage, dict) or set(lineage) != set(tables):
        raise Failed("its cells are not of the datasets that its answer names")
    for name, found in lineage.items():
        if not isinstance(found, dict) or not _texts(found.get("guarantee")):
            raise Failed(f'"answer.json" does not say what is promised of "{name}"')
        count = found.get("rows") if found.get("kind") == "table" else found.get("cells")
        if count != tables[name].num_rows:
            raise Failed(f'"{name}" has {tables[name].num_rows:,} cells, its answer says {count!r}')


def _check_plan(plan: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    if plan.get("selection") != answer["selection"] or not isinstance(plan.get("hops"), list):
        raise Failed('"plan.json" is not the plan of its answer')
