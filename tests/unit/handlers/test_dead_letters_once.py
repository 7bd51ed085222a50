"""Each dead letter is written exactly once, whatever fails: all short sequences of failures.

Every write of state and every produce of a dead-letter batch meets a fate. Leaders that were
replaced go on as if they were not: only the share coordinator and the dead-letter partition, which
is a real one, stop them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import product

import pytest

from barnabas.model.dead_letter_rules import GROUP_ENABLE, DeadLetterRules
from barnabas.model.errors import ApiError, ErrorCode, PeerLostError
from barnabas.model.pending import Pending
from barnabas.model.share_state import SharePartitionKey, StateUpdate
from barnabas.node.partitions.partition import Partition
from barnabas.node.share.dead_letter_topics import DeadLetterTopics, Destination
from barnabas.node.share.sharing import Sharing
from barnabas.share.dead_letter_records import read_origin
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import batch, create_topic, fetch, produce, read
from tests.support.talk.stored_shares import StoredShares
from tests.unit.handlers.test_share_fetch import LOCK_MS, REJECT, Member, Rules

RECORDS = 3
ROUNDS_MAX = 30


class Fate(Enum):
    """What becomes of a write of state, or of a dead-letter batch."""

    DONE = 0
    NOT_DONE = 1
    """It is lost or refused."""
    ANSWER_LOST = 2
    TWICE = 3
    """It is done twice."""
    NEW_LEADER_BEFORE = 4
    """Another leader reads the state before it is done."""
    NEW_LEADER_AFTER = 5


class Leader(StoredShares):
    """The state as one leader reaches it: earlier leaders are fenced."""

    def __init__(self, cluster: "Cluster") -> None:
        super().__init__()
        self._cluster = cluster
        stored = cluster.stored
        self.cells, self.starts, self.shipments = stored.cells, stored.starts, stored.shipments

    def write(self, key: SharePartitionKey, update: StateUpdate) -> Pending[None]:
        fate, cluster = self._cluster.next_fate(), self._cluster
        if fate is Fate.NEW_LEADER_BEFORE:
            cluster.change_leader()
        if cluster.leader is not self:
            return _failed(ApiError(ErrorCode.FENCED_LEADER_EPOCH))
        if fate is Fate.NOT_DONE:
            return _failed(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        answer = super().write(key, update)
        if fate is Fate.TWICE:
            super().write(key, update)
        if fate is Fate.NEW_LEADER_AFTER:
            cluster.change_leader()
        if fate is Fate.ANSWER_LOST:
            return _failed(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return answer


class FaultyTopics(DeadLetterTopics):
    """The way to the dead-letter partition."""

    cluster: "Cluster"

    def produce(self, to: Destination, batch: bytearray) -> Pending[None]:
        fate = self.cluster.next_fate()
        if fate is Fate.NEW_LEADER_BEFORE:
            self.cluster.change_leader()
            self.cluster.look()
        if fate is Fate.NOT_DONE:
            return _failed(PeerLostError("it is lost"))
        answer = super().produce(to, batch[:])
        if fate is Fate.TWICE:
            answer = super().produce(to, batch[:])
        if fate is Fate.NEW_LEADER_AFTER:
            self.cluster.change_leader()
        return _failed(PeerLostError("the answer is lost")) if fate is Fate.ANSWER_LOST else answer


def _failed(error: Exception) -> Pending[None]:
    answer: Pending[None] = Pending()
    answer.fail(error)
    return answer


class Cluster:
    """A group whose members reject all records, and its leaders."""

    def __init__(self, talk: Dialogue) -> None:
        self.talk = talk
        self.stored = StoredShares()
        quick = {"flush": "interval"}
        self.topic_id = create_topic(talk, "a", 1, quick)
        create_topic(talk, "dlq.g", 1, {GROUP_ENABLE: "true", **quick})
        self.fates: Iterator[Fate] = iter(())
        self.change_leader()

    def next_fate(self) -> Fate:
        return next(self.fates, Fate.DONE)

    def change_leader(self) -> None:
        self.leader = Leader(self)
        node = self.talk.node
        topics = FaultyTopics(
            node, node.peers, node.timers, node.outbox, lambda _: DeadLetterRules("dlq.g")
        )
        topics.cluster = self

        def first_offset(_: str, partition: Partition) -> Pending[int]:
            return Pending.of(partition.log.start_offset)

        node.sharing = Sharing(
            node.find, self.leader, node.timers, lambda _: Rules(), first_offset, 3, topics
        )

    def look(self) -> Member:
        """Have a member fetch, so that a leader reads the state."""
        ann = Member(self.talk, self.topic_id)
        ann.send(epoch=0, records=1, size=1)
        return ann

    def reject_all(self) -> None:
        """Have members reject all they get, until all records are done with."""
        for _ in range(ROUNDS_MAX):
            ann = Member(self.talk, self.topic_id)
            for topic in ann.fetch(epoch=0).responses:
                for part in topic.partitions:
                    for run in part.acquired_records:
                        ann.acknowledge((run.first_offset, run.last_offset, [REJECT]))
            self.talk.pass_time(LOCK_MS)
            if self.is_done:
                return
        raise AssertionError(self.stored.cells)

    @property
    def is_done(self) -> bool:
        end = self.talk.node.find("a", 0).log.end_offset
        ends = self.stored.starts.values()
        return list(ends) == [end]

    def dead_letters(self, first: int) -> list[int]:
        """Return the origins of dead letters from an offset of their topic on."""
        found = read(fetch(self.talk, "dlq.g", first).records)
        origins = [read_origin(each.headers) for each in found if each.offset >= first]
        return [each.offset for each in origins if each is not None]


@pytest.fixture
def cluster(talk: Dialogue) -> Cluster:
    return Cluster(talk)


def sequences(first: Fate) -> Sequence[tuple[Fate, ...]]:
    return [(first, *rest) for rest in product(Fate, repeat=3)]


@pytest.mark.parametrize("first", list(Fate))
def test_each_dead_letter_is_written_once(cluster: Cluster, first: Fate) -> None:
    written = 0
    for fates in sequences(first):
        produce(cluster.talk, "a", batch(RECORDS))
        end = cluster.talk.node.find("a", 0).log.end_offset
        cluster.fates = iter(fates)
        cluster.reject_all()
        origins = cluster.dead_letters(written)
        wanted = Counter(range(end - RECORDS, end))
        assert Counter(origins) == wanted, (fates, origins)
        written += RECORDS
