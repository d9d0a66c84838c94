"""Evidence: in how many trials the laws held for an inverse, when, and for which version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).with_name("evidence.json")
Known = Mapping[tuple[str, str, str], "Evidence"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What testing has shown of what an author states."""

    trials: int
    held: bool
    date: str

    def text(self) -> str:
        """In words.

        >>> Evidence(5000, True, "2000-01-01").text()
        'stated by the author, held in 5,000 trials'
        """
        verdict = "held in" if self.held else "BROKEN within"
        return f"stated by the author, {verdict} {self.trials:,} trials"


def known(*files: Path) -> Known:
    """The evidence in some files, by box, version and inverse; a damaged file is no evidence."""
    found: dict[tuple[str, str, str], Evidence] = {}
    for file in (SHIPPED, *files):
        with suppress(OSError, ValueError, LookupError, TypeError):
            found |= {_key(e): _evidence(e) for e in json.loads(file.read_text())}
    return found


def _key(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(entry["box"]), str(entry["version"]), str(entry["inverse"])


def _evidence(entry: Mapping[str, Any]) -> Evidence:
    return Evidence(int(entry["trials"]), bool(entry["held"]), str(entry["date"]))


def gathered(
    findings: Iterable[tuple[str, str, str, int, bool]],
) -> list[dict[str, Any]]:
    """From findings (box, version, inverse, trials, held), law by law, to evidence to be kept."""
    today = datetime.now(UTC).date().isoformat()
    by_inverse: dict[tuple[str, str, str], list[tuple[int, bool]]] = {}
    for box, version, inverse, trials, held in findings:
        by_inverse.setdefault((box, version, inverse), []).append((trials, held))
    return [
        {
            "box": box,
            "version": version,
            "inverse": inverse,
            **asdict(Evidence(min(n for n, _ in each), all(h for _, h in each), today)),
        }
        for (box, version, inverse), each in by_inverse.items()
    ]
