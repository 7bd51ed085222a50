"""Tests the wire client: versions, coordinators, and errors of misbehaving brokers."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.headers import RequestHeader, parse_request_header, response_header
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.wire import cluster_wire as wires
from barnabas.wire.cluster_wire import Kind, Node, Wire
from barnabas.wire.link import Link
from barnabas.wire.wire_failures import LinkError

LENGTH = Struct(">i")
OLDEST = 0
Answer = Callable[[RequestHeader, bytes], bytes | None]


def answer(header: RequestHeader, message: Message, version: int | None = None) -> bytes:
    head = response_header(header.api_key, header.api_version, header.correlation_id)
    return head + encoder(type(message), header.api_version if version is None else version)(
        message
    )


def serves(**ranges: tuple[int, int]) -> ApiVersionsResponse:
    keys = {"coordinators": ApiKey.FIND_COORDINATOR, "transactions": ApiKey.LIST_TRANSACTIONS}
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=keys[name], min_version=low, max_version=high)
            for name, (low, high) in ranges.items()
        ]
    )


@contextmanager
def broker(reply: Answer) -> Iterator[tuple[str, int]]:
    """A broker with one connection that sends what `reply` returns, and closes it on None."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk() -> None:
            peer, _ = listener.accept()
            with peer, peer.makefile("rb") as stream:
                while head := stream.read(4):
                    frame = stream.read(*LENGTH.unpack(head))
                    said = reply(parse_request_header(frame), frame)
                    if said is None:
                        return
                    peer.sendall(LENGTH.pack(len(said)) + said)

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        yield listener.getsockname()
        thread.join(10)


def test_the_highest_version_that_both_know_is_spoken() -> None:
    asked = []

    def reply(header: RequestHeader, _: bytes) -> bytes:
        if header.api_key == ApiKey.API_VERSIONS:
            return answer(header, serves(transactions=(0, 1)))
        asked.append((header.api_key, header.api_version, header.client_id))
        return answer(header, ListTransactionsResponse(error_code=15))

    with broker(reply) as address:
        link = Link(*address)
        found = link.ask(ListTransactionsRequest(), ListTransactionsResponse)
        link.close()
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert asked == [(ApiKey.LIST_TRANSACTIONS, 1, "barnabas")]


def test_a_broker_older_than_the_question_is_asked_again() -> None:
    versions = []

    def reply(header: RequestHeader, _: bytes) -> bytes:
        versions.append(header.api_version)
        served = serves(transactions=(0, 0))
        if header.api_version != OLDEST:
            served.error_code = ErrorCode.UNSUPPORTED_VERSION
        return answer(header, served, OLDEST)

    with broker(reply) as address:
        link = Link(*address)
        assert link.version(ListTransactionsRequest) == 0
        link.close()
    assert versions == [4, 0]


def test_an_api_that_is_not_served_is_named() -> None:
    with broker(lambda header, _: answer(header, serves())) as address:
        link = Link(*address)
        with pytest.raises(LinkError, match="does not serve ListTransactions"):
            link.ask(ListTransactionsRequest(), ListTransactionsResponse)
        link.close()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (None, "closed the connection on ApiVersions"),
        (b"HTTP/1.1 400", "did not answer ApiVersions as a Kafka broker"),
        (LENGTH.pack(1), "did not answer ApiVersions as a Kafka broker"),
        (LENGTH.pack(1) + b"\0\0\xff\xff", "did not answer ApiVersions as a Kafka broker"),
    ],
)
def test_a_peer_that_is_no_broker_is_detected(said: bytes | None, sentence: str) -> None:
    with broker(lambda *_: said) as address, pytest.raises(LinkError, match=sentence):
        Link(*address)


@pytest.mark.parametrize("high", [3, 6])
def test_a_coordinator_may_need_time(high: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wires, "RETRY_PAUSE_S", 0)
    codes = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE]
    keys = []

    def reply(header: RequestHeader, frame: bytes) -> bytes:
        if header.api_key == ApiKey.API_VERSIONS:
            return answer(header, serves(coordinators=(0, high)))
        asked = decode_exact(FindCoordinatorRequest, high, frame, header.body)
        keys.extend([asked.key, *asked.coordinator_keys])
        code = codes.pop(0)
        if high > 3:
            place = Coordinator(node_id=3, host="there", port=9, error_code=code)
            return answer(header, FindCoordinatorResponse(coordinators=[place]))
        found = FindCoordinatorResponse(node_id=3, host="there", port=9, error_code=code)
        return answer(header, found)

    with broker(reply) as (host, port), Wire({"bootstrap.servers": f"{host}:{port}"}) as wire:
        assert wire.coordinator(Kind.TRANSACTION, "billing") == Node(3, "there", 9)
    assert keys.count("billing") == 2


def test_an_unreachable_broker_is_one_sentence() -> None:
    with Wire({"bootstrap.servers": "127.0.0.1:1,127.0.0.1:2"}) as wire:
        with pytest.raises(LinkError, match=r"No broker answered at 127.0.0.1:1,127.0.0.1:2"):
            wire.nodes()
        with pytest.raises(LinkError, match=r"Broker 7 says it is at 127.0.0.1:1"):
            wire.ask(Node(7, "127.0.0.1", 1), ListTransactionsRequest(), ListTransactionsResponse)
