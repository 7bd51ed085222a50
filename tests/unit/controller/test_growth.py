"""Tests that topics created while brokers were down reach their replication factor."""

from collections import Counter

import pytest

from barnabas.controller.growth import factor_for
from barnabas.controller.topic_decisions import add_partitions
from barnabas.metadata.features import WANTED_FACTOR_LEVEL
from barnabas.metadata.metadata_records import FeatureLevelChanged
from barnabas.model.ids import NodeId
from tests.support.talk.controller_talk import TOPIC_NAME, ControllerTalk


@pytest.fixture
def talk(talk: ControllerTalk) -> ControllerTalk:
    talk.commit([FeatureLevelChanged(level=WANTED_FACTOR_LEVEL)])
    talk.fence(3)
    return talk


def wanted(talk: ControllerTalk) -> int:
    return talk.image.topics[TOPIC_NAME].replication_factor


def test_what_a_new_topic_gets_and_what_it_is_to_have(talk: ControllerTalk) -> None:
    assert factor_for(talk.image, 3) == (2, 3)
    assert factor_for(talk.image, 2) == (2, 0)
    assert factor_for(talk.image, 1) == (1, 0)


def test_nothing_is_recorded_that_the_old_release_cannot_read() -> None:
    talk = ControllerTalk()
    talk.start(1)
    assert factor_for(talk.image, 3) == (1, 0)


def test_nothing_happens_while_no_broker_is_there_for_it(talk: ControllerTalk) -> None:
    talk.create_with_missing_replicas([1, 2], wanted=3)
    assert talk.grow() == 0
    assert wanted(talk) == 3


def test_a_broker_that_is_back_gets_the_missing_replica(talk: ControllerTalk) -> None:
    talk.create_with_missing_replicas([1, 2], [2, 1], wanted=3)
    talk.heartbeat(3)
    assert talk.grow() == 2
    assert [talk.partition(n).adding for n in (0, 1)] == [[3], [3]]
    assert talk.grow() == 0, "a topic with all its replicas does not change"
    for number in (0, 1):
        talk.alter([1, 2, 3], number=number)
        grown = talk.partition(number)
        assert sorted(grown.replicas) == sorted(grown.isr) == [1, 2, 3]
        assert not grown.adding


def test_the_factor_is_forgotten_once_every_partition_has_it(talk: ControllerTalk) -> None:
    talk.create_with_missing_replicas([1, 2], [2, 1], wanted=3)
    talk.heartbeat(3)
    talk.grow()
    talk.alter([1, 2, 3])
    assert (talk.grow(), wanted(talk)) == (0, 3), "one partition is still growing"
    talk.alter([1, 2, 3], number=1)
    assert (talk.grow(), wanted(talk)) == (1, 0)
    assert talk.grow() == 0


def test_a_topic_that_got_what_it_asked_for_is_left_alone(talk: ControllerTalk) -> None:
    talk.create([1, 2])
    talk.heartbeat(3)
    assert talk.grow() == 0


def test_only_so_many_partitions_grow_at_a_time(talk: ControllerTalk) -> None:
    talk.create_with_missing_replicas(*[[1, 2]] * 5, wanted=3)
    talk.heartbeat(3)
    assert talk.grow(at_a_time=2) == 2
    assert talk.grow(at_a_time=2) == 0
    talk.alter([1, 2, 3])
    assert talk.grow(at_a_time=2) == 1


def test_a_broker_that_died_again_does_not_delay_others(talk: ControllerTalk) -> None:
    talk.start(4)
    talk.fence(4)
    talk.create_with_missing_replicas([1, 2], [1, 2], wanted=3)
    talk.heartbeat(3)
    assert talk.grow(at_a_time=1) == 1
    talk.fence(3)
    talk.heartbeat(4)
    assert talk.grow(at_a_time=1) == 1
    assert talk.partition(1).adding == [4]


def test_new_replicas_and_leaders_are_spread_evenly(talk: ControllerTalk) -> None:
    talk.create_with_missing_replicas(*[[1, 2], [2, 1]] * 6, wanted=3)
    talk.heartbeat(3)
    for node_id in (4, 5):
        talk.start(node_id)
    talk.grow()
    partitions = [talk.partition(number) for number in range(12)]
    assert Counter(node for each in partitions for node in each.adding) == {3: 4, 4: 4, 5: 4}
    leads = Counter(each.replicas[0] for each in partitions)
    assert max(leads.values()) - min(leads.values()) <= 1
    assert {each.leader for each in partitions} == {1, 2}, "until the new ones are in sync"


def test_a_new_replica_goes_to_a_rack_that_has_none() -> None:
    talk = ControllerTalk(min_insync_replicas="2")
    for node_id, rack in ((1, "a"), (2, "a"), (3, "a"), (4, "b")):
        talk.start(node_id, rack)
    talk.create_with_missing_replicas(*[[1, 2]] * 3, wanted=3)
    talk.grow()
    assert [talk.partition(number).adding for number in range(3)] == [[4]] * 3


def test_a_partition_that_an_operator_moves_is_left_alone(talk: ControllerTalk) -> None:
    talk.create_with_missing_replicas([1, 2], wanted=3)
    talk.start(4)
    talk.reassign([1, 4])
    talk.heartbeat(3)
    assert talk.grow() == 0
    talk.alter([1, 2, 4])
    assert talk.partition().replicas == [1, 4]
    assert wanted(talk) == 3, "a reassignment does not define the replication factor"
    assert talk.grow() == 1


def test_a_partition_without_a_leader_is_not_fetched(talk: ControllerTalk) -> None:
    talk.create_with_missing_replicas([1], wanted=2)
    talk.fence(1)
    assert talk.grow() == 0


def test_an_operator_may_choose_fewer_replicas(talk: ControllerTalk) -> None:
    talk.create_with_missing_replicas([1, 2], [1, 2], wanted=3)
    talk.reassign([1])
    assert wanted(talk) == 0
    talk.heartbeat(3)
    assert talk.grow() == 0


def test_an_operator_can_cancel_the_growth(talk: ControllerTalk) -> None:
    talk.create_with_missing_replicas([1, 2], wanted=3)
    talk.heartbeat(3)
    talk.grow()
    talk.reassign(None)
    assert (talk.partition().replicas, wanted(talk)) == ([1, 2], 0)
    assert talk.grow() == 0


def test_an_operator_that_adds_missing_replicas_does_not_end_the_growth_of_others(
    talk: ControllerTalk,
) -> None:
    talk.create_with_missing_replicas([1, 2], [1, 2], wanted=3)
    talk.heartbeat(3)
    talk.reassign([1, 2, 3])
    assert wanted(talk) == 3
    assert talk.grow() == 1


def test_partitions_that_are_added_get_the_factor_as_far_as_brokers_are_there(
    talk: ControllerTalk,
) -> None:
    talk.create_with_missing_replicas([1], wanted=3)
    live = [NodeId(1), NodeId(2)]
    added = add_partitions(talk.image, TOPIC_NAME, 2, None, live)
    assert [sorted(each) for each in added.replicas] == [[1, 2]]
