"""TLS on a connection that this broker made to another one, with the methods of a plain socket.

It keeps the bytes that OpenSSL has begun to send, so that the caller need not repeat them: a send
takes everything, or raises `BlockingIOError` while earlier bytes still wait.
"""

import socket
import ssl
from contextlib import suppress

from barnabas.model.ports import Buffer


class TlsStream:
    """A connected socket that encrypts what it sends; it never blocks."""

    def __init__(self, context: ssl.SSLContext, connected: socket.socket, host: str) -> None:
        """Take over a connected socket; the certificate of its other end must name the host."""
        self._socket = context.wrap_socket(
            connected, server_hostname=host, do_handshake_on_connect=False
        )
        self._begun: bytes | None = None

    @property
    def has_unsent(self) -> bool:
        """Whether bytes that were taken still wait for the kernel."""
        return self._begun is not None

    @property
    def has_unread(self) -> bool:
        """Whether OpenSSL has decrypted bytes, which the kernel does not report."""
        return self._socket.pending() > 0

    def shake_hands(self) -> None:
        """Continue the handshake; raise SSLWantReadError or SSLWantWriteError until it is done.

        Other errors of `ssl` say why the other end is not trusted, or does not trust this one.
        """
        self._socket.do_handshake()

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read what has arrived; 0 is the end."""
        filled = 0
        try:
            while filled < len(buffer):
                count = self._socket.recv_into(buffer[filled:], len(buffer) - filled)
                if count == 0:
                    break
                filled += count
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if not filled:
                raise BlockingIOError from None
        except OSError:
            if not filled:
                raise
        return filled

    def send(self, data: Buffer, /) -> int:
        """Take all bytes; raise `BlockingIOError` if earlier bytes still wait."""
        self.send_unsent()
        try:
            self._socket.write(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self._begun = bytes(data)
        return len(data)

    def send_unsent(self) -> None:
        """Send the waiting bytes; raise `BlockingIOError` if the kernel has no room."""
        if self._begun is None:
            return
        try:
            self._socket.write(self._begun)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None
        self._begun = None

    def close(self) -> None:
        """Send close_notify, and release the socket."""
        if self._begun is None:
            with suppress(OSError, ValueError):
                self._socket.unwrap()
        self._socket.close()
