"""One connection to a SASL listener, moved by hand: frames of a client that authenticates."""

from collections.abc import Sequence
from typing import Any

from barnabas.metadata.metadata_records import MetadataRecord
from barnabas.metadata.security_records import ScramCredentialChanged
from barnabas.model.callers import Listener
from barnabas.model.security_settings import ListenerSettings, SecuritySettings
from barnabas.protocol.apis import response_class
from barnabas.protocol.codec import decode_exact
from barnabas.protocol.headers import response_header
from barnabas.protocol.message import Message
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.security.scram_client import ScramClient
from barnabas.security.scram_formulas import SCRAM_BY_NAME, credential
from tests.support.talk.one_connection import Asked, OneConnection

USER, PASSWORD = "alice", "open sesame"
ALL = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
NAMED = Listener("SASL", protocol="SASL_PLAINTEXT")
PLAIN_TOKEN = b"\0alice\0open sesame"


def credentials(user: str, password: str) -> list[ScramCredentialChanged]:
    """Return the credentials of a user."""
    return [
        credential(mechanism, user, password, b"salt" * 8, 4096)
        for mechanism in SCRAM_BY_NAME.values()
    ]


def alice(password: str = PASSWORD) -> list[ScramCredentialChanged]:
    """Return the credentials of the user that every broker knows."""
    return credentials(USER, password)


class SaslTalk(OneConnection):
    """A client of a broker that knows one user."""

    def __init__(
        self,
        security: SecuritySettings | None = None,
        mechanisms: tuple[str, ...] = ALL,
    ) -> None:
        listener = ListenerSettings(name="SASL", protocol="SASL_PLAINTEXT", mechanisms=mechanisms)
        super().__init__(
            listener=NAMED, listeners=(listener,), security=security, credentials=alice()
        )
        self._sent = 0
        self._taken = 0

    def send(self, request: Message, version: int) -> Asked:
        """Have a request arrive."""
        asked = Asked(request, version)
        self._sent += 1
        self.deliver(asked.frame(self._sent))
        return asked

    def deliver(self, content: bytes) -> None:
        """Have bytes arrive, and the broker do what follows at once."""
        self.arrive(content)
        while not self.connection.closed and self._queue:
            self.turn()

    def reconnect(self) -> None:
        """Leave, and connect anew."""
        self.end()
        self.connect(NAMED)
        self._taken = len(self.answers)

    def commit(self, records: Sequence[MetadataRecord]) -> None:
        """Change the metadata of the broker."""
        if records:
            self.edge.node.commit(records, self.edge.now_ms)
            self.edge.settle()

    def ask(self, request: Message, version: int) -> Any:
        """Send a request and return its answer."""
        asked = self.send(request, version)
        return self.answer_to(asked)

    def answer_to(self, asked: Asked) -> Any:
        """Return the next answer, which must be to this request."""
        content = self.answers[self._taken]
        self._taken += 1
        head = response_header(asked.key, asked.version, self._sent)
        assert content.startswith(head), "the answer has another header"
        return decode_exact(response_class(asked.key), asked.version, content[len(head) :])

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        """Ask for a mechanism."""
        return self.ask(SaslHandshakeRequest(mechanism=mechanism), version)

    def token(self, token: bytes, version: int = 2) -> Any:
        """Send a token in a request, and return the answer."""
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), version)

    def scram(self, mechanism: str, password: str = PASSWORD, version: int = 2) -> Any:
        """Authenticate with SCRAM; return the last answer."""
        self.handshake(mechanism)
        client = ScramClient(SCRAM_BY_NAME[mechanism], USER, password, b"client-nonce")
        first = self.token(client.first(), version)
        last = self.send(
            SaslAuthenticateRequest(auth_bytes=client.final(first.auth_bytes)), version
        )
        if len(self.answers) == self._taken:
            self.pass_time(100)
        return self.answer_to(last)

    @property
    def principal(self) -> str:
        """Who the broker takes the client for."""
        session = self.connection.session
        served: Any = getattr(session, "_served", session)
        return str(served.caller.principal)

    def is_served(self) -> bool:
        """Ask for metadata, and tell whether the broker answers."""
        return isinstance(self.ask(MetadataRequest(topics=[]), 12), MetadataResponse)
