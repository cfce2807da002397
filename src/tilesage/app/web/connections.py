"""Connections that say nothing: closed after a while, so that nobody can fill the server by keeping still."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 5.0  # in which a connection must have sent the head of a request


class ImpatientProtocol(H11Protocol):
    """HTTP as uvicorn speaks it, with a limit on how long the head of a request may take."""

    watch: asyncio.TimerHandle | None = None
    idle_before = False

    def connection_made(self, transport: Any) -> None:
        """Begin to watch the connection."""
        super().connection_made(transport)
        self._schedule_check()

    def _schedule_check(self) -> None:
        self.watch = self.loop.call_later(HEAD_SECONDS, self._check)

    def _check(self) -> None:
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return  # gone, or a WebSocket by now
        idle = self.cycle is None or self.cycle.response_complete
        if idle and (self.idle_before or self.cycle is None):
            self.transport.close()
            return
        self.idle_before = idle
        self._schedule_check()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the watch."""
        if self.watch:
            self.watch.cancel()
        super().connection_lost(exc)
