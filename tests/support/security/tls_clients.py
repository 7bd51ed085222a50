"""TLS clients whose bytes a test moves by hand, and raw Kafka clients over TLS."""

import contextlib
import socket
import ssl

from barnabas.testing.raw_client import RawClient
from tests.support.security.certificates import Certificates, Files


def trusting(certificates: Certificates, files: Files | None = None) -> ssl.SSLContext:
    """Return the context of a client that trusts the authority, and maybe has a certificate."""
    context = ssl.create_default_context(cafile=certificates.authority)
    if files is not None:
        context.load_cert_chain(*files)
    return context


class SecureClient(RawClient):
    """A raw client over TLS."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        super().__init__(address)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


class ManualClient:
    """The client's end of TLS without a socket: a test carries its bytes."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def shake_hands(self) -> bool:
        """Go on with the handshake; return whether it is complete."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
            return True
        return False

    def read(self) -> bytes:
        """Return all that has arrived."""
        parts = []
        with contextlib.suppress(ssl.SSLWantReadError):
            while part := self.tls.read(65536):
                parts.append(part)
        return b"".join(parts)


def carry(client: ManualClient, connected: socket.socket, piece_bytes: int = 1 << 16) -> None:
    """Send the bytes that a client has for the broker, in pieces."""
    content = client.outgoing.read()
    for start in range(0, len(content), piece_bytes):
        connected.sendall(content[start : start + piece_bytes])


def shake_hands(client: ManualClient, connected: socket.socket, piece_bytes: int = 1 << 16) -> None:
    """Complete a client's handshake; its last bytes are not sent yet."""
    while not client.shake_hands():
        carry(client, connected, piece_bytes)
        received = connected.recv(65536)
        assert received, "the broker closed the connection"
        client.incoming.write(received)
