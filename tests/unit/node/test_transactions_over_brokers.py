"""Tests transactions whose coordinator, partitions and groups are on different brokers."""

from pathlib import Path

import pytest

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.node.coordination import coordinator_set
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.markers import COMMIT, parse_marker
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from tests.support.talk.batches import batches_in
from tests.support.talk.dialogue import Exchange
from tests.support.talk.offset_requests import (
    transactional_request,
)
from tests.support.talk.requests import batch, error_codes, produce
from tests.support.talk.spread_transactions import (
    A0,
    A1,
    COORDINATOR,
    GROUPS,
    commit_code,
    spread,
    state,
)
from tests.support.talk.together import Together
from tests.support.talk.transaction_requests import (
    add,
    add_codes,
    add_offsets,
    end,
    in_transaction,
    initialize,
    produce_in,
    produce_results,
    send_add,
    send_end,
    send_initialize,
    send_produce_in,
)
from tests.support.talk.transactions import raised

VERIFIES, ADDS = 11, 12
OLD_END, NEW_END = 4, 5
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR


@pytest.fixture
def brokers(tmp_path: Path) -> Together:
    return spread(tmp_path)


def send(
    brokers: Together, producer: ProducerIdAndEpoch, number: int = 2, version: int = ADDS
) -> Exchange:
    """Send a batch to the broker that leads the partition at first."""
    place = number - 2
    return send_produce_in(
        brokers[number], [("a", place, in_transaction(producer))], version=version
    )


def code(exchange: Exchange) -> int:
    (only,) = error_codes(produce_results(exchange))
    return only


def markers(brokers: Together, place: TopicPartition) -> list[tuple[int, int, int]]:
    """Return epoch, kind and coordinator's epoch of every marker in its leader's log."""
    partition = brokers.partition(brokers.placed(place).leader, place)
    piece = partition.read(0, 1 << 20, committed_only=False, at_least_one=True)
    return [
        (header.producer_epoch, *parse_marker(content, header))
        for header, content in batches_in(piece)
        if header.is_control
    ]


def is_open(brokers: Together, place: TopicPartition, producer: ProducerIdAndEpoch) -> bool:
    partition = brokers.partition(brokers.placed(place).leader, place)
    return partition.log.producers.open_transaction(producer.producer_id) is not None


class TestAdmissions:
    @pytest.mark.parametrize("version", [VERIFIES, ADDS])
    def test_the_coordinator_is_asked_where_it_is(self, brokers: Together, version: int) -> None:
        producer = initialize(brokers[1])
        if version == VERIFIES:
            add(brokers[1], producer, A0)
        assert code(send(brokers, producer, version=version)) == 0
        assert (2, 1, ApiKey.ADD_PARTITIONS_TO_TXN) in brokers.asked
        assert is_open(brokers, A0, producer)
        again = [("a", 0, in_transaction(producer, 1))]
        count = len(brokers.asked)
        assert code(send_produce_in(brokers[2], again, version=version)) == 0
        assert len(brokers.asked) == count, "no request is sent if the transaction has begun there"

    @pytest.mark.parametrize(
        ("version", "expected"), [(10, ErrorCode.INVALID_TXN_STATE), (11, 120), (12, 0)]
    )
    def test_a_partition_that_was_not_added(
        self, brokers: Together, version: int, expected: int
    ) -> None:
        producer = initialize(brokers[1])
        add(brokers[1], producer, A1)
        assert code(send(brokers, producer, version=version)) == expected

    @pytest.mark.parametrize("version", [VERIFIES, ADDS])
    def test_unknown_ids_are_refused(self, brokers: Together, version: int) -> None:
        producer = initialize(brokers[1])
        fenced = code(send(brokers, raised(producer), version=version))
        assert fenced == ErrorCode.INVALID_PRODUCER_EPOCH
        unknown = code(send(brokers, ProducerIdAndEpoch(99, 0), version=version))
        assert unknown == ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def test_what_comes_up_meanwhile_is_asked_together(self, brokers: Together) -> None:
        producers = {name: initialize(brokers[1], name) for name in ("x", "y", "z")}
        brokers.hold(ApiKey.ADD_PARTITIONS_TO_TXN)
        sent = [
            send_produce_in(brokers[2], [("a", 0, in_transaction(producer))], name=name)
            for name, producer in producers.items()
        ]
        assert brokers.asked.count((2, 1, ApiKey.ADD_PARTITIONS_TO_TXN)) == 1
        brokers.release()
        assert [code(exchange) for exchange in sent] == [0, 0, 0]
        assert brokers.asked.count((2, 1, ApiKey.ADD_PARTITIONS_TO_TXN)) == 2

    def test_a_lost_answer_is_asked_for_again(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        brokers.dead.add(1)
        exchange = send(brokers, producer)
        brokers.pass_time(100)
        brokers.dead.clear()
        brokers.pass_time(200)
        assert code(exchange) == 0

    def test_not_forever(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        brokers.dead.add(1)
        exchange = send(brokers, producer)
        brokers.pass_time(1000)
        assert code(exchange) == ErrorCode.NOT_ENOUGH_REPLICAS

    @pytest.mark.parametrize("to", [2, 3])
    def test_a_coordinator_that_moves_is_followed(self, brokers: Together, to: int) -> None:
        producer = initialize(brokers[1])
        brokers.hold(ApiKey.ADD_PARTITIONS_TO_TXN)
        exchange = send(brokers, producer)
        brokers.move(*COORDINATOR, to=to)
        brokers.release()
        assert exchange.waiting
        brokers.pass_time(10)
        assert code(exchange) == 0
        assert ((2, 3, ApiKey.ADD_PARTITIONS_TO_TXN) in brokers.asked) == (to == 3)
        assert state(brokers, to) == "Ongoing"

    def test_there_is_no_coordinator(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        brokers.remove_leader(*COORDINATOR)
        exchange = send(brokers, producer)
        brokers.pass_time(1000)
        assert code(exchange) == ErrorCode.NOT_ENOUGH_REPLICAS

    def test_the_next_transaction_waits_for_the_markers_of_the_last(
        self, brokers: Together
    ) -> None:
        producer = initialize(brokers[1])
        assert code(send(brokers, producer, 3)) == 0
        brokers.hold(ApiKey.WRITE_TXN_MARKERS)
        after = end(brokers[1], producer)
        exchange = send(brokers, after)
        brokers.pass_time(50)
        assert exchange.waiting
        brokers.release()
        brokers.pass_time(100)
        assert code(exchange) == 0
        assert state(brokers) == "Ongoing"

    def test_a_coordinator_that_cannot_store_answers_in_time(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        brokers.stop_commits(*COORDINATOR)
        exchange = send_add(brokers[1], producer, A0, version=5)
        brokers.pass_time(1000)
        assert add_codes(exchange) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


class TestGuards:
    """The coordinator reported an open transaction, but its marker came first (KIP-890)."""

    def test_a_batch_that_comes_after_the_marker_is_refused(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        add(brokers[1], producer, A0)
        brokers.hold(ApiKey.ADD_PARTITIONS_TO_TXN, "answers")
        exchange = send(brokers, producer, version=VERIFIES)
        assert send_end(brokers[1], producer, commit=False, version=OLD_END).answer.error_code == 0
        assert markers(brokers, A0) == [(producer.producer_epoch, 0, 0)]
        brokers.release()
        assert code(exchange) == ErrorCode.INVALID_TXN_STATE
        assert not is_open(brokers, A0, producer)

    def test_the_next_transaction_is_not_held_up(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        add(brokers[1], producer, A0)
        brokers.hold(ApiKey.ADD_PARTITIONS_TO_TXN, "answers")
        late = send(brokers, producer, version=VERIFIES)
        send_end(brokers[1], producer, commit=False, version=OLD_END)
        add(brokers[1], producer, A0)
        fresh = send(brokers, producer, version=VERIFIES)
        brokers.release()
        assert code(late) == ErrorCode.INVALID_TXN_STATE
        assert code(fresh) == 0
        assert is_open(brokers, A0, producer)

    @pytest.mark.parametrize("commit", [True, False])
    def test_a_marker_of_the_transaction_before_voids_nothing(
        self, brokers: Together, commit: bool
    ) -> None:
        producer = initialize(brokers[1])
        assert code(send(brokers, producer)) == 0
        brokers.hold(ApiKey.WRITE_TXN_MARKERS)
        after = end(brokers[1], producer, commit=commit)
        exchange = send(brokers, after)
        brokers.pass_time(50)
        assert exchange.waiting
        brokers.release()
        brokers.pass_time(100)
        assert markers(brokers, A0) == [(after.producer_epoch, int(commit), 0)]
        assert code(exchange) == 0
        assert is_open(brokers, A0, after)

    def test_a_marker_of_the_transaction_before_voids_no_offsets(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        first = brokers[3].send(transactional_request("g", {A0: 5}, producer), 5)
        assert commit_code(first) == 0
        brokers.hold(ApiKey.WRITE_TXN_MARKERS)
        after = end(brokers[1], producer)
        exchange = brokers[3].send(transactional_request("g", {A0: 6}, after), 5)
        brokers.pass_time(50)
        assert exchange.waiting
        brokers.release()
        brokers.pass_time(100)
        assert commit_code(exchange) == 0
        assert is_open(brokers, GROUPS, after)

    def test_a_marker_that_raised_the_epoch_voids_what_it_ends(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        brokers.hold(ApiKey.ADD_PARTITIONS_TO_TXN, "answers")
        exchange = send(brokers, producer)
        assert state(brokers) == "Ongoing"
        end(brokers[1], producer, commit=False)
        assert markers(brokers, A0) == [(producer.producer_epoch + 1, 0, 0)]
        brokers.release()
        assert code(exchange) == ErrorCode.INVALID_TXN_STATE
        assert not is_open(brokers, A0, producer)

    def test_a_marker_of_another_producer_fails_nothing(self, brokers: Together) -> None:
        one, two = initialize(brokers[1], "one"), initialize(brokers[1], "two")
        send_add(brokers[1], one, A0, name="one")
        send_add(brokers[1], two, A0, name="two")
        brokers.hold(ApiKey.ADD_PARTITIONS_TO_TXN, "answers")
        sent = [("a", 0, in_transaction(one))]
        exchange = send_produce_in(brokers[2], sent, name="one", version=VERIFIES)
        send_end(brokers[1], two, name="two", version=OLD_END)
        brokers.release()
        assert code(exchange) == 0

    def test_a_partition_that_was_led_by_another_meanwhile(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        add(brokers[1], producer, A0)
        brokers.hold(ApiKey.ADD_PARTITIONS_TO_TXN, "answers")
        exchange = send(brokers, producer, version=VERIFIES)
        brokers.move(*A0, to=3)
        assert send_end(brokers[1], producer, version=OLD_END).answer.error_code == 0
        assert state(brokers) == "CompleteCommit"
        brokers.move(*A0, to=2)
        brokers.release()
        assert code(exchange) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert not is_open(brokers, A0, producer)

    def test_offsets_after_the_marker_are_refused(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        assert add_offsets(brokers[1], producer, "g") == 0
        brokers.hold(ApiKey.ADD_PARTITIONS_TO_TXN, "answers")
        request = transactional_request("g", {A0: 5}, producer)
        exchange = brokers[3].send(request, 4)
        send_end(brokers[1], producer, commit=False, version=OLD_END)
        brokers.release()
        assert commit_code(exchange) == ErrorCode.INVALID_TXN_STATE
        assert not is_open(brokers, GROUPS, producer)

    def test_offsets_at_a_coordinator_that_moved_and_came_back(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        assert add_offsets(brokers[1], producer, "g") == 0
        brokers.hold(ApiKey.ADD_PARTITIONS_TO_TXN, "answers")
        exchange = brokers[3].send(transactional_request("g", {A0: 5}, producer), 4)
        brokers.move(*GROUPS, to=2)
        send_end(brokers[1], producer, commit=False, version=OLD_END)
        brokers.move(*GROUPS, to=3)
        brokers.release()
        assert commit_code(exchange) == NOT_COORDINATOR
        assert not is_open(brokers, GROUPS, producer)


class TestMarkers:
    def begin(self, brokers: Together) -> ProducerIdAndEpoch:
        """Write to both partitions in a transaction."""
        producer = initialize(brokers[1])
        assert (code(send(brokers, producer, 2)), code(send(brokers, producer, 3))) == (0, 0)
        return producer

    @pytest.mark.parametrize("commit", [True, False])
    def test_they_go_to_the_leader(self, brokers: Together, commit: bool) -> None:
        producer = self.begin(brokers)
        after = end(brokers[1], producer, commit=commit)
        assert state(brokers) == ("CompleteCommit" if commit else "CompleteAbort")
        for place in (A0, A1):
            assert markers(brokers, place) == [(after.producer_epoch, int(commit), 0)]
            assert not is_open(brokers, place, producer)

    def test_those_for_one_broker_go_together(self, brokers: Together) -> None:
        brokers.create("b", [2, 2, 2])
        producer = initialize(brokers[1])
        add(brokers[1], producer, ("b", 0), ("b", 1), ("b", 2), A1)
        end(brokers[1], producer)
        asked = [
            target
            for source, target, key in brokers.asked
            if key == ApiKey.WRITE_TXN_MARKERS and source == 1
        ]
        assert sorted(asked) == [2, 3]
        assert state(brokers) == "CompleteCommit"

    def test_a_broker_that_does_not_answer_is_asked_again(self, brokers: Together) -> None:
        producer = self.begin(brokers)
        brokers.dead.add(3)
        end(brokers[1], producer)
        brokers.pass_time(2000)
        assert state(brokers) == "PrepareCommit"
        asked = brokers.asked.count((1, 3, ApiKey.WRITE_TXN_MARKERS))
        assert 4 <= asked <= 9, "less and less often"
        brokers.dead.clear()
        brokers.pass_time(1000)
        assert state(brokers) == "CompleteCommit"
        assert markers(brokers, A0) == [(1, COMMIT, 0)], (
            "a broker with a coordinator needs no other"
        )

    def test_a_partition_that_moves_gets_its_marker_there(self, brokers: Together) -> None:
        producer = self.begin(brokers)
        brokers.hold(ApiKey.WRITE_TXN_MARKERS)
        end(brokers[1], producer)
        brokers.move(*A1, to=2)
        brokers.release()
        assert state(brokers) == "PrepareCommit"
        brokers.pass_time(20)
        assert state(brokers) == "CompleteCommit"
        assert markers(brokers, A1) == [(1, COMMIT, 0)]

    def test_the_leader_goes_before_the_marker_is_safe(self, brokers: Together) -> None:
        producer = self.begin(brokers)
        brokers.stop_commits(*A1)
        end(brokers[1], producer)
        assert state(brokers) == "PrepareCommit"
        brokers.move(*A1, to=2, committed_only=True)
        brokers.pass_time(50)
        assert state(brokers) == "CompleteCommit"
        assert markers(brokers, A1) == [(1, COMMIT, 0)]

    def test_a_partition_that_is_not_copied_does_not_delay_others(self, brokers: Together) -> None:
        producer = self.begin(brokers)
        brokers.stop_commits(*A1)
        end(brokers[1], producer)
        brokers.pass_time(2000)
        brokers.resume_commits(*A1)
        brokers.pass_time(100)
        assert state(brokers) == "CompleteCommit"

    def test_no_broker_leads_for_a_while(self, brokers: Together) -> None:
        producer = self.begin(brokers)
        brokers.remove_leader(*A1)
        end(brokers[1], producer)
        brokers.pass_time(200)
        assert state(brokers) == "PrepareCommit"
        brokers.lead(*A1, by=3)
        brokers.pass_time(1000)
        assert state(brokers) == "CompleteCommit"

    def test_a_topic_that_is_gone_needs_none(self, brokers: Together) -> None:
        producer = self.begin(brokers)
        brokers.dead.add(3)
        end(brokers[1], producer)
        assert state(brokers) == "PrepareCommit"
        brokers.delete("a")
        brokers.pass_time(50)
        assert state(brokers) == "CompleteCommit"

    def test_a_later_epoch_in_a_partition_needs_none(self, brokers: Together) -> None:
        producer = initialize(brokers[1])
        add(brokers[1], producer, A0)
        later = bytes(batch(producer=(producer.producer_id, 9, 0)))
        assert produce(brokers[2], "a", later).error_code == 0
        end(brokers[1], producer)
        assert state(brokers) == "CompleteCommit"


class TestFailover:
    @pytest.fixture
    def producer(self, brokers: Together) -> ProducerIdAndEpoch:
        producer = initialize(brokers[1])
        assert code(send(brokers, producer)) == 0
        return producer

    def test_the_wrong_broker(self, brokers: Together, producer: ProducerIdAndEpoch) -> None:
        talk = brokers[2]
        assert send_initialize(talk).answer.error_code == NOT_COORDINATOR
        assert send_end(talk, producer).answer.error_code == NOT_COORDINATOR
        assert add(talk, producer, A0) == [NOT_COORDINATOR]
        assert add_offsets(talk, producer, "g") == NOT_COORDINATOR

    def test_an_open_transaction_continues_elsewhere(
        self, brokers: Together, producer: ProducerIdAndEpoch
    ) -> None:
        brokers.move(*COORDINATOR, to=3)
        listed = {n: brokers[n].ask(ListTransactionsRequest()).transaction_states for n in (1, 3)}
        assert [len(listed[n]) for n in (1, 3)] == [0, 1]
        end(brokers[3], producer)
        assert state(brokers, 3) == "CompleteCommit"
        assert markers(brokers, A0) == [(1, COMMIT, 1)]

    def test_an_open_transaction_is_timed_elsewhere(
        self, brokers: Together, producer: ProducerIdAndEpoch
    ) -> None:
        brokers.move(*COORDINATOR, to=3)
        brokers.pass_time(60_001)
        assert state(brokers, 3) == "CompleteAbort"

    def test_an_end_that_was_not_committed(
        self, brokers: Together, producer: ProducerIdAndEpoch
    ) -> None:
        brokers.stop_commits(*COORDINATOR)
        exchange = send_end(brokers[1], producer)
        assert exchange.waiting
        brokers.move(*COORDINATOR, to=3, committed_only=True)
        assert exchange.answer.error_code == NOT_COORDINATOR
        assert state(brokers, 3) == "Ongoing"
        assert markers(brokers, A0) == [], "no client got a decision that was not committed"
        assert end(brokers[3], producer) == raised(producer)
        assert markers(brokers, A0) == [(1, COMMIT, 1)]

    def test_an_end_that_was_copied(self, brokers: Together, producer: ProducerIdAndEpoch) -> None:
        brokers.stop_commits(*COORDINATOR)
        exchange = send_end(brokers[1], producer)
        brokers.move(*COORDINATOR, to=3)
        assert exchange.answer.error_code == NOT_COORDINATOR
        brokers.pass_time(10)
        assert state(brokers, 3) == "CompleteCommit"
        again = send_end(brokers[3], producer).answer
        assert (again.error_code, again.producer_epoch) == (0, producer.producer_epoch + 1)
        assert markers(brokers, A0) == [(1, COMMIT, 1)]

    def test_in_the_middle_of_the_markers(
        self, brokers: Together, producer: ProducerIdAndEpoch
    ) -> None:
        add(brokers[1], producer, A1)
        brokers.dead.add(3)
        end(brokers[1], producer)
        assert state(brokers) == "PrepareCommit"
        brokers.dead = {1}
        brokers.move(*COORDINATOR, to=3)
        brokers.pass_time(50)
        assert state(brokers, 3) == "CompleteCommit"
        assert markers(brokers, A1) == [(1, COMMIT, 1)]
        assert markers(brokers, A0)[-1] == (1, COMMIT, 1)
        before = len(brokers.asked)
        brokers.dead.clear()
        brokers.pass_time(3000)
        late = [
            asked
            for asked in brokers.asked[before:]
            if asked[0] == 1 and asked[2] == ApiKey.WRITE_TXN_MARKERS
        ]
        assert late == [], "the old coordinator stops retrying"

    def test_a_deposed_coordinators_marker_is_refused(
        self, brokers: Together, producer: ProducerIdAndEpoch
    ) -> None:
        brokers.hold(ApiKey.WRITE_TXN_MARKERS)
        end(brokers[1], producer)
        deposed, brokers.held = brokers.held, []
        brokers.move(*COORDINATOR, to=3)
        brokers.release()
        brokers.pass_time(10)
        assert state(brokers, 3) == "CompleteCommit"
        after = raised(producer)
        assert code(send(brokers, after)) == 0
        for late in deposed:
            late()
        assert is_open(brokers, A0, after), (
            "the last transaction's marker does not end the next one"
        )
        assert markers(brokers, A0) == [(1, COMMIT, 1)]

    def test_a_request_that_waits_for_an_end_is_redirected(
        self, brokers: Together, producer: ProducerIdAndEpoch
    ) -> None:
        brokers.hold(ApiKey.WRITE_TXN_MARKERS)
        end(brokers[1], producer)
        waiting = [send_initialize(brokers[1]), send_end(brokers[1], producer)]
        assert [exchange.waiting for exchange in waiting] == [True, True]
        brokers.move(*COORDINATOR, to=3)
        assert [e.answer.error_code for e in waiting] == [NOT_COORDINATOR, NOT_COORDINATOR]

    def test_a_large_one_is_read_in_pieces(
        self, brokers: Together, producer: ProducerIdAndEpoch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(coordinator_set, "LOADED_AT_ONCE_BYTES", 1)
        brokers.create("b", [2])
        for _ in range(3):
            initialize(brokers[1], "other")
        brokers.move(*COORDINATOR, to=3)
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert send_end(brokers[3], producer).answer.error_code == loading
        exchange = send_produce_in(brokers[2], [("b", 0, in_transaction(producer))])
        assert exchange.waiting
        brokers.pass_time(200)
        assert code(exchange) == 0
        end(brokers[3], producer)

    def test_a_retried_batch_answers_its_first_offset(self, brokers: Together) -> None:
        sent = [bytes(batch(3, producer=(500, 0, sequence))) for sequence in (0, 3, 6)]
        offsets = [produce(brokers[2], "a", content).base_offset for content in sent]
        brokers.move(*A0, to=3)
        again = [produce(brokers[3], "a", content) for content in sent]
        assert [(r.error_code, r.base_offset) for r in again] == [(0, o) for o in offsets]
        assert brokers.partition(3, A0).log.end_offset == 9


def test_produce_in_a_transaction_where_everything_is_on_one_broker(brokers: Together) -> None:
    brokers.move(*COORDINATOR, to=2)
    producer = initialize(brokers[2])
    before = list(brokers.asked)
    assert produce_in(brokers[2], producer, "a") == 0
    end(brokers[2], producer)
    assert [
        asked
        for asked in brokers.asked[len(before) :]
        if asked[2] in (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.WRITE_TXN_MARKERS)
    ] == []
    assert state(brokers, 2) == "CompleteCommit"
