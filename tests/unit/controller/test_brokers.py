"""Tests broker registration: which process is a broker, and which records it may have lost."""

import pytest

from barnabas.controller import brokers
from barnabas.metadata.features import FIRST_LEVEL, SECURITY_LEVEL
from barnabas.metadata.image import BrokerImage
from barnabas.metadata.metadata_records import BrokerChanged, BrokerRegistered, BrokerStarted
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.broker_registration import Listener
from tests.support.talk.controller_talk import SESSION_MS, ControllerTalk

ANOTHER_DISK = b"another disk ..."


def test_a_broker_registers_fenced_with_its_listeners() -> None:
    talk = ControllerTalk()
    request = talk.registration(4, rack="r1", incarnation=b"i" * 16, directory=b"d" * 16)
    assert talk.register(request) == 0
    assert talk.broker(4) == BrokerImage(
        4, 0, (b"i" * 16).hex(), "client", 9004, "peer", 9504, "r1", directory=(b"d" * 16).hex()
    )
    assert not talk.broker(4).is_active


def test_every_process_gets_an_epoch_of_its_own() -> None:
    talk = ControllerTalk()
    assert [talk.register(talk.registration(n)) for n in (1, 2)] == [0, 1]
    talk.unregister(2)
    assert talk.register(talk.registration(1)) == 2
    assert talk.register(talk.registration(2)) == 3


def test_asking_again_is_the_same_registration(talk: ControllerTalk) -> None:
    request = talk.registration(4)
    epoch, end = talk.register(request), talk.end_offset + 1
    talk.heartbeat(4)
    assert talk.register(request) == epoch
    assert talk.end_offset == end
    assert talk.broker(4).is_active


def test_two_live_processes_cannot_be_one_broker(talk: ControllerTalk) -> None:
    usurper = talk.registration(1, directory=ANOTHER_DISK)
    with pytest.raises(ApiError) as refused:
        talk.register(usurper)
    assert refused.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    talk.now_ms += SESSION_MS
    assert talk.register(usurper) == 3


def test_a_broker_with_the_same_data_folder_need_not_wait(talk: ControllerTalk) -> None:
    """One process locks the folder, so the other has ended."""
    talk.restart(1)
    assert talk.broker(1).broker_epoch == 3


def test_a_broker_that_announced_its_stop_may_be_replaced_at_once(talk: ControllerTalk) -> None:
    talk.heartbeat(1, stop=True)
    talk.register(talk.registration(1, directory=ANOTHER_DISK))
    assert not talk.broker(1).stopping


def test_a_broker_of_another_cluster_is_refused(talk: ControllerTalk) -> None:
    request = talk.registration(4)
    request.cluster_id = "another"
    with pytest.raises(ApiError) as refused:
        talk.register(request)
    assert refused.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_broker_without_a_listener_for_peers_is_refused(talk: ControllerTalk) -> None:
    request = talk.registration(4)
    del request.listeners[1]
    with pytest.raises(ApiError, match="PEER") as refused:
        talk.register(request)
    assert refused.value.code is ErrorCode.INVALID_REGISTRATION


def test_an_unnoticed_restart_is_a_loss_and_a_return(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.restart(1)
    after = talk.partition()
    assert (after.leader, after.isr) == (2, [2, 3])
    assert talk.broker(1).fenced


def down_to_one(talk: ControllerTalk, **config: str) -> None:
    """Leave only broker 1 in the ISR, and 2 eligible; both are down."""
    talk.create([1, 2, 3], **config)
    for node_id in (3, 2, 1):
        talk.fence(node_id)
    assert (talk.partition().isr, talk.partition().eligible) == ([1], [2])


def test_after_a_crash_with_flush_on_ack_a_broker_is_still_eligible(talk: ControllerTalk) -> None:
    down_to_one(talk)
    talk.restart(2)
    assert talk.partition().eligible == [2]
    talk.heartbeat(2)
    assert talk.partition().leader == 2


def test_after_a_crash_with_flush_by_interval_a_broker_is_not_eligible(
    talk: ControllerTalk,
) -> None:
    """KIP-966: an unclean restart removes a broker from the eligible leaders."""
    down_to_one(talk, flush="interval")
    talk.restart(2)
    assert talk.partition().eligible == []
    talk.heartbeat(2)
    assert talk.partition().leader == -1


def test_after_a_clean_stop_a_broker_is_eligible_for_any_flush_policy(talk: ControllerTalk) -> None:
    down_to_one(talk, flush="interval")
    talk.restart(2, clean=True)
    talk.heartbeat(2)
    assert talk.partition().leader == 2


@pytest.mark.parametrize("let_in", [False, True])
def test_a_clean_stop_counts_until_another_process_is_unfenced(
    talk: ControllerTalk, let_in: bool
) -> None:
    """A broker that has registered but got no response stops with a clean marker."""
    down_to_one(talk, flush="interval")
    stopped_in = talk.broker(2).broker_epoch
    talk.restart(2, clean=True)
    if let_in:
        talk.heartbeat(2)
        talk.fence(2)
    for record in list(talk.image.snapshot()):
        talk.image.replay(record)
    talk.register(talk.registration(2, previous=stopped_in))
    talk.heartbeat(2)
    assert talk.partition().leader == (-1 if let_in else 2)


def test_the_last_in_sync_gives_way_to_an_eligible_one_if_it_crashed(talk: ControllerTalk) -> None:
    """KIP-966, last replica standing: it lost records, the eligible one has all of them."""
    down_to_one(talk, flush="interval")
    talk.restart(1)
    assert (talk.partition().isr, talk.partition().eligible) == ([2], [])
    talk.heartbeat(1)
    assert talk.partition().leader == -1
    talk.heartbeat(2)
    assert (talk.partition().leader, talk.partition().isr) == (2, [2])


def test_the_last_in_sync_replica_stays_if_no_other_is_known_to_have_more(
    talk: ControllerTalk,
) -> None:
    talk.create([1, 2], flush="interval", min_insync_replicas="1")
    talk.fence(2)
    talk.restart(1)
    assert (talk.partition().isr, talk.partition().leader) == ([1], -1)
    talk.heartbeat(1)
    assert talk.partition().leader == 1


def test_with_another_disk_nothing_is_left_of_what_was_acknowledged(talk: ControllerTalk) -> None:
    down_to_one(talk)
    talk.now_ms += SESSION_MS
    talk.restart(2, directory=ANOTHER_DISK, clean=True)
    assert talk.partition().eligible == []


def test_a_broker_is_struck_off(talk: ControllerTalk) -> None:
    talk.create([1, 2], [1])
    talk.unregister(1)
    assert 1 not in talk.image.brokers
    assert (talk.partition(0).leader, talk.partition(0).isr) == (2, [2])
    assert (talk.partition(1).leader, talk.partition(1).isr) == (-1, [1])
    with pytest.raises(ApiError) as refused:
        talk.unregister(1)
    assert refused.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_lone_broker_is_unfenced_without_a_record_a_partition() -> None:
    talk = ControllerTalk()
    talk.start(1)
    talk.create([1], [1])
    alone = brokers.register_alone(talk.image, talk.registration(1))
    assert alone is not None
    assert [type(record) for record in alone.records] == [
        BrokerRegistered,
        BrokerChanged,
        BrokerStarted,
    ]
    talk.commit(alone.records)
    assert talk.broker(1).is_active
    assert [talk.partition(n).leader_epoch for n in (0, 1)] == [1, 1]


def test_a_broker_with_company_is_not_alone(talk: ControllerTalk) -> None:
    assert brokers.register_alone(talk.image, talk.registration(1)) is None


def test_a_broker_whose_partitions_wait_for_a_leader_is_not_unfenced() -> None:
    talk = ControllerTalk()
    talk.start(1)
    talk.create([1])
    talk.fence(1)
    assert brokers.register_alone(talk.image, talk.registration(1)) is None


def test_a_broker_that_lost_its_disk_does_not_lead_before_others_that_may_have_records(
    talk: ControllerTalk,
) -> None:
    """The last in-sync replica comes back empty: the others are outdated, but have records."""
    talk.create([1, 2, 3], min_insync_replicas="1")
    for lost in (3, 2):
        talk.fence(lost)
    assert talk.partition().isr == [1]
    talk.now_ms += SESSION_MS
    talk.restart(1, directory=ANOTHER_DISK)
    talk.heartbeat(1)
    after = talk.partition()
    assert (after.leader, after.isr, after.wiped) == (-1, [1], [1])
    talk.restart(2)
    talk.heartbeat(2)
    assert talk.partition().leader == -1
    talk.configure(unclean_leader_election_enable="true")
    after = talk.partition()
    assert (after.leader, after.isr, after.wiped, after.unclean) == (2, [2], [], True)


def test_a_broker_that_lost_the_only_replica_leads_an_empty_one(talk: ControllerTalk) -> None:
    talk.create([1])
    talk.now_ms += SESSION_MS
    talk.restart(1, directory=ANOTHER_DISK)
    talk.heartbeat(1)
    assert (talk.partition().leader, talk.partition().wiped) == (1, [])


@pytest.mark.parametrize("level", [FIRST_LEVEL, SECURITY_LEVEL])
def test_named_listeners_are_registered_from_the_level_that_knows_them(level: int) -> None:
    talk = ControllerTalk()
    talk.image.feature_level = level
    request = talk.registration(4)
    request.listeners += [
        Listener(name="CLIENT", host="first", port=1),
        Listener(name="EXTERNAL", host="second", port=2),
    ]
    talk.register(request)
    named = {"CLIENT": ("first", 1), "EXTERNAL": ("second", 2)}
    assert talk.broker(4).endpoints == (named if level == SECURITY_LEVEL else {})
    assert (talk.broker(4).host, talk.broker(4).peer_host) == ("client", "peer")
