"""Tests the runner of coordinators: records first, responses after, same state after a restart."""

from functools import partial

import pytest

from barnabas.effects import Notice
from barnabas.model.coordination import (
    CoordinatorRecord,
    Outcome,
    ProducerIdAndEpoch,
)
from barnabas.model.errors import ApiError, CorruptBatchError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.coordination.coordinator_set import java_hash
from barnabas.node.coordination.coordinator_shard import Shard
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.edge import Edge

WRITER = ProducerIdAndEpoch(7, 3)


class Notes:
    """A state machine that keeps its input, and operations that wait for a transaction."""

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}
        self.waiting: dict[bytes, bytes] = {}
        self.is_loaded = False

    def replay(self, record: CoordinatorRecord, producer: ProducerIdAndEpoch | None) -> None:
        notes = self.kept if producer is None else self.waiting
        if record.value is None:
            notes.pop(record.key, None)
        else:
            notes[record.key] = record.value

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        assert producer == WRITER
        assert committed
        self.kept |= self.waiting

    def loaded(self) -> None:
        self.is_loaded = True

    def note(self, key: bytes, value: bytes | None, answer: object = "noted") -> Outcome[object]:
        return Outcome(answer, [CoordinatorRecord(key, value)])


def shard_on(edge: Edge) -> Shard[Notes]:
    partition = edge.node.partitions[TopicPartition("notes", 0)]
    return Shard(partition, edge.node.timers, edge.node.outbox, lambda _: Notes())


def started() -> tuple[Edge, Shard[Notes]]:
    edge = Edge(MemoryDisk()).start()
    edge.create("notes", {"cleanup.policy": "compact"})
    return edge, shard_on(edge)


def answers_of(pending: Pending[object]) -> list[object]:
    answers: list[object] = []
    pending.when_done(answers.append)
    return answers


def test_an_answer_waits_until_its_records_are_safe() -> None:
    edge, shard = started()
    edge.hold_syncs = True
    answers = answers_of(shard.run(lambda: shard.machine.note(b"k", b"v")))
    edge.settle()
    assert (shard.machine.kept, answers) == ({b"k": b"v"}, [])
    edge.release()
    assert answers == ["noted"]


def test_a_reader_is_not_shown_what_a_power_cut_could_take_back() -> None:
    edge, shard = started()
    edge.hold_syncs = True
    shard.run(lambda: shard.machine.note(b"k", b"v"))
    seen = answers_of(shard.run(lambda: Outcome[object](shard.machine.kept[b"k"])))
    edge.settle()
    assert seen == []
    edge.release()
    assert seen == [b"v"]


def test_an_answer_that_is_pending_waits_for_both() -> None:
    edge, shard = started()
    edge.hold_syncs = True
    later: Pending[object] = Pending()
    answers = answers_of(shard.run(lambda: shard.machine.note(b"k", b"v", later)))
    edge.settle()
    edge.release()
    assert answers == []
    later.complete("at last")
    assert answers == ["at last"]


def test_a_refused_write_is_not_replayed_and_the_machine_is_notified() -> None:
    edge, shard = started()
    disk = edge.node.disk
    assert isinstance(disk, MemoryDisk)
    disk.room = 0
    refused: list[ErrorCode] = []
    outcome = shard.machine.note(b"k", b"v")
    outcome.refused = lambda error: refused.append(error.code)
    with pytest.raises(ApiError):
        shard.run(lambda: outcome)
    assert (shard.machine.kept, refused) == ({}, [ErrorCode.KAFKA_STORAGE_ERROR])


def test_what_was_scheduled_happens_once_under_its_latest_name() -> None:
    edge, shard = started()
    said: list[str] = []

    def say(word: str) -> Outcome[None]:
        said.append(word)
        return Outcome(None)

    shard.schedule("a", 10, lambda: say("first"))
    shard.schedule("a", 20, lambda: say("second"))
    shard.schedule("b", 10, lambda: say("never"))
    shard.cancel("b")
    edge.pass_time(15)
    assert said == []
    edge.pass_time(100)
    assert said == ["second"]


def test_a_scheduled_operation_that_cannot_be_stored_is_reported() -> None:
    edge, shard = started()
    disk = edge.node.disk
    assert isinstance(disk, MemoryDisk)
    disk.room = 0
    shard.schedule("a", 10, lambda: Outcome(None, [CoordinatorRecord(b"k", b"v")]))
    edge.node.timers.now_ms += 20
    edge.node.timers.fire()
    told = [effect.event for effect in edge.node.outbox if isinstance(effect, Notice)]
    assert "a coordinator cannot store a change" in told


def test_a_successor_has_the_same_state() -> None:
    edge, shard = started()
    shard.run(lambda: shard.machine.note(b"k", b"1"))
    shard.run(lambda: shard.machine.note(b"k", b"2"))
    shard.run(lambda: shard.machine.note(b"gone", b"1"))
    shard.run(lambda: shard.machine.note(b"gone", None))
    records = [CoordinatorRecord(b"t", b"3")]
    shard.run(lambda: Outcome[object]("in a transaction", records, producer=WRITER))
    edge.settle()
    again = shard_on(edge).machine
    assert again.is_loaded
    assert (again.kept, again.waiting) == ({b"k": b"2"}, {b"t": b"3"})


def test_damage_in_stored_batches_is_reported_so_that_another_replica_leads() -> None:
    edge, shard = started()
    shard.run(lambda: shard.machine.note(b"good", b"1"))
    shard.run(lambda: shard.machine.note(b"bad", b"1"))
    edge.settle()
    partition = shard.partition
    segment = partition.log.active
    segment.trust.starts_at(segment.size)  # as after a start
    assert isinstance(edge.disk, MemoryDisk)
    edge.disk.flip(segment.paths[0], (segment.size - 1) * 8)
    with pytest.raises(CorruptBatchError):
        shard_on(edge)
    assert partition.health.damaged_at == 1


class TestClosing:
    """Move the partition to another coordinator."""

    def test_waiting_requests_get_a_response(self) -> None:
        edge, shard = started()
        failures: list[Exception] = []
        joining: Pending[object] = Pending()
        shard.run(lambda: Outcome[object](joining)).when_done(lambda _: None, failures.append)
        edge.hold_syncs = True
        shard.run(lambda: shard.machine.note(b"k", b"w")).when_done(lambda _: None, failures.append)
        shard.safe(shard.partition.log.end_offset, None).when_done(lambda _: None, failures.append)
        shard.close()
        codes = [failure.code for failure in failures if isinstance(failure, ApiError)]
        assert codes == [ErrorCode.NOT_COORDINATOR] * 3

    def test_what_becomes_safe_afterwards_has_no_consequences(self) -> None:
        edge, shard = started()
        edge.hold_syncs = True
        happened: list[str] = []
        outcome = shard.machine.note(b"k", b"v")
        outcome.committed = lambda: happened.append("committed")
        shard.run(lambda: outcome).when_done(lambda _: happened.append("answered"))
        edge.settle()
        shard.close()
        edge.release()
        assert happened == []

    def test_nothing_is_written_or_scheduled_any_more(self) -> None:
        edge, shard = started()
        said: list[str] = []

        def say() -> Outcome[None]:
            said.append("late")
            return Outcome(None, [CoordinatorRecord(b"k", b"v")])

        shard.schedule("before", 10, say)
        shard.close()
        shard.schedule("after", 10, say)
        shard.run_quietly(say)
        with pytest.raises(ApiError) as caught:
            shard.run(say)
        with pytest.raises(ApiError):
            shard.append_prepared(b"", 0, lambda: None)
        edge.pass_time(100)
        assert caught.value.code is ErrorCode.NOT_COORDINATOR
        assert (said, shard.partition.log.end_offset, edge.notices) == ([], 0, [])

    def test_another_epoch_is_another_shards_business(self) -> None:
        _, shard = started()
        shard.partition.leader_epoch += 1
        with pytest.raises(ApiError) as caught:
            shard.run(lambda: shard.machine.note(b"k", b"v"))
        assert caught.value.code is ErrorCode.NOT_COORDINATOR


def test_answers_that_were_given_are_not_kept() -> None:
    edge, shard = started()
    edge.hold_syncs = True
    for _ in range(1000):
        shard.run(lambda: shard.machine.note(b"k", b"v"))
        edge.settle()
        edge.release()
    assert len(shard._answers) <= 64


class TestLoading:
    """Stored records are loaded in pieces; requests are served once all are loaded."""

    def stored(self) -> tuple[Edge, Shard[Notes]]:
        edge, shard = started()
        for number in range(3):
            shard.run(partial(shard.machine.note, b"%d" % number, b"v"))
        edge.settle()
        partition = shard.partition
        again = Shard(partition, edge.node.timers, edge.node.outbox, lambda _: Notes(), load=False)
        return edge, again

    def test_piece_by_piece(self) -> None:
        _, shard = self.stored()
        steps = []
        while not shard.load(1):
            steps.append(len(shard.machine.kept))
            with pytest.raises(ApiError) as caught:
                shard.run(lambda: shard.machine.note(b"k", b"v"))
            assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (steps, shard.machine.is_loaded, shard.is_open) == ([1, 2, 3], True, True)

    def test_work_without_a_waiting_client_is_deferred(self) -> None:
        _, shard = self.stored()
        shard.run_quietly(lambda: Outcome(None, [CoordinatorRecord(b"late", b"v")]))
        shard.load(1)
        assert b"late" not in shard.machine.kept
        shard.load(None)
        assert b"late" in shard.machine.kept

    def test_not_after_the_end(self) -> None:
        _, shard = self.stored()
        shard.load(1)
        shard.close()
        assert shard.load(None)
        assert (shard.is_closed, shard.machine.is_loaded) == (True, False)


@pytest.mark.parametrize(
    ("text", "hashed"), [("", 0), ("a", 97), ("ab", 3105), ("hello", 99162322), ("Ω🙂", 2673422)]
)
def test_a_name_hashes_as_in_java(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed
