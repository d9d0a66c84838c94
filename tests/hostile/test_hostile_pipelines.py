"""A pipeline is data: whatever a file holds, it is read in bounds and nothing in it is run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from explorer.cli import main
from pipelines.errors import Refused
from pipelines.pipeline import Pipeline
from pipelines.written import DEEPEST, LONGEST

ROOT = Path(__file__).parents[2]
SIMULATED = "{box: simulate_agcm}"


def boxes(text: str) -> str:
    return f"name: p\nboxes: {text}\n"


def bomb() -> str:
    """A few lines that would grow to a billion items."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for this, last in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{this}: &{this} [{', '.join([f'*{last}'] * 10)}]")
    return "\n".join([*lines, "name: *i"])


def merging_bomb() -> str:
    """The same by way of merged mappings, which grow while they are read."""
    lines = ["a: &a {x: 1}"]
    for this, last in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{this}: &{this} {{<<: [{', '.join([f'*{last}'] * 10)}]}}")
    return "\n".join([*lines, "name: p"])


TAGS = {
    "call": "name: !!python/object/apply:os.system ['touch {here}']",
    "new": "!!python/object/new:os.system ['touch {here}']",
    "object": "name: !!python/object:pathlib.Path {{}}",
    "module": "name: !!python/module:this",
    "name": "name: !!python/name:os.system",
    "nested": "name: p\nboxes: {{agcm: {{box: !!python/object/apply:os.mkdir ['{here}']}}}}",
    "key": "? !!python/object/apply:os.mkdir ['{here}']\n: 1",
    "own tag": "name: !run 'touch {here}'",
    "directive": "%TAG !p! tag:yaml.org,2002:python/\n---\n- !p!object/apply:os.mkdir ['{here}']",
}
HOSTILE = {
    "aliases": ("a: &a [*a]\nname: p", "no aliases"),
    "bomb": (bomb(), "no aliases"),
    "merging bomb": (merging_bomb(), "no aliases"),
    "deep brackets": ("name: " + "[" * 100_000, f"deeper than {DEEPEST}"),
    "deep braces": ("name: " + "{a: " * 1000, f"deeper than {DEEPEST}"),
    "deep indents": ("\n".join(" " * n + "a:" for n in range(300)), f"deeper than {DEEPEST}"),
    "long": ("# " + "x" * LONGEST, f"at most {LONGEST:,} characters"),
    "long number": (f"name: {'9' * 5000}", "cannot be read"),
    "long key": (f"{'k' * 5000}: 1", "not YAML"),
    "key twice": ("name: p\nname: q\n" + boxes(f"{{a: {SIMULATED}}}")[8:], '"name" is there twice'),
    "box twice": (boxes(f"{{a: {SIMULATED}, a: {SIMULATED}}}"), '"a" is there twice'),
    "list as key": ("? [a, b]\n: 1", "unhashable key"),
    "no such day": ("name: 2000-99-99", "cannot be read"),
    "no such truth": ("name: !!bool maybe", "cannot be read"),
    "two documents": ("name: p\n---\nname: q", "not YAML"),
    "binary": ("name: \x00\x01", "not YAML"),
    "empty": ("", "found None"),
    "a list": ("[name, boxes]", "found ['name', 'boxes']"),
    "a word": ("cyclones", "found 'cyclones'"),
    "a number for a name": ("name: 1", "needs a name"),
    "a number as key": ("1: 2", 'no key "1"'),
    "null as key": ("~: 2", 'no key "None"'),
    "boxes as a list": (boxes("[a]"), "maps names to descriptions"),
    "a box as a word": (boxes("{a: simulate_agcm}"), "has the keys box, inputs, keep, params"),
    "a box as a list": (boxes("{a: {box: [x]}}"), "no box"),
    "inputs as a list": (boxes("{a: {box: extract_minima, inputs: [b]}}"), "maps ports to"),
    "params as a word": (boxes("{a: {box: simulate_agcm, params: x}}"), "params names to values"),
    "a number as parameter": (boxes("{a: {box: simulate_agcm, params: {1: 2}}}"), 'parameter "1"'),
    "a list as value": (boxes("{a: {box: simulate_agcm, params: {days: [1]}}}"), "not a float"),
    "truth as a number": (boxes("{a: {box: simulate_agcm, params: {hours: yes}}}"), "not a int"),
    "slash": (boxes(f"{{a/b: {SIMULATED}}}"), "is not a name"),
    "parent": (boxes(f"{{'..': {SIMULATED}}}"), "is not a name"),
    "here": (boxes(f"{{'.': {SIMULATED}}}"), "is not a name"),
    "root": (boxes(f"{{/etc/passwd: {SIMULATED}}}"), "is not a name"),
    "backslash": (boxes(f"{{'a\\b': {SIMULATED}}}"), "is not a name"),
    "nothing": (boxes(f"{{'': {SIMULATED}}}"), "is not a name"),
    "space": (boxes(f"{{a b: {SIMULATED}}}"), "is not a name"),
    "line": (boxes(f'{{"a\\n": {SIMULATED}}}'), "is not a name"),
    "long name": (boxes(f"{{{'a' * 81}: {SIMULATED}}}"), "is not a name"),
    "many bytes": (boxes(f"{{{'𐐷' * 80}: {SIMULATED}}}"), "is not a name"),
    "a number": (boxes(f"{{1: {SIMULATED}}}"), "is not a name"),
    "name of the pipeline": (f"name: ../p\nboxes: {{a: {SIMULATED}}}", "is not a name"),
    "terminal": ('name: "\\e[2J"\n' + boxes(f"{{a: {SIMULATED}}}")[8:], "is not a name"),
    "path of zeros": (
        f'name: p\nsources: {{s: {{path: "a\\0"}}}}\n{boxes("{}")[8:]}',
        "needs a path",
    ),
    "variables by number": (
        "name: p\nsources: {s: {path: a, variables: {1: b}}}\nboxes: {}",
        "variables maps our names",
    ),
}


def refusal(path: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """The one line that running a pipeline ends in."""
    began = time.monotonic()
    code = main(["run", str(path), "-w", str(path.parent / "new")])
    assert time.monotonic() - began < 20
    out, err = capfd.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert len(err) < 1500
    assert os.listdir(path.parent) == [path.name]
    return err


@pytest.mark.parametrize("text", TAGS.values(), ids=TAGS.keys())
def test_tags_call_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str) -> None:
    here = tmp_path / "called"
    (tmp_path / "p.yaml").write_text(text.format(here=here))
    assert "the pipeline is not YAML" in refusal(tmp_path / "p.yaml", capfd)
    assert not here.exists()


def test_the_tags_would_call_something_if_they_could(tmp_path: Path) -> None:
    """That what is planted goes off elsewhere, so that the test above means something."""
    text = TAGS["call"].format(here=tmp_path / "called")
    script = f"import yaml; yaml.unsafe_load({text!r})"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert (tmp_path / "called").exists()


@pytest.mark.parametrize(("text", "part"), HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_no_pipeline_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, part: str
) -> None:
    (tmp_path / "p.yaml").write_text(text)
    assert part in refusal(tmp_path / "p.yaml", capfd)


def test_a_file_without_end_is_not_read_to_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "/dev/zero", "-w", "/nowhere/new"]) == 2
    assert capfd.readouterr().err.count("\n") == 1


def test_a_file_that_is_not_text_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.yaml").write_bytes(b"name: \xff\xfe")
    assert "no pipeline can be read" in refusal(tmp_path / "p.yaml", capfd)


WORD = st.text(max_size=8)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORD | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORD, inner, max_size=3),
    max_leaves=6,
)
NEARLY = st.fixed_dictionaries(
    {},
    optional={
        "name": PLAIN | st.just("p"),
        "sources": PLAIN | st.dictionaries(st.sampled_from(["s", "..", "é"]), PLAIN, max_size=2),
        "boxes": PLAIN
        | st.dictionaries(
            st.sampled_from(["a", "b", "a/b"]),
            st.fixed_dictionaries(
                {"box": st.sampled_from(["simulate_agcm", "extract_minima", "x"]) | PLAIN},
                optional={"inputs": PLAIN, "params": PLAIN, "keep": PLAIN},
            ),
            max_size=2,
        ),
    },
)


def is_pipeline_or_refused(read: Callable[[], Pipeline]) -> None:
    try:
        found = read()
    except Refused:
        return
    assert found.steps


@given(PLAIN | NEARLY)
def test_any_yaml_is_a_pipeline_or_is_refused(plain: object) -> None:
    text = yaml.safe_dump(plain, allow_unicode=True)
    is_pipeline_or_refused(lambda: Pipeline.from_text(text))


@given(st.text(max_size=200) | st.text("{}[]:,&*!?|>%@`'\"#- \nabn0", max_size=60))
def test_any_text_is_a_pipeline_or_is_refused(text: str) -> None:
    is_pipeline_or_refused(lambda: Pipeline.from_text(text))
