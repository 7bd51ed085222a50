"""The server's end of Kafka's SASL protocol, for one connection, as a state machine.

    FIRST       ApiVersions -> HANDSHAKE, SaslHandshake -> EXCHANGE
    HANDSHAKE   SaslHandshake -> EXCHANGE
    EXCHANGE    SaslAuthenticate (after SaslHandshake v0: tokens without Kafka's headers)
    DONE        the client has authenticated; `authenticate_again` -> HANDSHAKE (KIP-368)
    FAILED      the connection will be closed

A request of another API before the exchange closes the connection without an answer, so that
unauthenticated clients can only reach the codecs of three small messages. A request out of order
gets ILLEGAL_SASL_STATE. A client that fails does not learn the reason, which is in the broker's
log.

A client that authenticates again must use the same mechanism and be the same principal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from barnabas.model.callers import Principal
from barnabas.model.errors import ErrorCode, WireError
from barnabas.model.ports import Buffer
from barnabas.model.steps import Steps
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.headers import (
    RequestHeader,
    UnknownApiError,
    parse_request_header,
    response_header,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from barnabas.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.mechanism import Exchange, Proven, Reply

FAILED_TEXT = "Authentication failed: the credentials are not valid"
"""The error message for every client that fails, for any reason."""
OUT_OF_ORDER_TEXT = "This request is not expected while a client authenticates"
HEADERS_FROM = 1
"""From this version of SaslHandshake on, tokens come in SaslAuthenticate requests."""
API_VERSIONS, HANDSHAKE_KEY, AUTHENTICATE_KEY = (
    int(ApiKey.API_VERSIONS),
    int(ApiKey.SASL_HANDSHAKE),
    int(ApiKey.SASL_AUTHENTICATE),
)

Mechanisms = Mapping[str, Callable[[], Exchange]]
"""The functions that begin an exchange, by the name of the mechanism."""


class State(Enum):
    """The state of a connection."""

    FIRST = auto()
    HANDSHAKE = auto()
    EXCHANGE = auto()
    DONE = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class PassOn:
    """The request is ApiVersions, which the Kafka session answers."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The client gets this answer, without a length in front, and continues."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The client has authenticated; it gets this answer, and is served from now on."""

    content: bytes
    principal: Principal
    mechanism: str
    lifetime_ms: int | None
    """After this time the client must authenticate again; None means never."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The connection is closed, after an answer if there is one."""

    content: bytes | None
    reason: str
    is_delayed: bool = False
    """Whether the answer waits, so that passwords cannot be tried quickly."""


Outcome = PassOn | Answer | Authenticated | Refused


class Authenticator:
    """The authentication of one connection."""

    def __init__(self, mechanisms: Mechanisms, lifetime_ms: int = 0) -> None:
        """Take the mechanisms of the listener, and the longest session (0 for any length)."""
        self._mechanisms = mechanisms
        self._lifetime_ms = lifetime_ms
        self._exchange: Exchange | None = None
        self._has_headers = True
        self.state = State.FIRST
        self.mechanism = ""
        """The mechanism of this exchange, or of the last one."""
        self.principal: Principal | None = None
        """The principal of the client, once it has authenticated."""
        self._first_mechanism = ""

    @property
    def takes_raw_tokens(self) -> bool:
        """Whether the next frame is a token without Kafka's headers."""
        return self.state is State.EXCHANGE and not self._has_headers

    def authenticate_again(self) -> None:
        """Begin another authentication of a client that has authenticated before."""
        assert self.state is State.DONE
        self.state = State.HANDSHAKE

    def receive(self, frame: Buffer) -> Steps[Outcome]:
        """Handle a frame; raise `WireError` if the connection must be closed at once."""
        if self.takes_raw_tokens:
            return (yield from self._take_raw(bytes(frame)))
        header = self._header(frame)
        match self.state, header.api_key:
            case State.FIRST, ApiKey.API_VERSIONS.value:
                if _is_served(header):  # otherwise the client repeats it in a served version
                    self.state = State.HANDSHAKE
                return PassOn()
            case ((State.FIRST | State.HANDSHAKE), ApiKey.SASL_HANDSHAKE.value):
                return self._handshake(frame, header)
            case State.EXCHANGE, ApiKey.SASL_AUTHENTICATE.value:
                return (yield from self._take(frame, header))
            case _:
                return self._out_of_order(header)

    def _header(self, frame: Buffer) -> RequestHeader:
        """Parse the header of a request that may arrive now; raise for every other one."""
        header = parse_request_header(frame)
        known = (API_VERSIONS, HANDSHAKE_KEY, AUTHENTICATE_KEY)
        if header.api_key not in known:
            self.state = State.FAILED
            name = APIS[header.api_key].name
            raise WireError(f"{name} before the client has authenticated with SASL")
        if header.api_key != API_VERSIONS and not _is_served(header):
            raise UnknownApiError(header.api_key, header.api_version, header.correlation_id)
        return header

    def _handshake(self, frame: Buffer, header: RequestHeader) -> Outcome:
        request = decode_exact(SaslHandshakeRequest, header.api_version, frame, header.body)
        name = request.mechanism
        response = SaslHandshakeResponse(mechanisms=list(self._mechanisms))
        begin = self._mechanisms.get(name)
        if begin is None:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return self._refused(header, response, f"it asks for the mechanism {name[:40]!r}")
        self._exchange = begin()
        self.mechanism = name
        self._has_headers = header.api_version >= HEADERS_FROM
        self.state = State.EXCHANGE
        return Answer(_encoded(header, response))

    def _take(self, frame: Buffer, header: RequestHeader) -> Steps[Outcome]:
        """Handle a token in a SaslAuthenticate request."""
        request = decode_exact(SaslAuthenticateRequest, header.api_version, frame, header.body)
        try:
            reply = yield from self._reply(request.auth_bytes)
        except AuthenticationFailedError as failure:
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=FAILED_TEXT
            )
            return self._refused(header, response, str(failure), is_delayed=True)
        response = SaslAuthenticateResponse(error_message=None, auth_bytes=reply.token)
        if reply.proven is None:
            return Answer(_encoded(header, response))
        lifetime_ms = self._session_ms(reply.proven)
        response.session_lifetime_ms = lifetime_ms or 0
        return self._done(_encoded(header, response), reply.proven, lifetime_ms)

    def _take_raw(self, token: bytes) -> Steps[Outcome]:
        """Handle a token that is a frame by itself. Such a token cannot be answered by an error."""
        try:
            reply = yield from self._reply(token)
        except AuthenticationFailedError as failure:
            self.state = State.FAILED
            return Refused(None, str(failure), is_delayed=True)
        if reply.proven is None:
            return Answer(reply.token)
        return self._done(reply.token, reply.proven, self._session_ms(reply.proven))

    def _reply(self, token: bytes) -> Steps[Reply]:
        assert self._exchange is not None
        if self._first_mechanism and self.mechanism != self._first_mechanism:
            raise AuthenticationFailedError("the client has authenticated with another mechanism")
        reply = yield from self._exchange.reply(token)
        proven = reply.proven
        if proven is not None and self.principal not in (None, proven.principal):
            raise AuthenticationFailedError("the client has authenticated as another principal")
        return reply

    def _session_ms(self, proven: Proven) -> int | None:
        """Return how long the session may last, by the setting and by its credential."""
        limits = [each for each in (self._lifetime_ms, proven.lifetime_ms) if each]
        return min(limits) if limits else None

    def _done(self, content: bytes, proven: Proven, lifetime_ms: int | None) -> Authenticated:
        self.state = State.DONE
        self._exchange = None
        self.principal = proven.principal
        self._first_mechanism = self.mechanism
        return Authenticated(content, proven.principal, self.mechanism, lifetime_ms)

    def _out_of_order(self, header: RequestHeader) -> Outcome:
        reason = f"{APIS[header.api_key].name} is out of order"
        code = ErrorCode.ILLEGAL_SASL_STATE
        if header.api_key == AUTHENTICATE_KEY:
            answer: Message = SaslAuthenticateResponse(
                error_code=code, error_message=OUT_OF_ORDER_TEXT
            )
        elif header.api_key == HANDSHAKE_KEY:
            answer = SaslHandshakeResponse(error_code=code)
        else:
            answer = ApiVersionsResponse(error_code=code)
            if not _is_served(header):
                header = header._replace(api_version=0)
        return self._refused(header, answer, reason)

    def _refused(
        self, header: RequestHeader, response: Message, reason: str, *, is_delayed: bool = False
    ) -> Refused:
        self.state = State.FAILED
        self._exchange = None
        return Refused(_encoded(header, response), reason, is_delayed)


def _is_served(header: RequestHeader) -> bool:
    facts = APIS[header.api_key]
    return facts.low <= header.api_version <= facts.high


def _encoded(header: RequestHeader, response: Message) -> bytes:
    version = header.api_version
    head = response_header(header.api_key, version, header.correlation_id)
    return head + encoder(type(response), version)(response)
