"""Tests the topics of coordinators: their creation, their replication, and errors."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.metadata_records import TopicDeleted
from barnabas.model.errors import ApiError, ErrorCode, PeerLostError
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.storage.log import Log
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.offset_requests import Position, commit_request, committed
from tests.support.talk.requests import create_topic

VOTERS = ["1@127.0.0.1:7001", "2@127.0.0.1:7002", "3@127.0.0.1:7003"]


class Controller:
    """Replaces the creation of topics."""

    def __init__(self, talk: Dialogue, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, int, str | None]] = []
        self.answer: Pending[None] = Pending()
        self.refusal: ApiError | None = None
        monkeypatch.setattr(talk.node, "ensure_topic", self.ensure)

    def ensure(
        self, name: str, _: int, config: dict[str, str], __: int, *, replication_factor: int
    ) -> Pending[None]:
        if self.refusal is not None:
            raise self.refusal
        self.made.append((name, replication_factor, config.get("min.insync.replicas")))
        return self.answer


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    return Dialogue(tmp_path)


@pytest.fixture
def controller(talk: Dialogue, monkeypatch: pytest.MonkeyPatch) -> Controller:
    return Controller(talk, monkeypatch)


def live(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    nodes: Sequence[NodeId] = [NodeId(number) for number in range(1, count + 1)]
    monkeypatch.setattr(Node, "nodes", property(lambda _: nodes))


def send(talk: Dialogue) -> Exchange:
    return talk.send(FindCoordinatorRequest(coordinator_keys=["g"]))


def code(exchange: Exchange) -> int:
    found: int = exchange.answer.coordinators[0].error_code
    return found


@pytest.mark.parametrize(
    ("brokers", "copies", "min_isr"), [(1, 1, None), (2, 2, None), (3, 3, "2"), (5, 3, "2")]
)
def test_as_many_replicas_as_brokers(
    talk: Dialogue,
    controller: Controller,
    monkeypatch: pytest.MonkeyPatch,
    brokers: int,
    copies: int,
    min_isr: str | None,
) -> None:
    live(monkeypatch, brokers)
    send(talk)
    assert controller.made == [("__consumer_offsets", copies, min_isr)]


def test_requests_meanwhile_wait_for_the_same_response(
    talk: Dialogue, controller: Controller
) -> None:
    exchanges = [send(talk), send(talk)]
    assert [exchange.waiting for exchange in exchanges] == [True, True]
    assert len(controller.made) == 1
    controller.answer.complete(None)
    # The topic was created, but this broker does not know it yet.
    assert [code(e) for e in exchanges] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2


@pytest.mark.parametrize(
    "failure", [PeerLostError("gone"), ApiError(ErrorCode.NOT_CONTROLLER), RuntimeError("ours")]
)
def test_where_it_cannot_be_made_clients_ask_again(
    talk: Dialogue, controller: Controller, failure: Exception
) -> None:
    exchange = send(talk)
    controller.answer.fail(failure)
    assert code(exchange) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    controller.answer = Pending()
    assert send(talk).waiting
    assert len(controller.made) == 2


def test_where_it_is_refused_clients_ask_again(talk: Dialogue, controller: Controller) -> None:
    controller.refusal = ApiError(ErrorCode.LEADER_NOT_AVAILABLE)
    assert code(send(talk)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    controller.refusal = None
    assert send(talk).waiting


@pytest.mark.parametrize(("brokers", "made"), [(1, 0), (2, 1), (3, 1)])
def test_the_first_broker_that_comes_up_waits_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brokers: int, made: int
) -> None:
    talk = Dialogue(tmp_path / "voter", cluster_of_three())
    controller = Controller(talk, monkeypatch)
    live(monkeypatch, brokers)
    exchange = send(talk)
    assert len(controller.made) == made
    if not made:
        assert code(exchange) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def cluster_of_three() -> dict[str, Any]:
    return {"broker.id": 1, "cluster.voters": VOTERS, "cluster.port": 7001}


def broken(error: Exception) -> Callable[..., Any]:
    def read(*_: object, **__: object) -> None:
        raise error

    return read


def test_state_that_cannot_be_read(talk: Dialogue, monkeypatch: pytest.MonkeyPatch) -> None:
    create_topic(talk, "a")
    talk.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    assert talk.ask(commit_request("g", {("a", 0): 1}), 9).topics[0].partitions[0].error_code == 0
    talk.restart()
    with monkeypatch.context() as patch:
        patch.setattr(Log, "read", broken(OSError("no")))
        answer = talk.ask(commit_request("g", {("a", 0): 2}), 9)
        refused = answer.topics[0].partitions[0].error_code
        assert refused == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "cannot read a coordinator's state" in [notice.event for notice in talk.notices]
    assert talk.ask(commit_request("g", {("a", 0): 2}), 9).topics[0].partitions[0].error_code == 0


def test_offsets_of_topics_that_are_deleted_elsewhere_go_as_well(talk: Dialogue) -> None:
    topic_id = create_topic(talk, "a")
    talk.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    talk.ask(commit_request("g", {("a", 0): 1}), 9)
    assert committed(talk, "g") == {("a", 0): Position(1)}
    # Without a replica here, there is none to drop: the record alone shows the deletion.
    deleted = TopicDeleted(topic_id=topic_id.hex())
    talk.node.image.replay(deleted)
    talk.node.coordinators.metadata_changed([deleted])
    talk.settle()
    assert committed(talk, "g") == {}
