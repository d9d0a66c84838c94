"""Serving the explorer to this machine, until somebody presses Ctrl-C."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import holoviews as hv
import panel as pn
from tornado.websocket import WebSocketClosedError

from explorer.gate import Gate, serve
from explorer.page import Server
from explorer.work import Engine
from inverses.registry import Registry
from pipelines.errors import Failed
from pipelines.workspace import Workspace


def serving(
    workspace: Workspace,
    registry: Registry,
    engine: Engine,
    port: int | None,
    author: bool,
    said: Callable[[str], None],
) -> None:
    """Open the explorer on a workspace, say where it is, and serve it until interrupted."""
    gate = Gate(free_port(port))
    server = Server(workspace, registry, engine, gate, author)
    engine.start()
    thread = start(server, server.page)
    said(gate.url)
    try:
        threading.Event().wait()
    finally:
        thread.stop()


def start(server: Server, page: Callable[[], Any]) -> pn.io.threads.StoppableThread:
    """Serve a page in a thread; it is up before Spark is."""
    logging.getLogger("asyncio").addFilter(_worth_saying)
    pn.extension("tabulator", notifications=True, reconnect=True)
    hv.extension("bokeh", logo=False)
    thread: pn.io.threads.StoppableThread = serve(
        page, server.gate, server.parcels, threaded=True, verbose=False
    )
    _await(server.gate.port)
    return thread


def _worth_saying(record: logging.LogRecord) -> bool:
    """Whether a complaint of the server is news: that a visitor has left is not."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, WebSocketClosedError)


def _await(port: int) -> None:
    """Wait until somebody answers at a port, so that its address can be given out."""
    for _ in range(600):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise Failed(f"nothing answers at port {port}; give another with --port")


def free_port(wanted: int | None) -> int:
    """The port that is wanted, or any that is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted or 0))
        except (OSError, OverflowError):
            raise Failed(f"port {wanted} cannot be had; give another with --port") from None
        return int(probe.getsockname()[1])
