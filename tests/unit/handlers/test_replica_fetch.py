"""Tests the fetches of followers at their leader: counting, responses, sessions and rate."""

from typing import cast

import pytest

from barnabas.handlers.context import RequestContext
from barnabas.handlers.produce_fetch import fetch
from barnabas.model.callers import ITSELF
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.fetch_sessions import NEWS_WAIT_MS
from barnabas.node.node import Node
from barnabas.protocol.fetch import UNKNOWN_HIGH_WATERMARK, FetchPartition, FetchRequest, TopicKey
from barnabas.protocol.replica_fetch_codec import Copied, FetchResponse, parse_response
from tests.support.raft.replica_set import TOPIC_ID, ReplicaSet, SimulatedBroker, joined
from tests.support.talk.batches import make_batch


class Talk:
    """Broker 2, which the test plays, and broker 1, which leads."""

    def __init__(self, config: dict[str, str] | None = None) -> None:
        self.set = ReplicaSet({"flush": "interval", **(config or {})})
        self.leader: SimulatedBroker = self.set.stands[1]
        self.leader.apply_next_decision()
        while self.leader.placements:
            self.leader.apply_next_decision()
        self.session_id = self.session_epoch = 0

    @property
    def epoch(self) -> int:
        return self.leader.partition.leader_epoch

    def append(self, count: int = 1) -> None:
        self.leader.do(lambda: self.leader.partition.leader.append(make_batch(count), 1_000))

    def wanted(
        self,
        offset: int,
        *,
        last: int = -1,
        epoch: int | None = None,
        knows: int = UNKNOWN_HIGH_WATERMARK,
    ) -> FetchPartition:
        current = self.epoch if epoch is None else epoch
        return FetchPartition(0, current, offset, last, 0, 1 << 20, knows)

    def send(
        self, *wanted: FetchPartition, replica: int = 2, broker_epoch: int = 2, wait_ms: int = 500
    ) -> "Heard":
        topics: list[tuple[TopicKey, list[FetchPartition]]] = (
            [(TOPIC_ID, list(wanted))] if wanted else []
        )
        request = FetchRequest(
            replica,
            wait_ms,
            1,
            1 << 20,
            0,
            self.session_id,
            self.session_epoch,
            topics,
            [],
            "",
            broker_epoch,
        )
        self.session_epoch += 1
        heard = Heard()
        context = RequestContext(18, None, ITSELF, self.set.now_ms)

        def handle() -> None:
            answer = fetch.handle(cast("Node", self.leader), request, context)
            if isinstance(answer, Pending):
                answer.when_done(heard.take)
            else:
                heard.take(answer)

        self.leader.do(handle)
        if heard.answers and self.session_id == 0:
            self.session_id = heard.response.session_id
        return heard


class Heard:
    """A response, once it is there."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []

    def take(self, chunks: list[Chunk]) -> None:
        self.answers.append(joined(chunks))

    @property
    def waits(self) -> bool:
        return not self.answers

    @property
    def response(self) -> FetchResponse:
        (answer,) = self.answers
        return parse_response(memoryview(answer))

    @property
    def result(self) -> Copied:
        (result,) = self.response.results
        return result


def test_a_follower_reads_what_is_not_committed_yet_and_commits_it_by_coming_back() -> None:
    talk = Talk({"min.insync.replicas": "2"})
    talk.append(3)
    talk.set.decide(isr=[1, 2])
    talk.leader.apply_next_decision()
    first = talk.send(talk.wanted(0)).result
    assert (len(first.records) > 0, first.high_watermark) == (True, 0)
    assert talk.leader.partition.high_watermark == 0
    talk.append()
    second = talk.send(talk.wanted(3, last=talk.epoch)).result
    assert (talk.leader.partition.high_watermark, second.high_watermark) == (3, 3)


def test_an_append_wakes_a_follower_that_waits() -> None:
    talk = Talk()
    talk.send(talk.wanted(0), wait_ms=0)
    waiting = talk.send()
    assert waiting.waits
    talk.append()
    assert len(waiting.result.records) > 0


def test_a_follower_is_sent_nothing_more_before_it_comes_back() -> None:
    talk = Talk()
    talk.append()
    assert len(talk.send(talk.wanted(0)).result.records) > 0
    waiting = talk.send()
    talk.append()
    assert waiting.waits
    again = talk.send(talk.wanted(1, last=talk.epoch))
    assert len(again.result.records) > 0
    assert waiting.response.results == [], "the waiting request was answered at once"


def test_an_error_is_logged_once_and_not_with_every_response() -> None:
    talk = Talk()
    refused = talk.send(talk.wanted(0, epoch=talk.epoch - 1)).result
    assert refused.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert talk.send().waits


@pytest.mark.parametrize(
    ("ahead", "code"), [(-1, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_a_follower_of_another_leader_does_not_count(ahead: int, code: ErrorCode) -> None:
    talk = Talk()
    talk.append()
    assert talk.send(talk.wanted(1, epoch=talk.epoch + ahead)).result.error_code == code
    assert not has_fetched(talk)


def test_a_diverging_follower_learns_where_and_does_not_count() -> None:
    talk = Talk()
    talk.append(2)
    told = talk.send(talk.wanted(2, last=talk.epoch - 1)).result
    assert (told.diverging, told.error_code, len(told.records)) == ((talk.epoch - 1, 0), 0, 0)
    assert not has_fetched(talk)


def test_a_follower_with_an_impossible_epoch_gets_an_error_and_does_not_count() -> None:
    talk = Talk()
    talk.append(2)
    log, earlier = talk.leader.partition.log, talk.epoch - 1
    log.epochs.entries = [(earlier, 0), (talk.epoch, 2)]
    talk.append()
    told = talk.send(talk.wanted(2, last=talk.epoch)).result
    assert (told.diverging, len(told.records)) == ((earlier, 2), 0)
    assert not has_fetched(talk)
    assert len(talk.send(talk.wanted(2, last=earlier)).result.records) > 0
    assert has_fetched(talk)


def test_a_follower_out_of_range_learns_the_log_start() -> None:
    talk = Talk()
    talk.append(2)
    for each in (2, 3):
        talk.leader.partition.leader.fetched(each, 2, 2, 0)
    talk.leader.do(lambda: talk.leader.partition.delete_before(2))
    while talk.leader.held:
        talk.leader.finish_sync()
    told = talk.send(talk.wanted(0)).result
    assert (told.error_code, told.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 2)


def test_a_broker_that_is_drained_gets_no_replica() -> None:
    talk = Talk()
    talk.append()
    told = talk.send(talk.wanted(0), replica=9).result
    assert (told.error_code, len(told.records)) == (ErrorCode.REPLICA_NOT_AVAILABLE, 0)


def has_fetched(talk: Talk) -> bool:
    in_sync = talk.leader.partition.in_sync
    assert in_sync is not None
    return in_sync.followers[2].has_fetched


def test_the_high_watermark_reaches_a_follower_that_waits_after_a_moment() -> None:
    talk = Talk()
    talk.append()
    talk.send(talk.wanted(0))
    talk.send(talk.wanted(1, last=talk.epoch), wait_ms=0)
    waiting = talk.send()
    talk.set.pass_time(100)
    talk.leader.do(lambda: talk.leader.partition.leader.fetched(3, 3, 1, 0))
    assert (talk.leader.partition.high_watermark, waiting.waits) == (1, True)
    talk.set.pass_time(NEWS_WAIT_MS - 1)
    assert waiting.waits
    talk.set.pass_time(1)
    assert (waiting.result.high_watermark, len(waiting.result.records)) == (1, 0)
    following = talk.send()
    talk.set.pass_time(499)
    assert following.waits, "there is nothing new to send"


def test_a_follower_that_commits_by_returning_learns_of_it_after_a_moment() -> None:
    talk = Talk()
    talk.append()
    talk.leader.do(lambda: talk.leader.partition.leader.fetched(3, 3, 1, 0))
    assert talk.send(talk.wanted(0)).result.high_watermark == 0
    committing = talk.send(talk.wanted(1, last=talk.epoch))
    assert (talk.leader.partition.high_watermark, committing.waits) == (1, True)
    talk.set.pass_time(NEWS_WAIT_MS)
    assert committing.result.high_watermark == 1


@pytest.mark.parametrize(("knows", "hears"), [(0, True), (1, False)])
def test_a_follower_that_dropped_a_response_gets_the_high_watermark_again(
    knows: int, hears: bool
) -> None:
    """It may have come too late to count, for example (KIP-1166)."""
    talk = Talk()
    talk.append()
    talk.leader.do(lambda: talk.leader.partition.leader.fetched(3, 3, 1, 0))
    talk.send(talk.wanted(0))
    committing = talk.send(talk.wanted(1, last=talk.epoch))
    talk.set.pass_time(NEWS_WAIT_MS)
    assert committing.result.high_watermark == 1
    again = talk.send(talk.wanted(1, last=talk.epoch, knows=knows))
    talk.set.pass_time(NEWS_WAIT_MS)
    assert again.waits is not hears
    assert not hears or again.result.high_watermark == 1


def test_a_high_watermark_goes_with_records_where_some_come_in_time() -> None:
    talk = Talk()
    talk.append()
    talk.send(talk.wanted(0))
    talk.send(talk.wanted(1, last=talk.epoch), wait_ms=0)
    waiting = talk.send()
    talk.leader.do(lambda: talk.leader.partition.leader.fetched(3, 3, 1, 0))
    talk.append()
    assert (waiting.result.high_watermark, len(waiting.result.records) > 0) == (1, True)


def test_a_moment_does_not_grow_when_more_is_committed() -> None:
    talk = Talk()
    talk.append(8)
    talk.send(talk.wanted(0))
    talk.send(talk.wanted(8, last=talk.epoch), wait_ms=0)
    waiting = talk.send()
    for offset in range(1, 6):
        talk.leader.do(lambda at=offset: talk.leader.partition.leader.fetched(3, 3, at, 0))  # type: ignore[misc]
        talk.set.pass_time(NEWS_WAIT_MS // 5)
    assert waiting.result.high_watermark == 5


def test_sessions_of_an_earlier_life_are_closed_and_consumers_push_out_none() -> None:
    talk = Talk()
    talk.send(talk.wanted(0), wait_ms=0)
    sessions, first = talk.leader.sessions, talk.session_id
    for _ in range(20):
        sessions.open(by_id=True)
    assert sessions.resume(first, 1, by_id=True, replica_id=2).session_id == first
    talk.session_id = talk.session_epoch = 0
    talk.send(talk.wanted(0), broker_epoch=5, wait_ms=0)
    assert talk.session_id != first
    talk.session_id, talk.session_epoch = first, 2
    assert talk.send().response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_leader_that_resigns_answers_waiting_requests() -> None:
    talk = Talk()
    talk.send(talk.wanted(0), wait_ms=0)
    waiting = talk.send()
    talk.set.move(2)
    talk.leader.apply_next_decision()
    assert waiting.result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
