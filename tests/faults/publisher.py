"""Publishes versions of one dataset, saying each only when it is published; made to be killed."""

import os
import resource
import sys
from pathlib import Path

from pipelines.datasets import Attribute, Quantity, Table
from pipelines.workspace import Workspace

FILES, WORDS = 4, 4000


def publish(workspace: Workspace, token: str, full: str = "") -> str:
    """One version, whose files all say the same token; `full` says when the disk is."""
    described = Table(
        name="d",
        version="",
        path="table",
        attributes=(Attribute("n", Quantity, ("n",)),),
        types={"n": "int64"},
        notes={"token": token},
    )
    with workspace.staged("d") as stage:
        (stage / "table").mkdir()
        for number in range(FILES):
            if full == "staging" and number == FILES // 2:
                _fill_disk(100)
            (stage / "table" / f"part-{number}").write_text(f"{token} " * WORDS)
        if full == "publishing":
            _fill_disk(0)
        return workspace.publish(stage, described).version


def is_whole(workspace: Workspace, version: str | None = None) -> bool:
    """Whether every file of a version is there and says what its description says."""
    found = workspace.dataset("d", version)
    texts = [p.read_text() for p in sorted(Path(found.path).iterdir())]
    return texts == [f"{found.notes['token']} " * WORDS] * FILES


def _fill_disk(left: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, left))


def main(path: str, most: int, full: str = "") -> None:
    workspace = Workspace.create(path)
    print("ready", flush=True)
    for number in range(most):
        print(publish(workspace, f"{os.getpid()}-{number}", full), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
