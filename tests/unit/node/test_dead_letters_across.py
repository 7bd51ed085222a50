"""Tests dead letters where source, dead-letter topic and state are on different brokers."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.image import SHARE_STATE_TOPIC
from barnabas.model.dead_letter_rules import GROUP_ENABLE, TOPIC_NAME
from barnabas.model.pending import Pending
from barnabas.model.share_state import DeliveryState, SharePartitionKey
from barnabas.protocol.api_keys import ApiKey
from barnabas.share.dead_letter_records import read_origin
from tests.support.talk.requests import batch, fetch, produce, read
from tests.support.talk.together import Together
from tests.unit.handlers.test_share_fetch import REJECT, Member

GROUP = "g"
PRODUCES = ApiKey.PRODUCE


class Cluster:
    """Broker 1 leads the source, 2 the dead-letter topic, and 3 coordinates the group's state."""

    def __init__(self, folder: Path) -> None:
        self.brokers = Together(folder)
        self.brokers.create("orders", [1])
        self.brokers.create("dlq.g", [2], {GROUP_ENABLE: "true"})
        self.brokers.create(SHARE_STATE_TOPIC, [3], {"cleanup.policy": "delete"})
        ids = count(1_000)
        for number in (1, 2, 3):
            node: Any = self.brokers[number].node
            node.image.group_configs[GROUP] = {TOPIC_NAME: "dlq.g"}
            node.next_producer_id = lambda _: Pending.of(next(ids))
        self.topic_id = self.brokers[1].node.image.topics["orders"].topic_id
        self.brokers[1].node.share_states.initialize(GROUP, self.topic_id, {0: 0}, 0)
        self.settle()
        produce(self.brokers[1], "orders", batch(10))

    def settle(self) -> None:
        for _ in range(5):
            for number in (1, 2, 3):
                self.brokers[number].settle()

    def take(self, broker: int) -> Member:
        """Have a member acquire all there is."""
        ann = Member(self.brokers[broker], self.topic_id)
        ann.name = f"ann{broker}"
        ann.send()
        self.settle()
        ann.send()
        self.settle()
        return ann

    def reject(self, ann: Member, first: int, last: int) -> None:
        ann.acknowledge((first, last, [REJECT]))
        self.settle()

    def origins(self, broker: int = 2) -> list[int]:
        found = read(fetch(self.brokers[broker], "dlq.g").records)
        origins = [read_origin(each.headers) for each in found]
        return [each.offset for each in origins if each is not None]

    def start_offset(self) -> int:
        key = SharePartitionKey(GROUP, self.topic_id, 0)
        shares = self.brokers[3].node.coordinators.shares
        state = shares.shard_for(key.coordinator_key).machine.state_of(key)
        assert state is not None
        assert all(each.state is not DeliveryState.ARCHIVING for each in state.batches)
        return state.start_offset


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_dead_letters_go_to_the_leader_of_their_topic(cluster: Cluster) -> None:
    ann = cluster.take(1)
    cluster.reject(ann, 0, 4)
    assert cluster.origins() == [0, 1, 2, 3, 4]
    assert cluster.start_offset() == 5
    assert [each[:2] for each in cluster.brokers.asked if each[2] == PRODUCES] == [(1, 2)]
    cluster.reject(ann, 5, 9)
    assert cluster.origins() == list(range(10))


def test_a_batch_whose_answer_is_lost_is_sent_again(cluster: Cluster) -> None:
    ann = cluster.take(1)
    cluster.brokers.hold(PRODUCES, "answers")
    cluster.reject(ann, 0, 4)
    assert cluster.origins() == [0, 1, 2, 3, 4]
    cluster.brokers.held.clear()
    cluster.brokers.release()
    cluster.brokers.pass_time(6_500)
    cluster.settle()
    assert cluster.origins() == [0, 1, 2, 3, 4]
    assert cluster.start_offset() == 5


def test_the_next_leader_of_the_source_sends_the_same_batch(cluster: Cluster) -> None:
    ann = cluster.take(1)
    cluster.brokers.hold(PRODUCES, "answers")
    cluster.reject(ann, 0, 4)
    cluster.brokers.release()
    cluster.brokers.move("orders", 0, 3)
    bob = cluster.take(3)
    assert cluster.origins() == [0, 1, 2, 3, 4]
    cluster.reject(bob, 5, 9)
    assert cluster.origins() == list(range(10))
    assert cluster.start_offset() == 10


def test_a_batch_that_arrives_late_is_refused_or_recognized(cluster: Cluster) -> None:
    ann = cluster.take(1)
    cluster.brokers.hold(PRODUCES, "requests")
    cluster.reject(ann, 0, 4)
    (late,) = cluster.brokers.held
    cluster.brokers.held.clear()
    cluster.brokers.release()
    cluster.brokers.move("orders", 0, 3)
    bob = cluster.take(3)
    cluster.reject(bob, 5, 9)
    late()
    cluster.settle()
    assert cluster.origins() == list(range(10))


def test_the_dead_letter_topic_gets_another_leader(cluster: Cluster) -> None:
    ann = cluster.take(1)
    cluster.brokers.hold(PRODUCES, "answers")
    cluster.reject(ann, 0, 4)
    cluster.brokers.held.clear()
    cluster.brokers.release()
    cluster.brokers.move("dlq.g", 0, 1)
    cluster.brokers.pass_time(6_500)
    cluster.settle()
    assert cluster.origins(1) == [0, 1, 2, 3, 4]
    assert cluster.start_offset() == 5


def test_a_dead_letter_topic_without_a_leader(cluster: Cluster) -> None:
    cluster.brokers.remove_leader("dlq.g", 0)
    ann = cluster.take(1)
    cluster.reject(ann, 0, 4)
    cluster.brokers.pass_time(1_100)
    assert "has no leader" in str(cluster.brokers[1].notices)
    cluster.brokers.lead("dlq.g", 0, by=2)
    cluster.brokers.pass_time(2_100)
    cluster.settle()
    assert cluster.origins() == [0, 1, 2, 3, 4]
