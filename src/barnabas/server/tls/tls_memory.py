"""What OpenSSL keeps for one connection, counted as buffered memory of clients.

OpenSSL has a buffer for the record that is being read, one for the record that is being written,
and the state of the handshake. Measured with OpenSSL 3.0: 15 KB for an idle connection, 25 KB with
a certificate of the client, and 17 KB more for each buffer in use. Their use changes with each
record, so a connection is counted with one size from its handshake to its end.
"""

from barnabas.server.buffered_memory import BufferedMemory

CONNECTION_BYTES = 40 * 1024


class TlsMemory:
    """The memory of one connection; it is counted until it is released."""

    __slots__ = ("_counted_in",)

    def __init__(self, memory: BufferedMemory) -> None:
        self._counted_in: BufferedMemory | None = memory
        memory.use(CONNECTION_BYTES)

    def release(self) -> None:
        """Stop counting it. Doing so again changes nothing."""
        counted_in, self._counted_in = self._counted_in, None
        if counted_in is not None:
            counted_in.release(CONNECTION_BYTES)
