"""Tests transactional Produce: which batches are accepted, when they wait, and their order."""

from pathlib import Path

import pytest

from barnabas.handlers.registry import dispatch
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode, WireError
from barnabas.model.pending import Pending
from barnabas.node.coordination.node_transactions import Transactions
from barnabas.protocol.messages import produce as messages
from tests.support.talk.dialogue import CLIENT, Dialogue
from tests.support.talk.markers import Markers
from tests.support.talk.requests import batch, create_topic, error_codes, fetch, produce, read
from tests.support.talk.transaction_requests import (
    add,
    end,
    find_coordinator,
    in_transaction,
    initialize,
    produce_in,
    produce_results,
    send_end,
    send_produce_in,
)
from tests.support.talk.transactions import raised

VERIFIES, ADDS = 11, 12


class Counter:
    """Counts the requests to the coordinator."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[int] = []
        ask = Transactions.admit

        def admit(
            transactions: Transactions,
            name: str,
            producer: object,
            places: list[object],
            *,
            adds: bool,
        ) -> object:
            self.asked.append(len(places))
            return ask(transactions, name, producer, places, adds=adds)  # type: ignore[arg-type]

        monkeypatch.setattr(Transactions, "admit", admit)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return Counter(monkeypatch)


@pytest.fixture(params=["handler", "fast path"])
def talk(
    tmp_path: Path, markers: Markers, counter: Counter, request: pytest.FixtureRequest
) -> Dialogue:
    made = Dialogue(tmp_path, {"transactions.log_partitions": 3})
    create_topic(made, "a", 3)
    find_coordinator(made)
    made.fast_path = request.param == "fast path"
    return made


def values(talk: Dialogue, partition: int = 0) -> int:
    """Return how many records a partition holds."""
    return talk.node.find("a", partition).log.end_offset


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version(talk: Dialogue, version: int) -> None:
    producer = initialize(talk)
    if version < ADDS:
        add(talk, producer, ("a", 0))
    for sequence in range(3):
        assert produce_in(talk, producer, "a", sequence=sequence, version=version) == 0
    assert values(talk) == 3
    records = read(fetch(talk, "a").records)
    assert len(records) == 3


@pytest.mark.parametrize(
    ("version", "code"),
    [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE), (12, 0), (13, 0)],
)
def test_a_partition_that_was_not_added(talk: Dialogue, version: int, code: int) -> None:
    producer = initialize(talk)
    add(talk, producer, ("a", 0))
    assert produce_in(talk, producer, "a", 1, version=version) == code
    assert values(talk, 1) == (0 if code else 1)


@pytest.mark.parametrize("version", [VERIFIES, ADDS])
def test_unknown_ids_are_refused(talk: Dialogue, version: int) -> None:
    producer = initialize(talk)
    add(talk, producer, ("a", 0))
    epoch = produce_in(talk, raised(producer), "a", version=version)
    assert epoch == ErrorCode.INVALID_PRODUCER_EPOCH
    stranger = ProducerIdAndEpoch(99, 0)
    unmapped = produce_in(talk, stranger, "a", version=version)
    assert unmapped == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert values(talk) == 0


def test_a_fenced_producer_writes_nothing(talk: Dialogue) -> None:
    old = initialize(talk)
    initialize(talk)
    assert produce_in(talk, old, "a") == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", [9, 12])
def test_a_transaction_needs_a_name(talk: Dialogue, version: int) -> None:
    producer = initialize(talk)
    add(talk, producer, ("a", 0))
    sent = [("a", 0, in_transaction(producer)), ("a", 1, bytes(batch()))]
    results = produce_results(send_produce_in(talk, sent, name=None, version=version))
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert error_codes(results) == [refused, 0]
    (alone,) = produce_results(send_produce_in(talk, sent[:1], name=None, version=version))
    assert alone.error_code == refused
    assert values(talk) == 0


def test_what_is_in_no_transaction_enters_anyhow(talk: Dialogue, counter: Counter) -> None:
    sent = [("a", 0, bytes(batch(producer=(99, 0, 0))))]
    (result,) = produce_results(send_produce_in(talk, sent))
    assert (result.error_code, counter.asked) == (0, [])


def test_one_producer_a_request(talk: Dialogue) -> None:
    one, two = initialize(talk, "one"), initialize(talk, "two")
    sent = [("a", 0, in_transaction(one)), ("a", 1, in_transaction(two))]
    results = produce_results(send_produce_in(talk, sent, name="one"))
    assert error_codes(results) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    assert (values(talk, 0), values(talk, 1)) == (0, 0)


def test_several_partitions_are_admitted_at_once(talk: Dialogue, counter: Counter) -> None:
    producer = initialize(talk)
    sent = [("a", index, in_transaction(producer)) for index in range(3)]
    assert error_codes(produce_results(send_produce_in(talk, sent))) == [0, 0, 0]
    assert counter.asked == [3]


def test_no_request_is_sent_if_the_transaction_has_begun(talk: Dialogue, counter: Counter) -> None:
    producer = initialize(talk)
    for sequence in range(5):
        assert produce_in(talk, producer, "a", sequence=sequence) == 0
    assert counter.asked == [1]
    assert produce_in(talk, raised(producer), "a") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert counter.asked == [1, 1], "another epoch is another transaction"


def test_each_partition_is_answered_for_itself(talk: Dialogue) -> None:
    producer = initialize(talk)
    add(talk, producer, ("a", 1))
    spoiled = bytearray(in_transaction(producer))
    spoiled[-1] ^= 1
    sent = [
        ("a", 0, in_transaction(producer)),
        ("a", 1, in_transaction(producer)),
        ("none", 0, in_transaction(producer)),
        ("a", 1, bytes(spoiled)),
        ("a", 2, b"short"),
    ]
    results = produce_results(send_produce_in(talk, sent, version=VERIFIES))
    assert error_codes(results) == [
        ErrorCode.TRANSACTION_ABORTABLE,
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
    ]
    assert [result.index for result in results] == [0, 1, 0, 1, 2]


class TestWaiting:
    @pytest.fixture
    def producer(self, talk: Dialogue) -> ProducerIdAndEpoch:
        return initialize(talk)

    def test_batches_are_written_once_they_are_admitted(
        self, talk: Dialogue, producer: ProducerIdAndEpoch
    ) -> None:
        talk.hold_syncs = True
        exchange = send_produce_in(talk, [("a", 0, in_transaction(producer))])
        assert (exchange.waiting, values(talk)) == (True, 0)
        talk.release_syncs()
        assert error_codes(produce_results(exchange)) == [0]

    def test_the_buffer_may_be_used_again(
        self, talk: Dialogue, producer: ProducerIdAndEpoch
    ) -> None:
        talk.hold_syncs = True
        sent = in_transaction(producer, count=3)
        data = messages.PartitionProduceData(index=0, records=sent)
        topic = messages.TopicProduceData(name="a", partition_data=[data])
        request = messages.ProduceRequest(
            transactional_id="t", acks=-1, timeout_ms=1000, topic_data=[topic]
        )
        received = bytearray(talk.frame(request, ADDS))
        dispatch(talk.node, memoryview(received), CLIENT, talk.now_ms)
        received[:] = bytes(len(received))
        talk.release_syncs()
        assert fetch(talk, "a").records[16:] == sent[16:]

    def test_they_are_written_in_order(
        self, talk: Dialogue, producer: ProducerIdAndEpoch, counter: Counter
    ) -> None:
        talk.hold_syncs = True
        exchanges = [
            send_produce_in(talk, [("a", 0, in_transaction(producer, sequence))])
            for sequence in range(5)
        ]
        assert counter.asked == [1], "requests that wait share the response"
        talk.release_syncs()
        results = [result for e in exchanges for result in produce_results(e)]
        assert [(r.error_code, r.base_offset) for r in results] == [(0, n) for n in range(5)]

    def test_each_partition_waits_for_itself(
        self, talk: Dialogue, producer: ProducerIdAndEpoch, counter: Counter
    ) -> None:
        talk.hold_syncs = True
        first = send_produce_in(talk, [("a", i, in_transaction(producer)) for i in (0, 1)])
        second = send_produce_in(talk, [("a", i, in_transaction(producer, i == 1)) for i in (1, 2)])
        assert counter.asked == [2, 1]
        talk.release_syncs()
        assert error_codes(produce_results(first)) == [0, 0]
        assert [r.base_offset for r in produce_results(second)] == [1, 0]

    def test_time_can_run_out(self, talk: Dialogue, producer: ProducerIdAndEpoch) -> None:
        talk.hold_syncs = True
        exchange = send_produce_in(talk, [("a", 0, in_transaction(producer))])
        talk.pass_time(30_000)
        (result,) = produce_results(exchange)
        assert (result.error_code, result.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        talk.release_syncs()
        assert values(talk) == 1, "it may be written nevertheless"

    def test_the_next_transaction_waits_for_the_markers_of_the_last(
        self, talk: Dialogue, producer: ProducerIdAndEpoch, markers: Markers
    ) -> None:
        assert produce_in(talk, producer, "a") == 0
        markers.hold = True
        after = end(talk, producer)
        exchanges = [
            send_produce_in(talk, [("a", 1, in_transaction(after, sequence))])
            for sequence in range(3)
        ]
        assert [exchange.waiting for exchange in exchanges] == [True] * 3
        markers.release()
        talk.settle()
        results = [result for e in exchanges for result in produce_results(e)]
        assert [(r.error_code, r.base_offset) for r in results] == [(0, 0), (0, 1), (0, 2)]

    @pytest.mark.parametrize(
        ("version", "code"),
        [(11, ErrorCode.NOT_ENOUGH_REPLICAS), (12, ErrorCode.CONCURRENT_TRANSACTIONS)],
    )
    def test_not_forever(
        self,
        talk: Dialogue,
        producer: ProducerIdAndEpoch,
        markers: Markers,
        version: int,
        code: ErrorCode,
    ) -> None:
        assert produce_in(talk, producer, "a") == 0
        markers.hold = True
        after = end(talk, producer)
        exchange = send_produce_in(talk, [("a", 1, in_transaction(after))], version=version)
        talk.pass_time(1000)
        (result,) = produce_results(exchange)
        assert result.error_code == code

    def test_without_acks_there_is_no_response(
        self, talk: Dialogue, producer: ProducerIdAndEpoch, markers: Markers
    ) -> None:
        assert produce_in(talk, producer, "a") == 0
        markers.hold = True
        after = end(talk, producer)
        for sender in (producer, after):
            assert send_produce_in(talk, [("a", 1, in_transaction(sender))], acks=0).waiting
        markers.release()
        talk.settle()
        assert values(talk, 1) == 1, "the fenced producer was not accepted"
        with pytest.raises(WireError, match="INVALID_PRODUCER_EPOCH"):
            send_produce_in(talk, [("a", 2, in_transaction(producer))], acks=0)

    def test_no_coordinator(self, tmp_path: Path) -> None:
        talk = Dialogue(tmp_path / "other")
        create_topic(talk, "a")
        sent = [("a", 0, in_transaction(ProducerIdAndEpoch(1, 0)))]
        (result,) = produce_results(send_produce_in(talk, sent))
        assert result.error_code == ErrorCode.NOT_ENOUGH_REPLICAS

    def test_a_defect_is_reported(
        self, talk: Dialogue, producer: ProducerIdAndEpoch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failed: Pending[object] = Pending()
        monkeypatch.setattr(talk.node.transactions.admissions, "_admit", lambda *_, **__: failed)
        exchange = send_produce_in(talk, [("a", 0, in_transaction(producer))])
        failed.fail(RuntimeError())
        assert error_codes(produce_results(exchange)) == [ErrorCode.UNKNOWN_SERVER_ERROR]


OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("version", [9, 10, 11])
def test_a_batch_does_not_overtake_one_that_was_refused(talk: Dialogue, version: int) -> None:
    producer = initialize(talk)
    add(talk, producer, ("a", 1))
    assert produce_in(talk, producer, "a", sequence=0, version=version) != 0
    add(talk, producer, ("a", 0))
    assert produce_in(talk, producer, "a", sequence=1, version=version) == OUT_OF_ORDER
    assert produce_in(talk, producer, "a", sequence=0, version=version) == 0
    assert produce_in(talk, producer, "a", sequence=1, version=version) == 0
    assert values(talk) == 2


@pytest.fixture
def whole(tmp_path: Path) -> Dialogue:
    """Return a broker that writes its markers itself."""
    made = Dialogue(tmp_path / "whole", {"transactions.log_partitions": 3})
    create_topic(made, "a", 3)
    find_coordinator(made)
    return made


def test_a_late_repetition_holds_nothing_up(whole: Dialogue) -> None:
    talk = whole
    producer = initialize(talk)
    add(talk, producer, ("a", 0))
    assert produce_in(talk, producer, "a", sequence=0, version=VERIFIES) == 0
    assert send_end(talk, producer, commit=True, version=3).answer.error_code == 0
    talk.settle()
    assert produce_in(talk, producer, "a", sequence=0, version=VERIFIES) != 0
    add(talk, producer, ("a", 0))
    assert produce_in(talk, producer, "a", sequence=1, version=VERIFIES) == 0


@pytest.mark.parametrize(("version", "code"), [(11, 0), (12, OUT_OF_ORDER), (13, OUT_OF_ORDER)])
def test_the_first_batch_of_a_producer_that_is_not_known(
    talk: Dialogue, version: int, code: int
) -> None:
    producer = initialize(talk)
    add(talk, producer, ("a", 0))
    assert produce_in(talk, producer, "a", sequence=5, version=version) == code
    assert produce_in(talk, producer, "a", sequence=0, version=version) == (0 if code else 45)
    assert values(talk) == 1


def test_after_a_restart_a_transaction_continues(talk: Dialogue) -> None:
    producer = initialize(talk)
    assert produce_in(talk, producer, "a", sequence=0) == 0
    talk.restart()
    find_coordinator(talk)
    assert produce_in(talk, producer, "a", sequence=1) == 0
    after = end(talk, producer)
    assert produce_in(talk, after, "a", sequence=1) == OUT_OF_ORDER
    assert produce_in(talk, after, "a", sequence=0) == 0


def test_a_marker_ends_what_was_held_up(whole: Dialogue) -> None:
    talk = whole
    producer = initialize(talk)
    add(talk, producer, ("a", 1))
    assert produce_in(talk, producer, "a", sequence=0, version=VERIFIES) != 0
    partition = talk.node.find("a", 0)
    assert list(partition.leader.verifications.by_id) == [producer.producer_id]
    add(talk, producer, ("a", 0))
    end(talk, producer, commit=False)
    talk.settle()
    assert partition.leader.verifications.by_id == {}


def test_a_transaction_after_the_other(talk: Dialogue) -> None:
    producer = initialize(talk)
    for _ in range(3):
        assert produce_in(talk, producer, "a") == 0
        producer = end(talk, producer)
    late = send_end(talk, producer, commit=True).answer
    assert late.error_code == ErrorCode.INVALID_TXN_STATE


def test_plain_producers_are_not_asked_about(talk: Dialogue, counter: Counter) -> None:
    assert produce(talk, "a").error_code == 0
    assert produce(talk, "a", batch(producer=(9, 0, 0))).error_code == 0
    assert counter.asked == []
