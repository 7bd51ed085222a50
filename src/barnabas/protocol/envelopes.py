"""Envelope (key 58): how a broker forwards a client's request without losing the client's identity.

The envelope carries the whole request with its header, which has the client id; the client's
address; and its principal. The principal is written as Kafka writes it: a version, then
`DefaultPrincipalData`. The name of the client's listener follows in UTF-8. Kafka's own reader stops
before it.

Brokers forward only what clients send, so the listener in an envelope is never one for brokers.
"""

from ipaddress import IPv6Address, ip_address
from struct import Struct
from struct import error as struct_error

from barnabas.model.callers import Caller, Listener, Principal
from barnabas.model.errors import ApiError, ErrorCode, WireError
from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import decode_exact, decoder, encoder
from barnabas.protocol.headers import RequestHeader, response_header
from barnabas.protocol.messages import request_header
from barnabas.protocol.messages.default_principal_data import DefaultPrincipalData
from barnabas.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse

VERSION = 0
PRINCIPAL_VERSION = 0
ADDRESS_BYTES = (0, 4, 16)
"""Of an unknown address, of IPv4, of IPv6."""

_VERSION = Struct(">h")


def write_envelope(header: RequestHeader, body: bytes, caller: Caller) -> bytes:
    """Return the body of an Envelope request."""
    request = EnvelopeRequest(
        request_data=_write_header(header) + body,
        request_principal=write_principal(caller),
        client_host_address=_write_host(caller.host),
    )
    return encoder(EnvelopeRequest, VERSION)(request)


def read_envelope(request: EnvelopeRequest) -> tuple[Caller, memoryview]:
    """Return the client and its request; raise `ApiError` with Kafka's code if it is invalid."""
    principal, listener = read_principal(request.request_principal)
    caller = Caller(principal, listener, _read_host(request.client_host_address))
    # A handler may write into a frame, as into the receive buffer.
    return caller, memoryview(bytearray(request.request_data))


def read_reply(header: RequestHeader, reply: memoryview) -> memoryview | ErrorCode:
    """Return the body of the response in an envelope, or the error code of the envelope itself.

    An error that this release does not know is UNKNOWN_SERVER_ERROR.
    """
    response = decode_exact(EnvelopeResponse, VERSION, reply)
    if response.error_code:
        try:
            return ErrorCode(response.error_code)
        except ValueError:
            return ErrorCode.UNKNOWN_SERVER_ERROR
    head = response_header(header.api_key, header.api_version, header.correlation_id)
    content = response.response_data
    if content is None or not content.startswith(head):
        raise WireError("the envelope contains no response to the request")
    return memoryview(content)[len(head) :]


def write_principal(caller: Caller) -> bytes:
    """Write a caller's principal and the name of its listener."""
    principal = caller.principal
    data = DefaultPrincipalData(
        type=principal.kind, name=principal.name, token_authenticated=principal.is_by_token
    )
    written = encoder(DefaultPrincipalData, PRINCIPAL_VERSION)(data)
    return _VERSION.pack(PRINCIPAL_VERSION) + written + caller.listener.name.encode()


def read_principal(content: bytes | None) -> tuple[Principal, Listener]:
    """Read what `write_principal` writes."""
    try:
        (version,) = _VERSION.unpack_from(content or b"")
        if content is None or version != PRINCIPAL_VERSION:
            raise WireError(f"version {version}")  # noqa: TRY301
        data, end = decoder(DefaultPrincipalData, version)(content, _VERSION.size)
        listener = Listener(str(content[end:], "utf-8"))
    except (struct_error, UnicodeDecodeError, WireError) as error:
        problem = f"invalid principal: {error}"
        raise ApiError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, problem) from None
    return Principal(data.type, data.name, data.token_authenticated), listener


def _write_header(header: RequestHeader) -> bytes:
    key, version = header.api_key, header.api_version
    written = request_header.RequestHeader(
        request_api_key=key,
        request_api_version=version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
    )
    flexible = version >= APIS[key].flexible_from
    return encoder(request_header.RequestHeader, 2 if flexible else 1)(written)


def _write_host(host: str) -> bytes:
    try:
        address = ip_address(host)
    except ValueError:
        return b""  # a name instead of an address, which only tests and simulations have
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.packed
    return address.packed


def _read_host(content: bytes) -> str:
    if len(content) not in ADDRESS_BYTES:
        problem = f"an address of {len(content)} bytes"
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    return str(ip_address(content)) if content else ""
