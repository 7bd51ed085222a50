"""Encodes requests as frames for the simulated network."""

from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import encoder
from barnabas.protocol.messages.request_header import RequestHeader


def frame_of(api_key: int, version: int, correlation_id: int, client_id: str, body: bytes) -> bytes:
    """Put the header before a request."""
    header = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    flexible = version >= APIS[api_key].flexible_from
    return encoder(RequestHeader, 2 if flexible else 1)(header) + body
