"""A predicate selects what plain comparison selects, and is never anything but data."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.conditions import DEEPEST, LONGEST
from pipelines.datasets import Table
from pipelines.errors import Refused
from pipelines.predicates import parsed
from pipelines.tables import count, matching, write_part

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("s", pa.string()),
        ("t", pa.timestamp("us")),
        ("b", pa.bool_()),
        ("odd name", pa.int64()),
    ]
)
Row = dict[str, Any]
Truth = Callable[[Row], bool | None]
Case = tuple[str, Truth]

START = datetime(2000, 1, 14)
TEXTS = st.text(st.sampled_from("ab'\"`\\ %é☃\n"), max_size=4)
FLOATS = st.sampled_from([-1.5, -0.0, 0.0, 0.1, 1.0, 1e300, math.inf, -math.inf])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-2, 2),
    "x": FLOATS,
    "f": FLOATS.map(lambda v: float(np.float32(np.clip(v, -3e38, 3e38)))),
    "s": TEXTS,
    "t": st.integers(0, 3).map(lambda n: START + timedelta(hours=6 * n)),
    "b": st.booleans(),
    "odd name": st.integers(0, 1),
}
MISSING = {"x": st.just(math.nan), "f": st.just(math.nan)}
ROWS = st.lists(
    st.fixed_dictionaries(
        {n: st.one_of(v, st.none(), MISSING.get(n, st.none())) for n, v in VALUES.items()}
    ),
    min_size=1,
    max_size=8,
)
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def written(value: Any) -> str:
    """A constant as a person would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"'{value.isoformat(' ')}'"
    if isinstance(value, str):
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    return f"'{value}'" if isinstance(value, float) and math.isinf(value) else repr(value)


def named(column: str) -> str:
    return f"`{column}`" if " " in column else column


def known(row: Row, column: str, holds: Callable[[Any], bool]) -> bool | None:
    """What a comparison says of a row; of a null it says nothing."""
    return None if row[column] is None else holds(row[column])


def opposite(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def all_of(truths: list[bool | None]) -> bool | None:
    if False in truths:
        return False
    return None if None in truths else True


def any_of(truths: list[bool | None]) -> bool | None:
    return opposite(all_of([opposite(t) for t in truths]))


@st.composite
def comparisons(draw: st.DrawFn) -> Case:
    """One comparison as text, and as plain Python."""
    column = draw(st.sampled_from(list(VALUES)))
    values, name = VALUES[column], named(column)
    form = draw(st.sampled_from(["sign", "turned", "between", "in", "null"]))
    no = draw(st.sampled_from(["", "not "]))
    final = opposite if no else (lambda truth: truth)
    if form == "null":
        return f"{name} is {no}null", lambda r: final(r[column] is None)
    if form == "between":
        a, b = draw(values), draw(values)
        text = f"{name} {no}between {written(a)} and {written(b)}"
        return text, lambda r: final(known(r, column, lambda v: a <= v <= b))
    if form == "in":
        some = draw(st.lists(values, min_size=1, max_size=3))
        text = f"{name} {no}in ({', '.join(map(written, some))})"
        return text, lambda r: final(known(r, column, lambda v: any(v == s for s in some)))
    sign, value = draw(st.sampled_from(list(SIGNS))), draw(values)
    if form == "turned":
        return f"{written(value)} {sign} {name}", lambda r: known(
            r, column, lambda v: SIGNS[sign](value, v)
        )
    return f"{name} {sign} {written(value)}", lambda r: known(
        r, column, lambda v: SIGNS[sign](v, value)
    )


def joined(inner: st.SearchStrategy[Case]) -> st.SearchStrategy[Case]:
    def negated(case: Case) -> Case:
        return f"not ({case[0]})", lambda row: opposite(case[1](row))

    def by(word: str, combine: Callable[[list[bool | None]], bool | None]) -> Any:
        def together(cases: list[Case]) -> Case:
            text = f" {word} ".join(f"({t})" for t, _ in cases)
            return text, lambda row: combine([holds(row) for _, holds in cases])

        return st.lists(inner, min_size=2, max_size=3).map(together)

    return st.one_of(inner.map(negated), by("AND", all_of), by("or", any_of))


CASES = st.recursive(comparisons(), joined, max_leaves=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("predicates")


def stored(rows: pa.Table, folder: Path, each: int = 2) -> Table:
    """A table of ours, with so many rows in each group."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.tables.GROUP_ROWS", each)
        groups = write_part(rows.to_batches(), folder / "part.parquet", rows.schema)
    types = {f.name: str(f.type) for f in rows.schema}
    return Table(
        name="t", version="v1", path=str(folder), attributes=(), types=types, groups=tuple(groups)
    )


@given(CASES, ROWS)
def test_a_predicate_selects_what_plain_comparison_selects(
    folder: Path, case: Case, rows: list[Row]
) -> None:
    text, holds = case
    table = pa.Table.from_pylist(rows, SCHEMA).append_column("n", pa.array(range(len(rows))))
    expected = [n for n, row in enumerate(rows) if holds(row)]
    expression = parsed(text).expression(SCHEMA)
    assert table.filter(expression)["n"].to_pylist() == expected
    assert matching(stored(table, folder), expression)["n"].to_pylist() == expected


@given(CASES)
def test_conjuncts_say_together_what_the_whole_says(case: Case) -> None:
    whole = parsed(case[0])
    parts = whole.conjuncts()
    assert set().union(*(p.columns for p in parts)) == whole.columns
    assert all(parsed(p.text).condition == p.condition for p in parts)


@pytest.mark.parametrize(
    "text", ["not x < 5", "x <> 1", "x not between 0 and 2", "x not in (1)", "not x = 1"]
)
def test_no_row_is_skipped_because_bounds_leave_nan_out(tmp_path: Path, text: str) -> None:
    rows = pa.table({"x": [1.0, 1.0, math.nan]})
    predicate = parsed(text).expression(rows.schema)
    table = stored(rows, tmp_path, each=3)
    assert len(matching(table, predicate)) == count(table, predicate) == 1


def test_row_groups_that_cannot_match_are_skipped(tmp_path: Path) -> None:
    rows = pa.table({"i": range(10)})
    stored(rows, tmp_path)
    (fragment,) = ds.dataset(tmp_path).get_fragments()
    for text in ("i in (4, 5)", "i = 4", "i not between 0 and 7"):
        assert len(fragment.split_by_row_group(parsed(text).expression(rows.schema))) == 1


WATCHED = ("exec", "compile", "import", "open", "os.system", "subprocess.Popen", "socket.connect")
events: list[str] | None = None


@pytest.fixture(scope="module", autouse=True)
def _listening() -> None:
    """Python tells of code that is compiled, run or imported and of files that are opened."""

    def heard(event: str, _: Any) -> None:
        if events is not None and event in WATCHED:
            events.append(event)

    sys.addaudithook(heard)


@contextmanager
def nothing_runs() -> Iterator[None]:
    global events
    events = []
    try:
        yield
        assert events == []
    finally:
        events = None


LEXICON = """i x s t b and or not ( ) = < > <> between in is null true ' " ` 1 -1 1e5 0x1 .5
    '2000-01-14' 'q' "q" select from union , . ; : :: [ ] { } ? @ $ % || -> -- /* */ \\ date
    timestamp exists read_files( open( eval( __import__( cast( len( ) lambda case when end"""
WORDS = st.sampled_from(LEXICON.split())
TRASH = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=12).map(" ".join))


@given(TRASH)
def test_any_text_is_a_predicate_or_is_refused(text: str) -> None:
    with nothing_runs():
        try:
            parsed(text).expression(SCHEMA)
        except Refused as refusal:
            assert refusal.exit_code == 2


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("len(s) = 3", "len(s)"),
        ("s = 'a' and abs(x + 1) > 3", "abs(x + 1)"),
        ("i = (select max(i) from t)", "(select max(i) from t)"),
        ("i in (select 1)", "select"),
        ("exists (select 1)", "exists (select 1)"),
        ("__import__('os').system('touch x') = 0", "__import__('os')"),
        ("read_files('/etc/passwd') = 'x'", "read_files('/etc/passwd')"),
        ("s like 'a%'", "like"),
        ("i = 1; drop table t", ";"),
        ("i = 1 union select 2", "union"),
        ("i = x", "x"),
        ("i between symmetric 2 and 1", "symmetric"),
        ("i = null", "null"),
        ("i in ()", ")"),
        ("b", "b"),
        ("t.i = 1", "t"),
        ("i + 1 = 2", "+"),
    ],
)
def test_what_is_no_comparison_is_refused_by_name(text: str, part: str) -> None:
    with pytest.raises(Refused) as refusal:
        parsed(text)
    assert f"cannot use {part};" in str(refusal.value)
    assert "compares columns with constants" in str(refusal.value)


@pytest.mark.parametrize("text", ["", "  ", "i =", "i = 1 and", "not", "(i = 1", "i between 1 and"])
def test_a_text_that_ends_too_early_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="is not a predicate, like: time = '2000-01-14'"):
        parsed(text)


@pytest.mark.parametrize(
    ("text", "value", "column"),
    [
        ("t > 2000", "2000", "t"),
        ("t > '2000-13-01'", "'2000-13-01'", "t"),
        ("i = 1.5", "1.5", "i"),
        ("i = 'one'", "'one'", "i"),
        ("i = true", "True", "i"),
        ("b = 1", "1", "b"),
        ("s = 1", "1", "s"),
        ("x = 'nan'", "'nan'", "x"),
        ("x <= 1e400", "inf", "x"),
        ("f <= 1e39", "1e+39", "f"),
        ("f = '1e39'", "'1e39'", "f"),
        (f"i < {2**63}", str(2**63), "i"),
    ],
)
def test_a_constant_of_another_type_is_refused(text: str, value: str, column: str) -> None:
    with pytest.raises(Refused) as refusal:
        parsed(text).expression(SCHEMA)
    assert f'{value} is not a value of "{column}"' in str(refusal.value)


def test_an_unknown_column_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(Refused, match='no column "presure"; did you mean "pressure"'):
        parsed("presure < 98000").expression(pa.schema([("pressure", pa.float64())]))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "i = 1" + ")" * 5000,
        "not " * (DEEPEST + 5) + "i = 1",
        "i = 1 or " * LONGEST + "i = 1",
        "i = " + "9" * 5000,
        "i = '" + "'" * 5000,
    ],
    ids=["brackets", "nots", "long", "number", "quotes"],
)
def test_a_text_that_is_too_much_is_refused_in_a_short_line(text: str) -> None:
    with pytest.raises(Refused) as refusal:
        parsed(text).expression(SCHEMA)
    assert len(str(refusal.value)) < 800


def test_a_long_list_is_no_trouble() -> None:
    many = " or ".join(f"i = {n}" for n in range(5000))
    table = pa.table({"i": [4999, 5000]})
    assert table.filter(parsed(many).expression(table.schema))["i"].to_pylist() == [4999]
    listed = f"i in ({', '.join(map(str, range(10_000)))})"
    assert table.filter(parsed(listed).expression(table.schema))["i"].to_pylist() == [4999, 5000]


@pytest.mark.parametrize(
    "text", ['"odd name" = 1', "`odd name` = 1", "t = timestamp '2000-01-14'", 's = "q"']
)
def test_the_usual_ways_to_quote_are_understood(text: str) -> None:
    parsed(text).expression(SCHEMA)
