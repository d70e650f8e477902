"""Limits on idle connections: uvicorn itself has a time limit only between two requests."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

# How long the head of a request may take.
HEAD_S = 10.0
# Maximum number of connections that wait for a request. Beyond it, the one that has waited longest is closed.
MOST_IDLE = 100


class TimedProtocol(H11Protocol):
    """HTTP/1.1, with a time limit for the head of a request, and a maximum number of connections without a request."""

    # In the order in which they began to wait.
    _idle: ClassVar[dict["TimedProtocol", None]] = {}
    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._begin()
        self._limit = self.loop.call_later(HEAD_S, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request. Receiving it slowly does not extend the time limit."""
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
        """Stop waiting."""
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
    """The options of the server: it discloses no more about itself, and trusts others no more, than is necessary."""
    return {
        "http": TimedProtocol,
        "ws": "none",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        # A page keeps its stream of messages open, so shutting down does not wait for it.
        "timeout_graceful_shutdown": 1,
    }
