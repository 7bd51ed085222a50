"""Registration: which process is a broker, and what it may have lost."""

import pytest

from barnabas.controller import brokers
from barnabas.metadata.image import BrokerImage
from barnabas.metadata.metadata_records import BrokerChanged, BrokerRegistered, BrokerStarted
from barnabas.model.errors import ApiError, ErrorCode
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
    talk.beat(4)
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


def test_who_holds_the_same_data_folder_need_not_wait(talk: ControllerTalk) -> None:
    """The folder is locked by one process, so the other has ended."""
    talk.restart(1)
    assert talk.broker(1).broker_epoch == 3


def test_who_said_that_it_stops_may_be_followed_at_once(talk: ControllerTalk) -> None:
    talk.beat(1, stop=True)
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


def test_a_restart_that_nobody_noticed_is_a_loss_and_a_return(talk: ControllerTalk) -> None:
    talk.create([1, 2, 3])
    talk.restart(1)
    after = talk.partition()
    assert (after.leader, after.isr) == (2, [2, 3])
    assert talk.broker(1).fenced


def down_to_one(talk: ControllerTalk, **config: str) -> None:
    """Leave only 1 in the ISR, and 2 eligible; both are gone."""
    talk.create([1, 2, 3], **config)
    for node_id in (3, 2, 1):
        talk.fence(node_id)
    assert (talk.partition().isr, talk.partition().eligible) == ([1], [2])


def test_after_a_crash_with_flush_on_ack_a_broker_is_still_eligible(talk: ControllerTalk) -> None:
    down_to_one(talk)
    talk.restart(2)
    assert talk.partition().eligible == [2]
    talk.beat(2)
    assert talk.partition().leader == 2


def test_after_a_crash_with_flush_by_interval_a_broker_is_not_eligible(
    talk: ControllerTalk,
) -> None:
    """KIP-966: an unclean restart leaves the set."""
    down_to_one(talk, flush="interval")
    talk.restart(2)
    assert talk.partition().eligible == []
    talk.beat(2)
    assert talk.partition().leader == -1


def test_after_a_clean_stop_a_broker_is_eligible_whatever_the_flush(talk: ControllerTalk) -> None:
    down_to_one(talk, flush="interval")
    talk.restart(2, clean=True)
    talk.beat(2)
    assert talk.partition().leader == 2


@pytest.mark.parametrize("let_in", [False, True])
def test_a_clean_stop_counts_until_another_process_is_let_in(
    talk: ControllerTalk, let_in: bool
) -> None:
    """One that is registered and does not hear of it stops as it found everything."""
    down_to_one(talk, flush="interval")
    stopped_in = talk.broker(2).broker_epoch
    talk.restart(2, clean=True)
    if let_in:
        talk.beat(2)
        talk.fence(2)
    for record in list(talk.image.snapshot()):
        talk.image.replay(record)
    talk.register(talk.registration(2, previous=stopped_in))
    talk.beat(2)
    assert talk.partition().leader == (-1 if let_in else 2)


def test_the_last_in_sync_gives_way_to_an_eligible_one_if_it_crashed(talk: ControllerTalk) -> None:
    """KIP-966, the last replica standing: it lost its tail, the eligible one has everything."""
    down_to_one(talk, flush="interval")
    talk.restart(1)
    assert (talk.partition().isr, talk.partition().eligible) == ([2], [])
    talk.beat(1)
    assert talk.partition().leader == -1
    talk.beat(2)
    assert (talk.partition().leader, talk.partition().isr) == (2, [2])


def test_the_last_in_sync_stays_if_nobody_is_known_to_have_more(talk: ControllerTalk) -> None:
    talk.create([1, 2], flush="interval", min_insync_replicas="1")
    talk.fence(2)
    talk.restart(1)
    assert (talk.partition().isr, talk.partition().leader) == ([1], -1)
    talk.beat(1)
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


def test_a_lone_broker_is_let_in_without_a_record_a_partition() -> None:
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


def test_a_broker_whose_partitions_wait_for_a_leader_is_not_let_in_so() -> None:
    talk = ControllerTalk()
    talk.start(1)
    talk.create([1])
    talk.fence(1)
    assert brokers.register_alone(talk.image, talk.registration(1)) is None


def test_who_lost_its_disk_does_not_lead_before_those_who_may_have_something(
    talk: ControllerTalk,
) -> None:
    """The last in sync comes back empty: the others' copies are old, but more than nothing."""
    talk.create([1, 2, 3], min_insync_replicas="1")
    for lost in (3, 2):
        talk.fence(lost)
    assert talk.partition().isr == [1]
    talk.now_ms += SESSION_MS
    talk.restart(1, directory=ANOTHER_DISK)
    talk.beat(1)
    after = talk.partition()
    assert (after.leader, after.isr, after.wiped) == (-1, [1], [1])
    talk.restart(2)
    talk.beat(2)
    assert talk.partition().leader == -1
    talk.configure(unclean_leader_election_enable="true")
    after = talk.partition()
    assert (after.leader, after.isr, after.wiped, after.unclean) == (2, [2], [], True)


def test_who_lost_the_only_copy_leads_an_empty_one(talk: ControllerTalk) -> None:
    talk.create([1])
    talk.now_ms += SESSION_MS
    talk.restart(1, directory=ANOTHER_DISK)
    talk.beat(1)
    assert (talk.partition().leader, talk.partition().wiped) == (1, [])
