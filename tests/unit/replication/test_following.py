"""Tests a fetcher's dialogue with a leader: its requests, their times, and its reactions."""

from dataclasses import dataclass, field

from barnabas.effects import Address, Ask, Effect, Notice
from barnabas.model.errors import CorruptBatchError, ErrorCode
from barnabas.model.settings import ReplicationSettings
from barnabas.model.timers import Timers
from barnabas.protocol.codec import encoder
from barnabas.protocol.fetch import Diverging, FetchRequest, parse_request
from barnabas.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.replica_fetch_codec import VERSION, Copied
from barnabas.replication.following import ANSWER_TIMEOUT_MS, LINGER_MS, REMIND_MS, Fetcher, Key
from barnabas.replication.throttle import Throttle

TOPIC = bytes(15) + b"\1"
SESSION = 77


@dataclass
class FakeReplica:
    """A replica that only counts."""

    number: int
    leader_epoch: int = 4
    is_in_sync: bool = True
    is_synced: bool = True
    end: int = 10
    last_epoch: int = 3
    high_watermark: int = 7
    taken: list[bytes] = field(default_factory=list)
    truncations: list[Diverging] = field(default_factory=list)
    fails: Exception | None = None
    syncs_later: bool = False

    @property
    def key(self) -> Key:
        return TOPIC, self.number

    @property
    def bounds(self) -> tuple[int, int]:
        return 0, self.end

    def apply(self, told: Copied) -> None:
        if self.fails is not None:
            raise self.fails
        if told.records:
            self.taken.append(bytes(told.records))
            self.end += len(told.records)
            self.is_synced = not self.syncs_later

    def truncate(self, diverging: Diverging) -> None:
        self.truncations.append(diverging)
        self.end, self.last_epoch = diverging.end_offset, diverging.epoch

    def restart(self, told: Copied) -> None:
        self.end = told.log_start_offset


class Talk:
    """A fetcher, with the test as its leader."""

    def __init__(self, *copies: FakeReplica, rate: int = 0) -> None:
        self.timers = Timers()
        self.outbox: list[Effect] = []
        self.reachable = True
        self.broker_epoch = 9
        self.throttle = Throttle(rate)
        self.fetcher = Fetcher(
            2,
            "replica-0",
            ReplicationSettings(),
            self.timers,
            self.outbox,
            self.throttle,
            lambda: Address("leader", 1) if self.reachable else None,
            lambda: self.broker_epoch,
        )
        for copy in copies:
            self.fetcher.follow(copy)
        self.pass_time(1)

    def pass_time(self, duration_ms: int) -> None:
        self.timers.now_ms += duration_ms
        self.timers.fire()

    def asked(self) -> Ask:
        """Return the one request that was sent since the last call."""
        (ask,) = [effect for effect in self.outbox if isinstance(effect, Ask)]
        self.outbox.remove(ask)
        return ask

    def is_silent(self) -> bool:
        return not any(isinstance(effect, Ask) for effect in self.outbox)

    def notices(self) -> list[str]:
        return [effect.event for effect in self.outbox if isinstance(effect, Notice)]


def read(ask: Ask) -> FetchRequest:
    return parse_request(VERSION, memoryview(ask.body), 0)


def named(ask: Ask) -> dict[int, int]:
    """Return the partitions of a request, with their fetch offsets."""
    return {p.partition: p.fetch_offset for _, parts in read(ask).topics for p in parts}


def answer(ask: Ask, *results: PartitionData, code: int = 0, session: int = SESSION) -> None:
    topics = [FetchableTopicResponse(topic_id=TOPIC, partitions=list(results))] if results else []
    response = FetchResponse(error_code=code, session_id=session, responses=topics)
    ask.done(memoryview(encoder(FetchResponse, VERSION)(response)))


def sent(number: int, content: bytes = b"", code: int = 0, start: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=number, error_code=code, records=content, log_start_offset=start
    )


def test_the_first_request_lists_all_partitions_and_the_follower() -> None:
    talk = Talk(FakeReplica(0), FakeReplica(1, end=7))
    ask = talk.asked()
    request = read(ask)
    assert (ask.address, ask.lane) == (Address("leader", 1), "replica-0")
    assert ask.timeout_ms == request.max_wait_ms + ANSWER_TIMEOUT_MS
    assert (request.replica_id, request.replica_epoch) == (2, 9)
    assert (request.session_id, request.session_epoch) == (0, 0)
    ((_, parts),) = request.topics
    assert [(p.partition, p.fetch_offset) for p in parts] == [(0, 10), (1, 7)]
    assert {(p.leader_epoch, p.last_fetched_epoch) for p in parts} == {(4, 3)}


def test_later_ones_name_only_what_has_moved() -> None:
    talk = Talk(FakeReplica(0), FakeReplica(1))
    answer(talk.asked(), sent(0, b"12345"), sent(1))
    ask = talk.asked()
    assert named(ask) == {0: 15}
    assert (read(ask).session_id, read(ask).session_epoch) == (SESSION, 1)
    answer(ask)
    ask = talk.asked()
    assert (named(ask), read(ask).session_epoch) == ({}, 2), (
        "one request always waits at the leader"
    )


def test_an_offset_is_named_only_once_it_is_synced() -> None:
    copy = FakeReplica(0, syncs_later=True)
    talk = Talk(copy)
    answer(talk.asked(), sent(0, b"12345"))
    assert talk.is_silent()
    copy.is_synced = True
    talk.fetcher.synced(copy.key)
    assert named(talk.asked()) == {0: 15}


def test_a_slow_log_holds_the_others_up_for_a_moment_alone() -> None:
    slow, quick = FakeReplica(0, syncs_later=True), FakeReplica(1)
    talk = Talk(slow, quick)
    answer(talk.asked(), sent(0, b"12345"), sent(1, b"123"))
    assert talk.is_silent()
    talk.pass_time(LINGER_MS)
    waiting = talk.asked()
    assert named(waiting) == {1: 13}
    slow.is_synced = True
    talk.fetcher.synced(slow.key)
    assert named(talk.asked()) == {0: 15}, "though a request waits at the leader"
    talk.fetcher.follow(FakeReplica(2))
    talk.pass_time(1)
    assert talk.is_silent(), "two at a time are enough"
    answer(waiting)
    assert named(talk.asked()) == {2: 10}


def test_what_diverges_is_cut_and_asked_for_again() -> None:
    copy = FakeReplica(0)
    talk = Talk(copy)
    told = sent(0)
    told.diverging_epoch = EpochEndOffset(epoch=2, end_offset=6)
    answer(talk.asked(), told)
    ask = talk.asked()
    ((_, (part,)),) = read(ask).topics
    assert copy.truncations == [Diverging(2, 6)]
    assert (part.fetch_offset, part.last_fetched_epoch) == (6, 2)


def test_a_log_that_the_leader_has_left_behind_starts_over() -> None:
    talk = Talk(FakeReplica(0))
    answer(talk.asked(), sent(0, code=ErrorCode.OFFSET_OUT_OF_RANGE, start=50))
    assert named(talk.asked()) == {0: 50}


def test_a_partition_without_its_leader_is_retried_later_and_the_others_continue() -> None:
    talk = Talk(FakeReplica(0), FakeReplica(1))
    answer(talk.asked(), sent(0, code=ErrorCode.NOT_LEADER_OR_FOLLOWER), sent(1, b"123"))
    ask = talk.asked()
    assert named(ask) == {1: 13}
    talk.pass_time(50)
    again = talk.asked()
    assert named(again) == {0: 10}
    answer(ask)
    answer(again, sent(0, code=ErrorCode.UNKNOWN_LEADER_EPOCH))
    talk.asked()
    talk.pass_time(50)
    assert talk.is_silent(), "each time a bit later"
    talk.pass_time(50)
    assert named(talk.asked()) == {0: 10}


def test_what_is_damaged_on_its_way_is_refused_and_fetched_again() -> None:
    copy = FakeReplica(0, fails=CorruptBatchError("checksum mismatch"))
    talk = Talk(copy)
    answer(talk.asked(), sent(0, b"12345"))
    assert (copy.taken, talk.notices()) == ([], ["cannot append what the leader sent"])
    talk.asked()
    copy.fails = None
    talk.pass_time(50)
    assert named(talk.asked()) == {0: 10}


def test_a_lost_response_starts_a_new_session() -> None:
    talk = Talk(FakeReplica(0), FakeReplica(1))
    answer(talk.asked(), sent(0, b"12345"))
    talk.asked().done(None)
    assert talk.is_silent()
    talk.pass_time(50)
    ask = talk.asked()
    assert named(ask) == {0: 15, 1: 10}
    # The old session is named so that the leader closes it.
    assert (read(ask).session_id, read(ask).session_epoch) == (SESSION, 0)


def test_a_follower_that_registered_again_starts_a_new_session() -> None:
    talk = Talk(FakeReplica(0), FakeReplica(1))
    answer(talk.asked(), sent(0, b"ab"), sent(1))
    waiting = talk.asked()
    talk.broker_epoch = 10
    answer(waiting)
    again = talk.asked()
    assert (read(again).replica_epoch, read(again).session_epoch) == (10, 0)
    assert named(again) == {0: 12, 1: 10}


def test_a_session_that_the_leader_does_not_know_is_started_again() -> None:
    talk = Talk(FakeReplica(0))
    answer(talk.asked())
    answer(talk.asked(), code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session=0)
    talk.pass_time(50)
    assert named(talk.asked()) == {0: 10}


def test_an_answer_from_before_a_partition_moved_is_ignored() -> None:
    copy = FakeReplica(0)
    talk = Talk(copy, FakeReplica(1))
    answer(talk.asked())
    waiting = talk.asked()
    later = FakeReplica(0, leader_epoch=5)
    talk.fetcher.follow(later)
    answer(waiting, sent(0, b"of epoch 4"))
    assert (copy.taken, later.taken) == ([], [])
    answer(talk.asked(), sent(0, b"of epoch 5"))
    assert later.taken == [b"of epoch 5"]


def test_what_is_forgotten_is_reported_and_no_longer_copied() -> None:
    copy = FakeReplica(0)
    talk = Talk(copy)
    answer(talk.asked())
    waiting = talk.asked()
    talk.fetcher.forget(copy.key)
    talk.pass_time(1)
    ask = talk.asked()
    assert read(ask).forgotten == [(TOPIC, [0])]
    answer(waiting, sent(0, b"12345"))
    answer(ask)
    assert (copy.taken, talk.is_silent(), talk.fetcher.is_idle) == ([], True, True)


def test_replicas_that_catch_up_are_throttled_and_those_in_sync_are_not() -> None:
    lagging, current = FakeReplica(0, is_in_sync=False), FakeReplica(1)
    talk = Talk(lagging, current, rate=1_000)
    answer(talk.asked(), sent(0, b"x" * 500), sent(1, b"x" * 500))
    assert named(talk.asked()) == {1: 510}
    talk.pass_time(500)
    assert named(talk.asked()) == {0: 510}


def test_a_throttle_that_is_lifted_is_noticed_within_a_second() -> None:
    talk = Talk(FakeReplica(0, is_in_sync=False), rate=1)
    answer(talk.asked(), sent(0, bytes(1000)))
    assert named(talk.asked()) == {}  # it waits at the leader for other partitions
    talk.pass_time(999)
    assert talk.is_silent()
    talk.throttle.limit(1_000_000)
    talk.pass_time(1)
    assert named(talk.asked()) == {0: 1010}


def test_a_leader_whose_address_is_not_known_yet_is_looked_for_again() -> None:
    talk = Talk()
    talk.reachable = False
    talk.fetcher.follow(FakeReplica(0))
    talk.pass_time(1)
    assert talk.is_silent()
    talk.reachable = True
    talk.pass_time(1_000)
    assert named(talk.asked()) == {0: 10}


def test_an_answer_that_makes_no_sense_costs_the_session() -> None:
    talk = Talk(FakeReplica(0))
    talk.asked().done(memoryview(b"nonsense"))
    assert talk.notices() == ["invalid fetch response from leader"]
    talk.pass_time(50)
    assert named(talk.asked()) == {0: 10}


def test_a_replica_out_of_sync_sends_its_offset_again() -> None:
    copy = FakeReplica(0)
    talk = Talk(copy)
    answer(talk.asked(), sent(0))
    answer(talk.asked())
    talk.asked()
    copy.is_in_sync = False
    talk.fetcher.out_of_sync(copy.key)
    talk.pass_time(REMIND_MS)
    talk.pass_time(1)
    assert named(talk.asked()) == {0: 10}
    copy.is_in_sync = True
    talk.pass_time(2 * REMIND_MS)
    assert talk.is_silent()


def test_once_closed_it_neither_asks_nor_listens() -> None:
    copy = FakeReplica(0)
    talk = Talk(copy)
    ask = talk.asked()
    talk.fetcher.close()
    answer(ask, sent(0, b"12345"))
    talk.pass_time(10_000)
    assert (copy.taken, talk.is_silent()) == ([], True)
