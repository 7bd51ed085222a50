"""Tests how brokers reach share coordinators: the right one, in order, together, again."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.effects import Flush
from barnabas.metadata.image import SHARE_STATE_TOPIC
from barnabas.metadata.metadata_records import FeatureLevelChanged
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.share_state import SharePartitionKey, StateSummary, StateUpdate
from barnabas.node.share.share_state_writes import joined
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.share.share_records import SharePartitionState
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.share_talk import GROUP, runs, told, update
from tests.support.talk.together import Together

WRITES = ApiKey.WRITE_SHARE_GROUP_STATE
PARTITIONS = 8


class Cluster:
    """Three brokers; the second and the third are share coordinators."""

    def __init__(self, folder: Path) -> None:
        self.brokers = Together(folder)
        self.brokers.create("orders", [1] * PARTITIONS)
        self.brokers.create(SHARE_STATE_TOPIC, [2, 3], {"cleanup.policy": "delete"})
        self.topic_id = self.brokers[1].node.image.topics["orders"].topic_id

    def key(self, number: int, group: str = GROUP) -> SharePartitionKey:
        return SharePartitionKey(group, self.topic_id, number)

    def coordinator(self, number: int) -> int:
        """Return the broker that coordinates a share partition."""
        coordinators = self.brokers[1].node.coordinators.shares
        return coordinators.broker_for(self.key(number).coordinator_key)

    def numbers_of(self, broker: int) -> list[int]:
        """Return the partitions whose share coordinator is on a broker."""
        return [each for each in range(PARTITIONS) if self.coordinator(each) == broker]

    def initialize(self, start: int = 0, group: str = GROUP) -> Any:
        starts = dict.fromkeys(range(PARTITIONS), start)
        states = self.brokers[1].node.share_states
        return self.now(states.initialize(group, self.topic_id, starts, 0))

    def write(self, number: int, text: str, *, source: int = 1, **facts: int) -> "list[Any]":
        states = self.brokers[source].node.share_states
        answers = answers_of(states.write(self.key(number), update(text, **facts)))
        self.settle()
        return answers

    def state(self, number: int) -> SharePartitionState:
        """Return the state at the coordinator."""
        key = self.key(number)
        node = self.brokers[self.coordinator(number)].node
        found = node.coordinators.shares.shard_for(key.coordinator_key).machine.state_of(key)
        assert found is not None
        return found

    def now(self, pending: Pending[Any]) -> Any:
        """Return an answer that needs no time to pass."""
        answers = answers_of(pending)
        self.settle()
        (answer,) = answers
        return answer

    def settle(self) -> None:
        for number in (1, 2, 3):
            self.brokers[number].settle()

    def requests(self, api_key: int = WRITES) -> list[tuple[int, int]]:
        """Return source and target of the requests of one API."""
        return [(source, target) for source, target, key in self.brokers.asked if key == api_key]


def answers_of(pending: Pending[Any]) -> list[Any]:
    answers: list[Any] = []
    pending.when_done(answers.append, answers.append)
    return answers


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def code_of(answers: list[Any]) -> ErrorCode:
    (error,) = answers
    assert isinstance(error, ApiError)
    return error.code


def test_each_share_partition_has_its_own_coordinator(cluster: Cluster) -> None:
    assert set(cluster.initialize(5).values()) == {ErrorCode.NONE}
    assert {cluster.coordinator(number) for number in range(PARTITIONS)} == {2, 3}
    assert [cluster.state(number).start_offset for number in range(PARTITIONS)] == [5] * PARTITIONS


def test_what_is_written_is_read_by_the_next_leader(cluster: Cluster) -> None:
    cluster.initialize()
    assert cluster.write(0, "0-4 k1, 6 a2", start=1, leader_epoch=3, count=4) == [None]
    found = cluster.now(cluster.brokers[3].node.share_states.read(cluster.key(0), 4))
    assert (found.start_offset, told(found.batches)) == (1, "1-4 k1, 6 a2")
    assert code_of(cluster.write(0, "7 k1", leader_epoch=3)) is ErrorCode.FENCED_LEADER_EPOCH


def test_summaries_and_deletion(cluster: Cluster) -> None:
    cluster.initialize()
    cluster.write(1, "0-4 k1", start=0, leader_epoch=3, count=5)
    states = cluster.brokers[1].node.share_states
    found = cluster.now(states.summarize(GROUP, cluster.topic_id, {1: 0, 99: 0}))
    assert found == {1: StateSummary(0, 3, 0, 5), 99: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert cluster.now(states.delete(GROUP, cluster.topic_id, [1])) == {1: ErrorCode.NONE}
    gone = cluster.now(states.summarize(GROUP, cluster.topic_id, {1: 0}))
    assert gone == {1: StateSummary(0, 0, -1, -1)}
    assert cluster.now(states.delete(GROUP, cluster.topic_id, [])) == {}


def test_the_writes_of_a_turn_go_together(cluster: Cluster) -> None:
    cluster.initialize()
    cluster.initialize(group="others")
    states = cluster.brokers[1].node.share_states
    answers = [
        answers_of(states.write(cluster.key(number, group), update("0 k1")))
        for group in (GROUP, "others")
        for number in range(PARTITIONS)
    ]
    cluster.settle()
    assert answers == [[None]] * (2 * PARTITIONS)
    assert sorted(cluster.requests()) == [(1, 2), (1, 2), (1, 3), (1, 3)], "one for each group"


def test_a_broker_that_coordinates_asks_itself(cluster: Cluster) -> None:
    cluster.initialize()
    (number, *_) = cluster.numbers_of(2)
    before = len(cluster.brokers.asked)
    assert cluster.write(number, "0 k1", source=2) == [None]
    assert len(cluster.brokers.asked) == before


def test_one_turn_is_one_batch_and_one_sync(cluster: Cluster) -> None:
    cluster.initialize()
    cluster.initialize(group="others")
    talk = cluster.brokers[2]
    place = TopicPartition(SHARE_STATE_TOPIC, 0)
    log = talk.node.partitions[place].log
    numbers = cluster.numbers_of(2)
    before = log.end_offset
    talk.hold_syncs = True
    for group in (GROUP, "others"):
        for number in numbers:
            key = cluster.key(number, group)
            if talk.node.coordinators.shares.broker_for(key.coordinator_key) == 2:
                talk.node.share_states.write(key, update("0 k1"))
    talk.settle()
    (flush,) = talk._held
    assert isinstance(flush, Flush)
    assert flush.appends == 1
    assert log.end_offset > before + len(numbers)
    talk.release_syncs()


def test_writes_of_a_share_partition_wait_for_each_other_and_are_joined(cluster: Cluster) -> None:
    cluster.initialize()
    cluster.brokers.hold(WRITES)
    first = cluster.write(0, "0-4 a1")
    second = cluster.write(0, "2 k1", start=1, count=1)
    third = cluster.write(0, "4 k1", count=2)
    assert len(cluster.brokers.held) == 1
    cluster.brokers.release()
    cluster.settle()
    assert (first, second, third) == ([None], [None], [None])
    assert len(cluster.requests()) == 2
    state = cluster.state(0)
    assert told(state.batches) == "1 a1, 2 k1, 3 a1, 4 k1"
    assert (state.start_offset, state.complete_count) == (1, 2)


def test_writes_of_one_turn_are_joined_at_once(cluster: Cluster) -> None:
    cluster.initialize()
    states = cluster.brokers[1].node.share_states
    answers = [
        answers_of(states.write(cluster.key(0), update(f"{offset} k1"))) for offset in range(5)
    ]
    cluster.settle()
    assert answers == [[None]] * 5
    assert len(cluster.requests()) == 1
    assert told(cluster.state(0).batches) == "0-4 k1"


def test_writes_of_another_leader_are_not_joined(cluster: Cluster) -> None:
    cluster.initialize()
    cluster.brokers.hold(WRITES)
    first = cluster.write(0, "0 a1", leader_epoch=5)
    fenced = cluster.write(0, "2 k1", leader_epoch=4)
    last = cluster.write(0, "4 k1", leader_epoch=5)
    cluster.brokers.release()
    cluster.settle()
    assert (first, last) == ([None], [None])
    assert code_of(fenced) is ErrorCode.FENCED_LEADER_EPOCH
    assert told(cluster.state(0).batches) == "0 a1, 4 k1"


def test_a_write_follows_its_coordinator(cluster: Cluster) -> None:
    cluster.initialize()
    (number, *_) = cluster.numbers_of(2)
    cluster.brokers.hold(WRITES)
    answers = cluster.write(number, "0 k1")
    cluster.brokers.move(SHARE_STATE_TOPIC, 0, to=3)
    cluster.brokers.release()
    cluster.settle()
    assert answers == []
    cluster.brokers.pass_time(50)
    assert answers == [None]
    assert cluster.requests() == [(1, 2), (1, 3)]
    assert told(cluster.state(number).batches) == "0 k1"


def test_a_write_waits_for_a_leader_of_the_coordinators_partition(cluster: Cluster) -> None:
    cluster.initialize()
    (number, *_) = cluster.numbers_of(2)
    cluster.brokers.remove_leader(SHARE_STATE_TOPIC, 0)
    answers = cluster.write(number, "0 k1")
    cluster.brokers.pass_time(1000)
    assert answers == []
    cluster.brokers.lead(SHARE_STATE_TOPIC, 0, by=2)
    cluster.brokers.pass_time(1000)
    assert answers == [None]


def test_after_the_timeout_the_client_learns_that_no_coordinator_is_there(
    cluster: Cluster,
) -> None:
    cluster.initialize()
    (number, *_) = cluster.numbers_of(2)
    cluster.brokers.dead.add(2)
    answers = cluster.write(number, "0 k1")
    later = cluster.write(number, "1 k1")
    cluster.brokers.pass_time(4000)
    assert answers == []
    cluster.brokers.pass_time(1000)
    assert code_of(answers) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert code_of(later) is ErrorCode.COORDINATOR_NOT_AVAILABLE, "it waited as long"
    cluster.brokers.dead.clear()
    assert cluster.write(number, "2 k1") == [None]


def test_a_write_that_is_lost_is_sent_again(cluster: Cluster) -> None:
    cluster.initialize()
    (number, *_) = cluster.numbers_of(2)
    cluster.brokers.dead.add(2)
    answers = cluster.write(number, "0 k1")
    cluster.brokers.dead.clear()
    cluster.brokers.pass_time(50)
    assert answers == [None]
    assert told(cluster.state(number).batches) == "0 k1"


def test_the_topic_is_created_when_it_is_first_needed(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path)
    talk.node.create_topic("orders", 2, {}, talk.now_ms)
    talk.settle()
    topic_id = talk.node.image.topics["orders"].topic_id
    codes = answers_of(talk.node.share_states.initialize(GROUP, topic_id, {0: 7, 1: 9}, 0))
    talk.settle()
    talk.pass_time(1000)
    assert codes == [{0: ErrorCode.NONE, 1: ErrorCode.NONE}]
    created = talk.node.image.topics[SHARE_STATE_TOPIC]
    assert len(created.partitions) == 50
    assert created.config["cleanup.policy"] == "delete"
    assert created.config["retention.ms"] == "-1"
    talk.restart()
    key = SharePartitionKey(GROUP, topic_id, 1)
    found = answers_of(talk.node.share_states.read(key, 0))
    talk.settle()
    talk.pass_time(1000)
    assert found[0].start_offset == 9


def test_before_the_upgrade_is_finalized_there_are_no_share_coordinators(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path)
    talk.node.create_topic("orders", 1, {}, talk.now_ms)
    talk.settle()
    talk.node.commit([FeatureLevelChanged(level=1)], talk.now_ms)
    talk.settle()
    key = SharePartitionKey(GROUP, talk.node.image.topics["orders"].topic_id, 0)
    for asked in (
        talk.node.share_states.read(key, 0),
        talk.node.share_states.write(key, update("0 k1")),
        talk.node.share_states.write(key, update("1 k1", leader_epoch=1)),
    ):
        answers = answers_of(asked)
        talk.settle()
        assert code_of(answers) is ErrorCode.UNSUPPORTED_VERSION
    found = FindCoordinatorRequest(key_type=2, coordinator_keys=[key.coordinator_key])
    assert talk.ask(found).coordinators[0].error_code == ErrorCode.UNSUPPORTED_VERSION
    assert SHARE_STATE_TOPIC not in talk.node.image.topics


def test_joined_writes_change_what_both_change() -> None:
    first, second = update("0-4 a1", start=0, count=1), update("2 k1", count=2)
    both = joined(first, second)
    assert both == StateUpdate(0, 0, 0, 2, runs("0-1 a1, 2 k1, 3-4 a1"))


def test_an_unknown_topic(cluster: Cluster) -> None:
    states = cluster.brokers[1].node.share_states
    codes = cluster.now(states.initialize(GROUP, TopicId(bytes(16)), {0: 0}, 0))
    assert codes == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
