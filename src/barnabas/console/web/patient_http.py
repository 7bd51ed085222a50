"""Disconnects clients that stand still, which uvicorn waits for without an end.

    connected, or the first byte of a request    -> REQUEST_PATIENCE_S until the request is whole
    an answer that the client does not read      -> STALLED_S without a byte read, then the end

A client that stands still holds a connection, a thread that reads records, and one of the places
for searches. A page in a browser that comes back continues after its last event.
"""

import asyncio
import socket
import struct
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

LOOK_S = 5.0
REQUEST_PATIENCE_S = 60.0
"""Enough for the largest request, 4 MiB, over a slow line."""
STALLED_S = 60.0
NO_LINGER = struct.pack("ii", 1, 0)


class PatientHttp(H11Protocol):
    """One connection, looked at every `LOOK_S`."""

    _look_timer: asyncio.TimerHandle | None = None
    _asking_since_s: float | None = None
    """Since when the client owes the rest of a request."""
    _stalled_since_s: float | None = None
    """Since when the client has read nothing of what waits for it."""
    _unread_bytes = 0

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as the base class
        """Begin to look."""
        super().connection_made(transport)
        self._asking_since_s = self.loop.time()
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no longer."""
        if self._look_timer is not None:
            self._look_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        if not self._owes_request():
            self._asking_since_s = None
        elif self._asking_since_s is None:
            self._asking_since_s = self.loop.time()

    def on_response_complete(self) -> None:
        """Wait for the next request; how long a client may be idle between two is uvicorn's."""
        super().on_response_complete()
        self._asking_since_s = None

    def _owes_request(self) -> bool:
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.flow.read_paused

    def _look_later(self) -> None:
        self._look_timer = self.loop.call_later(LOOK_S, self._look)

    def _look(self) -> None:
        now_s = self.loop.time()
        self._note_unread(now_s)
        asking_s, stalled_s = self._asking_since_s, self._stalled_since_s
        if (asking_s is not None and now_s - asking_s >= REQUEST_PATIENCE_S) or (
            stalled_s is not None and now_s - stalled_s >= STALLED_S
        ):
            self._reset()
        else:
            self._look_later()

    def _reset(self) -> None:
        """End the connection without waiting until the client has read what is left."""
        own = self.transport.get_extra_info("socket")
        if own is not None:
            # The kernel then forgets what is left as well.
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.transport.abort()

    def _note_unread(self, now_s: float) -> None:
        unread = self.transport.get_write_buffer_size()
        if not unread:
            self._stalled_since_s = None
        elif self._stalled_since_s is None or unread < self._unread_bytes:
            self._stalled_since_s = now_s
        self._unread_bytes = unread
