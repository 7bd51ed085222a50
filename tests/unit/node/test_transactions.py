"""Tests the node's part of transactions: markers are delivered, and requests wait for them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.coordination.admissions import Admissions
from barnabas.node.coordination.marker_writing import Marker
from barnabas.node.coordination.node_transactions import Admitted
from barnabas.node.partitions.leader_role import LeaderRole
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.markers import Markers
from tests.support.talk.requests import create_topic, delete_topic
from tests.support.talk.transaction_requests import (
    NAME,
    TIMEOUT_MS,
    add,
    add_codes,
    end,
    find_coordinator,
    initialize,
    send_add,
    send_end,
    send_initialize,
)
from tests.support.talk.transactions import raised

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.fixture
def talk(tmp_path: Path, markers: Markers) -> Dialogue:
    made = Dialogue(tmp_path, {"transactions.log_partitions": 3})
    create_topic(made, "a", 2)
    create_topic(made, "b")
    find_coordinator(made)
    return made


def state(talk: Dialogue) -> str:
    shard = talk.node.coordinators.transactions.shard_for(NAME)
    found = shard.machine.describe(NAME).response
    assert not isinstance(found, Pending)
    return found.state.label


class TestMarkers:
    @pytest.mark.parametrize("commit", [True, False])
    def test_each_partition_gets_one(self, talk: Dialogue, markers: Markers, commit: bool) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0), ("b", 0))
        after = end(talk, producer, commit=commit)
        marker = Marker(*after, commit, 0, 2)
        assert markers.written == [(A0, marker), (B0, marker)]
        assert state(talk) == ("CompleteCommit" if commit else "CompleteAbort")

    def test_for_old_clients(self, talk: Dialogue, markers: Markers) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0))
        assert send_end(talk, producer, version=3).answer.error_code == 0
        assert markers.written == [(A0, Marker(*producer, True, 0, 0))]

    def test_the_coordinators_epoch_is_that_of_its_partition(
        self, talk: Dialogue, markers: Markers
    ) -> None:
        talk.node.coordinators.transactions.shard_for(NAME).partition.leader_epoch = 5
        producer = initialize(talk)
        add(talk, producer, ("a", 0))
        end(talk, producer)
        assert [marker.coordinator_epoch for _, marker in markers.written] == [5]

    def test_not_before_the_outcome_is_safe(self, talk: Dialogue, markers: Markers) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0))
        talk.hold_syncs = True
        exchange = send_end(talk, producer)
        assert (exchange.waiting, markers.attempts) == (True, 0)
        talk.release_syncs()
        assert (exchange.waiting, markers.attempts) == (False, 1)

    def test_not_complete_before_all_are_there(self, talk: Dialogue, markers: Markers) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0), ("b", 0))
        markers.hold = True
        end(talk, producer)
        assert state(talk) == "PrepareCommit"
        markers.release(1)
        assert state(talk) == "PrepareCommit"
        markers.release()
        assert state(talk) == "CompleteCommit"

    def test_what_is_gone_needs_none(self, talk: Dialogue, markers: Markers) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0), ("b", 0))
        delete_topic(talk, "a")
        end(talk, producer)
        assert [place for place, _ in markers.written] == [B0]
        assert state(talk) == "CompleteCommit"

    def test_what_is_only_missing_gets_its_marker_later(
        self, talk: Dialogue, markers: Markers
    ) -> None:
        """A replica that is missing, or not created yet, says nothing about the topic."""
        producer = initialize(talk)
        add(talk, producer, ("a", 0), ("b", 0))
        markers.refusals[A0] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        end(talk, producer)
        assert state(talk) == "PrepareCommit"
        markers.refusals.clear()
        talk.pass_time(1000)
        assert [place for place, _ in markers.written] == [B0, A0]
        assert state(talk) == "CompleteCommit"

    def test_what_goes_while_its_marker_is_written_needs_none(
        self, talk: Dialogue, markers: Markers
    ) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0), ("b", 0))
        markers.hold = True
        end(talk, producer)
        delete_topic(talk, "a")
        delete_topic(talk, "b")
        markers.fail(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        talk.pass_time(1000)
        assert state(talk) == "CompleteCommit"

    def test_what_is_refused_is_tried_again_and_again(
        self, talk: Dialogue, markers: Markers
    ) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0), ("b", 0))
        markers.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
        end(talk, producer)
        for _ in range(60):
            talk.pass_time(1000)
        assert markers.attempts > 50
        assert state(talk) == "PrepareCommit"
        markers.refusals.clear()
        talk.pass_time(1000)
        assert state(talk) == "CompleteCommit"
        assert [place for place, _ in markers.written] == [B0, A0]

    def test_what_fails_on_the_way_is_tried_again(self, talk: Dialogue, markers: Markers) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0))
        markers.hold = True
        end(talk, producer)
        markers.fail(ErrorCode.KAFKA_STORAGE_ERROR)
        markers.hold = False
        talk.pass_time(20)
        assert state(talk) == "CompleteCommit"

    def test_retries_slow_down(self, talk: Dialogue, markers: Markers) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0))
        markers.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
        end(talk, producer)
        for _ in range(2000):
            talk.pass_time(1)
        assert markers.attempts == 1 + len([20, 40, 80, 160, 320, 640])

    @pytest.mark.parametrize("crash", [True, False])
    @pytest.mark.parametrize("commit", [True, False])
    def test_they_are_sent_after_a_restart(
        self, talk: Dialogue, markers: Markers, crash: bool, commit: bool
    ) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0), ("b", 0))
        markers.hold = True
        end(talk, producer, commit=commit)
        markers.release(1)
        talk.restart(crash=crash)
        markers.hold = False
        markers.written.clear()
        for _ in range(10):
            talk.pass_time(1)
        assert [(place, m.commit) for place, m in markers.written] == [(A0, commit), (B0, commit)]
        assert state(talk) == ("CompleteCommit" if commit else "CompleteAbort")

    def test_a_refused_completion_is_tried_again(
        self, talk: Dialogue, markers: Markers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0))
        markers.hold = True
        end(talk, producer)

        def refuse(*_: object) -> None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)

        with monkeypatch.context() as broken:
            broken.setattr(LeaderRole, "append_own", refuse)
            markers.release()
            assert state(talk) == "PrepareCommit"
        talk.pass_time(1000)
        assert state(talk) == "CompleteCommit"
        assert markers.attempts == 1


class TestWaiting:
    @pytest.fixture
    def ending(self, talk: Dialogue, markers: Markers) -> ProducerIdAndEpoch:
        """Run a transaction up to its marker; return its producer as it was."""
        producer = initialize(talk)
        add(talk, producer, ("a", 0))
        markers.hold = True
        end(talk, producer)
        return producer

    def test_partitions_are_added_as_soon_as_they_can_be(
        self, talk: Dialogue, markers: Markers, ending: ProducerIdAndEpoch
    ) -> None:
        exchange = send_add(talk, raised(ending), ("a", 0))
        assert exchange.waiting
        markers.release()
        talk.settle()
        assert add_codes(exchange) == [0]
        assert state(talk) == "Ongoing"

    def test_an_end_is_repeated(
        self, talk: Dialogue, markers: Markers, ending: ProducerIdAndEpoch
    ) -> None:
        exchange = send_end(talk, ending)
        other = send_end(talk, ending, commit=False)
        assert exchange.waiting
        markers.release()
        talk.settle()
        answer = exchange.answer
        assert (answer.error_code, answer.producer_epoch) == (0, ending.producer_epoch + 1)
        assert other.answer.error_code == ErrorCode.INVALID_TXN_STATE

    def test_an_instance_takes_over(
        self, talk: Dialogue, markers: Markers, ending: ProducerIdAndEpoch
    ) -> None:
        exchange = send_initialize(talk)
        assert exchange.waiting
        markers.release()
        talk.settle()
        assert exchange.answer.producer_epoch == ending.producer_epoch + 2

    def test_not_forever(
        self, talk: Dialogue, markers: Markers, ending: ProducerIdAndEpoch
    ) -> None:
        exchanges = [
            send_initialize(talk),
            send_end(talk, ending),
            send_add(talk, raised(ending), ("a", 0)),
        ]
        talk.pass_time(999)
        assert all(exchange.waiting for exchange in exchanges)
        talk.pass_time(1)
        first, second, third = exchanges
        assert first.answer.error_code == second.answer.error_code == CONCURRENT
        assert add_codes(third) == [CONCURRENT]
        markers.release()
        talk.settle()
        assert state(talk) == "CompleteCommit", "a request that was given up gets no response"

    def test_not_twice_as_long_for_two_ends(
        self, talk: Dialogue, markers: Markers, ending: ProducerIdAndEpoch
    ) -> None:
        abort = send_end(talk, raised(ending), commit=False)
        exchange = send_add(talk, raised(ending), ("a", 0))
        talk.pass_time(600)
        markers.release()
        talk.settle()
        assert abort.answer.error_code == 0
        assert add_codes(exchange) == [ErrorCode.PRODUCER_FENCED]

    def test_a_fenced_producer_gets_the_error_after_the_wait(
        self, talk: Dialogue, markers: Markers, ending: ProducerIdAndEpoch
    ) -> None:
        exchange = send_add(talk, ending, ("a", 0))
        markers.release()
        talk.settle()
        assert add_codes(exchange) == [ErrorCode.PRODUCER_FENCED]

    def test_others_do_not_wait(
        self, talk: Dialogue, markers: Markers, ending: ProducerIdAndEpoch
    ) -> None:
        assert markers.held == 1
        other = send_initialize(talk, "other").answer
        assert (other.error_code, other.producer_epoch) == (0, 0)
        assert other.producer_id != ending.producer_id


class TestTakingOver:
    def test_an_open_transaction_is_aborted_on_the_way(
        self, talk: Dialogue, markers: Markers
    ) -> None:
        old = initialize(talk)
        add(talk, old, ("a", 0), ("b", 0))
        new = initialize(talk)
        assert new == raised(old, 2)
        marker = Marker(*raised(old), False, 0, 2)
        assert markers.written == [(A0, marker), (B0, marker)]
        assert add(talk, old, ("a", 0)) == [ErrorCode.PRODUCER_FENCED]

    def test_two_instances_at_once(self, talk: Dialogue, markers: Markers) -> None:
        old = initialize(talk)
        add(talk, old, ("a", 0))
        markers.hold = True
        exchanges = [send_initialize(talk), send_initialize(talk)]
        markers.release()
        talk.settle()
        epochs = [exchange.answer.producer_epoch for exchange in exchanges]
        assert epochs == [old.producer_epoch + 2, old.producer_epoch + 3]

    def test_not_while_the_markers_cannot_be_written(
        self, talk: Dialogue, markers: Markers
    ) -> None:
        add(talk, initialize(talk), ("a", 0))
        markers.hold = True
        exchange = send_initialize(talk)
        talk.pass_time(1000)
        assert exchange.answer.error_code == CONCURRENT

    def test_a_transaction_over_its_time(self, talk: Dialogue, markers: Markers) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0))
        talk.pass_time(TIMEOUT_MS)
        assert markers.written == [(A0, Marker(*raised(producer), False, 0, 2))]
        assert state(talk) == "CompleteAbort"

    def test_a_full_disk_is_the_coordinators_trouble(
        self, talk: Dialogue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)

        monkeypatch.setattr(LeaderRole, "append_own", refuse)
        refused = send_initialize(talk).answer
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


class TestAdmit:
    def admit(
        self, talk: Dialogue, producer: ProducerIdAndEpoch, *, adds: bool, name: str = NAME
    ) -> Admitted:
        found: list[Admitted] = []
        asked = talk.node.transactions.admit(name, producer, [A0, B0], adds=adds)
        asked.when_done(found.append)
        talk.settle()
        return found[0]

    def test_adding(self, talk: Dialogue) -> None:
        producer = initialize(talk)
        assert self.admit(talk, producer, adds=True) == {A0: 0, B0: 0}
        assert self.admit(talk, producer, adds=False) == {A0: 0, B0: 0}

    def test_verifying(self, talk: Dialogue) -> None:
        producer = initialize(talk)
        add(talk, producer, ("b", 0))
        abortable = ErrorCode.TRANSACTION_ABORTABLE
        assert self.admit(talk, producer, adds=False) == {A0: abortable, B0: 0}

    @pytest.mark.parametrize("adds", [True, False])
    def test_unknown_ids_are_refused(self, talk: Dialogue, adds: bool) -> None:
        producer = initialize(talk)
        fenced = self.admit(talk, raised(producer), adds=adds)
        assert set(fenced.values()) == {ErrorCode.INVALID_PRODUCER_EPOCH}
        unknown = self.admit(talk, producer, adds=adds, name="none")
        assert set(unknown.values()) == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}

    def test_no_coordinator(self, tmp_path: Path) -> None:
        talk = Dialogue(tmp_path / "other")
        codes = self.admit(talk, ProducerIdAndEpoch(1, 0), adds=True)
        assert set(codes.values()) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}


class TestAdmissions:
    PRODUCER = ProducerIdAndEpoch(7, 0)

    @pytest.fixture(autouse=True)
    def entrance(self) -> None:
        self.asked: list[tuple[list[TopicPartition], Pending[Admitted]]] = []
        self.told: list[tuple[str, ErrorCode]] = []
        self.admissions = Admissions(self.admit)

    def admit(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Pending[Admitted]:
        pending: Pending[Admitted] = Pending()
        self.asked.append((list(partitions), pending))
        return pending

    def enter(
        self, label: str, *partitions: TopicPartition, epoch: int = 0, adds: bool = True
    ) -> None:
        producer = self.PRODUCER._replace(producer_epoch=epoch)
        batches = [
            (p, lambda code, p=p: self.told.append((f"{label} {p}", code))) for p in partitions
        ]
        self.admissions.enter(NAME, producer, batches, adds=adds)

    def answer(self, number: int, code: ErrorCode = ErrorCode.NONE) -> None:
        partitions, pending = self.asked[number]
        pending.complete(dict.fromkeys(partitions, code))

    def test_several_partitions_are_asked_for_at_once(self) -> None:
        self.enter("one", A0, B0)
        assert [partitions for partitions, _ in self.asked] == [[A0, B0]]
        self.answer(0)
        assert self.told == [("one a-0", 0), ("one b-0", 0)]

    def test_what_comes_meanwhile_shares_the_answer_in_order(self) -> None:
        self.enter("one", A0)
        self.enter("two", A0)
        self.enter("three", A0, B0)
        assert [partitions for partitions, _ in self.asked] == [[A0], [B0]]
        self.answer(1)
        self.answer(0, CONCURRENT)
        assert self.told == [
            ("three b-0", 0),
            ("one a-0", CONCURRENT),
            ("two a-0", CONCURRENT),
            ("three a-0", CONCURRENT),
        ]

    def test_a_later_request_asks_again(self) -> None:
        self.enter("one", A0)
        self.answer(0, CONCURRENT)
        self.enter("two", A0)
        self.answer(1)
        assert self.told == [("one a-0", CONCURRENT), ("two a-0", 0)]

    def test_other_epochs_ask_for_themselves(self) -> None:
        self.enter("one", A0)
        self.enter("two", A0, epoch=1)
        self.enter("three", A0, adds=False)
        assert len(self.asked) == 3

    def test_a_defect_is_reported(self) -> None:
        self.enter("one", A0)
        self.asked[0][1].fail(RuntimeError())
        assert self.told == [("one a-0", ErrorCode.UNKNOWN_SERVER_ERROR)]
