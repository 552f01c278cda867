"""The server: uvicorn's, and what it lacks against clients that are slow."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nplm.cli.serve.guard import Guard

GRACE_SECONDS = 10  # for the requests under way at the end
IDLE_SECONDS = 60  # for a client that sends no request, or does not read its answer


class Server(uvicorn.Server):
    """Answer requests until an interrupt."""

    def __init__(self, app: Guard) -> None:
        super().__init__(
            uvicorn.Config(
                app, http=Connection, ws="none", log_level=logging.WARNING,
                access_log=False, server_header=False,
            )
        )  # fmt: skip
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End: give up half a request at once, and what else is left after a while."""
        self._app.end()
        loop = asyncio.get_running_loop()
        late = loop.call_later(GRACE_SECONDS, self._drop)
        try:
            await super().shutdown(sockets)
        finally:
            late.cancel()

    def _drop(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


class Connection(H11Protocol):
    """A connection that a client cannot hold without a request under way."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """Wait until the client has read the answer, and for the next request."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        if self._late is not None:
            self._late.cancel()

    def _wait(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(IDLE_SECONDS, self._end_if_slow)

    def _end_if_slow(self) -> None:
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle or self.flow.write_paused:
            self.transport.abort()
