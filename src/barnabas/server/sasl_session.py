"""The session of a connection to a SASL listener: it authenticates the client, then serves it.

Until the client has authenticated, its frames go to an `Authenticator` (`security/`). They are
limited in size, and there is a time limit. After that a `KafkaSession` serves the client. If
sessions do not expire, it replaces this object, so that requests cost the same as on other
listeners.

If sessions expire (KIP-368), this session looks at each request. A SaslHandshake begins another
authentication, at most once a second; its answers queue behind those of earlier requests. After the
expiry every other request closes the connection.
"""

from struct import Struct

from barnabas.effects import Scan
from barnabas.logs import get
from barnabas.model.errors import WireError
from barnabas.model.pending import Pending
from barnabas.model.ports import Buffer
from barnabas.model.steps import Rest, begin, for_answer
from barnabas.model.timers import Timer
from barnabas.protocol.api_keys import ApiKey
from barnabas.security.authenticator import (
    Answer,
    Authenticated,
    Outcome,
    PassOn,
    Refused,
    State,
)
from barnabas.server.connection import Connection
from barnabas.server.edge_ports import ConnectionOwner, Session
from barnabas.server.foreign import ForeignProtocol
from barnabas.server.kafka_session import KafkaSession

LANE = "authentication"
"""The lane of key derivations, which take turns by the client's address."""
AGAIN_MS = 1_000
HANDSHAKE_KEY = int(ApiKey.SASL_HANDSHAKE)
_API_KEY = Struct(">h")

log = get("barnabas.server")


def open_session(server: ConnectionOwner, connection: Connection) -> Session:
    """Return the session of a new connection, with SASL if its listener demands it."""
    served = KafkaSession(server, connection)
    if connection.listener.has_sasl:
        return SaslSession(server, connection, served)
    return served


class SaslSession:
    """One client: its authentication, and its requests afterwards."""

    __slots__ = (
        "_again_ms",
        "_authenticator",
        "_connection",
        "_expires_ms",
        "_has_begun",
        "_is_busy",
        "_served",
        "_server",
        "_settings",
        "_timer",
        "_timers",
        "_waiting",
    )

    def __init__(
        self, server: ConnectionOwner, connection: Connection, served: KafkaSession
    ) -> None:
        node = server.node
        self._server = server
        self._connection = connection
        self._served = served
        self._settings = node.settings.security
        self._timers = node.timers
        self._authenticator = node.authentication.authenticator(connection.listener)
        self._has_begun = False
        self._is_busy = False
        """Whether the client waits for the outcome of a token, and nothing is read meanwhile."""
        self._waiting: Pending[Outcome] | None = None
        self._expires_ms: int | None = None
        self._again_ms: int | None = None
        """When the client last began to authenticate again."""
        self._timer: Timer | None = None
        self._limit_time()

    @property
    def takes_short_frames(self) -> bool:
        """Whether the next frame is a token without Kafka's headers."""
        return self._authenticator.takes_raw_tokens

    def handle(self, frame: memoryview) -> None:
        """Authenticate the client, or serve its request."""
        self._has_begun = True
        if self._is_served(frame):
            self._served.handle(frame)
            return
        if len(frame) > self._settings.sasl_receive_bytes_max:
            self._refuse_size(len(frame))
        found = begin(self._authenticator.receive(frame))
        if isinstance(found, PassOn):
            self._served.handle(frame)
        elif isinstance(found, Rest):
            self._wait(found)
        else:
            self._act(found)

    def charge(self, duration_ns: int) -> None:
        """Charge the time of an event to the client."""
        self._served.charge(duration_ns)

    def check(self, size: int, head: Buffer) -> None:
        """Refuse a large frame of a client that has not authenticated."""
        if self._authenticator.state is State.DONE:
            self._served.check(size, head)
        elif size > self._settings.sasl_receive_bytes_max:
            self._refuse_size(size)

    def has_room(self) -> bool:
        """Tell whether the client may send more."""
        return not self._is_busy and self._served.has_room()

    def recognise(self, first: bytes) -> ForeignProtocol | None:
        """Return the protocol that the client speaks instead of Kafka's, if it is recognised."""
        return None if self._has_begun else self._served.recognise(first)

    def close(self) -> None:
        """Abandon pending work and answers."""
        self._end_limit()
        if self._waiting is not None:
            self._waiting.abandon()
        self._served.close()

    def _is_served(self, frame: memoryview) -> bool:
        """Tell whether a request is for the Kafka session."""
        if self._authenticator.state is not State.DONE:
            return False
        if self._expires_ms is None:
            return True
        now_ms = self._timers.now_ms
        (api_key,) = _API_KEY.unpack_from(frame)
        if api_key == HANDSHAKE_KEY:
            if self._again_ms is not None and now_ms - self._again_ms < AGAIN_MS:
                return True  # it answers with ILLEGAL_SASL_STATE
            self._again_ms = now_ms
            self._authenticator.authenticate_again()
            self._limit_time()
            return False
        if now_ms >= self._expires_ms:
            raise WireError("the client's session has expired, and it did not authenticate again")
        return True

    def _refuse_size(self, size: int) -> None:
        limit = self._settings.sasl_receive_bytes_max
        raise WireError(f"{size} bytes before the client has authenticated; the limit is {limit}")

    def _wait(self, rest: Rest[Outcome]) -> None:
        """Have the rest of the work done in steps; do not read before its outcome is known."""
        outcome: Pending[Outcome] = Pending()
        self._waiting = outcome
        self._is_busy = True
        self._connection.pause()
        outcome.when_done(self._resolve, lambda error: self._server.failed(self._connection, error))
        owner = self._connection.host
        self._server.node.outbox.append(Scan(LANE, owner, for_answer(rest, outcome)))

    def _resolve(self, outcome: Outcome) -> None:
        """Continue with the outcome of work that took long."""
        self._waiting = None
        self._is_busy = False
        self._act(outcome)
        self._connection.resume()

    def _act(self, outcome: Outcome) -> None:
        match outcome:
            case Answer():
                self._served.send(outcome.content)
            case Authenticated():
                self._welcome(outcome)
            case Refused():
                self._turn_away(outcome)
            case PassOn():  # `handle` passes the frame to the Kafka session
                pass

    def _welcome(self, outcome: Authenticated) -> None:
        """Serve the client from now on."""
        connection, lifetime_ms = self._connection, outcome.lifetime_ms
        self._end_limit()
        self._served.send(outcome.content)
        self._served.authenticate(outcome.principal)
        log.debug(
            "a client has authenticated",
            client=connection.host,
            principal=str(outcome.principal),
            mechanism=outcome.mechanism,
        )
        if lifetime_ms is not None:
            self._expires_ms = self._timers.now_ms + lifetime_ms
        elif connection.session is self:
            connection.session = self._served

    def _turn_away(self, outcome: Refused) -> None:
        """Stop reading; answer, perhaps later, and close."""
        self._end_limit()
        self._is_busy = True
        self._connection.pause()
        delay_ms = self._settings.failed_authentication_delay_ms
        if outcome.is_delayed and delay_ms:
            self._timer = self._timers.after(delay_ms, lambda: self._end(outcome))
        else:
            self._end(outcome)

    def _end(self, outcome: Refused) -> None:
        self._timer = None
        reason = f"the client did not authenticate: {outcome.reason}"
        if outcome.content is None or self._served.is_answering:
            self._server.refuse(self._connection, reason)
        else:
            self._connection.end_with(outcome.content, reason)

    def _limit_time(self) -> None:
        limit_ms = self._settings.handshake_timeout_ms
        self._timer = self._timers.after(limit_ms, self._run_out_of_time)

    def _end_limit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run_out_of_time(self) -> None:
        self._timer = None
        limit_s = self._settings.handshake_timeout_ms / 1000
        self._server.refuse(
            self._connection, f"the client did not authenticate within {limit_s:g} s"
        )
