"""The gate: who may come in, from where, and what a page may ask for."""

from __future__ import annotations

import hmac
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.server.auth_provider import AuthProvider
from tornado.ioloop import IOLoop
from tornado.web import HTTPError, RequestHandler
from tornado.websocket import WebSocketHandler

COOKIE = "whence"
HOUR = 3600.0
BLOCK = 1 << 20
# Bokeh writes its start-up script into the page; components come as blobs; nothing is evaluated.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' blob: ws://{host}",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


@dataclass(slots=True)
class Gate(AuthProvider):
    """One token for one server: in the address the first time, in a cookie from then on."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def origins(self) -> list[str]:
        """The only names under which the server answers."""
        return [f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")]

    @property
    def url(self) -> str:
        """The address that opens the gate."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def get_user(self) -> Any:
        return self.admitted

    @property
    def get_user_async(self) -> None:
        return None

    @property
    def login_url(self) -> str:
        return "/refused"

    @property
    def get_login_url(self) -> None:
        return None

    @property
    def login_handler(self) -> type[RequestHandler]:
        return Refusal

    @property
    def logout_url(self) -> None:
        return None

    @property
    def logout_handler(self) -> None:
        return None

    def admitted(self, request: Any) -> str | None:
        """Let a request in that knows the token and calls us by our name."""
        if request.request.host not in self.origins:
            return None
        given = request.get_argument("token", "") or request.get_cookie(self._cookie) or ""
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return None
        if not isinstance(request, WebSocketHandler):
            self._mark(request)
        elif (stream := getattr(request.request.connection, "stream", None)) is not None:
            # A message is three small frames: the second would wait 40 ms for the first's receipt.
            # Said while the connection is being made, this would be forgotten.
            IOLoop.current().call_later(1, stream.set_nodelay, True)
        return "visitor"

    def _mark(self, request: Any) -> None:
        """Give a page its cookie, and the rules it lives by."""
        request.set_cookie(self._cookie, self.token, httponly=True, samesite="Strict")
        host = request.request.host
        request.set_header("Content-Security-Policy", POLICY.replace("{host}", host))
        request.set_header("X-Content-Type-Options", "nosniff")
        request.set_header("Referrer-Policy", "no-referrer")

    @property
    def _cookie(self) -> str:
        return f"{COOKIE}-{self.port}"


class Refusal(RequestHandler):
    """What those see who did not bring the token."""

    def get(self, *_: str) -> None:
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish("Not admitted: open the address, with its token, that whence printed.\n")


@dataclass(frozen=True, slots=True)
class Parcel:
    """A file, alone in its directory, that waits to be fetched, once or more, for an hour."""

    path: Path
    name: str
    until: float


class Parcels:
    """The files that visitors have asked for, each behind an address that cannot be guessed."""

    def __init__(self) -> None:
        self._kept: dict[str, Parcel] = {}
        self._alone = threading.Lock()

    def leave(self, path: Path, name: str) -> str:
        """Keep a file ready; returns the address it is fetched from."""
        number = secrets.token_urlsafe(18)
        with self._alone:
            for key in [k for k, p in self._kept.items() if p.until < time.monotonic()]:
                shutil.rmtree(self._kept.pop(key).path.parent, ignore_errors=True)
            self._kept[number] = Parcel(path, name, time.monotonic() + HOUR)
        return f"/fetch/{number}"

    def find(self, number: str) -> Parcel | None:
        """The file behind an address, if it is still there."""
        with self._alone:
            parcel = self._kept.get(number)
        return parcel if parcel and parcel.path.is_file() else None


class Fetch(RequestHandler):
    """Hands out the files that were left ready."""

    def initialize(self, gate: Gate, parcels: Parcels) -> None:
        self.gate, self.parcels = gate, parcels

    async def get(self, number: str) -> None:
        if self.gate.admitted(self) is None:
            raise HTTPError(403)
        parcel = self.parcels.find(number)
        if parcel is None:
            raise HTTPError(404)
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("Content-Disposition", f'attachment; filename="{parcel.name}"')
        self.set_header("Content-Length", str(parcel.path.stat().st_size))
        with parcel.path.open("rb") as file:
            while part := file.read(BLOCK):
                self.write(part)
                await self.flush()


def serve(page: Callable[[], Any], gate: Gate, parcels: Parcels, **more: Any) -> Any:
    """Serve a page to this machine alone, through the gate."""
    closed = [(r"/components/.*", Refusal), (r"/fetch/([\w-]+)", Fetch, _of(gate, parcels))]
    return pn.serve(
        {"/": page}, port=gate.port, address="127.0.0.1", show=False, title="Whence",
        websocket_origin=gate.origins, auth_provider=gate, extra_patterns=closed,
        check_unused_sessions=15_000, unused_session_lifetime=60_000, **more,
    )  # fmt: skip


def _of(gate: Gate, parcels: Parcels) -> Mapping[str, Any]:
    return {"gate": gate, "parcels": parcels}
