"""Tests the placement of replicas of new partitions."""

from collections import Counter
from random import Random

import pytest

from barnabas.controller import topic_decisions as topics
from barnabas.controller.placement import (
    circle_of,
    leave_out_inactive,
    live_brokers,
    racks_of,
    spread,
)
from barnabas.metadata.metadata_records import TopicCreated
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId
from tests.support.talk.controller_talk import ControllerTalk

THREE = [NodeId(1), NodeId(2), NodeId(3)]


def test_only_live_brokers_get_new_partitions(talk: ControllerTalk) -> None:
    talk.fence(2)
    talk.heartbeat(3, stop=True)
    assert live_brokers(talk.image) == [1]


def test_racks_alternate_in_the_circle() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "a"}
    assert circle_of([1, 2, 3, 4, 5], racks) == [1, 3, 2, 4, 5]


def test_racks_are_those_that_brokers_named() -> None:
    talk = ControllerTalk()
    talk.start(1, rack="a")
    talk.start(2)
    assert racks_of(talk.image) == {1: "a"}


def test_many_brokers_take_over_from_one() -> None:
    placed = spread(50, 2, range(5), {})
    heirs = Counter(replicas[1] for replicas in placed if replicas[0] == 0)
    assert len(heirs) == 4


def test_a_start_elsewhere_makes_another_leader() -> None:
    assert [spread(1, 3, THREE, {}, start)[0][0] for start in range(4)] == [1, 2, 3, 1]


def test_a_lone_broker_holds_everything() -> None:
    assert topics.place(2, 1, [NodeId(1)]) == [[1], [1]]


def test_more_replicas_than_live_brokers_are_refused_with_their_number() -> None:
    with pytest.raises(ApiError, match="there are 3") as refused:
        topics.place(1, 4, THREE)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_topic_grows_around_the_circle(talk: ControllerTalk) -> None:
    talk.create([2, 3], [3, 1])
    grown = topics.add_partitions(talk.image, "orders", 5, None, THREE)
    assert [replicas[0] for replicas in grown.replicas] == [1, 2, 3]
    assert all(len(replicas) == 2 for replicas in grown.replicas)


def test_a_topic_grows_with_the_replicas_it_has_outside_a_move(talk: ControllerTalk) -> None:
    talk.create([1, 2])
    talk.reassign([3, 1])
    grown = topics.add_partitions(talk.image, "orders", 2, None, THREE)
    assert len(grown.replicas[0]) == 2


def test_replicas_that_are_not_live_are_not_in_sync_from_the_start(talk: ControllerTalk) -> None:
    talk.fence(1)
    talk.create([1, 2, 3], [2, 3])
    fresh = talk.partition(0)
    assert (fresh.leader, fresh.isr, fresh.leader_epoch) == (2, [2, 3], 0)
    assert talk.partition(1).isr == [2, 3]


def test_a_partition_without_a_live_replica_is_not_made(talk: ControllerTalk) -> None:
    talk.fence(1)
    with pytest.raises(ApiError) as refused:
        talk.create([1])
    assert refused.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_new_partitions_of_a_topic_that_grows_are_counted_from_where_it_ends(
    talk: ControllerTalk,
) -> None:
    talk.create([2])
    talk.fence(1)
    topic_id = talk.image.topics["orders"].topic_id.hex()
    (record,) = leave_out_inactive(talk.image, topic_id, [[2, 3], [1, 2]], first=1)
    assert (record.partition, record.leader, record.isr) == (2, 2, [2])


def test_a_topic_is_made_where_it_is_placed(talk: ControllerTalk) -> None:
    record = topics.create_topic(talk.image, "t", [[1, 2]], {}, talk.defaults, Random(0))
    assert isinstance(record, TopicCreated)
    assert record.replicas == [[1, 2]]
