"""Everything that must hold before code lands: style, types, imports, then the tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHECKS = (
    [sys.executable, "-m", "ruff", "check", "."],
    [sys.executable, "-m", "ruff", "format", "--check", "."],
    [sys.executable, "-m", "mypy"],
    [str(BIN / "lint-imports"), "--no-cache"],
)


def driver_starts() -> bool:
    """Whether what drives the browser finds the libraries it needs."""
    asked = [sys.executable, "-m", "playwright", "--version"]
    return subprocess.run(asked, capture_output=True).returncode == 0


def provide_browser() -> None:
    """See that there is a Chromium to test with: by the system's packages, else by Playwright."""
    if any(map(shutil.which, CHROMIUMS)) and driver_starts():
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        print("no Chromium that can be driven here: installing the system's packages", flush=True)
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(["apt-get", "install", "-y", "-qq", "chromium", "libatomic1"], check=False)
    else:
        print("no Chromium here: asking Playwright for its own", flush=True)
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def main() -> int:
    """Run every check, then pytest with the arguments given; stop at the first that fails."""
    for check in CHECKS:
        if code := subprocess.run(check, cwd=ROOT).returncode:
            return code
    provide_browser()
    side_by_side = ["-n", "2", "--dist", "loadfile"]
    # A test at work for an hour is none that hangs, and to be asked where it is has crashed some.
    patient = ["-o", "faulthandler_timeout=0"] if "--night" in sys.argv else []
    tests = [sys.executable, "-m", "pytest", *side_by_side, *patient, *sys.argv[1:]]
    return subprocess.run(tests, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
