"""Tests which listener serves which APIs."""

from typing import Any

import pytest

from barnabas.handlers.api_versions import TELEMETRY
from barnabas.handlers.context import RequestContext
from barnabas.handlers.registry import ADVERTISED, PEER_SERVED, SERVED, dispatch
from barnabas.model.errors import WireError
from barnabas.model.pending import Pending
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, request_class, response_class
from barnabas.protocol.codec import decode_exact
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.vote import VoteRequest, VoteResponse
from barnabas.testing.raw_client import frame_of
from tests.support.talk.dialogue import CLIENT, PEER, Dialogue
from tests.support.talk.rows import row_of

BETWEEN_BROKERS = [key for key, facts in APIS.items() if "broker" not in facts.listeners]
"""The APIs that the protocol itself does not allow to clients."""
ACROSS = [
    pytest.param(key, version, id=f"{APIS[key].name}-{version}")
    for key in BETWEEN_BROKERS
    for version in range(APIS[key].low, APIS[key].high + 1)
]


def answer(_: object, __: object, context: RequestContext) -> Any:
    assert context.caller.listener.is_peer
    return VoteResponse(error_code=7)


def frame(key: int, version: int) -> memoryview:
    return memoryview(bytearray(frame_of(request_class(key)(), version)))


def test_what_holds_a_cluster_together_is_known() -> None:
    assert {52, 53, 54, 56, 59, 62, 63, 67, 82} <= set(BETWEEN_BROKERS)
    assert not set(PEER_SERVED) & set(SERVED)


@pytest.mark.parametrize(("key", "version"), ACROSS)
def test_a_client_finds_no_broker(
    talk: Dialogue, monkeypatch: pytest.MonkeyPatch, key: int, version: int
) -> None:
    facts = APIS[key]
    monkeypatch.setitem(PEER_SERVED, key, row_of(key, facts.low, facts.high, answer))
    with pytest.raises(WireError, match=f"{facts.name} is not served"):
        dispatch(talk.node, frame(key, version), CLIENT, 0)


def test_inter_broker_apis_are_not_listed_for_clients(talk: Dialogue) -> None:
    named = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    keys = {row.api_key for row in talk.ask(named, 4).api_keys}
    assert keys | set(TELEMETRY) == set(SERVED) == set(ADVERTISED)
    assert not keys & set(TELEMETRY)  # the broker takes no metrics of clients
    assert not keys & {*BETWEEN_BROKERS, *PEER_SERVED}


def test_another_broker_is_answered(talk: Dialogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEER_SERVED, ApiKey.VOTE, row_of(ApiKey.VOTE, 1, 2, answer))
    chunks, context = dispatch(talk.node, frame(ApiKey.VOTE, 2), PEER, 0)
    assert context.caller.listener.is_peer
    assert isinstance(chunks, list)
    content = b"".join(bytes(chunk) for chunk in chunks)  # type: ignore[arg-type]
    assert decode_exact(response_class(ApiKey.VOTE), 2, content[5:]) == VoteResponse(error_code=7)
    with pytest.raises(WireError, match="Vote v0 is not served"):
        dispatch(talk.node, frame(ApiKey.VOTE, 0), PEER, 0)


def test_another_broker_may_ask_what_clients_ask(talk: Dialogue) -> None:
    answered, _ = dispatch(talk.node, frame(ApiKey.METADATA, 12), PEER, 0)
    assert isinstance(answered, list)


def test_a_node_answers_itself(talk: Dialogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEER_SERVED, ApiKey.VOTE, row_of(ApiKey.VOTE, 1, 2, answer))
    heard: list[VoteResponse] = []
    talk.node.peers.ask(talk.node.node_id, VoteRequest()).when_done(heard.append)
    assert heard == [VoteResponse(error_code=7)]


def test_a_node_answers_itself_later(talk: Dialogue, monkeypatch: pytest.MonkeyPatch) -> None:
    promised: Pending[VoteResponse] = Pending()
    monkeypatch.setitem(PEER_SERVED, ApiKey.VOTE, row_of(ApiKey.VOTE, 1, 2, lambda *_: promised))
    heard: list[VoteResponse] = []
    talk.node.peers.ask(talk.node.node_id, VoteRequest()).when_done(heard.append)
    assert not heard
    promised.complete(VoteResponse(error_code=7))
    assert heard == [VoteResponse(error_code=7)]
