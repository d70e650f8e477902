"""Connections that ask for nothing are not waited for: uvicorn itself has a time limit only between two requests."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

# How long the head of a request may take.
HEAD_S = 10.0
# Connections that wait for a request; where there are more, the one that has waited longest is closed.
MOST_IDLE = 100


class TimedProtocol(H11Protocol):
    """HTTP/1.1, with a limit to how long the head of a request may take, and to how many connections have none."""

    # In the order in which they began to wait.
    _idle: ClassVar[dict["TimedProtocol", None]] = {}
    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._begin()
        self._limit = self.loop.call_later(HEAD_S, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request; that it trickles in gives it no more time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._end()
        elif self._limit is None:
            self._limit = self.loop.call_later(HEAD_S, self.transport.abort)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._end()
        super().connection_lost(exc)

    def _begin(self) -> None:
        self._idle[self] = None
        if len(self._idle) > MOST_IDLE:
            oldest = next(iter(self._idle))
            oldest._end()
            oldest.transport.abort()

    def _end(self) -> None:
        self._idle.pop(self, None)
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def uvicorn_options() -> dict[str, Any]:
    """What a server is to be made with: no more said of it, and believed of others, than is needed."""
    return {
        "http": TimedProtocol,
        "ws": "none",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        # A page keeps its stream of messages open: it is not waited for at the end.
        "timeout_graceful_shutdown": 1,
    }
