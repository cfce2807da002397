"""Connections that say nothing are closed after a while, and of one address only so many are let in.

What a visitor and the server say to each other over a WebSocket is in socket.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from tilesage.app.web.limits import caller

HEAD_SECONDS = 5.0  # in which a connection must have sent the head of a request


class ImpatientProtocol(H11Protocol):
    """HTTP as uvicorn speaks it, with a limit on how long the head of a request may take."""

    of_address: ClassVar[Counter[str]] = Counter()  # connections, but for those that have become WebSockets
    most_of_an_address = 256
    watch: asyncio.TimerHandle | None = None
    idle_before = False
    address = ""

    def connection_made(self, transport: Any) -> None:
        """Begin to watch the connection, if its address has room for one more."""
        super().connection_made(transport)
        self.address = caller(self.client[0]) if self.client else ""
        self.of_address[self.address] += 1
        if self.of_address[self.address] > self.most_of_an_address:
            transport.close()
        self._schedule_check()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """From here on a visitor, who is counted elsewhere."""
        self._leave()
        super().handle_websocket_upgrade(event)

    def _leave(self) -> None:
        if self.watch:
            self.watch.cancel()
        self.of_address[self.address] -= 1
        if not self.of_address[self.address]:
            del self.of_address[self.address]

    def _schedule_check(self) -> None:
        self.watch = self.loop.call_later(HEAD_SECONDS, self._check)

    def _check(self) -> None:
        if self.transport.is_closing():
            return
        idle = self.cycle is None or self.cycle.response_complete
        if idle and (self.idle_before or self.cycle is None):
            self.transport.close()
            return
        self.idle_before = idle
        self._schedule_check()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the watch."""
        self._leave()
        super().connection_lost(exc)
