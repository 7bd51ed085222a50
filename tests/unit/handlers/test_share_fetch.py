"""Tests ShareFetch and ShareAcknowledge: who gets which records, once, again, or never again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from barnabas.metadata.features import FIRST_LEVEL
from barnabas.model.callers import unauthenticated
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.share_state import DeliveryState, StateBatch
from barnabas.node.partitions.partition import Partition
from barnabas.node.share.share_partition import RETRY_MS
from barnabas.node.share.sharing import Sharing
from barnabas.protocol.messages import share_acknowledge as ack_messages
from barnabas.protocol.messages import share_fetch as messages
from barnabas.protocol.records import batches
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.requests import batch, create_topic, produce
from tests.support.talk.stored_shares import StoredShares

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GAP = 0
LOCK_MS = 30_000


@dataclass
class Rules:
    lock_duration_ms: int = LOCK_MS
    deliveries_max: int = 5
    locks_max: int = 100
    reads_committed: bool = False
    can_renew: bool = True
    backoff_ms: int = 0
    backoff_max_ms: int = 0


class Member:
    """A member of group `g` with one session."""

    def __init__(self, talk: Dialogue, topic_id: bytes, name: str = "ann") -> None:
        self.talk = talk
        self.topic_id = topic_id
        self.name = name
        self.epoch = 0

    def send(  # noqa: PLR0913
        self,
        acks: Sequence[tuple[int, int, list[int]]] = (),
        *,
        wait_ms: int = 0,
        records: int = 500,
        size: int = 1 << 20,
        exact: bool = False,
        epoch: int | None = None,
        partitions: Sequence[int] = (0,),
        forgotten: Sequence[int] = (),
        renews: bool = False,
    ) -> Exchange:
        epoch = self.epoch if epoch is None else epoch
        self.epoch = epoch + 1
        limits = (0, 0, 0, 0) if renews else (wait_ms, 1, size, records)
        request = messages.ShareFetchRequest(
            group_id="g",
            member_id=self.name,
            share_session_epoch=epoch,
            max_wait_ms=limits[0],
            min_bytes=limits[1],
            max_bytes=limits[2],
            max_records=limits[3],
            share_acquire_mode=int(exact),
            is_renew_ack=renews,
            topics=[
                messages.FetchTopic(
                    topic_id=self.topic_id,
                    partitions=[
                        messages.FetchPartition(
                            partition_index=number,
                            acknowledgement_batches=[
                                messages.AcknowledgementBatch(
                                    first_offset=first, last_offset=last, acknowledge_types=types
                                )
                                for first, last, types in acks
                            ],
                        )
                        for number in partitions
                    ],
                )
            ],
            forgotten_topics_data=[
                messages.ForgottenTopic(topic_id=self.topic_id, partitions=list(forgotten))
            ]
            if forgotten
            else [],
        )
        return self.talk.send(request)

    def fetch(self, *arguments: Any, **named: Any) -> Any:
        return self.send(*arguments, **named).answer

    def take(self, *arguments: Any, **named: Any) -> list[tuple[int, int, int]]:
        """Fetch; return what was acquired: first and last offset, delivery count."""
        answer = self.fetch(*arguments, **named)
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        found = []
        for topic in answer.responses:
            for partition in topic.partitions:
                assert partition.error_code == 0, ErrorCode(partition.error_code)
                assert partition.acknowledge_error_code == 0
                found += [
                    (each.first_offset, each.last_offset, each.delivery_count)
                    for each in partition.acquired_records
                ]
        return found

    def acknowledge(self, *acks: tuple[int, int, list[int]], epoch: int | None = None) -> Exchange:
        epoch = self.epoch if epoch is None else epoch
        self.epoch = epoch + 1
        request = ack_messages.ShareAcknowledgeRequest(
            group_id="g",
            member_id=self.name,
            share_session_epoch=epoch,
            topics=[
                ack_messages.AcknowledgeTopic(
                    topic_id=self.topic_id,
                    partitions=[
                        ack_messages.AcknowledgePartition(
                            partition_index=0,
                            acknowledgement_batches=[
                                ack_messages.AcknowledgementBatch(
                                    first_offset=first, last_offset=last, acknowledge_types=types
                                )
                                for first, last, types in acks
                            ],
                        )
                    ],
                )
            ],
        )
        return self.talk.send(request)

    def result(self, *acks: tuple[int, int, list[int]]) -> ErrorCode:
        answer = self.acknowledge(*acks).answer
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        ((partition,),) = [topic.partitions for topic in answer.responses]
        return ErrorCode(partition.error_code)


def waiting(*exchanges: Exchange) -> int:
    return sum(each.waiting for each in exchanges)


@pytest.fixture
def stored() -> StoredShares:
    return StoredShares()


@pytest.fixture
def rules() -> Rules:
    return Rules()


@pytest.fixture
def topic_id(talk: Dialogue, stored: StoredShares, rules: Rules) -> bytes:
    def first_offset(group_id: str, partition: Partition) -> Pending[int]:
        del group_id
        return Pending.of(partition.log.start_offset)

    talk.node.sharing = Sharing(
        talk.node.find, stored, talk.node.timers, lambda _: rules, first_offset, sessions_max=3
    )
    found = create_topic(talk, "a", 2)
    for _ in range(3):
        produce(talk, "a", batch(10))
    return found


@pytest.fixture
def ann(talk: Dialogue, topic_id: bytes) -> Member:
    return Member(talk, topic_id)


@pytest.fixture
def bob(talk: Dialogue, topic_id: bytes) -> Member:
    return Member(talk, topic_id, "bob")


def test_a_member_gets_whole_batches_and_what_of_them_it_has_acquired(ann: Member) -> None:
    answer = ann.fetch()
    assert answer.acquisition_lock_timeout_ms == LOCK_MS
    ((partition,),) = [topic.partitions for topic in answer.responses]
    assert [header.base_offset for header, _ in batches(partition.records)] == [0, 10, 20]
    (run,) = partition.acquired_records
    assert (run.first_offset, run.last_offset, run.delivery_count) == (0, 29, 1)


def test_two_members_never_get_the_same_record(ann: Member, bob: Member) -> None:
    assert ann.take(records=1) == [(0, 9, 1)]
    assert bob.take(records=11) == [(10, 29, 1)]
    assert ann.take() == bob.take() == []


def test_an_exact_number_of_records(ann: Member, bob: Member) -> None:
    answer = ann.fetch(records=3, exact=True)
    ((partition,),) = [topic.partitions for topic in answer.responses]
    assert [header.base_offset for header, _ in batches(partition.records)] == [0]
    assert [(r.first_offset, r.last_offset) for r in partition.acquired_records] == [(0, 2)]
    assert bob.take(records=4, exact=True) == [(3, 6, 1)]
    assert ann.take(records=5, exact=True) == [(7, 11, 1)]


def test_what_is_accepted_never_comes_again_and_what_is_released_does(
    ann: Member, bob: Member, stored: StoredShares
) -> None:
    assert ann.take() == [(0, 29, 1)]
    assert ann.result((0, 9, [ACCEPT]), (10, 14, [RELEASE]), (15, 19, [REJECT])) == 0
    assert bob.take() == [(10, 14, 2)]
    (cells,) = stored.cells.values()
    assert cells[12] == (DeliveryState.AVAILABLE, 1)
    assert cells[17] == (DeliveryState.ARCHIVED, 1)
    assert ann.result((20, 29, [ACCEPT])) == 0
    assert bob.result((10, 14, [ACCEPT])) == 0
    assert ann.take() == bob.take() == []


def test_one_answer_for_each_offset(ann: Member) -> None:
    ann.take()
    types = [ACCEPT, ACCEPT, RELEASE, REJECT, GAP]
    assert ann.result((0, 4, types)) == 0
    assert ann.take() == [(2, 2, 2)]


def test_acknowledgements_of_a_fetch(ann: Member) -> None:
    ann.take(records=1)
    assert ann.take([(0, 9, [RELEASE])], records=1) == [(0, 9, 2)]
    assert ann.take([(0, 9, [ACCEPT])]) == [(10, 29, 1)]


def test_an_acknowledgement_is_answered_once_it_is_stored(
    ann: Member, bob: Member, stored: StoredShares
) -> None:
    ann.take()
    stored.holds_writes = True
    first = ann.acknowledge((0, 0, [ACCEPT]))
    later = [ann.acknowledge((number, number, [RELEASE])) for number in range(1, 9)]
    # The start offset was written, then the first acknowledgement alone; the others wait for that.
    assert (stored.writes, waiting(first, *later)) == (2, 9)
    stored.end_write()
    assert (stored.writes, waiting(first, *later)) == (3, 8)
    assert bob.take() == []  # they are being stored
    stored.end_write()
    assert (stored.writes, waiting(first, *later)) == (3, 0)
    stored.holds_writes = False
    assert bob.take() == [(1, 8, 2)]


def test_what_could_not_be_stored_is_still_the_members(
    ann: Member, bob: Member, stored: StoredShares
) -> None:
    ann.take()
    stored.holds_writes = True
    exchange = ann.acknowledge((0, 9, [ACCEPT]))
    stored.end_write(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    ((partition,),) = [topic.partitions for topic in exchange.answer.responses]
    assert partition.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    stored.holds_writes = False
    assert bob.take() == []
    assert ann.result((0, 9, [ACCEPT])) == 0


def test_what_waits_behind_a_failed_write_is_stored_later(
    talk: Dialogue, ann: Member, stored: StoredShares
) -> None:
    ann.take()
    stored.holds_writes = True
    ann.acknowledge((0, 9, [ACCEPT]))
    later = ann.acknowledge((10, 19, [ACCEPT]))
    stored.end_write(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert later.waiting
    stored.holds_writes = False
    talk.pass_time(RETRY_MS)
    ((partition,),) = [topic.partitions for topic in later.answer.responses]
    assert partition.error_code == 0


def test_a_failed_write_is_repeated_with_the_newest_state_of_each_offset(
    talk: Dialogue, ann: Member, bob: Member, stored: StoredShares
) -> None:
    ann.take(records=1)
    stored.holds_writes = True
    ann.fetch(epoch=-1)
    assert bob.take(records=1) == [(0, 9, 2)]
    bob.fetch(epoch=-1)
    stored.end_write(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    talk.pass_time(RETRY_MS)
    (write,) = stored.held
    assert write.update.batches == [StateBatch(0, 9, DeliveryState.AVAILABLE, 2)]


def test_an_acknowledgement_of_what_is_done_with_waits_until_that_is_stored(
    talk: Dialogue, ann: Member, stored: StoredShares, rules: Rules
) -> None:
    rules.deliveries_max = 1
    ann.take(records=1)
    stored.holds_writes = True
    talk.pass_time(LOCK_MS)
    exchange = ann.acknowledge((0, 0, [ACCEPT]))
    assert exchange.waiting
    stored.end_write()
    stored.end_write()
    ((partition,),) = [topic.partitions for topic in exchange.answer.responses]
    assert partition.error_code == 0
    assert stored.starts.popitem()[1] == 10


def test_records_of_a_partition_that_is_lost_before_the_answer_are_not_sent(
    talk: Dialogue, ann: Member, stored: StoredShares
) -> None:
    ann.take(records=1)
    stored.holds_writes = True
    exchange = ann.send([(0, 9, [ACCEPT])])
    talk.node.find("a", 0).leader_epoch += 1
    stored.end_write()
    ((partition,),) = [topic.partitions for topic in exchange.answer.responses]
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not partition.acquired_records
    assert not partition.records


def test_a_record_comes_again_when_its_time_has_passed(
    talk: Dialogue, ann: Member, bob: Member
) -> None:
    assert ann.take(records=1) == [(0, 9, 1)]
    talk.pass_time(LOCK_MS - 1)
    assert bob.take(records=1) == [(10, 19, 1)]
    talk.pass_time(1)
    assert bob.take() == [(0, 9, 2), (20, 29, 1)]
    assert ann.result((0, 9, [ACCEPT])) is ErrorCode.INVALID_RECORD_STATE


def test_a_member_may_ask_for_more_time(talk: Dialogue, ann: Member, bob: Member) -> None:
    ann.take(records=1)
    bob.take()
    talk.pass_time(LOCK_MS - 1)
    ann.take([(0, 4, [RENEW])], renews=True)
    talk.pass_time(2)
    assert bob.take() == [(5, 29, 2)]
    assert ann.result((0, 4, [ACCEPT])) == 0


def test_a_group_may_forbid_renewals(ann: Member, rules: Rules) -> None:
    rules.can_renew = False
    ann.take()
    assert ann.result((0, 4, [RENEW])) is ErrorCode.INVALID_RECORD_STATE


def test_records_are_archived_at_the_limit_and_suspicious_ones_come_in_parts(
    ann: Member, rules: Rules
) -> None:
    rules.deliveries_max = 3
    assert ann.take(records=1) == [(0, 9, 1)]
    assert ann.take([(0, 9, [RELEASE])], records=1) == [(0, 4, 2)]
    assert ann.take([(0, 4, [RELEASE])], records=1) == [(0, 0, 3)]
    assert ann.result((0, 0, [RELEASE])) == 0
    assert ann.take(records=1) == [(1, 1, 3)]


def test_what_is_released_waits_for_its_backoff(
    talk: Dialogue, ann: Member, bob: Member, rules: Rules
) -> None:
    rules.backoff_ms, rules.backoff_max_ms = 1_000, 1_500
    ann.take(records=1)
    bob.take()
    assert ann.result((0, 3, [RELEASE]), (4, 9, [ACCEPT])) == 0
    assert ann.take() == []
    talk.pass_time(999)
    assert ann.take() == []
    waiting = ann.send(wait_ms=5_000)
    talk.pass_time(1)
    ((partition,),) = [topic.partitions for topic in waiting.answer.responses]
    assert [(r.first_offset, r.last_offset) for r in partition.acquired_records] == [(0, 3)]
    assert ann.result((0, 3, [RELEASE])) == 0
    talk.pass_time(1_499)  # doubled, and cut at the limit
    assert ann.take() == []
    talk.pass_time(1)
    assert ann.take() == [(0, 1, 3)]


def test_a_lost_lock_brings_a_record_back_without_a_backoff(
    talk: Dialogue, ann: Member, bob: Member, rules: Rules
) -> None:
    rules.backoff_ms = rules.backoff_max_ms = LOCK_MS
    ann.take()
    talk.pass_time(LOCK_MS)
    assert bob.take() == [(0, 29, 2)]


def test_a_closed_session_gives_everything_back(ann: Member, bob: Member) -> None:
    assert ann.take() == [(0, 29, 1)]
    answer = ann.fetch([(0, 9, [ACCEPT])], epoch=-1)
    assert answer.error_code == 0
    assert bob.take() == [(10, 29, 2)]
    assert ann.fetch(epoch=3).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_closed_connection_gives_everything_back(
    talk: Dialogue, ann: Member, bob: Member
) -> None:
    talk.caller = unauthenticated("first")
    assert ann.take() == [(0, 29, 1)]
    (closed,) = talk.caller.remembered.on_closed.values()
    closed()
    assert not talk.caller.remembered.on_closed
    talk.caller = unauthenticated("second")
    assert bob.take() == [(0, 29, 2)]


def test_a_fetch_waits_for_records(talk: Dialogue, ann: Member, bob: Member) -> None:
    ann.take()
    fetches = [each.send(wait_ms=500) for each in (ann, bob)]
    assert waiting(*fetches) == 2
    produce(talk, "a", batch(1))
    assert [each.waiting for each in fetches] == [False, True]
    talk.pass_time(500)
    ((partition,),) = [topic.partitions for topic in fetches[1].answer.responses]
    assert (partition.records, partition.acquired_records) == (b"", [])


def test_a_fetch_that_waits_gets_what_another_member_gives_back(
    talk: Dialogue, ann: Member, bob: Member
) -> None:
    ann.take()
    fetch = bob.send(wait_ms=60_000)
    talk.pass_time(LOCK_MS)
    ((partition,),) = [topic.partitions for topic in fetch.answer.responses]
    assert [r.delivery_count for r in partition.acquired_records] == [2]


def test_a_new_leader_knows_what_was_stored(
    talk: Dialogue, ann: Member, bob: Member, topic_id: bytes
) -> None:
    ann.take()
    ann.result((0, 4, [ACCEPT]), (20, 24, [RELEASE]))
    talk.node.sharing.partitions._by_key.clear()  # as after a change of the leader
    assert bob.take() == [(5, 19, 1), (20, 24, 2), (25, 29, 1)]


def test_a_group_without_members_begins_with_what_is_stored(
    talk: Dialogue, ann: Member, stored: StoredShares
) -> None:
    ann.take()
    ann.result((0, 29, [ACCEPT]))
    ann.fetch(epoch=-1)
    (key,) = stored.starts
    stored.starts[key] = 5  # as an operator would
    ann.epoch = 0
    assert ann.take() == [(5, 29, 1)]


def test_a_window_is_kept_until_it_is_stored(
    talk: Dialogue, ann: Member, bob: Member, stored: StoredShares
) -> None:
    ann.take(records=1)
    stored.holds_writes = True
    acknowledged = ann.acknowledge((0, 9, [ACCEPT]))
    ann.send(epoch=-1)
    assert bob.take() == [(10, 29, 1)]
    stored.end_write()
    assert not acknowledged.waiting
    assert bob.take() == []


@pytest.mark.parametrize(
    ("acks", "code"),
    [
        ([(0, 9, [ACCEPT])], ErrorCode.INVALID_RECORD_STATE),  # another member's
        ([(10, 20, [ACCEPT])], ErrorCode.INVALID_REQUEST),  # beyond what was acquired
        ([(10, 12, [ACCEPT, ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(12, 10, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(10, 12, [])], ErrorCode.INVALID_REQUEST),
        ([(10, 12, [5])], ErrorCode.INVALID_REQUEST),
        ([(10, 12, [-1])], ErrorCode.INVALID_REQUEST),
        ([(11, 12, [ACCEPT]), (10, 10, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(10, 12, [ACCEPT]), (12, 13, [ACCEPT])], ErrorCode.INVALID_RECORD_STATE),
    ],
)
def test_wrong_acknowledgements_change_nothing(
    ann: Member, bob: Member, acks: list[tuple[int, int, list[int]]], code: ErrorCode
) -> None:
    ann.take(records=1)
    bob.take(records=1)
    assert bob.result(*acks) is code
    assert bob.result((10, 19, [ACCEPT])) == 0


def test_sessions_and_their_epochs(talk: Dialogue, ann: Member, bob: Member) -> None:
    assert ann.fetch(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert ann.fetch([(0, 0, [ACCEPT])], epoch=0).error_code == ErrorCode.INVALID_REQUEST
    ann.take(epoch=0)
    assert ann.fetch(epoch=2).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ann.acknowledge(epoch=0).answer.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert bob.acknowledge(epoch=-1).answer.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    for name in ("bob", "cem"):
        assert Member(talk, ann.topic_id, name).take() == []
    dan = Member(talk, ann.topic_id, "dan")
    assert dan.fetch().error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_a_session_remembers_its_partitions_until_they_are_forgotten(
    talk: Dialogue, ann: Member
) -> None:
    produce(talk, "a", batch(2), partition=1)
    assert ann.take(partitions=(0, 1), records=1) == [(0, 9, 1)]
    assert sorted(ann.take(partitions=())) == [(0, 1, 1), (10, 29, 1)]
    produce(talk, "a", batch(3), partition=1)
    assert ann.take(partitions=(), forgotten=(1,)) == []
    assert ann.take(partitions=(1,)) == [(2, 4, 1)]


def test_a_topic_that_is_not_there(talk: Dialogue, ann: Member) -> None:
    ann.topic_id = bytes(15) + b"x"
    ((partition,),) = [topic.partitions for topic in ann.fetch().responses]
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_state_that_cannot_be_read_is_an_error_and_read_again(
    ann: Member, stored: StoredShares
) -> None:
    stored.read_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    codes = []
    for _ in range(2):
        answer = ann.fetch()
        codes += [p.error_code for topic in answer.responses for p in topic.partitions]
    assert ErrorCode.COORDINATOR_NOT_AVAILABLE in codes
    stored.read_error = None
    assert ann.take() == [(0, 29, 1)]


def test_share_groups_are_refused_where_the_cluster_does_not_serve_them(
    talk: Dialogue, ann: Member
) -> None:
    talk.node.quorum.image.feature_level = FIRST_LEVEL
    assert ann.fetch().error_code == ErrorCode.UNSUPPORTED_VERSION
