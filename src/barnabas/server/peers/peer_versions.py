"""The versions of each API that the broker at the other end of a connection serves.

A connection between brokers begins with ApiVersions. Release 0.1.0 omits the APIs that only brokers
may call from its answer, so this module has their versions. Later releases list them to other
brokers.
"""

from barnabas.model.errors import ErrorCode, WireError
from barnabas.model.version import __version__
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.headers import API_VERSIONS
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

Versions = dict[int, tuple[int, int]]
"""The lowest and the highest version that is served, by API key."""

VERSION = APIS[API_VERSIONS].high
ENVELOPE = int(ApiKey.ENVELOPE)
BROKER_REGISTRATION = 62
NOT_SERVED = (0, -1)

FIRST_RELEASE: Versions = {
    52: (0, 2),
    53: (0, 1),
    54: (0, 1),
    56: (2, 3),
    59: (0, 1),
    BROKER_REGISTRATION: (0, 4),
    63: (0, 2),
    67: (0, 0),
    82: (0, 0),
}
"""The APIs that release 0.1.0 serves to brokers only, and does not list."""


def hello_body() -> bytes:
    """Return the body of the request that begins a connection."""
    request = ApiVersionsRequest(
        client_software_name="barnabas", client_software_version=__version__
    )
    return encoder(ApiVersionsRequest, VERSION)(request)


def served_versions(body: memoryview) -> Versions:
    """Read the answer; raise `WireError` if it is invalid, or an error."""
    # A broker that does not know the version answers in version 0 with this code (KIP-511).
    older = body[:2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
    answer = decode_exact(ApiVersionsResponse, 0 if older else VERSION, body)
    if answer.error_code and not older:
        raise WireError(f"it answered ApiVersions with error {answer.error_code}")
    found = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    return found if BROKER_REGISTRATION in found else {**FIRST_RELEASE, **found}
