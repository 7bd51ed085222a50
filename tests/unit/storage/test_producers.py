"""Tests idempotent producers: retries, gaps in sequences, and snapshots."""

from random import Random

import pytest

from barnabas.model.errors import ApiError, CorruptBatchError, ErrorCode
from barnabas.protocol.records import BatchHeader, parse_header
from barnabas.storage import producer_snapshots
from barnabas.storage.compacting import compaction
from barnabas.storage.log import Log, LogSettings
from barnabas.storage.producers import SEQUENCE_MASK, ProducerStates, SentBatch
from barnabas.storage.recovery import open_log
from tests.support.disks.log_changes import swap_in
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import append, make_batch

FOLDER = "data/orders/0"


def header(sequence: int, count: int = 1, epoch: int = 0, producer: int = 7) -> BatchHeader:
    return parse_header(make_batch(count, producer=(producer, epoch, sequence)))


def sent(*sequences: int, epoch: int = 0) -> ProducerStates:
    states = ProducerStates()
    for number, sequence in enumerate(sequences):
        states.record(header(sequence, epoch=epoch), 100 + number)
    return states


def code_of(states: ProducerStates, batch: BatchHeader) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        states.check(batch)
    return caught.value.code


def test_the_last_five_are_known_and_answered_with_their_offset() -> None:
    states = sent(*range(8))
    for sequence in range(3, 8):
        assert states.check(header(sequence)) == SentBatch(
            sequence, sequence, 100 + sequence, 100 + sequence
        )
    assert code_of(states, header(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(header(8)) is None


def test_the_same_start_with_another_length_is_no_repetition() -> None:
    states = sent(0, 1, 2)
    assert code_of(states, header(2, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("sequence", [0, 4, 6, 100])
def test_a_gap_is_refused(sequence: int) -> None:
    states = ProducerStates()
    states.record(header(2, count=3), 0)
    assert code_of(states, header(sequence)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(header(5)) is None


def test_any_sequence_of_an_unknown_producer_is_accepted() -> None:
    assert ProducerStates().check(header(1_234)) is None


def test_sequences_wrap() -> None:
    states = sent(SEQUENCE_MASK)
    assert states.check(header(0)) is None
    states = ProducerStates()
    states.record(header(SEQUENCE_MASK - 1, count=4), 0)
    assert states.by_id[7].batches[-1].last_sequence == 1
    assert states.check(header(2)) is None
    assert states.check(header(SEQUENCE_MASK - 1, count=4)) is not None


def test_a_new_epoch_starts_at_zero_and_ends_the_old_one() -> None:
    states = sent(0, 1)
    assert code_of(states, header(2, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(header(0, epoch=1)) is None
    states.record(header(0, epoch=1), 200)
    assert code_of(states, header(2, epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert [b.first_offset for b in states.by_id[7].batches] == [200]


def test_a_snapshot_keeps_everything() -> None:
    states = sent(*range(9), epoch=3)
    states.record(header(0, producer=8), 500)
    again = producer_snapshots.decode(producer_snapshots.encode(states))
    assert set(again.by_id) == {7, 8}
    assert again.by_id[7].batches == states.by_id[7].batches
    assert (again.by_id[7].epoch, again.by_id[7].last_timestamp) == (3, 1_000)


def test_damage_anywhere_in_a_snapshot_is_detected() -> None:
    content = producer_snapshots.encode(sent(0, 1))
    for bit in range(len(content) * 8):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptBatchError):
            producer_snapshots.decode(bytes(damaged))
    for size in range(len(content)):
        with pytest.raises(CorruptBatchError):
            producer_snapshots.decode(content[:size])


def test_the_silent_are_forgotten() -> None:
    states = sent(0)
    states.expire(1_000)
    assert 7 in states.by_id
    states.expire(1_001)
    assert not states.by_id


def test_a_restart_knows_what_was_known() -> None:
    disk = MemoryDisk()
    settings = LogSettings(segment_bytes=400)
    log = open_log(disk, FOLDER, settings).log
    for number in range(12):
        append(log, make_batch(2, producer=(7, 0, 2 * number)))
    known = log.producers.by_id[7].batches
    assert open_log(disk, FOLDER, settings).log.producers.by_id[7].batches == known
    log.flush()
    log.close()
    again = open_log(disk, FOLDER, settings, clean=True).log
    assert again.producers.by_id[7].batches == known


def test_a_damaged_snapshot_is_rebuilt_from_the_log() -> None:
    disk = MemoryDisk()
    log = open_log(disk, FOLDER, LogSettings()).log
    for number in range(7):
        append(log, make_batch(2, producer=(7, 0, 2 * number)))
    known = log.producers.by_id[7].batches
    log.flush()
    log.close()
    path = f"{FOLDER}/{14:020d}.snapshot"
    disk.flip(path, 77)
    recovered = open_log(disk, FOLDER, LogSettings(), clean=True)
    assert recovered.log.producers.by_id[7].batches == known
    assert path in recovered.problems[0]
    assert not disk.exists(path)


def test_a_truncation_remembers_what_came_before_the_window() -> None:
    disk = MemoryDisk()
    log = open_log(disk, FOLDER, LogSettings(segment_bytes=400)).log
    for number in range(20):
        append(log, make_batch(1, producer=(7, 0, number)))
    log.truncate(10)
    assert [b.first_sequence for b in log.producers.by_id[7].batches] == [5, 6, 7, 8, 9]
    log.truncate(0)
    assert not log.producers.by_id
    assert [name for name in disk.list(FOLDER) if name.endswith(".snapshot")] == []


def test_a_snapshot_from_beyond_the_end_is_ignored() -> None:
    disk = MemoryDisk()
    log = open_log(disk, FOLDER, LogSettings()).log
    append(log, make_batch(1, producer=(7, 0, 0)))
    disk.write_atomic(f"{FOLDER}/{50:020d}.snapshot", producer_snapshots.encode(sent(90)))
    disk.write_atomic(f"{FOLDER}/notes.snapshot", b"somebody else's")
    again = open_log(disk, FOLDER, LogSettings()).log
    assert [b.first_sequence for b in again.producers.by_id[7].batches] == [0]
    assert disk.exists(f"{FOLDER}/notes.snapshot")


def forgetful(count: int) -> tuple[MemoryDisk, LogSettings]:
    """Return a log whose first batches are superseded, and are their producer's only ones."""
    disk, settings = MemoryDisk(), LogSettings(segment_bytes=400)
    log = open_log(disk, FOLDER, settings).log
    append(log, make_batch([(b"a", b"1")], producer=(7, 0, 0)))
    for number in range(count):
        append(log, make_batch([(b"a", b"2")], producer=(8, 0, number)))
    log.flush()
    return disk, settings


def compact_all(log: Log, upto: int) -> None:
    work = compaction.plan(
        log, compaction.Urgency(0, 0, 1 << 40), delete_retention_ms=1, now_ms=1, upto=upto
    )
    assert work is not None
    swap_in(log, compaction.clean(log.disk, work))


def test_what_compaction_removes_is_remembered_even_after_a_crash_took_the_snapshots() -> None:
    disk, settings = forgetful(9)
    for name in disk.list(FOLDER):
        if name.endswith(".snapshot"):
            disk.remove(f"{FOLDER}/{name}")
    log = open_log(disk, FOLDER, settings).log
    compact_all(log, log.end_offset)
    again = open_log(disk, FOLDER, settings, recovery_point=log.end_offset).log
    assert again.producers.check(header(0)) == SentBatch(0, 0, 0, 0)


def test_what_compaction_removes_is_remembered_after_a_truncation() -> None:
    disk, settings = forgetful(20)
    log = open_log(disk, FOLDER, settings).log
    compacted = log.segments[1].base_offset
    compact_all(log, compacted)
    for cut in (compacted + 1, compacted):
        log.truncate(cut)
        assert log.producers.check(header(0)) == SentBatch(0, 0, 0, 0)
    for number in range(3):
        append(log, make_batch([(b"a", b"3")], producer=(9, 0, number)))
        log.store_memory()
    log.truncate(compacted)
    assert log.producers.check(header(0)) == SentBatch(0, 0, 0, 0)


@pytest.mark.parametrize("seed", range(30))
def test_snapshots_of_what_was_cut_do_not_come_back(seed: int) -> None:
    disk = MemoryDisk()
    log = open_log(disk, FOLDER, LogSettings(), root="data").log
    append(log, make_batch(producer=(7, 0, 0)))
    log.roll()
    log.flush()
    log.truncate(0)
    append(log, make_batch(producer=(8, 0, 0)))
    log.flush()
    log.roll()
    disk.power_cut(Random(seed))
    again = open_log(disk, FOLDER, LogSettings(), root="data").log
    assert set(again.producers.by_id) == {8}
