"""Tests that another kind of coordinator needs one row: a counter that is registered here."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.image import (
    GROUPS_TOPIC,
    INTERNAL_TOPICS,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from barnabas.model.coordination import CoordinatorRecord, Outcome, ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.coordination.coordinator_kinds import CoordinatorKind
from barnabas.node.coordination.coordinator_set import CoordinatorSet
from barnabas.node.node import Node
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.together import Together

TOPIC = "__counters"
KEY_TYPE = 7
NAME = "visits"


class Counters:
    """Counts by name, and remembers which topics were deleted."""

    def __init__(self) -> None:
        self.counts: dict[bytes, int] = {}
        self.deleted: list[str] = []
        self.is_loaded = False

    def replay(self, record: CoordinatorRecord, producer: ProducerIdAndEpoch | None) -> None:
        assert producer is None
        self.counts[record.key] = int(record.value or b"0")

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        raise AssertionError

    def loaded(self) -> None:
        self.is_loaded = True

    def count(self, name: str) -> Outcome[int]:
        key = name.encode()
        found = self.counts.get(key, 0) + 1
        return Outcome(found, [CoordinatorRecord(key, str(found).encode())])

    def topics_changed(self, deleted: Sequence[str]) -> Outcome[None]:
        self.deleted += deleted
        return Outcome(None)


class Registered:
    """Another kind on one broker."""

    def __init__(self, node: Node) -> None:
        self.closed: list[int] = []
        kind = CoordinatorKind(
            topic=TOPIC,
            key_type=KEY_TYPE,
            partitions=2,
            config={"cleanup.policy": "compact", "segment.bytes": "1048576"},
            make=lambda _: Counters(),
            closed=self.closed.append,
            topics_changed=Counters.topics_changed,
        )
        self.coordinators: CoordinatorSet[Counters] = node.coordinators.register(kind)

    def count(self, name: str = NAME) -> Pending[int]:
        shard = self.coordinators.shard_for(name)
        return shard.run(lambda: shard.machine.count(name))


@pytest.fixture(autouse=True)
def internal_topic() -> Iterator[None]:
    INTERNAL_TOPICS.add(TOPIC)
    yield
    INTERNAL_TOPICS.remove(TOPIC)


def answers_of(pending: Pending[int]) -> list[Any]:
    answers: list[Any] = []
    pending.when_done(answers.append, answers.append)
    return answers


def code_of(registered: Registered) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        registered.count()
    return caught.value.code


def find_request() -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=KEY_TYPE, coordinator_keys=[NAME])


def test_the_topic_is_created_when_a_client_looks_for_a_coordinator(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path)
    registered = Registered(talk.node)
    assert code_of(registered) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    found = talk.ask(find_request()).coordinators[0]
    assert (found.error_code, found.node_id) == (0, talk.node.node_id)
    created = talk.node.image.topics[TOPIC]
    assert (len(created.partitions), created.config["segment.bytes"]) == (2, "1048576")


def test_an_answer_waits_until_its_records_are_safe_and_a_restart_loads_them(
    tmp_path: Path,
) -> None:
    talk = Dialogue(tmp_path)
    registered = Registered(talk.node)
    talk.ask(find_request())
    answers = answers_of(registered.count())
    assert answers == []
    talk.settle()
    assert answers == [1]
    talk.restart()
    again = Registered(talk.node)
    answers = answers_of(again.count())
    talk.settle()
    assert answers == [2]


def test_clients_see_the_topic_as_internal(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path)
    Registered(talk.node)
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    talk.ask(wanted)  # creates it as its coordinator needs it, not with the broker's defaults
    (found,) = talk.ask(wanted).topics
    assert (found.error_code, found.is_internal, len(found.partitions)) == (0, True, 2)


def test_a_kind_is_registered_once(tmp_path: Path) -> None:
    node = Dialogue(tmp_path).node
    known = [GROUPS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC]
    assert list(node.coordinators.topics) == known
    Registered(node)
    assert list(node.coordinators.topics) == [*known, TOPIC]
    with pytest.raises(AssertionError):
        Registered(node)


def test_a_coordinator_moves_with_the_leadership_of_its_partition(tmp_path: Path) -> None:
    brokers = Together(tmp_path)
    registered = {number: Registered(brokers[number].node) for number in (1, 2, 3)}
    brokers.create(TOPIC, [1, 1], {"cleanup.policy": "compact"})
    number = registered[1].coordinators.partition_for(NAME)
    answers = answers_of(registered[1].count())
    brokers[1].settle()
    assert answers == [1]

    brokers.stop_commits(TOPIC, number)
    lost = answers_of(registered[1].count())
    brokers[1].settle()
    assert lost == []
    brokers.move(TOPIC, number, to=2, committed_only=True)
    assert [error.code for error in lost] == [ErrorCode.NOT_COORDINATOR]
    assert registered[1].closed == [number]
    assert code_of(registered[1]) is ErrorCode.NOT_COORDINATOR

    brokers[2].pass_time(5)
    (shard,) = registered[2].coordinators.shards()
    assert (shard.machine.is_loaded, shard.machine.counts) == (True, {b"visits": 1})
    answers = answers_of(registered[2].count())
    brokers[2].settle()
    assert answers == [2]


def test_coordinators_act_on_deleted_topics(tmp_path: Path) -> None:
    brokers = Together(tmp_path)
    registered = Registered(brokers[1].node)
    brokers.create("a", [1])
    brokers.create(TOPIC, [1], {"cleanup.policy": "compact"})
    machine = registered.coordinators.shard_for(NAME).machine
    brokers.delete("a")
    assert machine.deleted == ["a"]
