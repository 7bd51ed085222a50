"""Tests requests that a broker forwards: in an Envelope, if the other broker serves it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.handlers.context import RequestContext
from barnabas.handlers.registry import SERVED
from barnabas.model.callers import Caller, Listener, Principal
from barnabas.model.ids import NodeId
from barnabas.node.cluster.peer_requests import ForwardedRequest
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.server.peers import peer_connection
from barnabas.server.peers.peer_versions import Versions, served_versions
from tests.support.talk.peer_pair import LONG_MS, Pair
from tests.support.talk.rows import with_handler

ALICE = Caller(Principal("User", "alice"), Listener("SASL_SSL"), "192.0.2.7")
KEY = ApiKey.DELETE_TOPICS


class Forwarding:
    """A pair of brokers: one forwards to the other, which is the controller of its cluster."""

    def __init__(self, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pair = pair
        self.seen: list[RequestContext] = []
        self.versions: Versions = {}
        """Replaces the list of APIs that the controller serves."""
        monkeypatch.setattr(pair.asker.node.peers, "address_of", lambda _: pair.address)
        monkeypatch.setitem(SERVED, KEY, with_handler(SERVED[KEY], self._handle))
        monkeypatch.setattr(peer_connection, "served_versions", self._served)

    def forward(self, version: int) -> DeleteTopicsResponse:
        """Forward a request of Alice's; return the response in the version that she used."""
        request = DeleteTopicsRequest(topic_names=["a"])
        body = encoder(DeleteTopicsRequest, version)(request)
        header = RequestHeader(KEY, version, 5, "her-client", 0)
        forwarded = ForwardedRequest(header, body, request, ALICE)
        asker, answered = self.pair.asker, asyncio.Event()
        heard: list[bytes] = []

        def take(content: bytes) -> None:
            heard.append(content)
            answered.set()

        asker.run_event(
            lambda: asker.node.peers.forward(NodeId(9), forwarded, LONG_MS).when_done(take)
        )
        self.pair.wait(answered.wait())
        return decode_exact(DeleteTopicsResponse, version, heard[0])

    def _handle(self, _: object, __: object, context: RequestContext) -> DeleteTopicsResponse:
        self.seen.append(context)
        return DeleteTopicsResponse(throttle_time_ms=7)

    def _served(self, body: memoryview) -> Versions:
        found = {**served_versions(body), **self.versions}
        return {key: (low, high) for key, (low, high) in found.items() if low <= high}


@pytest.fixture
def forwarding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forwarding]:
    pair = Pair(tmp_path)
    yield Forwarding(pair, monkeypatch)
    pair.close()


@pytest.mark.parametrize(
    ("versions", "served_in"), [({}, 5), ({KEY: (1, 3)}, 3)], ids=["same release", "older API"]
)
def test_the_controller_sees_the_client(
    forwarding: Forwarding, versions: Versions, served_in: int
) -> None:
    forwarding.versions = versions
    assert forwarding.forward(5).throttle_time_ms == 7
    (context,) = forwarding.seen
    assert (context.caller, context.client_id) == (ALICE, "her-client")
    assert context.version == served_in


@pytest.mark.parametrize("versions", [{}, {KEY: (1, 3)}], ids=["same version", "older version"])
def test_a_controller_without_envelopes_gets_the_request_itself(
    forwarding: Forwarding, versions: dict[int, Any]
) -> None:
    forwarding.versions = {ApiKey.ENVELOPE: (0, -1), **versions}
    assert forwarding.forward(5).throttle_time_ms == 7
    (context,) = forwarding.seen
    assert context.caller.listener.is_peer
    assert context.caller.host == "127.0.0.1"
