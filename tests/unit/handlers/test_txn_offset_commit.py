"""Tests TxnOffsetCommit with frames: accepted commits, waiting ones, and markers."""

from collections.abc import Sequence
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.records import CONTROL, TRANSACTIONAL, Record, build
from barnabas.storage.producers import ProducerStates
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.offset_requests import (
    Position,
    codes,
    commit_request,
    committed,
    fetch_group,
    find_coordinator,
    transactional_request,
)
from tests.support.talk.requests import create_topic

P1 = ProducerIdAndEpoch(7, 3)
VERSIONS = range(6)
A0 = ("a", 0)


class Doorkeeper:
    """Replaces the coordinators of transactions."""

    def __init__(self) -> None:
        self.code = ErrorCode.NONE
        self.asked: list[tuple[str, ProducerIdAndEpoch, list[TopicPartition], bool]] = []
        self.holds = False
        self.held: list[Pending[dict[TopicPartition, ErrorCode]]] = []
        self.raises: ErrorCode | None = None

    def admit(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Pending[dict[TopicPartition, ErrorCode]]:
        self.asked.append((transactional_id, producer, list(partitions), adds))
        if self.raises is not None:
            raise ApiError(self.raises)
        answer: Pending[dict[TopicPartition, ErrorCode]] = Pending()
        if self.holds:
            self.held.append(answer)
        else:
            answer.complete(dict.fromkeys(partitions, self.code))
        return answer


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    talk = Dialogue(tmp_path, {"groups.offsets_partitions": 2})
    find_coordinator(talk)
    create_topic(talk, "a", 2)
    return talk


@pytest.fixture
def door(talk: Dialogue) -> Doorkeeper:
    return replace_door(talk)


def replace_door(talk: Dialogue) -> Doorkeeper:
    door = Doorkeeper()
    talk.node.transactions = door  # type: ignore[assignment]
    return door


def send(talk: Dialogue, version: int = 5, offset: int = 5, **more: Any) -> Exchange:
    return talk.send(
        transactional_request("g", {A0: Position(offset, 1, "n")}, P1, **more), version
    )


def end(talk: Dialogue, *, committed: bool) -> None:
    """Write a marker to every partition of the transaction, as its coordinator does."""
    shard = talk.node.coordinators.groups.shard_for("g")
    marker = Record(0, talk.now_ms, pack(">hh", 0, int(committed)), pack(">hi", 0, 0))
    attributes = TRANSACTIONAL | CONTROL
    batch = build(
        [marker],
        attributes=attributes,
        producer_id=P1.producer_id,
        producer_epoch=P1.producer_epoch,
    )
    shard.partition.leader.append_own(batch)
    shard.machine.replay_marker(P1, committed=committed)
    shard.machine.offsets.endings.ended(*P1)
    talk.settle()


def unstable(talk: Dialogue) -> bool:
    answer = talk.ask(OffsetFetchRequest(groups=[fetch_group("g", [A0])], require_stable=True), 8)
    (part,) = answer.groups[0].topics[0].partitions
    return bool(part.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT)


@pytest.mark.parametrize("version", VERSIONS)
def test_offsets_count_once_the_transaction_commits(
    talk: Dialogue, door: Doorkeeper, version: int
) -> None:
    talk.ask(commit_request("g", {A0: 1}), 9)
    assert codes(send(talk, version).answer) == {A0: 0}
    partition = TopicPartition(
        "__consumer_offsets", talk.node.coordinators.groups.partition_for("g")
    )
    assert door.asked == [("t", P1, [partition], version >= 5)]
    assert committed(talk, "g") == {A0: Position(1)}
    assert unstable(talk)
    end(talk, committed=True)
    assert not unstable(talk)
    assert committed(talk, "g") == {A0: Position(5, 1 if version >= 2 else -1, "n")}


@pytest.mark.parametrize("crash", [False, True])
def test_a_restart_within_a_transaction(talk: Dialogue, door: Doorkeeper, crash: bool) -> None:
    talk.ask(commit_request("g", {A0: 1}), 9)
    send(talk)
    talk.restart(crash=crash)
    assert committed(talk, "g") == {A0: Position(1)}
    assert unstable(talk)
    end(talk, committed=True)
    talk.restart(crash=crash)
    assert committed(talk, "g") == {A0: Position(5, 1, "n")}
    replace_door(talk)
    send(talk, offset=9)
    end(talk, committed=False)
    talk.restart(crash=crash)
    assert committed(talk, "g") == {A0: Position(5, 1, "n")}
    assert not unstable(talk)


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (ErrorCode.INVALID_TXN_STATE, 0, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.PRODUCER_FENCED, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 5, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 5, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.TRANSACTION_ABORTABLE, 3, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 4, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NETWORK_EXCEPTION, 2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.REQUEST_TIMED_OUT, 2, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, 2, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_a_broker_that_is_not_unfenced_writes_nothing(
    talk: Dialogue, door: Doorkeeper, said: ErrorCode, version: int, told: ErrorCode
) -> None:
    door.code = said
    assert codes(send(talk, version).answer) == {A0: told}
    door.raises = said
    assert codes(send(talk, version).answer) == {A0: told}
    assert not unstable(talk)


def test_nothing_is_written_before_the_answer_of_the_other_coordinator(
    talk: Dialogue, door: Doorkeeper
) -> None:
    door.holds = True
    exchange = send(talk)
    assert exchange.waiting
    assert not unstable(talk)
    (partition,) = door.asked[0][2]
    door.held[0].complete({partition: ErrorCode.NONE})
    talk.settle()
    assert codes(exchange.answer) == {A0: 0}
    assert unstable(talk)


def test_a_transaction_that_ends_while_its_producer_waits_is_not_begun_again(
    talk: Dialogue, door: Doorkeeper
) -> None:
    door.holds = True
    exchange = send(talk, 4)
    end(talk, committed=False)
    (partition,) = door.asked[0][2]
    door.held[0].complete({partition: ErrorCode.NONE})
    talk.settle()
    assert codes(exchange.answer) == {A0: ErrorCode.INVALID_TXN_STATE}
    assert not unstable(talk)


def test_a_producer_in_a_transaction_need_not_ask_again(
    talk: Dialogue, door: Doorkeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(talk)
    monkeypatch.setattr(
        ProducerStates, "open_transaction", lambda _, producer: 0 if producer == 7 else None
    )
    assert codes(send(talk, offset=6).answer) == {A0: 0}
    assert len(door.asked) == 1
    older = transactional_request("g", {A0: 4}, (7, 2))
    door.code = ErrorCode.INVALID_PRODUCER_EPOCH
    assert codes(talk.ask(older, 5)) == {A0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert len(door.asked) == 2


def test_what_is_refused_without_asking(talk: Dialogue, door: Doorkeeper) -> None:
    nameless = transactional_request("", {A0: 1}, P1)
    assert codes(talk.ask(nameless, 5)) == {A0: ErrorCode.INVALID_GROUP_ID}
    lost = transactional_request("g", {("a", 9): 1, ("none", 0): 1}, P1)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(talk.ask(lost, 5)) == {("a", 9): unknown, ("none", 0): unknown}
    assert door.asked == []


def test_members_of_a_group_that_is_not_there(talk: Dialogue, door: Doorkeeper) -> None:
    asked = transactional_request("g", {A0: 1}, P1, member="m", epoch=0)
    assert codes(talk.ask(asked, 3)) == {A0: ErrorCode.ILLEGAL_GENERATION}


def test_without_a_coordinator(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path)
    create_topic(talk, "a")
    assert codes(send(talk).answer) == {A0: ErrorCode.COORDINATOR_NOT_AVAILABLE}
