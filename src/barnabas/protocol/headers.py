"""The headers of requests and responses.

    request v1    api key, api version, correlation id, client id
    request v2    the same, then a tagged section; for flexible versions
    response v0   correlation id
    response v1   correlation id, tagged section; for flexible versions, but never ApiVersions

The client id keeps its two-byte length even in v2, so that a broker can read the header of
an ApiVersions request newer than itself. The broker must answer such a request (KIP-511), so it
accepts a header that it cannot parse. Kafka 4.0 removed version 0 of the request header together
with ControlledShutdown v0.
"""

from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from barnabas.model.errors import WireError
from barnabas.model.ports import Buffer
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS
from barnabas.protocol.primitives import bad_length, skip_tags

API_VERSIONS = 18

_FIXED = Struct(">hhi")
_LENGTH = Struct(">h")
_CORRELATION_ID = Struct(">i")
_FLEXIBLE_RESPONSE = Struct(">ix")


class RequestHeader(NamedTuple):
    """The header of a request, and where its body begins."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: int


class UnknownApiError(WireError):
    """A request for an API that this broker does not know."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(f"{_api_name(api_key)} is not served (version {api_version})")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id


def _api_name(api_key: int) -> str:
    """Return the name that Kafka's documentation has for an API, or its key."""
    try:
        return ApiKey(api_key).name.title().replace("_", "")
    except ValueError:
        return f"API key {api_key}"


def parse_request_header(frame: Buffer) -> RequestHeader:
    """Read the header of a request; the caller checks whether the version is served."""
    try:
        api_key, api_version, correlation_id = _FIXED.unpack_from(frame, 0)
    except struct_error:
        raise WireError(f"a request of {len(frame)} bytes has no header") from None
    facts = APIS.get(api_key)
    if facts is None:
        raise UnknownApiError(api_key, api_version, correlation_id)
    flexible = api_version >= facts.flexible_from
    try:
        client_id, body = _client_id(frame)
        if flexible:
            body = body + 1 if frame[body] == 0 else skip_tags(frame, body, len(frame))
    except (struct_error, IndexError, UnicodeDecodeError, WireError) as problem:
        if api_key == API_VERSIONS and not facts.low <= api_version <= facts.high:
            return RequestHeader(api_key, api_version, correlation_id, None, len(frame))
        raise WireError(f"the header of {facts.name} v{api_version}: {problem}") from None
    return RequestHeader(api_key, api_version, correlation_id, client_id, body)


def _client_id(frame: Buffer) -> tuple[str | None, int]:
    (length,) = _LENGTH.unpack_from(frame, 8)
    if length == -1:
        return None, 10
    end = 10 + length
    if not 10 <= end <= len(frame):
        bad_length("client_id", length)
    return str(frame[10:end], "utf-8"), end


def response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """Return the header of a response."""
    if api_key != API_VERSIONS and api_version >= APIS[api_key].flexible_from:
        return _FLEXIBLE_RESPONSE.pack(correlation_id)
    return _CORRELATION_ID.pack(correlation_id)
