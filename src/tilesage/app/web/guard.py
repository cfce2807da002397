"""Access control: who may ask at all, and which headers every answer carries.

The server listens on the loopback, but a browser on this machine also runs other people's pages. So the name in the
`Host` line must be one of ours (a foreign name that points here is refused), and a request that a browser made for
another site is refused by its `Origin`, for WebSockets too. Programs send no origin and are welcome.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import JSONResponse

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        b"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
log = logging.getLogger("tilesage.web")


def host_name(text: str) -> str:
    """The host of a `Host` line or an origin, without its port.

    >>> host_name("localhost:2048"), host_name("[::1]:2048"), host_name("Example.org.")
    ('localhost', '::1', 'example.org')
    """
    try:
        return (urlsplit(f"//{text.strip()}").hostname or "").rstrip(".")
    except ValueError:
        return ""


class Guard:
    """Refuses foreign hosts and sites before the application runs, and keeps tracebacks out of every answer."""

    def __init__(self, app: App, hosts: Iterable[str], by_number: bool = False) -> None:
        self.app, self.by_number = app, by_number
        self.hosts = {host.lower().strip("[]") for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        wrong = self._refusal(scope)
        if wrong:
            await self._refuse(scope, receive, send, wrong)
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
            return
        await self._answer(scope, receive, send)

    def _refusal(self, scope: Scope) -> str:
        lines = dict(scope["headers"])
        host = lines.get(b"host", b"").decode("latin-1")
        if not self._known(host_name(host)):
            return "unknown host name: open the page by the address that tilesage serve printed"
        origin = lines.get(b"origin")
        if origin is not None:
            parts = origin.decode("latin-1").partition("://")
            if parts[0] not in ("http", "https") or parts[2].lower() != host.lower():
                return "requests from other sites are refused"
        navigation = scope["type"] == "http" and scope["method"] == "GET" and not scope["path"].startswith("/api/")
        if lines.get(b"sec-fetch-site") == b"cross-site" and not navigation:
            return "requests from other sites are refused"
        return ""

    def _known(self, host: str) -> bool:
        """One of our names; an address in numbers cannot be pointed here by someone else's name server."""
        if host in self.hosts:
            return True
        with contextlib.suppress(ValueError):
            return self.by_number and bool(ipaddress.ip_address(host))
        return False

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, why: str) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": why[:120]})
            return
        await JSONResponse({"error": why}, 403)(scope, receive, self._dressed(send))

    def _dressed(self, send: Send) -> Send:
        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        return with_headers

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await self._dressed(send)(message)

        try:
            await self.app(scope, receive, watched)
        except Exception:
            log.exception("the page stumbled over %s", scope["path"])
            if not begun:
                await JSONResponse({"error": "the server stumbled; its log says why"}, 500)(scope, receive, watched)
