"""Tests a follower's log: accepted batches, truncation, and what it knows of its leader."""

import pytest

from barnabas.model.errors import CorruptBatchError
from barnabas.node.partitions.follower_replica import FollowerReplica
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.fetch import Diverging
from barnabas.protocol.records import parse_header, stamp
from barnabas.protocol.replica_fetch_codec import Copied
from tests.support.raft.replica_set import TOPIC_ID, ReplicaSet, SimulatedBroker
from tests.support.talk.batches import make_batch, make_marker, read_all


def follower(config: dict[str, str] | None = None) -> tuple[SimulatedBroker, FollowerReplica]:
    replicas = ReplicaSet(config)
    replicas.run()
    stand = replicas.stands[2]
    copy = stand.partition.health.listener
    assert isinstance(copy, FollowerReplica)
    return stand, copy


def batch_at(offset: int, epoch: int, batch: memoryview | None = None) -> bytes:
    batch = make_batch(2) if batch is None else batch
    stamp(batch, 0, offset, epoch)
    return bytes(batch)


def fetched_batches(*batches: bytes, high: int = 0, start: int = 0) -> Copied:
    return Copied(TOPIC_ID, 0, 0, high, start, memoryview(b"".join(batches)))


def ends(partition: Partition) -> tuple[int, int]:
    return partition.log.end_offset, partition.high_watermark


def test_batches_keep_their_offsets_and_epochs() -> None:
    stand, copy = follower()
    copy.apply(fetched_batches(batch_at(0, 1), batch_at(2, 2), high=3))
    assert ends(stand.partition) == (4, 3)
    assert stand.partition.log.epochs.entries == [(1, 0), (2, 2)]
    assert [(h.base_offset, h.leader_epoch) for h, _ in read_all(stand.partition.log)] == [
        (0, 1),
        (2, 2),
    ]


def test_the_high_watermark_is_the_leaders_but_never_beyond_the_log() -> None:
    stand, copy = follower()
    copy.apply(fetched_batches(batch_at(0, 1), high=10))
    assert ends(stand.partition) == (2, 2)
    copy.apply(fetched_batches(batch_at(2, 1), high=10))
    assert ends(stand.partition) == (4, 4)
    copy.apply(fetched_batches(high=1))
    assert ends(stand.partition) == (4, 4), "the high watermark never decreases"


def test_producers_and_aborts_follow_from_the_batches() -> None:
    stand, copy = follower()
    in_transaction = make_batch(2, producer=(5, 0, 0), attributes=16)
    marker = make_marker(5, commit=False)
    copy.apply(fetched_batches(batch_at(0, 1, in_transaction), high=2))
    partition = stand.partition
    assert (partition.log.producers.open_transaction(5), partition.last_stable_offset) == (0, 0)
    copy.apply(fetched_batches(batch_at(2, 1, marker), high=2))
    assert partition.last_stable_offset == 0, "until the marker is committed"
    copy.apply(fetched_batches(high=3))
    assert (partition.log.producers.open_transaction(5), partition.last_stable_offset) == (None, 3)
    assert [each.producer_id for each in partition.log.aborted(0, 3)] == [5]


def test_a_replica_without_its_beginning_is_fetched_again() -> None:
    stand, copy = follower()
    partition = stand.partition
    partition.log.restart_at(10)
    copy.apply(fetched_batches(batch_at(10, 1), high=12))
    partition.health.damaged_at = 0
    copy.damaged()
    assert copy.bounds == (0, 0)
    copy.apply(fetched_batches(batch_at(0, 1), high=12))
    assert ends(partition) == (2, 2)


@pytest.mark.parametrize("byte", [5, 11, 16, 40], ids=["offset", "length", "magic", "content"])
def test_damage_at_the_start_of_a_sealed_segment_is_truncated_and_the_replica_does_not_lead(
    byte: int,
) -> None:
    stand, copy = follower({"segment.bytes": "1024"})
    for offset in range(0, 60, 2):
        copy.apply(fetched_batches(batch_at(offset, 1), high=offset + 2))
    partition = stand.partition
    segment = partition.log.segments[1]
    stand.disk.flip(segment.paths[0], byte * 8)
    segment.trust.forget(segment)
    partition.health.found_damage(segment.base_offset + 3)
    assert copy.bounds == (0, segment.base_offset)
    assert partition.is_unfit
    copy.apply(fetched_batches(batch_at(segment.base_offset, 1), high=segment.base_offset + 2))
    assert not partition.is_unfit


def test_a_log_that_ends_where_no_batch_does_is_cut_to_what_is_sound() -> None:
    stand, copy = follower()
    copy.apply(fetched_batches(batch_at(0, 1), batch_at(3, 1)))  # it is 2, except for one bit
    with pytest.raises(CorruptBatchError, match="ends at 5"):
        copy.apply(fetched_batches(batch_at(4, 1)))
    assert copy.bounds == (0, 2)
    assert stand.partition.is_unfit


def test_a_damaged_batch_is_refused_and_what_came_before_it_stays() -> None:
    stand, copy = follower()
    damaged = bytearray(batch_at(2, 1))
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        copy.apply(fetched_batches(batch_at(0, 1), bytes(damaged), high=4))
    assert ends(stand.partition) == (2, 0)


@pytest.mark.parametrize(("offset", "epoch"), [(1, 1), (0, 1), (2, 0)])
def test_a_batch_that_does_not_follow_is_refused(offset: int, epoch: int) -> None:
    _, copy = follower()
    copy.apply(fetched_batches(batch_at(0, 1)))
    with pytest.raises(CorruptBatchError):
        copy.apply(fetched_batches(batch_at(offset, epoch)))


def test_an_answer_that_holds_half_a_batch_is_refused() -> None:
    _, copy = follower()
    with pytest.raises(CorruptBatchError, match="no whole batch"):
        copy.apply(fetched_batches(batch_at(0, 1)[:-1]))


def test_a_gap_that_compaction_left_is_kept() -> None:
    stand, copy = follower({"segment.bytes": "1024"})
    offsets = [0, *range(10, 100, 5)]
    copy.apply(fetched_batches(*(batch_at(offset, 1) for offset in offsets)))
    log = stand.partition.log
    assert len(log.segments) > 1
    assert [header.base_offset for header, _ in read_all(log)] == offsets
    piece = log.read(5, 1 << 20, log.end_offset, at_least_one=True)
    assert piece is not None
    assert parse_header(piece.file.read(piece.position, 61)).base_offset == 10


def test_it_cuts_by_epoch_and_not_to_its_high_watermark() -> None:
    stand, copy = follower()
    copy.apply(fetched_batches(batch_at(0, 1), batch_at(2, 1), batch_at(4, 2), high=0))
    copy.truncate(Diverging(1, 10))
    assert ends(stand.partition) == (4, 0)
    copy.truncate(Diverging(1, 3))
    assert ends(stand.partition) == (2, 0)


def test_damage_that_shows_when_it_cuts_is_cut_too_and_fetched_again() -> None:
    stand, copy = follower()
    sent = make_batch(2, producer=(7, 0, 0))
    copy.apply(
        fetched_batches(batch_at(0, 1), batch_at(2, 1, sent), batch_at(4, 1), batch_at(6, 2))
    )
    partition = stand.partition
    at = len(batch_at(0, 1)) + 22
    stand.disk.flip(partition.log.active.paths[0], at * 8 + 4)  # the bit for a transactional batch
    copy.truncate(Diverging(epoch=1, end_offset=6))
    assert copy.bounds == (0, 2)
    assert partition.log.producers.open_transactions() == {}
    assert partition.is_unfit
    copy.apply(fetched_batches(batch_at(2, 1, sent), high=4))
    assert (partition.is_unfit, ends(partition)) == (False, (4, 4))


def test_what_was_committed_is_not_given_up_in_silence() -> None:
    stand, copy = follower()
    copy.apply(fetched_batches(batch_at(0, 1), batch_at(2, 2), high=4))
    copy.truncate(Diverging(1, 2))
    stand.settle()
    assert ends(stand.partition) == (2, 2)
    assert "truncated below the high watermark" in [notice.event for notice in stand.said]


def finish_syncs(stand: SimulatedBroker) -> None:
    stand.settle()
    while stand.held:
        stand.finish_sync()


def test_a_log_that_fell_behind_starts_over_where_the_leader_starts() -> None:
    stand, copy = follower()
    copy.apply(fetched_batches(batch_at(0, 1), high=2))
    copy.restart(fetched_batches(start=50))
    log = stand.partition.log
    assert (log.start_offset, *ends(stand.partition)) == (50, 50, 50)
    assert (log.epochs.entries, copy.last_epoch) == ([], -1)
    copy.apply(fetched_batches(batch_at(50, 7), high=51))
    assert ends(stand.partition) == (52, 51)


def test_a_log_that_reaches_into_the_leaders_does_not_start_over() -> None:
    stand, copy = follower()
    copy.apply(fetched_batches(batch_at(0, 1), high=2))
    with pytest.raises(CorruptBatchError):
        copy.restart(fetched_batches(start=1))
    assert ends(stand.partition) == (2, 2)


def test_a_leader_that_starts_within_a_batch_sends_all_of_it() -> None:
    stand, copy = follower()
    copy.restart(fetched_batches(start=11))
    copy.apply(fetched_batches(batch_at(10, 3), batch_at(12, 3), high=14, start=11))
    finish_syncs(stand)
    log = stand.partition.log
    assert (log.start_offset, *ends(stand.partition)) == (11, 14, 14)


def test_the_start_follows_the_leaders_up_to_what_is_committed_here() -> None:
    stand, copy = follower()
    copy.apply(fetched_batches(batch_at(0, 1), batch_at(2, 1), high=2, start=3))
    assert stand.partition.log.start_offset == 0
    copy.apply(fetched_batches(high=4, start=3))
    finish_syncs(stand)
    assert stand.partition.log.start_offset == 3


def test_a_cut_finishes_what_is_done_to_the_start() -> None:
    stand, copy = follower()
    copy.apply(fetched_batches(batch_at(0, 1), batch_at(2, 1), batch_at(4, 2), high=4, start=3))
    log = stand.partition.log
    assert (log.start_offset, log.change is not None) == (0, True)
    copy.truncate(Diverging(1, 4))
    assert (log.start_offset, log.end_offset, log.change) == (3, 4, None)
    finish_syncs(stand)
    assert (log.start_offset, log.end_offset) == (3, 4)


def test_nothing_is_committed_here_before_the_start_is_safe() -> None:
    """A follower may have records below the leader's start that the leader never had."""
    stand, copy = follower()
    copy.apply(fetched_batches(batch_at(0, 1), batch_at(2, 1), high=4, start=1))
    assert (stand.partition.log.start_offset, ends(stand.partition)) == (0, (4, 0))
    assert not copy.is_synced
    copy.apply(fetched_batches(high=4, start=3))  # meanwhile, it advances
    assert (stand.partition.log.start_offset, ends(stand.partition)) == (0, (4, 0))
    finish_syncs(stand)
    assert (stand.partition.log.start_offset, ends(stand.partition)) == (3, (4, 4))
    assert copy.is_synced
