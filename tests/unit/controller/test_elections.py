"""Tests which replica leads when brokers come and go."""

import pytest

from barnabas.controller import elections
from barnabas.controller.elections import PREFERRED, UNCLEAN
from barnabas.metadata.metadata_records import BrokerChanged
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest
from tests.support.talk.controller_talk import ControllerTalk


def test_the_next_replica_in_sync_takes_over(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.fence(1)
    after = talk.partition()
    assert (after.leader, after.isr, after.eligible) == (2, [2, 3], [])
    assert (after.leader_epoch, after.partition_epoch) == (1, 1)


def test_a_lost_follower_leaves_the_isr_and_the_leader_stays(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.fence(3)
    after = talk.partition()
    assert (after.leader, after.isr) == (1, [1, 2])
    assert (after.leader_epoch, after.partition_epoch) == (0, 1)


def test_a_replica_out_of_sync_is_passed_over(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.alter([1, 3])
    talk.fence(1)
    assert talk.partition().leader == 3


def test_a_replica_that_leaves_a_too_small_isr_is_eligible(talk: ControllerTalk) -> None:
    """KIP-966."""
    talk.create([1, 2, 3])
    talk.fence(3)
    talk.fence(2)
    after = talk.partition()
    assert (after.isr, after.eligible) == ([1], [2])


def test_the_last_in_sync_stays_without_leading(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    for node_id in (3, 2, 1):
        talk.fence(node_id)
    after = talk.partition()
    assert (after.leader, after.isr, after.eligible) == (-1, [1], [2])
    assert after.leader_epoch == 1


def test_an_eligible_replica_leads_when_it_is_back_first(talk: ControllerTalk) -> None:
    """KIP-966: it has all records, since none was acknowledged after it left."""
    talk.create([1, 2, 3])
    for node_id in (3, 2, 1):
        talk.fence(node_id)
    talk.heartbeat(3)
    assert talk.partition().leader == -1, "3 left while two were in sync: it may lack records"
    talk.heartbeat(2)
    after = talk.partition()
    assert (after.leader, after.isr, after.eligible) == (2, [2], [1])
    assert not after.unclean


def test_no_replica_is_eligible_once_enough_are_in_sync(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.alter([1])
    assert talk.partition().eligible == [2, 3]
    talk.alter([1, 3])
    assert talk.partition().eligible == []


def test_without_a_minimum_the_last_in_sync_is_the_only_one(talk: ControllerTalk) -> None:
    talk.create([1, 2], min_insync_replicas="1")
    talk.fence(2)
    talk.fence(1)
    talk.heartbeat(2)
    after = talk.partition()
    assert (after.leader, after.isr, after.eligible) == (-1, [1], [])


def test_a_lower_minimum_ends_eligibility_in_the_same_batch(talk: ControllerTalk) -> None:
    """From then on the leader acknowledges alone, and the other replica lacks records."""
    talk.create([1, 2])
    talk.fence(2)
    assert talk.partition().eligible == [2]
    talk.configure(min_insync_replicas="1")
    assert talk.partition().eligible == []


def test_unclean_election_happens_only_where_the_topic_allows_it(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3], min_insync_replicas="1")
    talk.alter([1])
    talk.fence(1)
    assert talk.partition().leader == -1
    talk.configure(unclean_leader_election_enable="true")
    after = talk.partition()
    assert (after.leader, after.isr, after.eligible, after.unclean) == (2, [2], [], True)


def test_the_mark_of_an_unclean_election_goes_when_the_leader_has_recovered(
    talk: ControllerTalk,
) -> None:
    talk.create([1, 2, 3], unclean_leader_election_enable="true", min_insync_replicas="1")
    talk.alter([1])
    talk.fence(1)
    assert talk.alter([2, 3], recovery_state=1).error_code == ErrorCode.INVALID_REQUEST
    assert talk.alter([2], recovery_state=0).error_code == ErrorCode.NONE
    assert not talk.partition().unclean


def test_a_restart_begins_a_new_leader_epoch(talk: ControllerTalk) -> None:
    talk.create([1])
    talk.restart(1)
    assert (talk.partition().leader, talk.partition().leader_epoch) == (-1, 1)
    talk.heartbeat(1)
    assert (talk.partition().leader, talk.partition().leader_epoch) == (1, 2)


def test_preferred_leaders_get_their_partitions_back(talk: ControllerTalk) -> None:
    talk.create([1, 2], [2, 1], [1, 3])
    talk.fence(1)
    talk.heartbeat(1)
    talk.alter([1, 2], number=0)
    records = elections.prefer_first_replicas(talk.image, talk.defaults)
    assert [record.partition for record in records] == [0], "1 is not in sync in partition 2"
    talk.commit(records)
    after = talk.partition(0)
    assert (after.leader, after.leader_epoch, after.isr) == (1, 2, [1, 2])


def test_preferred_leaders_are_elected_a_few_at_a_time(talk: ControllerTalk) -> None:
    talk.create(*[[1, 2]] * 5)
    talk.fence(1)
    talk.heartbeat(1)
    for number in range(5):
        talk.alter([1, 2], number=number)
    assert len(elections.prefer_first_replicas(talk.image, talk.defaults, limit=3)) == 3


def test_elect_leaders_says_of_each_partition_what_came_of_it(talk: ControllerTalk) -> None:
    talk.create([1, 2], [2, 1], [1, 3])
    talk.fence(1)
    talk.heartbeat(1)
    talk.alter([1, 2], number=0)
    results = talk.elect(PREFERRED, 0, 1, 2, 3)
    assert {number: result.error_code for number, result in results.items()} == {
        0: ErrorCode.NONE,
        1: ErrorCode.ELECTION_NOT_NEEDED,
        2: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        3: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert talk.partition(0).leader == 1


def test_elect_leaders_everywhere_leaves_out_what_needs_no_election(talk: ControllerTalk) -> None:
    talk.create([1, 2], [2, 1])
    talk.fence(1)
    assert set(talk.elect(PREFERRED)) == {0}


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_elect_leaders_everywhere_names_every_topic(talk: ControllerTalk, kind: int) -> None:
    talk.create([1, 2])
    talk.create([2, 1], name="payments")
    request = ElectLeadersRequest(election_type=kind, topic_partitions=None)
    answer = elections.elect_leaders(talk.image, request, talk.defaults).response
    found = {each.topic: each.partition_result for each in answer.replica_election_results}
    assert found == {"orders": [], "payments": []}


def test_an_operator_may_elect_uncleanly_if_there_is_no_leader(talk: ControllerTalk) -> None:
    talk.create([1, 2], [1], [2])
    talk.alter([1])
    talk.configure(min_insync_replicas="1")
    talk.fence(1)
    results = talk.elect(UNCLEAN, 0, 1, 2)
    assert {number: result.error_code for number, result in results.items()} == {
        0: ErrorCode.NONE,
        1: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        2: ErrorCode.ELECTION_NOT_NEEDED,
    }
    after = talk.partition(0)
    assert (after.leader, after.isr, after.unclean) == (2, [2], True)


def test_an_operators_unclean_election_is_clean_where_it_can_be(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    for node_id in (3, 2, 1):
        talk.fence(node_id)
    talk.heartbeat(3)
    epoch = talk.broker(2).broker_epoch
    talk.commit([BrokerChanged(node_id=2, broker_epoch=epoch, fenced=False, stopping=False)])
    talk.elect(UNCLEAN, 0)
    after = talk.partition()
    assert (after.leader, after.unclean) == (2, False), "2 is eligible, 3 is not"


def test_there_are_two_kinds_of_elections(talk: ControllerTalk) -> None:
    request = ElectLeadersRequest(election_type=7, topic_partitions=None)
    with pytest.raises(ApiError) as refused:
        elections.elect_leaders(talk.image, request, talk.defaults)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_unclean_elections_prefer_replicas_that_were_there_before_a_move(
    talk: ControllerTalk,
) -> None:
    talk.create([1, 2], min_insync_replicas="1", unclean_leader_election_enable="true")
    talk.alter([1])
    talk.reassign([3, 1, 2])
    talk.fence(1)
    assert talk.partition().leader == 2
