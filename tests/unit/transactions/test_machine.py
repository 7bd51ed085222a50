"""Tests the transaction coordinator in dialogues: what is allowed, and what is stored."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from barnabas.model.coordination import CoordinatorRecord, ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import TransactionSettings
from barnabas.transactions.state import State, to_record
from barnabas.transactions.transaction_machine import ASK_AGAIN, Wanted
from barnabas.transactions.transitions import LAST_EPOCH
from tests.support.talk.transactions import (
    FIRST_ID,
    TIMEOUT_MS,
    TransactionTalk,
    partition,
    raised,
)

FENCED = ErrorCode.PRODUCER_FENCED
UNMAPPED = ErrorCode.INVALID_PRODUCER_ID_MAPPING
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE
FULL = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
DAY_MS = 86_400_000


@pytest.fixture
def talk() -> TransactionTalk:
    return TransactionTalk()


def at_last_epoch(talk: TransactionTalk) -> ProducerIdAndEpoch:
    """Return a producer whose epochs are used up, without 32766 transactions."""
    talk.begin()
    stored = talk.state()
    talk.runner.machine.replay(to_record(replace(stored, producer_epoch=LAST_EPOCH)), None)
    return talk.state().producer


class TestInitialize:
    def test_a_new_id(self, talk: TransactionTalk) -> None:
        assert talk.initialize() == (FIRST_ID, 0)
        assert talk.state().state is State.EMPTY
        assert talk.initialize("other") == (FIRST_ID + 1, 0)

    def test_each_instance_fences_the_one_before(self, talk: TransactionTalk) -> None:
        first = talk.begin()
        second = talk.begin()
        assert second == raised(first)
        assert talk.add(first, "a-0") is FENCED
        assert talk.end(first, commit=True) is FENCED
        assert talk.add(second, "a-0") is ErrorCode.NONE

    @pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
    def test_timeouts_that_are_not_allowed(self, talk: TransactionTalk, timeout_ms: int) -> None:
        refused = talk.initialize(timeout_ms=timeout_ms)
        assert refused is ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert talk.initialize(timeout_ms=900_000) == (FIRST_ID, 0)

    def test_an_instance_continues(self, talk: TransactionTalk) -> None:
        first = talk.begin()
        assert talk.initialize(expected=first) == raised(first)

    def test_an_instance_that_did_not_get_the_response(self, talk: TransactionTalk) -> None:
        first = talk.begin()
        second = talk.initialize(expected=first)
        assert talk.initialize(expected=first) == second
        assert talk.initialize(expected=first) == second

    def test_a_fenced_instance_may_not_continue(self, talk: TransactionTalk) -> None:
        first = talk.begin()
        talk.begin()
        assert talk.initialize(expected=first) is FENCED
        assert talk.initialize(expected=raised(first, 5)) is FENCED

    def test_no_producer_continues_with_another_id(self, talk: TransactionTalk) -> None:
        first = talk.begin()
        assert talk.initialize(expected=first._replace(producer_id=7)) is FENCED

    def test_an_instance_may_continue_where_all_is_forgotten(self, talk: TransactionTalk) -> None:
        assert talk.initialize(expected=ProducerIdAndEpoch(7, 3)) == (FIRST_ID, 0)

    def test_continuing_after_a_crash_that_forgot_the_request(self, talk: TransactionTalk) -> None:
        first = talk.begin()
        talk.initialize(expected=first)
        talk.runner.crash()
        assert talk.initialize(expected=first) is FENCED

    def test_an_open_transaction_is_aborted_first(self, talk: TransactionTalk) -> None:
        first = talk.begin()
        talk.add(first, "a-0", "b-1")
        assert talk.initialize() == ASK_AGAIN
        (ending,) = talk.to_end
        assert (ending.state, ending.producer) == (State.PREPARE_ABORT, raised(first))
        assert ending.partitions == (partition("a-0"), partition("b-1"))
        assert talk.initialize() is CONCURRENT
        talk.write_markers()
        assert talk.initialize() == raised(first, 2)

    def test_an_instance_aborts_its_own_and_continues(self, talk: TransactionTalk) -> None:
        first = talk.begin()
        talk.add(first, "a-0")
        assert talk.initialize(expected=first) == ASK_AGAIN
        talk.write_markers()
        assert talk.initialize(expected=first) == raised(first)

    def test_a_fenced_instance_does_not_abort(self, talk: TransactionTalk) -> None:
        first = talk.begin()
        second = talk.begin()
        talk.add(second, "a-0")
        assert talk.initialize(expected=first) is FENCED
        assert talk.state().state is State.ONGOING

    @pytest.mark.parametrize("commit", [True, False])
    def test_not_while_a_transaction_ends(self, talk: TransactionTalk, commit: bool) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        after = talk.end(producer, commit=commit)
        assert talk.initialize() is CONCURRENT
        talk.write_markers()
        assert isinstance(after, ProducerIdAndEpoch)
        assert talk.initialize() == raised(after)

    def test_epochs_that_are_used_up_take_a_new_id(self, talk: TransactionTalk) -> None:
        old = at_last_epoch(talk)
        fresh = talk.initialize(expected=old)
        assert fresh == (FIRST_ID + 1, 0)
        assert talk.initialize(expected=old) == fresh
        assert talk.add(old, "a-0") is UNMAPPED

    def test_what_fences_the_last_epoch_is_never_given_out(self, talk: TransactionTalk) -> None:
        old = at_last_epoch(talk)
        talk.add(old, "a-0")
        assert talk.initialize() == ASK_AGAIN
        assert [t.producer_epoch for t in talk.write_markers()] == [LAST_EPOCH + 1]
        assert talk.initialize() == (FIRST_ID + 1, 0)

    def test_a_refused_write_changes_nothing(self, talk: TransactionTalk) -> None:
        first = talk.begin()
        talk.runner.refusal = FULL
        assert talk.initialize() is ErrorCode.KAFKA_STORAGE_ERROR
        assert talk.initialize(expected=first) is ErrorCode.KAFKA_STORAGE_ERROR
        talk.runner.refusal = None
        assert talk.state().producer == first
        assert talk.initialize(expected=first) == raised(first)


class TestAdd:
    @pytest.mark.parametrize("version", [0, 2])
    def test_the_first_partition_opens_the_transaction(
        self, talk: TransactionTalk, version: int
    ) -> None:
        producer = talk.begin()
        talk.runner.pass_time(5)
        assert talk.add(producer, "a-0", version=version) is ErrorCode.NONE
        opened = talk.state()
        assert (opened.state, opened.version) == (State.ONGOING, version)
        assert opened.started_ms == opened.updated_ms == talk.runner.wall_ms
        talk.runner.pass_time(5)
        assert talk.add(producer, "a-0", "a-1", "a-1") is ErrorCode.NONE
        assert talk.state().partitions == (partition("a-0"), partition("a-1"))
        assert talk.state().started_ms == talk.runner.wall_ms - 5

    def test_what_is_there_already_is_not_written_again(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0", "a-1")
        written = len(talk.runner.log)
        assert talk.add(producer, "a-1", "a-0") is ErrorCode.NONE
        assert len(talk.runner.log) == written

    def test_not_while_a_transaction_ends(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        after = talk.end(producer, commit=True)
        assert isinstance(after, ProducerIdAndEpoch)
        assert talk.add(after, "a-0") is CONCURRENT
        assert talk.add(producer, "a-0") is CONCURRENT
        talk.write_markers()
        assert talk.add(producer, "a-0") is FENCED
        assert talk.add(after, "a-0") is ErrorCode.NONE

    def test_an_answer_waits_for_the_commit(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.runner.hold_commits = True
        assert talk.add(producer, "a-0") is None
        assert talk.add(producer, "a-0") is None, "what was only replayed may be lost"

    def test_a_refused_write_opens_nothing(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.runner.refusal = FULL
        assert talk.add(producer, "a-0") is ErrorCode.KAFKA_STORAGE_ERROR
        talk.runner.pass_time(10 * TIMEOUT_MS)
        assert talk.state().state is State.EMPTY


@pytest.mark.parametrize("operation", [TransactionTalk.add, TransactionTalk.verify])
def test_unknown_ids_are_refused(
    talk: TransactionTalk, operation: Callable[[TransactionTalk, ProducerIdAndEpoch, str], object]
) -> None:
    assert operation(talk, ProducerIdAndEpoch(1, 0), "a-0") is UNMAPPED
    producer = talk.begin()
    assert operation(talk, producer._replace(producer_id=1), "a-0") is UNMAPPED
    assert operation(talk, raised(producer), "a-0") is FENCED


class TestVerify:
    def test_what_is_part_of_it(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        assert talk.verify(producer, "a-0") == [ABORTABLE]
        talk.add(producer, "a-0")
        assert talk.verify(producer, "a-0", "a-1") == [ErrorCode.NONE, ABORTABLE]
        assert talk.state().partitions == (partition("a-0"),)

    def test_nothing_is_part_of_what_has_ended(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0", version=0)
        talk.end(producer, commit=True, version=0)
        assert talk.verify(producer, "a-0") is CONCURRENT
        talk.write_markers()
        assert talk.verify(producer, "a-0") == [ABORTABLE]


class TestTimeout:
    def test_a_transaction_over_its_time_is_aborted(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        talk.runner.pass_time(TIMEOUT_MS - 1)
        assert talk.state().state is State.ONGOING
        talk.runner.pass_time(1)
        (ending,) = talk.write_markers()
        assert (ending.state, ending.producer) == (State.PREPARE_ABORT, raised(producer))
        assert talk.state().state is State.COMPLETE_ABORT

    def test_its_producer_is_fenced(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        talk.runner.pass_time(TIMEOUT_MS)
        talk.write_markers()
        assert talk.add(producer, "a-1") is FENCED
        assert talk.end(producer, commit=True) is ErrorCode.INVALID_TXN_STATE
        assert talk.end(producer, commit=True, version=0) is FENCED

    def test_its_producer_may_abort_and_continue(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        talk.runner.pass_time(TIMEOUT_MS)
        talk.write_markers()
        assert talk.end(producer, commit=False) == raised(producer)
        assert talk.add(raised(producer), "a-0") is ErrorCode.NONE

    def test_continuing_at_the_last_epoch_takes_a_new_id(self, talk: TransactionTalk) -> None:
        old = at_last_epoch(talk)
        talk.add(old, "a-0")
        talk.runner.pass_time(TIMEOUT_MS)
        talk.write_markers()
        fresh = talk.end(old, commit=False)
        assert fresh == (FIRST_ID + 1, 0)
        assert [t.partitions for t in talk.write_markers()] == [()]
        assert talk.end(old, commit=False) == fresh
        assert talk.initialize(expected=old) == fresh

    def test_the_time_is_that_of_the_first_partition(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        talk.runner.pass_time(TIMEOUT_MS // 2)
        talk.add(producer, "a-1")
        talk.runner.pass_time(TIMEOUT_MS // 2)
        assert talk.state().state is State.PREPARE_ABORT

    def test_one_that_ended_in_time_is_left_alone(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        after = talk.transact(producer, commit=True)
        talk.runner.pass_time(TIMEOUT_MS - 1)
        talk.add(after, "a-0")
        talk.runner.pass_time(TIMEOUT_MS - 1)
        assert talk.state().state is State.ONGOING

    def test_the_time_continues_over_a_crash(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        talk.runner.pass_time(TIMEOUT_MS - 10)
        talk.runner.crash()
        talk.runner.pass_time(9)
        assert talk.state().state is State.ONGOING
        talk.runner.pass_time(1)
        assert talk.state().state is State.PREPARE_ABORT

    def test_a_clock_that_is_behind_gives_it_no_more_than_its_time_again(
        self, talk: TransactionTalk
    ) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        talk.runner.set_clock(-3_600_000)
        talk.runner.crash()
        talk.runner.pass_time(TIMEOUT_MS)
        assert talk.state().state is State.PREPARE_ABORT

    def test_a_refused_abort_is_tried_again(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        talk.runner.refusal = FULL
        talk.runner.pass_time(TIMEOUT_MS + 15_000)
        assert talk.state().state is State.ONGOING
        talk.runner.refusal = None
        talk.runner.pass_time(10_000)
        assert [t.producer for t in talk.to_end] == [raised(producer)]

    def test_a_commit_that_comes_before_a_refused_abort_is_tried_again(
        self, talk: TransactionTalk
    ) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        talk.runner.refusal = FULL
        talk.runner.pass_time(TIMEOUT_MS)
        talk.runner.refusal = None
        assert talk.end(producer, commit=True) == raised(producer)
        talk.runner.pass_time(TIMEOUT_MS)
        assert [t.state for t in talk.to_end] == [State.PREPARE_COMMIT]


class TestMarkers:
    def test_not_before_the_outcome_is_committed(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        talk.runner.hold_commits = True
        assert talk.end(producer, commit=True) is None
        assert talk.to_end == []
        talk.runner.commit()
        assert [t.state for t in talk.to_end] == [State.PREPARE_COMMIT]

    def test_an_outcome_that_was_not_committed_may_become_another(
        self, talk: TransactionTalk
    ) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        talk.runner.hold_commits = True
        talk.end(producer, commit=True)
        talk.runner.crash()
        talk.runner.hold_commits = False
        assert talk.end(producer, commit=False) == raised(producer)

    @pytest.mark.parametrize("commit", [True, False])
    def test_they_are_sent_again_after_a_crash(self, talk: TransactionTalk, commit: bool) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0", "b-0")
        talk.end(producer, commit=commit)
        (before,) = talk.to_end
        talk.to_end.clear()
        talk.runner.crash()
        talk.runner.pass_time(10)
        assert talk.to_end == [before]
        talk.write_markers()
        done = State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT
        assert (talk.state().state, talk.state().partitions) == (done, ())

    def test_late_news_of_markers_change_nothing(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        after = talk.end(producer, commit=True)
        late = talk.to_end[0]
        talk.write_markers()
        assert isinstance(after, ProducerIdAndEpoch)
        talk.add(after, "a-0")
        talk.runner.run(lambda machine: machine.complete(late))
        assert talk.state().state is State.ONGOING
        talk.end(after, commit=False)
        talk.runner.run(lambda machine: machine.complete(late))
        assert talk.state().state is State.PREPARE_ABORT

    def test_forgotten_records_wake_no_waiting_request(self, talk: TransactionTalk) -> None:
        producer = talk.begin()
        talk.add(producer, "a-0")
        talk.end(producer, commit=True)
        (late,) = talk.to_end
        talk.runner.committed = 0
        talk.runner.crash()
        talk.runner.run(lambda machine: machine.complete(late))
        assert talk.runner.log == []


class TestForgetting:
    def test_an_unused_id(self, talk: TransactionTalk) -> None:
        talk.transact(talk.begin("t"), commit=True)
        talk.runner.pass_time(7 * DAY_MS - 3_600_000)
        talk.begin("young")
        talk.runner.pass_time(2 * 3_600_000)
        found = talk.runner.machine.find(Wanted()).response
        assert isinstance(found, list)
        assert [t.transactional_id for t in found] == ["young"]
        assert talk.runner.records[-1].value is None
        talk.runner.crash()
        assert talk.initialize("t") != raised(ProducerIdAndEpoch(FIRST_ID, 0))

    @pytest.mark.parametrize("ends", [False, True])
    def test_not_one_with_a_transaction(self, ends: bool) -> None:
        settings = TransactionSettings(max_timeout_ms=20 * DAY_MS)
        talk = TransactionTalk(settings)
        producer = talk.initialize(timeout_ms=20 * DAY_MS)
        assert isinstance(producer, ProducerIdAndEpoch)
        talk.add(producer, "a-0")
        if ends:
            talk.end(producer, commit=True)
        talk.runner.pass_time(8 * DAY_MS)
        assert talk.state().producer_id == producer.producer_id

    def test_many_at_once(self, talk: TransactionTalk) -> None:
        for number in range(1500):
            talk.begin(f"t{number}")
        talk.runner.pass_time(8 * DAY_MS)
        assert talk.runner.machine.find(Wanted()).response == []
        assert max(len(entry.records) for entry in talk.runner.log) <= 1000

    def test_a_refused_tombstone_is_tried_again(self, talk: TransactionTalk) -> None:
        talk.begin()
        talk.runner.refusal = FULL
        talk.runner.pass_time(8 * DAY_MS)
        talk.runner.refusal = None
        assert talk.state().state is State.EMPTY
        talk.runner.pass_time(3_600_000)
        assert talk.runner.machine.find(Wanted()).response == []


class TestLooking:
    def test_describe(self, talk: TransactionTalk) -> None:
        with pytest.raises(ApiError) as refused:
            talk.state("none")
        assert refused.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        talk.begin()
        assert talk.state().timeout_ms == TIMEOUT_MS

    def test_filters(self, talk: TransactionTalk) -> None:
        one, two = talk.begin("one"), talk.begin("two")
        talk.add(two, "a-0", name="two")
        talk.runner.pass_time(100)

        def found(wanted: Wanted) -> list[str]:
            listed = talk.runner.machine.find(wanted).response
            assert isinstance(listed, list)
            return [transaction.transactional_id for transaction in listed]

        assert found(Wanted()) == ["one", "two"]
        assert found(Wanted(states=frozenset({State.ONGOING}))) == ["two"]
        assert found(Wanted(states=frozenset())) == []
        assert found(Wanted(producer_ids=frozenset({one.producer_id}))) == ["one"]
        assert found(Wanted(longer_than_ms=99)) == ["one", "two"], "as in Kafka, idle ones, too"
        assert found(Wanted(longer_than_ms=100)) == ["one"]
        assert found(Wanted(matches=lambda name: name.startswith("t"))) == ["two"]


def test_records_of_a_kind_from_the_future_are_passed_over(talk: TransactionTalk) -> None:
    talk.runner.machine.replay(CoordinatorRecord(b"\0\x09future", b"?"), None)
    assert talk.runner.machine.find(Wanted()).response == []
