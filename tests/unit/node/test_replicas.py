"""Tests replicas in their roles: leader, follower, in sync, and the requests that wait for them."""

import pytest

from barnabas.controller.isr_decisions import DISK_REFUSES, LOG_DAMAGED
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest
from tests.support.raft.replica_set import LAG_MAX_MS, ReplicaSet, SimulatedBroker
from tests.support.talk.batches import batches_in, make_batch


def ready(config: dict[str, str] | None = None, fetch_wait_ms: int = 500) -> ReplicaSet:
    replicas = ReplicaSet(config, fetch_wait_ms)
    replicas.settle_all(3)
    return replicas


def leader_of(replicas: ReplicaSet) -> SimulatedBroker:
    leader = replicas.leader
    assert leader is not None
    return leader


def send(
    leader: SimulatedBroker, count: int = 1, producer: tuple[int, int, int] = (-1, -1, -1)
) -> list[str]:
    """Append for all in-sync replicas; the list gets the outcome."""
    heard: list[str] = []

    def append() -> None:
        appended = leader.partition.leader.append(make_batch(count, producer=producer), 1_000)
        leader.partition.when_safe(
            appended.required_offset,
            lambda: heard.append(f"safe at {appended.base_offset}"),
            lambda: heard.append("gone"),
        )

    leader.do(append)
    return heard


def ends(replicas: ReplicaSet) -> list[int]:
    return [stand.partition.log.end_offset for stand in replicas.stands.values()]


def proposed(request: AlterPartitionRequest) -> list[int]:
    ((partition,),) = [topic.partitions for topic in request.topics]
    return [member.broker_id for member in partition.new_isr_with_epochs]


def test_a_record_is_safe_when_every_in_sync_replica_has_synced_it() -> None:
    replicas = ready()
    leader = leader_of(replicas)
    heard = send(leader)
    leader.finish_sync()
    first, second = (stand for stand in replicas.stands.values() if stand is not leader)
    for _ in range(10):
        for flying in list(replicas.flying):
            replicas.deliver(flying)
    assert (ends(replicas), len(first.held), len(second.held)) == ([1, 1, 1], 1, 1)
    first.finish_sync()
    for _ in range(10):
        for flying in list(replicas.flying):
            replicas.deliver(flying)
    assert heard == [], "one of the replicas could still lose it"
    second.finish_sync()
    replicas.run()
    assert heard == ["safe at 0"]


def test_with_flush_interval_a_record_is_safe_when_every_in_sync_replica_has_it() -> None:
    replicas = ready({"flush": "interval"})
    heard = send(leader_of(replicas))
    for _ in range(10):
        for flying in list(replicas.flying):
            replicas.deliver(flying)
    assert (heard, ends(replicas)) == (["safe at 0"], [1, 1, 1])


def test_only_the_leader_takes_records() -> None:
    replicas = ready()
    follower = replicas.stands[2]
    for append in (
        follower.partition.leader.append_own,
        lambda b: follower.partition.leader.append(b, 0),
    ):
        with pytest.raises(ApiError) as refused:
            append(bytearray(make_batch()))
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_waiting_requests_fail_when_another_broker_leads() -> None:
    replicas = ready()
    old = leader_of(replicas)
    heard = send(old)
    replicas.move(2)
    assert heard == []
    old.apply_next_decision()
    assert (heard, old.partition.leads) == (["gone"], False)


def test_a_replica_that_falls_behind_leaves_the_isr_and_returns_when_it_has_caught_up() -> None:
    replicas = ready()
    leader = leader_of(replicas)
    replicas.stop(3)
    replicas.settle_all(3)
    heard = send(leader)
    replicas.settle_all(10)
    assert (heard, sorted(replicas.placed.isr)) == (["safe at 0"], [1, 2])
    replicas.start(3)
    replicas.settle_all(30)
    assert (sorted(replicas.placed.isr), ends(replicas)) == ([1, 2, 3], [1, 1, 1])


def test_a_live_replica_that_does_not_fetch_is_proposed_to_leave() -> None:
    replicas = ready()
    leader = leader_of(replicas)
    send(leader)
    for flying in [each for each in replicas.flying if each.sender == 3]:
        replicas.flying.remove(flying)  # neither delivered nor lost: a link that hangs
    for _ in range(4):
        for stand in (leader, replicas.stands[2]):
            while stand.held:
                stand.finish_sync()
        for flying in [each for each in replicas.flying if each.sender == 2]:
            replicas.deliver(flying)
        replicas.pass_time(LAG_MAX_MS // 2)
    ((_, _, request, _),) = replicas.proposals
    assert proposed(request) == [1, 2]
    assert request.broker_epoch == replicas.image.brokers[1].broker_epoch


def test_a_proposal_whose_response_is_lost_is_repeated_and_counts_meanwhile() -> None:
    replicas = ready()
    leader = leader_of(replicas)
    replicas.stop(3)
    replicas.settle_all(3)
    replicas.start(3)
    while not replicas.proposals:
        for stand in replicas.stands.values():
            while stand.placements:
                stand.apply_next_decision()
            while stand.held:
                stand.finish_sync()
        for flying in list(replicas.flying):
            if flying in replicas.flying:
                replicas.deliver(flying)
        replicas.pass_time(10)
    replicas.alter(lose_answer=True)
    in_sync = leader.partition.in_sync
    assert in_sync is not None
    assert in_sync.proposed == [1, 2, 3]
    assert list(in_sync.maximal_isr) == [1, 2, 3]
    replicas.pass_time(100)
    assert len(replicas.proposals) == 1
    replicas.settle_all(10)
    assert list(in_sync.isr) == [1, 2, 3]
    assert not replicas.proposals


def test_with_too_few_in_sync_acks_all_is_refused_and_nothing_becomes_visible() -> None:
    replicas = ready()
    leader = leader_of(replicas)
    replicas.stop(2)
    replicas.stop(3)
    replicas.run()
    with pytest.raises(ApiError) as refused:
        leader.partition.leader.check_min_isr()
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(ApiError):
        leader.partition.leader.append_own(bytearray(make_batch()))
    heard = send(leader)  # acks=1 goes through
    replicas.settle_all(10)
    assert (heard, leader.partition.high_watermark, leader.partition.log.end_offset) == ([], 0, 1)
    replicas.start(2)
    replicas.settle_all(30)
    assert heard == ["safe at 0"]


def test_a_retried_batch_gets_its_first_offset_from_the_next_leader() -> None:
    replicas = ready()
    assert send(leader_of(replicas), 2, producer=(5, 0, 0)) == []
    replicas.settle_all(3)
    replicas.stop(1)
    replicas.settle_all(10)
    heard = send(leader_of(replicas), 2, producer=(5, 0, 0))
    replicas.settle_all(3)
    assert (leader_of(replicas).node_id, heard) == (2, ["safe at 0"])
    assert leader_of(replicas).partition.log.end_offset == 2


def test_what_an_old_leader_alone_had_is_cut() -> None:
    replicas = ready()
    old = leader_of(replicas)
    for flying in list(replicas.flying):
        replicas.lose(flying)
    send(old, 3)
    replicas.stop(1)
    replicas.run()
    send(leader_of(replicas), 1)
    replicas.start(1)
    replicas.settle_all(30)
    assert ends(replicas) == [1, 1, 1]
    assert old.partition.log.epochs.entries == leader_of(replicas).partition.log.epochs.entries


def test_a_follower_serves_consumers_up_to_the_high_watermark_it_knows() -> None:
    replicas = ready(fetch_wait_ms=100)
    send(leader_of(replicas), 2)
    replicas.settle_all(10)
    follower = replicas.stands[3].partition
    assert (follower.leads, follower.high_watermark) == (False, 2)
    piece = follower.read(0, 1 << 20, committed_only=False, at_least_one=True)
    assert [header.base_offset for header, _ in batches_in(piece)] == [0]


def test_damage_in_a_followers_log_is_fetched_again_and_it_leaves_meanwhile() -> None:
    replicas = ready()
    leader = leader_of(replicas)
    for _ in range(4):
        send(leader, 2)
        replicas.settle_all(3)
    follower = replicas.stands[3]
    damage(follower)
    with pytest.raises(ApiError) as refused:
        follower.do(lambda: read_all_of(follower))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert follower.partition.log.end_offset < 8
    replicas.pass_time(1)
    for _ in range(3):
        for flying in list(replicas.flying):
            if flying in replicas.flying:
                replicas.deliver(flying)
    ((_, _, request, _),) = replicas.proposals
    assert 3 not in proposed(request)
    replicas.settle_all(30)
    assert (ends(replicas), sorted(replicas.placed.isr)) == ([8, 8, 8], [1, 2, 3])
    follower.do(lambda: read_all_of(follower))


def damage(stand: SimulatedBroker) -> None:
    """Flip a bit in the middle of a log without the broker's knowledge."""
    segment = stand.partition.log.active
    segment.trust.starts_at(segment.size)  # as after a start
    path = segment.paths[0]
    stand.disk.flip(path, (stand.disk.open(path).size() // 2) * 8)


def test_a_leader_whose_log_is_damaged_resigns_and_is_repaired() -> None:
    replicas = ready()
    leader = leader_of(replicas)
    for _ in range(4):
        send(leader, 2)
        replicas.settle_all(3)
    damage(leader)
    with pytest.raises(ApiError):
        leader.do(lambda: read_all_of(leader))
    ((_, _, request, _),) = replicas.proposals
    assert proposed(request) == [2, 3]
    assert request.topics[0].partitions[0].leader_recovery_state == LOG_DAMAGED
    replicas.settle_all(30)
    assert leader_of(replicas) is not leader
    assert (ends(replicas), sorted(replicas.placed.isr)) == ([8, 8, 8], [1, 2, 3])
    leader.do(lambda: read_all_of(leader))


def test_a_damaged_leader_continues_if_no_replica_can_take_over() -> None:
    replicas = ready()
    leader = leader_of(replicas)
    for _ in range(4):
        send(leader, 2)
        replicas.settle_all(3)
    replicas.stop(2)
    replicas.stop(3)
    replicas.run()
    damage(leader)
    with pytest.raises(ApiError):
        leader.do(lambda: read_all_of(leader))
    replicas.settle_all(5)
    assert leader_of(replicas) is leader
    replicas.start(2)
    replicas.settle_all(60)
    assert leader_of(replicas) is replicas.stands[2], "as soon as another replica has all records"
    assert ends(replicas)[:2] == [8, 8]


def test_a_replica_whose_disk_lost_records_declines_to_lead_until_it_has_them_again() -> None:
    replicas = ready()
    send(leader_of(replicas), 2)
    replicas.settle_all(12)
    loser = replicas.stands[2]
    loser.partition.health.lost_records = True
    replicas.move(2)
    loser.apply_next_decision()
    ((_, _, request, _),) = replicas.proposals
    assert proposed(request) == [1, 3]
    assert request.topics[0].partitions[0].leader_recovery_state == LOG_DAMAGED
    assert not loser.partition.leads
    replicas.settle_all(30)
    assert (replicas.placed.leader, sorted(replicas.placed.isr)) == (1, [1, 2, 3])
    assert not loser.partition.health.lost_records


def test_a_replica_with_damage_declines_to_lead_and_is_repaired() -> None:
    replicas = ready()
    send(leader_of(replicas), 2)
    replicas.settle_all(12)
    damaged = replicas.stands[2]
    damaged.partition.health.damaged_at = 0
    replicas.move(2)
    damaged.apply_next_decision()
    ((_, _, request, _),) = replicas.proposals
    assert proposed(request) == [1, 3]
    assert not damaged.partition.leads
    replicas.settle_all(30)
    assert (replicas.placed.leader, sorted(replicas.placed.isr)) == (1, [1, 2, 3])
    assert not damaged.partition.is_unfit
    assert ends(replicas) == [2, 2, 2]


def test_the_last_replica_leads_whatever_its_disk_lost() -> None:
    replicas = ready({"min.insync.replicas": "1"})
    loser = replicas.stands[2]
    replicas.stop(3)
    replicas.settle_all(3)
    loser.partition.health.lost_records = True
    replicas.stop(1)
    replicas.run()
    assert leader_of(replicas) is loser


def try_to_send(replicas: ReplicaSet, leader: SimulatedBroker, duration_ms: int) -> list[ErrorCode]:
    """Send repeatedly, as a client does whose batch is refused; return the errors."""
    codes: list[ErrorCode] = []
    for _ in range(duration_ms // 500):
        try:
            send(leader)
        except ApiError as error:
            codes.append(error.code)
        replicas.settle_all(10)
    return codes


def test_a_leader_whose_disk_refuses_appends_for_seconds_has_another_replica_lead() -> None:
    replicas = ready()
    full = leader_of(replicas)
    send(full, 2)
    replicas.settle_all(3)
    full.disk.room = 0
    assert try_to_send(replicas, full, 4_000) == [ErrorCode.KAFKA_STORAGE_ERROR] * 8
    assert leader_of(replicas) is full, "a disk that is full for a moment changes nothing"
    try_to_send(replicas, full, 1_500)
    leader = leader_of(replicas)
    assert (leader.node_id, replicas.placed.isr) == (2, [2, 3])
    heard = send(leader)
    replicas.settle_all(10)
    assert heard == ["safe at 2"], "the full disk delays no write"


def test_a_resignation_is_acted_on_before_the_metadata_says_so() -> None:
    """The metadata log is on the full disk, too."""
    replicas = ready()
    full = leader_of(replicas)
    full.disk.room = 0
    with pytest.raises(ApiError):
        send(full)
    replicas.pass_time(5_000)
    with pytest.raises(ApiError):
        send(full)
    ((_, _, request, _),) = replicas.proposals
    assert proposed(request) == [2, 3]
    assert request.topics[0].partitions[0].leader_recovery_state == DISK_REFUSES
    replicas.alter()
    assert (full.partition.leads, full.partition.leader_id) == (False, 2)
    told = [replicas.placed.leader_epoch, replicas.placed.partition_epoch]
    while full.placements:  # the image changes later, from the older one on
        full.apply_next_decision()
    assert [full.partition.leader_epoch, full.partition.placed.partition_epoch] == told
    assert not full.partition.leads


def test_a_replica_with_a_full_disk_stays_out_until_there_is_room() -> None:
    replicas = ready()
    full = leader_of(replicas)
    send(full, 2)
    replicas.settle_all(3)
    full.disk.room = 0
    while leader_of(replicas) is full:
        try_to_send(replicas, full, 500)
    replicas.settle_all(60)
    assert replicas.placed.isr == [2, 3], "though it has all records of its leader"
    full.disk.room = None
    replicas.settle_all(60)
    assert sorted(replicas.placed.isr) == [1, 2, 3]
    heard = send(leader_of(replicas))
    replicas.settle_all(10)
    assert (heard, ends(replicas)) == (["safe at 2"], [3, 3, 3])
    replicas.move(1)
    replicas.settle_all(3)
    assert leader_of(replicas) is full, "and may lead again"
    assert not full.disk.exists("data/.probe")


def test_a_refused_append_between_others_is_no_reason_to_resign() -> None:
    replicas = ready()
    leader = leader_of(replicas)
    for _ in range(20):
        leader.disk.room = 0
        with pytest.raises(ApiError):
            send(leader)
        leader.disk.room = None
        send(leader)
        replicas.settle_all(10)
    assert leader_of(replicas) is leader


def test_the_last_in_sync_replica_continues_to_lead_with_a_full_disk() -> None:
    replicas = ready({"min.insync.replicas": "1"})
    leader = leader_of(replicas)
    for number in (2, 3):
        replicas.stop(number)
        replicas.settle_all(3)
    leader.disk.room = 0
    try_to_send(replicas, leader, 10_000)
    assert (leader_of(replicas), replicas.placed.isr) == (leader, [1])
    replicas.start(2)
    try_to_send(replicas, leader, 3_000)
    assert leader_of(replicas) is replicas.stands[2], "until another one is in sync"


def test_a_replica_whose_disk_refused_a_batch_does_not_become_leader() -> None:
    replicas = ready()
    full = replicas.stands[2]
    full.disk.room = 0
    send(leader_of(replicas), 2)
    replicas.run()
    assert full.partition.is_unfit
    replicas.move(2)
    full.apply_next_decision()
    ((_, _, request, _),) = replicas.proposals
    assert proposed(request) == [1, 3]
    assert request.topics[0].partitions[0].leader_recovery_state == DISK_REFUSES
    full.disk.room = None
    replicas.settle_all(60)
    assert (sorted(replicas.placed.isr), ends(replicas)) == ([1, 2, 3], [2, 2, 2])
    assert not full.partition.is_unfit


def read_all_of(stand: SimulatedBroker) -> None:
    partition = stand.partition
    offset = 0
    while offset < partition.high_watermark:
        piece = partition.read(offset, 1, committed_only=False, at_least_one=True)
        ((header, _),) = batches_in(piece)
        offset = header.last_offset + 1


def test_the_nearest_replica_is_one_in_sync_in_the_consumers_rack() -> None:
    replicas = ready()
    leader = leader_of(replicas)
    send(leader, 2)
    replicas.settle_all(3)
    nearest = leader.replicas.nearest
    assert nearest(leader.partition, "r3", 2) == 3
    assert nearest(leader.partition, "r1", 2) == -1, "that is here"
    assert nearest(leader.partition, "elsewhere", 2) == -1
    assert nearest(leader.partition, "r3", 3) == -1, "it does not have that record yet"
    replicas.stop(3)
    replicas.run()
    assert nearest(leader.partition, "r3", 2) == -1


def test_damage_that_a_scrub_found_is_fetched_again() -> None:
    replicas = ready({"segment.bytes": "1024"})
    leader = leader_of(replicas)
    for _ in range(30):
        send(leader, 2)
        replicas.settle_all(1)
    replicas.settle_all(10)
    follower = replicas.stands[3]
    second = follower.partition.log.segments[1]
    path = second.paths[0]
    follower.disk.flip(path, (follower.disk.open(path).size() // 2) * 8)
    second.trust.forget(second)
    follower.do(lambda: follower.partition.health.found_damage(second.base_offset))
    assert follower.partition.log.end_offset == second.base_offset
    replicas.settle_all(30)
    assert (ends(replicas), sorted(replicas.placed.isr)) == ([60, 60, 60], [1, 2, 3])
    follower.do(lambda: read_all_of(follower))
