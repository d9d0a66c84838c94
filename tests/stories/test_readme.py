"""What the README shows is run."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from inverses.check import check
from inverses.registry import Registry
from pipelines.workspace import Workspace
from tests.stories.asked import Ask

ROOT = Path(__file__).parent.parent.parent
BLOCKS = re.findall(
    r"^```(\w+) ?([\w.]*)\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S
)


def block(language: str, title: str = "") -> str:
    """The first block of a language with a title."""
    return next(text for kind, name, text in BLOCKS if (kind, name) == (language, title))


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script where `whence` is the one under test."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=280,
    )


def told(script: str, ask: Ask) -> str:
    """What the commands of a script print, asked one after another in this process."""
    said = [ask(*shlex.split(line)[1:]) for line in script.splitlines()]
    assert [s.err for s in said if s.code] == []
    return "".join(s.out for s in said)


@pytest.fixture
def folder(demo: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the demo has run, and in which commands are asked."""
    (tmp_path / "whence-demo").symlink_to(demo.path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_demo_can_be_asked_as_the_readme_says(folder: Path, ask: Ask) -> None:
    printed = told(block("sh", "demo"), ask)
    assert "= complete, pure: agcm, 9 cells of slp in 1 step" in printed
    assert (folder / "cells.nc").exists()


def test_datasets_have_wishes_of_their_own_as_the_readme_says(folder: Path, ask: Ask) -> None:
    printed = told(block("sh", "wishes"), ask)
    assert "⊆ pure: agcm (wished pure), " in printed
    assert "⊇ complete: minima, " in printed


def test_evidence_is_exported_and_opened_as_the_readme_says(folder: Path, ask: Ask) -> None:
    printed = told(block("sh", "evidence"), ask)
    assert printed.count("= complete, pure: agcm, 9 cells of slp in 1 step") == 2


def test_history_is_asked_as_the_readme_says(folder: Path, ask: Ask) -> None:
    printed = told(block("sh", "history"), ask)
    assert "5 ancestors: tracks" in printed
    assert "\nyes\n" in printed
    assert "2 made: extract_minima" in printed
    assert "added 3 datasets, 3 tasks and 5 arrows" in printed


def test_the_plan_in_the_readme_is_the_plan(folder: Path, ask: Ask) -> None:
    asked = next(line for line in block("sh", "demo").splitlines() if "plan" in line)
    shown = re.search(r"^   hop .*?(?=^```)", (ROOT / "README.md").read_text(), re.M | re.S)
    assert shown is not None
    printed = told(asked, ask).splitlines()[1:11]
    assert [_without_sizes(line) for line in printed] == [
        _without_sizes(line) for line in shown[0].splitlines()
    ]


def _without_sizes(line: str) -> str:
    """A line of a plan without how many bytes are read, which libraries have a say in."""
    return re.sub(r", [\d.]+ [kM]?B$", "", line)


@pytest.mark.parametrize("title", ["", "wishes.py"])
def test_the_python_examples_hold(title: str, folder: Path) -> None:
    (folder / "example.py").write_text(block("python", title))
    runpy.run_path("example.py", run_name="__main__")


def test_an_author_adds_a_box_with_its_inverses(tmp_path: Path) -> None:
    (tmp_path / "highest.py").write_text(block("python", "highest.py"))
    (tmp_path / "highest.yaml").write_text(block("yaml", "highest.yaml"))
    done = shell(block("sh", "highest"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "= complete, pure: agcm, 1 cell of slp in 1 step" in done.stdout


def test_an_author_adds_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "staff.py").write_text(block("python", "staff.py"))
    runpy.run_path("staff.py")
    (tmp_path / "taxes.py").write_text(block("python", "taxes.py"))
    (tmp_path / "taxes.yaml").write_text(block("yaml", "taxes.yaml"))
    done = shell(block("sh", "taxes"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 of 1,095 rows of told" in done.stdout
    assert "(name = n1998 and salary 199800..199800)" in done.stdout
    assert "function tax: pushed back, rises: holds in " in done.stdout


def test_the_box_of_the_readme_holds_what_it_states_of_steps_and_of_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "highest.py").write_text(block("python", "highest.py"))
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry.of(["highest"])
    found = check(registry, registry.boxes["highest"], 10)
    assert [f for f in found if not f.holds] == []
    pure = {f.inverse for f in found if f.law == "pure"}
    assert pure == {"same_step", "where_attained"}


def test_the_example_pipeline_is_one(tmp_path: Path) -> None:
    from pipelines.pipeline import Pipeline

    names = [name for name, _ in Pipeline.from_text(block("yaml")).in_order()]
    assert names == ["minima", "tracks"]


@pytest.mark.night
def test_parts_are_made_proved_and_followed_as_the_readme_says(
    demo: Workspace, folder: Path
) -> None:
    field = demo.dataset("agcm").path
    (folder / "my-cyclones.yaml").write_text(block("yaml").replace("era5-msl.nc", field))
    done = shell(f"whence run my-cyclones.yaml -w work\n{block('sh', 'parts')}", folder)
    assert done.returncode == 0, done.stderr
    assert "proved: run again on this alone" in done.stdout
    assert "had a part in:\n  minima: " in done.stdout
