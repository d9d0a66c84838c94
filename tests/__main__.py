"""Everything that must hold before code lands: style, types, imports, then the tests."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
CHECKS = (
    [sys.executable, "-m", "ruff", "check", "."],
    [sys.executable, "-m", "ruff", "format", "--check", "."],
    [sys.executable, "-m", "mypy"],
    [str(BIN / "lint-imports"), "--no-cache"],
)


def main() -> int:
    """Run every check, then pytest with the arguments given; stop at the first that fails."""
    for check in CHECKS:
        if code := subprocess.run(check, cwd=ROOT).returncode:
            return code
    return subprocess.run([sys.executable, "-m", "pytest", *sys.argv[1:]], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
