"""Tests EndTxn in every state, for clients of transaction version 2 and for older ones."""

from dataclasses import replace

import pytest

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.transactions.state import State, to_record
from barnabas.transactions.transitions import EPOCH_MAX, LAST_EPOCH
from tests.support.talk.transactions import FIRST_ID, TransactionTalk, partition, raised

FENCED = ErrorCode.PRODUCER_FENCED
WRONG = ErrorCode.INVALID_TXN_STATE
UNMAPPED = ErrorCode.INVALID_PRODUCER_ID_MAPPING
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
OLD, NEW = 0, 2


@pytest.fixture
def talk() -> TransactionTalk:
    return TransactionTalk()


def idle(talk: TransactionTalk, state: State) -> ProducerIdAndEpoch:
    """Reach a state without a transaction; return the producer that may begin one."""
    producer = talk.begin()
    if state is State.EMPTY:
        return talk.begin()
    return talk.transact(producer, commit=state is State.COMPLETE_COMMIT)


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_raises_the_epoch(talk: TransactionTalk, commit: bool) -> None:
    producer = talk.begin()
    talk.add(producer, "a-0", "b-0")
    assert talk.end(producer, commit=commit) == raised(producer)
    (ending,) = talk.write_markers()
    assert (ending.producer, ending.version) == (raised(producer), NEW), "markers carry it, too"
    assert ending.partitions == (partition("a-0"), partition("b-0"))
    assert ending.commits is commit
    assert talk.state().producer == raised(producer)
    assert talk.state().state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)


@pytest.mark.parametrize("commit", [True, False])
def test_for_old_clients_the_epoch_stays(talk: TransactionTalk, commit: bool) -> None:
    producer = talk.begin()
    for _ in range(2):
        talk.add(producer, "a-0", version=OLD)
        assert talk.end(producer, commit=commit, version=OLD) == producer
        (ending,) = talk.write_markers()
        assert (ending.producer, ending.version, ending.commits) == (producer, OLD, commit)


@pytest.mark.parametrize("version", [OLD, NEW])
def test_unknown_ids_are_refused(talk: TransactionTalk, version: int) -> None:
    assert talk.end(ProducerIdAndEpoch(1, 0), commit=True, version=version) is UNMAPPED
    producer = talk.begin()
    talk.add(producer, "a-0")
    other = producer._replace(producer_id=1)
    assert talk.end(other, commit=True, version=version) is UNMAPPED
    assert talk.end(raised(producer), commit=True, version=version) is FENCED
    assert talk.end(raised(producer, -1), commit=True, version=version) is FENCED
    assert talk.state().state is State.ONGOING


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_a_repeated_end(talk: TransactionTalk, version: int, ends: bool, again: bool) -> None:
    producer = talk.begin()
    talk.add(producer, "a-0", version=version)
    after = talk.end(producer, commit=ends, version=version)
    assert talk.end(producer, commit=again, version=version) is CONCURRENT
    talk.write_markers()
    expected = after if again == ends else WRONG
    for _ in range(2):
        assert talk.end(producer, commit=again, version=version) == expected
    assert talk.to_end == []


@pytest.mark.parametrize(
    ("state", "commit", "retry", "expected"),
    [
        (State.EMPTY, False, True, FENCED),
        (State.EMPTY, False, False, None),
        (State.EMPTY, True, True, FENCED),
        (State.EMPTY, True, False, WRONG),
        (State.COMPLETE_ABORT, False, True, ErrorCode.NONE),
        (State.COMPLETE_ABORT, False, False, None),
        (State.COMPLETE_ABORT, True, True, WRONG),
        (State.COMPLETE_ABORT, True, False, WRONG),
        (State.COMPLETE_COMMIT, False, True, WRONG),
        (State.COMPLETE_COMMIT, False, False, None),
        (State.COMPLETE_COMMIT, True, True, ErrorCode.NONE),
        (State.COMPLETE_COMMIT, True, False, WRONG),
    ],
)
def test_where_nothing_is_open(
    talk: TransactionTalk, state: State, commit: bool, retry: bool, expected: ErrorCode | None
) -> None:
    """The table of `transactions/transitions.py`; None is an abort, NONE a successful response."""
    producer = idle(talk, state)
    asker = raised(producer, -1) if retry else producer
    answer = talk.end(asker, commit=commit)
    ended = talk.write_markers()
    if expected is None:
        assert answer == raised(producer)
        assert [(t.partitions, t.state) for t in ended] == [((), State.PREPARE_ABORT)]
        assert talk.state().state is State.COMPLETE_ABORT
    else:
        assert answer == (producer if expected is ErrorCode.NONE else expected)
        assert (ended, talk.state().state) == ([], state)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_where_nothing_is_open_for_old_clients(
    talk: TransactionTalk, state: State, commit: bool
) -> None:
    producer = idle(talk, state)
    reached = State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT
    expected = producer if state is reached else WRONG
    assert talk.end(producer, commit=commit, version=OLD) == expected
    assert talk.end(raised(producer, -1), commit=commit, version=OLD) is FENCED
    assert talk.to_end == []


def test_an_abort_of_nothing_may_be_repeated(talk: TransactionTalk) -> None:
    producer = talk.begin()
    assert talk.end(producer, commit=False) == raised(producer)
    talk.write_markers()
    assert talk.end(producer, commit=False) == raised(producer)
    assert talk.end(raised(producer), commit=False) == raised(producer, 2)


class TestLastEpoch:
    @pytest.fixture
    def last(self, talk: TransactionTalk) -> ProducerIdAndEpoch:
        talk.begin()
        stored = replace(talk.state(), producer_epoch=LAST_EPOCH)
        talk.runner.machine.replay(to_record(stored), None)
        return stored.producer

    @pytest.mark.parametrize("commit", [True, False])
    def test_the_next_transaction_has_a_new_id(
        self, talk: TransactionTalk, last: ProducerIdAndEpoch, commit: bool
    ) -> None:
        talk.add(last, "a-0")
        fresh = ProducerIdAndEpoch(FIRST_ID + 1, 0)
        assert talk.end(last, commit=commit) == fresh
        assert talk.add(fresh, "a-0") is CONCURRENT
        assert talk.end(last, commit=commit) is CONCURRENT
        (ending,) = talk.write_markers()
        assert ending.producer == (last.producer_id, EPOCH_MAX), "the marker carries the old epoch"
        assert talk.end(last, commit=commit) == fresh
        assert talk.end(last, commit=not commit) is WRONG
        assert talk.add(last, "a-0") is UNMAPPED
        assert talk.add(fresh, "a-0") is ErrorCode.NONE
        assert talk.end(last, commit=commit) is UNMAPPED
        assert talk.end(fresh, commit=commit) == raised(fresh)

    def test_the_new_id_survives_a_crash(
        self, talk: TransactionTalk, last: ProducerIdAndEpoch
    ) -> None:
        talk.runner.run(lambda machine: machine.add("t", last, [partition("a-0")], NEW))
        fresh = talk.end(last, commit=True)
        talk.to_end.clear()
        talk.runner.crash()
        talk.runner.pass_time(10)
        talk.write_markers()
        assert talk.state().producer == fresh
        assert talk.end(last, commit=True) == fresh

    def test_old_clients_keep_it(self, talk: TransactionTalk, last: ProducerIdAndEpoch) -> None:
        talk.add(last, "a-0", version=OLD)
        assert talk.end(last, commit=True, version=OLD) == last
        talk.write_markers()
        assert talk.add(last, "a-0", version=OLD) is ErrorCode.NONE


def test_an_answer_waits_for_the_commit(talk: TransactionTalk) -> None:
    producer = talk.begin()
    talk.add(producer, "a-0")
    talk.runner.hold_commits = True
    answer = talk.send_end(producer, commit=True)
    assert not isinstance(answer, ErrorCode)
    assert not answer.done
    talk.runner.commit()
    assert answer.done


def test_a_refused_write_ends_nothing(talk: TransactionTalk) -> None:
    producer = talk.begin()
    talk.add(producer, "a-0")
    talk.runner.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    assert talk.end(producer, commit=True) is ErrorCode.KAFKA_STORAGE_ERROR
    talk.runner.refusal = None
    assert (talk.state().state, talk.to_end) == (State.ONGOING, [])
    assert talk.end(producer, commit=False) == raised(producer)
