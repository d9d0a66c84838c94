"""Serves a workspace whose traces take their time as long as a file is there."""

from __future__ import annotations

import sys
import threading

from explorer.gate import Gate
from explorer.page import Server
from explorer.serving import free_port, start
from explorer.work import Engine
from inverses.registry import Registry
from pipelines.workspace import Workspace
from tests.faults.killing import lingering, with_fault


def main(workspace: str, mark: str) -> None:
    registry = with_fault(Registry.of(), "criterion", lingering, mark=mark)
    server = Server(Workspace(workspace), registry, Engine("local[2,4]"), Gate(free_port(None)))
    server.engine.start()
    start(server, server.page)
    print(server.gate.url, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
