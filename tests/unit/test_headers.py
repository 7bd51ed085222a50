"""Tests request and response headers, including requests in future versions."""

from struct import pack

import pytest

from barnabas.model.errors import WireError
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import encoder
from barnabas.protocol.headers import (
    RequestHeader,
    UnknownApiError,
    parse_request_header,
    response_header,
)
from barnabas.protocol.messages import request_header
from barnabas.protocol.messages import response_header as response_header_message


def frame(key: int, version: int, tail: bytes) -> memoryview:
    return memoryview(pack(">hhi", key, version, 77) + tail)


def test_plain_header() -> None:
    header = parse_request_header(frame(ApiKey.METADATA, 8, b"\x00\x02meBODY"))
    assert header == RequestHeader(ApiKey.METADATA, 8, 77, "me", 12)


def test_client_id_may_be_null() -> None:
    assert parse_request_header(frame(ApiKey.METADATA, 8, b"\xff\xff")).client_id is None


def test_flexible_header_has_tags_but_a_plain_client_id() -> None:
    header = parse_request_header(frame(ApiKey.METADATA, 9, b"\x00\x02me\x00BODY"))
    assert header == RequestHeader(ApiKey.METADATA, 9, 77, "me", 13)
    tagged = parse_request_header(frame(ApiKey.METADATA, 9, b"\x00\x02me\x01\x00\x03abcBODY"))
    assert tagged.body == 18


def test_headers_agree_with_the_generated_ones() -> None:
    message = request_header.RequestHeader(
        request_api_key=ApiKey.METADATA, request_api_version=9, correlation_id=77, client_id="ä"
    )
    for version, api_version in ((1, 8), (2, 9)):
        message.request_api_version = api_version
        encoded = encoder(request_header.RequestHeader, version)(message)
        expected = RequestHeader(ApiKey.METADATA, api_version, 77, "ä", len(encoded))
        assert parse_request_header(encoded) == expected
    answer = response_header_message.ResponseHeader(correlation_id=77)
    for version, api_version in ((0, 8), (1, 9)):
        encoded = encoder(response_header_message.ResponseHeader, version)(answer)
        assert response_header(ApiKey.METADATA, api_version, 77) == encoded


@pytest.mark.parametrize("tail", [b"", b"\x00", b"\x00\x09me", b"\x00\x01\xff", b"\xff\xfe"])
def test_broken_headers_are_refused(tail: bytes) -> None:
    with pytest.raises(WireError, match="header of Metadata v8"):
        parse_request_header(frame(ApiKey.METADATA, 8, tail))


@pytest.mark.parametrize("size", range(8))
def test_frames_without_room_for_a_header_are_refused(size: int) -> None:
    with pytest.raises(WireError, match=f"a request of {size} bytes"):
        parse_request_header(memoryview(bytes(size)))


def test_unknown_apis_can_be_reported() -> None:
    with pytest.raises(UnknownApiError, match="key 999") as caught:
        parse_request_header(frame(999, 4, b"\xff\xff"))
    assert (caught.value.api_key, caught.value.api_version) == (999, 4)
    assert caught.value.correlation_id == 77


def test_api_versions_from_the_future_is_read_as_far_as_it_goes() -> None:
    header = parse_request_header(frame(ApiKey.API_VERSIONS, 99, b"\x00\x02me\x00BODY"))
    assert header == RequestHeader(ApiKey.API_VERSIONS, 99, 77, "me", 13)
    for tail in (b"", b"\x00\x09me", b"\x00\x02me\xff\xff\xff\xff\xff\xff"):
        header = parse_request_header(frame(ApiKey.API_VERSIONS, 99, tail))
        assert header == RequestHeader(ApiKey.API_VERSIONS, 99, 77, None, 8 + len(tail))
    with pytest.raises(WireError):
        parse_request_header(frame(ApiKey.API_VERSIONS, 3, b"\x00\x09me"))


def test_api_versions_answers_with_the_oldest_header() -> None:
    for version in (0, 3, 4, 99):
        assert response_header(ApiKey.API_VERSIONS, version, 77) == pack(">i", 77)
