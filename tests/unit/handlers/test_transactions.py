"""Tests the APIs of transactional producers with frames, in every version."""

from pathlib import Path

import pytest

from barnabas.model import name_pattern
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.transactions.transitions import LAST_EPOCH
from tests.support.talk import offset_requests
from tests.support.talk.dialogue import START_MS, Dialogue
from tests.support.talk.markers import Markers
from tests.support.talk.requests import create_topic
from tests.support.talk.transaction_requests import (
    TIMEOUT_MS,
    add,
    add_codes,
    add_offsets,
    end,
    find_coordinator,
    initialize,
    send_add,
    send_end,
    send_initialize,
)
from tests.support.talk.transactions import raised

FENCED = ErrorCode.PRODUCER_FENCED
OLD_FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
UNMAPPED = ErrorCode.INVALID_PRODUCER_ID_MAPPING
INVALID = ErrorCode.INVALID_REQUEST


@pytest.fixture
def talk(tmp_path: Path, markers: Markers) -> Dialogue:
    made = Dialogue(tmp_path, {"transactions.log_partitions": 3})
    create_topic(made, "a", 2)
    find_coordinator(made)
    return made


class TestInitProducerId:
    @pytest.mark.parametrize("version", range(6))
    def test_a_transactional_id(self, talk: Dialogue, version: int) -> None:
        for epoch in range(3):
            answer = send_initialize(talk, version=version).answer
            assert (answer.error_code, answer.producer_epoch) == (0, epoch)

    @pytest.mark.parametrize("version", range(6))
    def test_refusals(self, talk: Dialogue, version: int) -> None:
        assert send_initialize(talk, "", version=version).answer.error_code == INVALID
        refused = send_initialize(talk, timeout_ms=900_001, version=version).answer
        assert refused.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert (refused.producer_id, refused.producer_epoch) == (-1, -1)

    @pytest.mark.parametrize("version", range(3, 6))
    def test_continuing(self, talk: Dialogue, version: int) -> None:
        first = initialize(talk)
        answer = send_initialize(talk, expected=first, version=version).answer
        assert (answer.error_code, answer.producer_epoch) == (0, 1)
        initialize(talk)
        answer = send_initialize(talk, expected=first, version=version).answer
        assert answer.error_code == (FENCED if version >= 4 else OLD_FENCED)

    @pytest.mark.parametrize("half", [(5, -1), (-1, 5)])
    @pytest.mark.parametrize("name", [None, "t"])
    def test_half_an_identity(
        self, talk: Dialogue, name: str | None, half: tuple[int, int]
    ) -> None:
        producer_id, epoch = half
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=1000,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        assert talk.ask(request).error_code == INVALID

    def test_without_one_every_call_gets_an_id(self, talk: Dialogue) -> None:
        request = InitProducerIdRequest(transactional_id=None)
        answers = [talk.ask(request) for _ in range(3)]
        assert len({answer.producer_id for answer in answers}) == 3
        assert {answer.producer_epoch for answer in answers} == {0}

    def test_ids_of_both_kinds_differ(self, talk: Dialogue) -> None:
        plain = talk.ask(InitProducerIdRequest(transactional_id=None)).producer_id
        assert initialize(talk).producer_id != plain

    def test_no_coordinator_yet(self, tmp_path: Path) -> None:
        other = Dialogue(tmp_path / "other")
        refused = send_initialize(other).answer
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    def test_answers_wait_for_the_disk(self, talk: Dialogue) -> None:
        talk.hold_syncs = True
        exchange = send_initialize(talk)
        assert exchange.waiting
        talk.release_syncs()
        assert exchange.answer.error_code == 0

    @pytest.mark.parametrize("crash", [True, False])
    def test_epochs_are_remembered_over_restarts(self, talk: Dialogue, crash: bool) -> None:
        first = initialize(talk)
        talk.restart(crash=crash)
        assert initialize(talk) == raised(first)


class TestAddPartitions:
    @pytest.mark.parametrize("version", range(6))
    def test_partitions_are_added(self, talk: Dialogue, version: int) -> None:
        producer = initialize(talk)
        exchange = send_add(talk, producer, ("a", 0), ("a", 1), version=version)
        assert add_codes(exchange) == [0, 0]

    @pytest.mark.parametrize("version", range(6))
    def test_one_that_does_not_exist_fails_all(self, talk: Dialogue, version: int) -> None:
        producer = initialize(talk)
        exchange = send_add(talk, producer, ("a", 0), ("a", 2), ("none", 0), version=version)
        assert sorted(add_codes(exchange)) == [3, 3, 55]
        (described,) = talk.ask(
            DescribeTransactionsRequest(transactional_ids=["t"])
        ).transaction_states
        assert described.transaction_state == "Empty"

    @pytest.mark.parametrize("version", range(6))
    def test_refusals(self, talk: Dialogue, version: int) -> None:
        producer = initialize(talk)

        def refused(asker: ProducerIdAndEpoch, name: str = "t") -> list[int]:
            return add_codes(send_add(talk, asker, ("a", 0), name=name, version=version))

        assert refused(raised(producer)) == [FENCED if version >= 2 else OLD_FENCED]
        assert refused(ProducerIdAndEpoch(99, 0)) == [UNMAPPED]
        assert refused(producer, "other") == [UNMAPPED]
        assert refused(producer, "") == [INVALID]

    @pytest.mark.parametrize("version", [4, 5])
    def test_verifying(self, talk: Dialogue, version: int) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0))
        places = (("a", 0), ("a", 1))
        exchange = send_add(talk, producer, *places, version=version, verify_only=True)
        assert add_codes(exchange) == [0, ErrorCode.TRANSACTION_ABORTABLE]

    def test_several_transactions_at_once(self, talk: Dialogue) -> None:
        producers = {name: initialize(talk, name) for name in ("one", "two")}
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=name,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    topics=[AddPartitionsToTxnTopic(name="a", partitions=[0, 1])],
                )
                for name, producer in [*producers.items(), ("three", producers["one"])]
            ]
        )
        results = talk.ask(request).results_by_transaction
        codes = {
            result.transactional_id: {
                part.partition_error_code
                for topic in result.topic_results
                for part in topic.results_by_partition
            }
            for result in results
        }
        assert codes == {"one": {0}, "two": {0}, "three": {UNMAPPED}}

    def test_no_transactions_at_all(self, talk: Dialogue) -> None:
        assert talk.ask(AddPartitionsToTxnRequest(), 5).results_by_transaction == []


class TestAddOffsets:
    @pytest.mark.parametrize("version", range(5))
    def test_the_groups_partition_gets_a_marker(
        self, talk: Dialogue, markers: Markers, version: int
    ) -> None:
        offset_requests.find_coordinator(talk)
        producer = initialize(talk)
        assert add_offsets(talk, producer, "group", version=version) == 0
        end(talk, producer)
        groups = talk.node.coordinators.groups
        assert [place for place, _ in markers.written] == [
            ("__consumer_offsets", groups.partition_for("group"))
        ]

    @pytest.mark.parametrize("version", range(5))
    def test_refusals(self, talk: Dialogue, version: int) -> None:
        producer = initialize(talk)
        fenced = FENCED if version >= 2 else OLD_FENCED
        assert add_offsets(talk, raised(producer), "g", version=version) == fenced
        assert add_offsets(talk, producer, "g", name="other", version=version) == UNMAPPED
        assert add_offsets(talk, producer, "g", name="", version=version) == INVALID


class TestEndTxn:
    @pytest.mark.parametrize("commit", [True, False])
    @pytest.mark.parametrize("version", range(6))
    def test_an_end(self, talk: Dialogue, version: int, commit: bool, markers: Markers) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0))
        answer = send_end(talk, producer, commit=commit, version=version).answer
        after = (producer.producer_id, 1) if version >= 5 else (-1, -1)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, *after)
        assert [marker.commit for _, marker in markers.written] == [commit]
        again = send_end(talk, producer, commit=commit, version=version).answer
        assert (again.error_code, again.producer_id, again.producer_epoch) == (0, *after)
        other = send_end(talk, producer, commit=not commit, version=version).answer
        assert other.error_code == ErrorCode.INVALID_TXN_STATE
        assert (other.producer_id, other.producer_epoch) == (-1, -1)

    @pytest.mark.parametrize("version", range(6))
    def test_refusals(self, talk: Dialogue, version: int) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0))

        def refused(asker: ProducerIdAndEpoch, name: str = "t") -> int:
            code: int = send_end(talk, asker, name=name, version=version).answer.error_code
            return code

        assert refused(raised(producer)) == (FENCED if version >= 2 else OLD_FENCED)
        assert refused(ProducerIdAndEpoch(99, 0)) == UNMAPPED
        assert refused(producer, "other") == UNMAPPED
        assert refused(producer, "") == INVALID

    @pytest.mark.parametrize("version", range(6))
    def test_nothing_is_open(self, talk: Dialogue, version: int) -> None:
        producer = initialize(talk)
        commit = send_end(talk, producer, version=version).answer
        assert commit.error_code == ErrorCode.INVALID_TXN_STATE
        abort = send_end(talk, producer, commit=False, version=version).answer
        assert abort.error_code == (0 if version >= 5 else ErrorCode.INVALID_TXN_STATE)

    def test_epochs_are_used_up(self, talk: Dialogue, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("barnabas.transactions.transitions.LAST_EPOCH", 2)
        producer = initialize(talk)
        identities = [producer]
        for _ in range(4):
            add(talk, identities[-1], ("a", 0))
            identities.append(end(talk, identities[-1]))
        first, *_, fresh, last = identities
        assert [epoch for _, epoch in identities] == [0, 1, 2, 0, 1]
        assert fresh.producer_id == last.producer_id != first.producer_id
        assert LAST_EPOCH == 32766

    def test_answers_wait_for_the_disk(self, talk: Dialogue) -> None:
        producer = initialize(talk)
        add(talk, producer, ("a", 0))
        talk.hold_syncs = True
        exchange = send_end(talk, producer)
        assert exchange.waiting
        talk.release_syncs()
        assert exchange.answer.error_code == 0


class TestLooking:
    def test_describe(self, talk: Dialogue) -> None:
        producer = initialize(talk)
        talk.pass_time(7)
        add(talk, producer, ("a", 0), ("a", 1))
        request = DescribeTransactionsRequest(transactional_ids=["t", "none", ""])
        found, none, empty = talk.ask(request).transaction_states
        assert (found.error_code, found.transactional_id) == (0, "t")
        assert found.transaction_state == "Ongoing"
        assert found.transaction_timeout_ms == TIMEOUT_MS
        assert found.transaction_start_time_ms == START_MS + 7
        assert (found.producer_id, found.producer_epoch) == producer
        assert [(t.topic, t.partitions) for t in found.topics] == [("a", [0, 1])]
        assert none.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert none.transactional_id == "none"
        assert empty.error_code == INVALID

    @pytest.fixture
    def crowd(self, talk: Dialogue) -> Dialogue:
        for name in ("app-1", "app-2", "other"):
            producer = initialize(talk, name)
            if name != "other":
                add_codes(send_add(talk, producer, ("a", 0), name=name))
            talk.pass_time(100)
        return talk

    def names(self, talk: Dialogue, version: int = 2, **filters: object) -> list[str]:
        request = ListTransactionsRequest()
        for key, value in filters.items():
            setattr(request, key, value)
        answer = talk.ask(request, version)
        assert answer.error_code == 0
        return sorted(state.transactional_id for state in answer.transaction_states)

    @pytest.mark.parametrize("version", range(3))
    def test_list(self, crowd: Dialogue, version: int) -> None:
        assert self.names(crowd, version) == ["app-1", "app-2", "other"]
        assert self.names(crowd, version, state_filters=["Empty"]) == ["other"]
        assert self.names(crowd, version, state_filters=["Empty", "Ongoing"]) == [
            "app-1",
            "app-2",
            "other",
        ]

    def test_what_is_listed(self, crowd: Dialogue) -> None:
        listed = crowd.ask(ListTransactionsRequest(state_filters=["Ongoing"])).transaction_states
        (one,) = [state for state in listed if state.transactional_id == "app-1"]
        described = DescribeTransactionsRequest(transactional_ids=["app-1"])
        (same,) = crowd.ask(described).transaction_states
        assert (one.transaction_state, one.producer_id) == ("Ongoing", same.producer_id)
        assert self.names(crowd, producer_id_filters=[one.producer_id]) == ["app-1"]

    def test_unknown_states(self, crowd: Dialogue) -> None:
        answer = crowd.ask(ListTransactionsRequest(state_filters=["Asleep", "Empty"]))
        assert answer.unknown_state_filters == ["Asleep"]
        assert [s.transactional_id for s in answer.transaction_states] == ["other"]
        answer = crowd.ask(ListTransactionsRequest(state_filters=["Asleep"]))
        assert answer.transaction_states == []

    @pytest.mark.parametrize("version", [1, 2])
    def test_by_duration(self, crowd: Dialogue, version: int) -> None:
        states = {"state_filters": ["Ongoing"]}
        assert self.names(crowd, version, duration_filter=250, **states) == ["app-1"]
        assert self.names(crowd, version, duration_filter=0, **states) == ["app-1", "app-2"]

    def test_by_pattern(self, crowd: Dialogue) -> None:
        assert self.names(crowd, transactional_id_pattern="app-.*") == ["app-1", "app-2"]
        assert self.names(crowd, transactional_id_pattern="app") == []
        assert self.names(crowd, transactional_id_pattern="") == ["app-1", "app-2", "other"]
        refused = crowd.ask(ListTransactionsRequest(transactional_id_pattern="("))
        assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert refused.transaction_states == []

    def test_pattern_that_takes_too_long_is_refused(
        self, crowd: Dialogue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(name_pattern, "WORK_MAX", 10)
        refused = crowd.ask(ListTransactionsRequest(transactional_id_pattern="app-[0-9]+"))
        assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert refused.transaction_states == []

    def test_there_is_no_topic_yet(self, tmp_path: Path) -> None:
        assert self.names(Dialogue(tmp_path / "other")) == []
