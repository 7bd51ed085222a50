"""Tests which brokers a node sends requests to, at which address, and the responses."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.effects import Address, Ask, Effect
from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import BrokerRegistered
from barnabas.model.callers import ITSELF
from barnabas.model.errors import PeerLostError, WireError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.node.cluster.peer_requests import ForwardedRequest, Peers, voter_addresses
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from barnabas.protocol.messages.vote import VoteRequest, VoteResponse

HIGHEST = 2
ME, REGISTERED, VOTER, STRANGER = map(NodeId, (1, 2, 3, 4))


class Cast:
    """A node's peers, its outbox and the responses."""

    def __init__(self) -> None:
        self.outbox: list[Effect] = []
        self.image = Image()
        self.image.replay(
            BrokerRegistered(
                node_id=REGISTERED,
                broker_epoch=1,
                incarnation="",
                host="for-clients",
                port=9092,
                peer_host="two",
                peer_port=9192,
                rack=None,
            )
        )
        voters = ("1@one:1", "2@two-before-it-moved:2", "3@[::1]:3")
        self.peers = Peers(ME, voters, lambda: self.image, self.outbox)
        self.heard: list[Any] = []
        self.failures: list[Exception] = []

    def listen(self, answer: Pending[Any]) -> None:
        answer.when_done(self.heard.append, self.failures.append)

    @property
    def asked(self) -> Ask:
        (effect,) = self.outbox
        assert isinstance(effect, Ask)
        return effect


@pytest.fixture
def cast() -> Cast:
    return Cast()


def test_voters_are_found_by_their_ids() -> None:
    assert voter_addresses(["1@a:1", "20@[::1]:9192"]) == {
        1: Address("a", 1),
        20: Address("::1", 9192),
    }


@pytest.mark.parametrize(
    ("node_id", "address"),
    [(REGISTERED, Address("two", 9192)), (VOTER, Address("::1", 3)), (STRANGER, None)],
)
def test_where_a_broker_is(cast: Cast, node_id: NodeId, address: Address | None) -> None:
    assert cast.peers.address_of(node_id) == address


def test_a_question_and_its_answer(cast: Cast) -> None:
    request = VoteRequest(cluster_id="c", voter_id=2)
    cast.listen(cast.peers.ask(REGISTERED, request, lane="raft", timeout_ms=70))
    asked = cast.asked
    assert (asked.address, asked.lane) == (Address("two", 9192), "raft")
    assert (asked.api_key, asked.api_version, asked.timeout_ms) == (ApiKey.VOTE, HIGHEST, 70)
    assert decode_exact(VoteRequest, HIGHEST, asked.body) == request
    assert not cast.heard
    response = VoteResponse(error_code=3)
    asked.done(memoryview(encoder(VoteResponse, HIGHEST)(response)))
    assert cast.heard == [response]


def test_a_broker_of_another_release_is_asked_in_its_own_version(cast: Cast) -> None:
    request = VoteRequest(cluster_id="c", voter_id=2)
    cast.listen(cast.peers.ask(REGISTERED, request, timeout_ms=70))
    assert cast.asked.for_versions is not None
    older = cast.asked.for_versions(0, 1)
    assert older is not None
    assert (older.address, older.api_version, older.timeout_ms) == (cast.asked.address, 1, 70)
    assert decode_exact(VoteRequest, 1, older.body).voter_id == 2
    response = VoteResponse(error_code=3)
    older.done(memoryview(encoder(VoteResponse, 1)(response)))
    assert cast.heard == [response]


@pytest.mark.parametrize(
    ("served", "says"), [((0, -1), "no version of Vote"), ((7, 9), "versions 7 to 9 of Vote")]
)
def test_a_broker_with_which_there_is_no_common_version(
    cast: Cast, served: tuple[int, int], says: str
) -> None:
    cast.listen(cast.peers.ask(REGISTERED, VoteRequest()))
    assert cast.asked.for_versions is not None
    assert cast.asked.for_versions(*served) is None
    (failure,) = cast.failures
    assert isinstance(failure, PeerLostError)
    assert f"two:9192 cannot be asked: it serves {says}; this release knows 0 to 2" in str(failure)


@pytest.mark.parametrize("body", [None, memoryview(b""), memoryview(b"\x01\x02\x03")])
def test_no_answer_or_none_that_makes_sense(cast: Cast, body: memoryview | None) -> None:
    cast.listen(cast.peers.ask(VOTER, VoteRequest()))
    cast.asked.done(body)
    assert not cast.heard
    assert [type(failure) for failure in cast.failures] == [PeerLostError]


def test_a_broker_without_a_known_address(cast: Cast) -> None:
    cast.listen(cast.peers.ask(STRANGER, VoteRequest()))
    assert not cast.outbox
    assert [str(failure) for failure in cast.failures] == ["broker 4 has no known address"]


def test_the_quorum_gets_the_response_or_none(cast: Cast) -> None:
    there = Address("three", 3)
    cast.peers.ask_voter(there, VoteRequest(), 8, cast.heard.append)
    cast.asked.done(memoryview(encoder(VoteResponse, HIGHEST)(VoteResponse())))
    cast.outbox.clear()
    cast.peers.ask_voter(there, VoteRequest(), 8, cast.heard.append)
    cast.asked.done(None)
    assert cast.heard == [VoteResponse(), None]


def test_votes_do_not_wait_for_fetches(cast: Cast) -> None:
    there = Address("three", 3)
    for request in (VoteRequest(), FetchRequest(), FetchSnapshotRequest()):
        cast.peers.ask_voter(there, request, 8, cast.heard.append)
    lanes = [effect.lane for effect in cast.outbox if isinstance(effect, Ask)]
    assert lanes == ["raft", "raft-fetch", "raft-fetch"]


HEADER = RequestHeader(ApiKey.CREATE_TOPICS, 7, 5, None, 0)


def forwarded(body: bytes) -> ForwardedRequest:
    return ForwardedRequest(HEADER, body, VoteRequest(), ITSELF)


def test_what_is_forwarded_comes_back_as_it_is(cast: Cast) -> None:
    cast.listen(cast.peers.forward(VOTER, forwarded(b"question"), 9))
    asked = cast.asked
    assert (asked.address, asked.lane) == (Address("::1", 3), "forward-19")
    assert (asked.api_key, asked.api_version, asked.body) == (19, 7, b"question")
    shown = bytearray(b"answer")
    asked.done(memoryview(shown))
    shown[:] = b"spoilt"  # the buffer is used again
    assert cast.heard == [b"answer"]


@pytest.mark.parametrize("node_id", [ME, STRANGER])
def test_nothing_is_forwarded_to_an_unknown_broker_or_oneself(cast: Cast, node_id: NodeId) -> None:
    cast.listen(cast.peers.forward(node_id, forwarded(b""), 9))
    assert not cast.outbox
    assert [type(failure) for failure in cast.failures] == [PeerLostError]


def refuse(_: Message) -> None:
    raise WireError("Vote is not served")


@pytest.mark.parametrize("local", [None, refuse])
def test_a_node_that_cannot_answer_itself(
    cast: Cast, local: Callable[[Message], Any] | None
) -> None:
    if local is not None:
        cast.peers.local = local
    cast.listen(cast.peers.ask(ME, VoteRequest()))
    assert not cast.outbox
    assert [type(failure) for failure in cast.failures] == [PeerLostError]


def test_a_question_leaves_no_cycles_behind(cast: Cast) -> None:
    """They would wait for the garbage collector, which stops the event loop."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            cast.listen(cast.peers.ask(REGISTERED, VoteRequest()))
            cast.asked.done(None)
            cast.outbox.clear()
        cast.failures.clear()
        assert gc.collect() == 0
    finally:
        gc.enable()
