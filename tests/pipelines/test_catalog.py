"""A catalog is made once, brought up to date, and refused if it is newer than we are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from pipelines import catalog
from pipelines.catalog import MIGRATIONS, VERSION, VIEWS, Catalog, nodes, runs, texts
from pipelines.databases import engine_at
from pipelines.errors import Failed, Refused
from tests.databases import own_schema


def found(url: str) -> set[str]:
    """The tables and views of a database."""
    engine = engine_at(url)
    inspector = sa.inspect(engine)
    return {*inspector.get_table_names(), *inspector.get_view_names()}


def test_a_catalog_is_made_once_and_found_again(catalog_url: str) -> None:
    with Catalog(catalog_url).writing() as connection:
        connection.execute(texts.insert().values(hash="h", text="é \u2028"))
    with Catalog(catalog_url).reading() as connection:
        assert connection.scalar(sa.select(texts.c.text)) == "é \u2028"
        assert connection.execute(sa.select(catalog.catalog)).all() == [(VERSION,)]
    assert found(catalog_url) >= {"nodes", "edges", "runs", "ends", *VIEWS}


def test_an_older_catalog_is_brought_up_to_date_and_keeps_its_rows(
    catalog_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "MIGRATIONS", MIGRATIONS[:1])
    monkeypatch.setattr(catalog, "VERSION", 1)
    with Catalog(catalog_url).writing() as connection:
        connection.execute(texts.insert().values(hash="h", text="kept"))
    assert not found(catalog_url) & set(VIEWS)
    monkeypatch.undo()
    with Catalog(catalog_url).reading() as connection:
        assert connection.scalar(sa.select(texts.c.text)) == "kept"
        assert connection.execute(sa.text("SELECT * FROM made_from")).all() == []


def test_runs_of_an_older_catalog_are_of_the_whole_pipeline(
    catalog_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "MIGRATIONS", (_without_parts, MIGRATIONS[1]))
    monkeypatch.setattr(catalog, "VERSION", 2)
    named = [c.name for c in runs.c if c is not runs.c.part]
    with Catalog(catalog_url).writing() as connection:
        row = dict.fromkeys(named, "1")
        connection.execute(sa.insert(sa.table("runs", *map(sa.column, named))), {**row, "id": 1})
    monkeypatch.undo()
    for _ in range(2):
        with Catalog(catalog_url).reading() as connection:
            assert connection.scalar(sa.select(runs.c.part)) == ""
            assert connection.scalar(sa.text("SELECT part FROM history WHERE run = '1'")) == ""


def _without_parts(connection: sa.Connection) -> None:
    """The tables as they were before runs said what part was asked for."""
    MIGRATIONS[0](connection)
    connection.exec_driver_sql("ALTER TABLE runs DROP COLUMN part")


def test_a_newer_catalog_is_refused_and_left_as_it_is(catalog_url: str) -> None:
    with Catalog(catalog_url).writing() as connection:
        connection.execute(catalog.catalog.update().values(version=VERSION + 1))
    with pytest.raises(Refused, match=f"has version {VERSION + 1}, this Whence knows .* {VERSION}"):
        Catalog(catalog_url)
    with engine_at(catalog_url).connect() as connection:
        assert connection.scalar(sa.select(catalog.catalog.c.version)) == VERSION + 1


def test_many_who_make_a_catalog_at_once_make_one(catalog_url: str) -> None:
    with ThreadPoolExecutor(6) as crowd:
        assert len(list(crowd.map(Catalog, [catalog_url] * 6))) == 6
    with Catalog(catalog_url).reading() as connection:
        assert connection.execute(sa.select(catalog.catalog)).all() == [(VERSION,)]


def test_writers_take_turns_and_none_is_lost(catalog_url: str) -> None:
    shared = Catalog(catalog_url)

    def add(number: int) -> None:
        with shared.writing() as connection:
            row = {c.name: "" for c in nodes.c if c.name != "seconds"}
            number = catalog.next_id(connection, nodes)
            connection.execute(nodes.insert().values({**row, "id": number}))

    with ThreadPoolExecutor(4) as crowd:
        list(crowd.map(add, range(24)))
    with shared.reading() as connection:
        assert list(connection.scalars(sa.select(nodes.c.id).order_by(nodes.c.id))) == [
            *range(1, 25)
        ]


def test_a_transaction_that_fails_leaves_nothing(catalog_url: str) -> None:
    shared = Catalog(catalog_url)
    with pytest.raises(ZeroDivisionError), shared.writing() as connection:
        connection.execute(texts.insert().values(hash="h", text="half"))
        raise ZeroDivisionError
    with shared.reading() as connection:
        assert connection.execute(sa.select(texts)).all() == []


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://h/d", "sqlite+aiosqlite:///f", "a://b:c"])
def test_what_is_no_catalog_is_refused(url: str) -> None:
    with pytest.raises(Refused, match=r"is no catalog; give one like postgresql\+psycopg://"):
        Catalog(url)


def test_a_password_is_never_told() -> None:
    with pytest.raises(Failed) as failure:
        Catalog("postgresql+psycopg://me:secret@127.0.0.1:1/nowhere")
    assert "secret" not in str(failure.value)
    assert "\n" not in str(failure.value)
    with pytest.raises(Refused) as refusal:
        Catalog("mysql://me:secret@h/d")
    assert "secret" not in str(refusal.value)


def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("a thesis, not a database. " * 100)
    with pytest.raises(Failed, match="does not answer: file is not a database"):
        Catalog(f"sqlite:///{tmp_path / 'c'}")
    assert (tmp_path / "c").read_text().startswith("a thesis")


def test_a_database_that_goes_away_is_said_and_nothing_is_half_written(postgres: str) -> None:
    shared = Catalog(own_schema(postgres))
    other = sa.create_engine(postgres)
    with pytest.raises(Failed, match="does not answer"), shared.writing() as connection:
        connection.execute(texts.insert().values(hash="h", text="half"))
        ours = connection.scalar(sa.text("SELECT pg_backend_pid()"))
        with other.begin() as elsewhere:
            elsewhere.execute(sa.text(f"SELECT pg_terminate_backend({ours})"))
        connection.execute(texts.insert().values(hash="i", text="whole"))
    other.dispose()
    with shared.reading() as connection:
        assert connection.execute(sa.select(texts)).all() == []
