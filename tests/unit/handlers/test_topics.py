"""Tests CreateTopics, DeleteTopics, CreatePartitions and DescribeTopicPartitions."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import create_topic, error_codes, fetch, produce


def topic(
    name: str = "a", partitions: int = 1, copies: int = 1, config: tuple[str, str] | None = None
) -> CreatableTopic:
    entries = [CreatableTopicConfig(name=k, value=v) for k, v in [config or ("", "")] if k]
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=copies, configs=entries
    )


def placed(*rows: tuple[int, list[int]]) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(partition_index=i, broker_ids=b) for i, b in rows]
    return CreatableTopic(
        name="a", num_partitions=-1, replication_factor=-1, assignments=assignments
    )


def create(talk: Dialogue, *topics: CreatableTopic, dry: bool = False) -> list[Any]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=dry)
    results: list[Any] = talk.ask(request).topics
    return results


def delete(talk: Dialogue, *states: DeleteTopicState) -> list[Any]:
    results: list[Any] = talk.ask(DeleteTopicsRequest(topics=list(states))).responses
    return results


def grow(talk: Dialogue, *topics: CreatePartitionsTopic, dry: bool = False) -> list[Any]:
    request = CreatePartitionsRequest(topics=list(topics), validate_only=dry)
    results: list[Any] = talk.ask(request).results
    return results


def test_minus_one_is_the_broker_s_default(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"broker.default_partitions": 3})
    (made,) = create(talk, topic(partitions=-1, copies=-1))
    assert (made.error_code, made.error_message) == (0, None)
    assert (made.num_partitions, made.replication_factor) == (3, 1)
    assert len(talk.node.partitions) == 3


def test_the_response_has_id_and_configs(talk: Dialogue) -> None:
    (made,) = create(talk, topic(config=("retention.ms", "5")))
    assert made.topic_id == talk.node.image.topics["a"].topic_id != NO_TOPIC_ID
    by_name = {entry.name: entry for entry in made.configs}
    assert (by_name["retention.ms"].value, by_name["retention.ms"].config_source) == ("5", 1)
    assert by_name["cleanup.policy"].config_source == 5


@pytest.mark.parametrize(
    ("wanted", "code", "says"),
    [
        (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "called"),
        (topic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "letters"),
        (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "249"),
        (topic(partitions=0), ErrorCode.INVALID_PARTITIONS, "partitions"),
        (topic(partitions=-2), ErrorCode.INVALID_PARTITIONS, "partitions"),
        (topic(partitions=0, copies=0), ErrorCode.INVALID_REPLICATION_FACTOR, "0"),
        (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "log"),
        (topic(copies=2), ErrorCode.INVALID_REPLICATION_FACTOR, "2"),
        (topic(copies=0), ErrorCode.INVALID_REPLICATION_FACTOR, "0"),
        (topic(config=("retention.ms", "soon")), ErrorCode.INVALID_CONFIG, "retention.ms"),
        (topic(config=("retention.msec", "1")), ErrorCode.INVALID_CONFIG, "retention.ms"),
        (placed((0, [1]), (2, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "gaps"),
        (placed((0, [1]), (0, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        (placed((0, [7])), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "brokers"),
        (placed((0, [1, 1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "once"),
        (placed((0, [])), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "replicas"),
    ],
)
def test_refusals_say_why(talk: Dialogue, wanted: CreatableTopic, code: int, says: str) -> None:
    (refused,) = create(talk, wanted)
    assert refused.error_code == code
    assert says in refused.error_message
    assert refused.configs == []
    assert talk.node.image.topics == {}


def test_replicas_can_be_placed_by_hand(talk: Dialogue) -> None:
    (made,) = create(talk, placed((1, [1]), (0, [1])))
    assert (made.error_code, made.num_partitions) == (0, 2)
    both = placed((0, [1]))
    both.name, both.num_partitions = "b", 1
    assert error_codes(create(talk, both)) == [ErrorCode.INVALID_REQUEST]


def test_nothing_is_made_when_only_asked_whether(talk: Dialogue) -> None:
    assert error_codes(create(talk, topic(), topic(".."), dry=True)) == [
        0,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert talk.node.image.topics == {}


def test_a_name_twice_in_a_request_is_made_not_at_all(talk: Dialogue) -> None:
    assert error_codes(create(talk, topic(), topic("b"), topic())) == [
        ErrorCode.INVALID_REQUEST,
        0,
        ErrorCode.INVALID_REQUEST,
    ]
    assert list(talk.node.image.topics) == ["b"]


def test_names_that_exist_or_collide(talk: Dialogue) -> None:
    create(talk, topic("a.b"))
    assert error_codes(create(talk, topic("a.b"), topic("a_b"), topic("a-b"))) == [
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        0,
    ]


def test_topics_are_deleted_by_name_and_by_id(talk: Dialogue) -> None:
    ids = {name: create_topic(talk, name) for name in ("a", "b")}
    by_name, by_id = delete(
        talk, DeleteTopicState(name="a"), DeleteTopicState(name=None, topic_id=ids["b"])
    )
    assert (by_name.error_code, by_name.topic_id) == (0, ids["a"])
    assert (by_id.error_code, by_id.name) == (0, "b")
    assert talk.node.partitions == {}
    gone = delete(
        talk,
        DeleteTopicState(name="a"),
        DeleteTopicState(name=None, topic_id=ids["b"]),
        DeleteTopicState(name=None),
    )
    assert error_codes(gone) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
    ]


def test_a_topic_named_by_both_name_and_id_is_kept(talk: Dialogue) -> None:
    topic_id = create_topic(talk, "a")
    (both,) = delete(talk, DeleteTopicState(name="a", topic_id=topic_id))
    assert (both.error_code, both.name, both.topic_id) == (ErrorCode.INVALID_REQUEST, "a", topic_id)
    assert "a" in talk.node.image.topics


def test_a_name_twice_is_not_deleted(talk: Dialogue) -> None:
    topic_id = create_topic(talk, "a")
    twice = delete(talk, DeleteTopicState(name="a"), DeleteTopicState(name=None, topic_id=topic_id))
    assert error_codes(twice) == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]
    assert "a" in talk.node.image.topics


def test_deletion_can_be_off(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"broker.delete_topics": False})
    create_topic(talk, "a")
    assert error_codes(delete(talk, DeleteTopicState(name="a"))) == [
        ErrorCode.TOPIC_DELETION_DISABLED
    ]


def test_a_topic_recreated_is_another_topic(talk: Dialogue) -> None:
    first = create_topic(talk, "a")
    produce(talk, "a")
    delete(talk, DeleteTopicState(name="a"))
    second = create_topic(talk, "a")
    assert first != second
    assert fetch(talk, "a").high_watermark == 0
    assert produce(talk, first).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert produce(talk, second).error_code == 0


def test_deleted_and_recreated_within_one_sync(talk: Dialogue) -> None:
    create_topic(talk, "a")
    produce(talk, "a")
    talk.hold_syncs = True
    gone = talk.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")]))
    made = talk.send(CreateTopicsRequest(topics=[topic()]))
    assert (gone.waiting, made.waiting) == (True, True)
    talk.release_syncs()
    assert error_codes([*gone.answer.responses, *made.answer.topics]) == [0, 0]
    assert fetch(talk, "a").high_watermark == 0
    assert produce(talk, "a").base_offset == 0
    talk.restart()
    assert fetch(talk, "a").high_watermark == 1


@pytest.mark.parametrize("name", ["x" * 249, "orders.deleted"])
def test_odd_names_live_die_and_survive_restarts(talk: Dialogue, name: str) -> None:
    create_topic(talk, name)
    produce(talk, name)
    talk.restart()
    assert fetch(talk, name).high_watermark == 1
    assert error_codes(delete(talk, DeleteTopicState(name=name))) == [0]
    talk.restart()
    assert talk.node.image.topics == {}


def test_a_crash_within_a_deletion_brings_nothing_back(talk: Dialogue) -> None:
    create_topic(talk, "a")
    produce(talk, "a")
    talk.hold_syncs = True
    talk.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")]))
    # The record of the deletion is in the journal, but the deletion has not started yet.
    talk.hold_syncs = False
    talk.restart(crash=True)
    create_topic(talk, "a")
    assert fetch(talk, "a").high_watermark == 0


def test_topics_grow(talk: Dialogue) -> None:
    create_topic(talk, "a")
    three = CreatePartitionsTopic(name="a", count=3, assignments=None)
    assert error_codes(grow(talk, three, dry=True)) == [0]
    assert len(talk.node.partitions) == 1
    assert error_codes(grow(talk, three)) == [0]
    assert produce(talk, "a", partition=2).error_code == 0
    assert produce(talk, "a", partition=3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_do_not_shrink_nor_grow_oddly(talk: Dialogue) -> None:
    create_topic(talk, "a", 2)
    here, nowhere = ([CreatePartitionsAssignment(broker_ids=[n])] for n in (1, 9))
    cases = [
        (CreatePartitionsTopic(name="a", count=1, assignments=None), 37),
        (CreatePartitionsTopic(name="a", count=2, assignments=None), 37),
        (CreatePartitionsTopic(name="none", count=2, assignments=None), 3),
        (CreatePartitionsTopic(name="a", count=4, assignments=here), 39),
        (CreatePartitionsTopic(name="a", count=3, assignments=[]), 39),
        (CreatePartitionsTopic(name="a", count=3, assignments=nowhere), 39),
        (CreatePartitionsTopic(name="a", count=3, assignments=here), 0),
    ]
    for wanted, code in cases:
        (result,) = grow(talk, wanted)
        assert result.error_code == code, wanted
        assert bool(result.error_message) == bool(code)


def test_a_topic_does_not_grow_twice_at_once(talk: Dialogue) -> None:
    create_topic(talk, "a")
    two = CreatePartitionsTopic(name="a", count=2, assignments=None)
    assert error_codes(grow(talk, two, two)) == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    assert len(talk.node.partitions) == 1


def test_partitions_are_described_in_pages(talk: Dialogue) -> None:
    for name in ("b", "a", "c"):
        create_topic(talk, name, 3)
    cursor: DescribeTopicPartitionsRequestCursor | None = None
    seen: list[tuple[str, int]] = []
    pages = 0
    while True:
        request = DescribeTopicPartitionsRequest(response_partition_limit=2, cursor=cursor)
        page = talk.ask(request)
        found = [(t.name, p.partition_index) for t in page.topics for p in t.partitions]
        assert 1 <= len(found) <= 2
        seen += found
        pages += 1
        if page.next_cursor is None:
            break
        cursor = DescribeTopicPartitionsRequestCursor(
            topic_name=page.next_cursor.topic_name,
            partition_index=page.next_cursor.partition_index,
        )
    assert seen == [(name, index) for name in "abc" for index in range(3)]
    assert pages == 5


def test_topics_described_by_name(talk: Dialogue) -> None:
    topic_id = create_topic(talk, "a")
    names = [TopicRequest(name=name) for name in ("none", "a")]
    first, second = talk.ask(DescribeTopicPartitionsRequest(topics=names)).topics
    assert (first.name, first.topic_id, first.error_code) == ("a", topic_id, 0)
    assert (second.name, second.error_code, second.partitions) == (
        "none",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        [],
    )
    (partition,) = first.partitions
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


@pytest.mark.parametrize(("name", "index"), [("a", -1), ("aa", 0), ("", 0), ("z", 1)])
def test_a_page_begins_at_a_topic_that_was_asked_for(talk: Dialogue, name: str, index: int) -> None:
    create_topic(talk, "a")
    create_topic(talk, "b")
    names = [TopicRequest(name=name) for name in ("a", "b")]
    cursor = DescribeTopicPartitionsRequestCursor(topic_name=name, partition_index=index)
    answer = talk.ask(DescribeTopicPartitionsRequest(topics=names, cursor=cursor))
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]
    assert answer.next_cursor is None


def test_a_name_that_no_topic_can_have_is_not_described(talk: Dialogue) -> None:
    names = [TopicRequest(name="a b"), TopicRequest(name="none")]
    bad, unknown = talk.ask(DescribeTopicPartitionsRequest(topics=names)).topics
    assert (bad.error_code, unknown.error_code) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
    assert unknown.topic_authorized_operations > 0


def test_many_topics_are_made_some_at_a_time(talk: Dialogue) -> None:
    create_topic(talk, "t-30")
    talk.hold_scans = True
    wanted = [topic(f"t-{number}") for number in range(35)]
    asked = talk.send(CreateTopicsRequest(topics=wanted))
    assert 0 < len(talk.node.image.topics) < len(wanted)
    between = talk.send(CreateTopicsRequest(topics=[topic("between"), topic("t-20")]))
    while talk.scans:
        talk.step_scan()
    assert [each.error_code for each in between.answer.topics] == [ErrorCode.NONE] * 2
    assert {each.name: each.error_code for each in asked.answer.topics if each.error_code} == {
        "t-20": ErrorCode.TOPIC_ALREADY_EXISTS,
        "t-30": ErrorCode.TOPIC_ALREADY_EXISTS,
    }
    assert [each.name for each in asked.answer.topics] == [each.name for each in wanted]
    assert len(talk.node.image.topics) == len(wanted) + 1


def test_many_topics_are_deleted_some_at_a_time(talk: Dialogue) -> None:
    names = [f"t-{number}" for number in range(45)]
    create(talk, *map(topic, names))
    talk.hold_scans = True
    asked = talk.send(DeleteTopicsRequest(topics=[DeleteTopicState(name=n) for n in names]))
    assert 0 < len(talk.node.image.topics) < len(names)
    talk.release_scans()
    assert error_codes_of(asked.answer.responses) == [ErrorCode.NONE] * len(names)
    assert [each.name for each in asked.answer.responses] == names
    assert not talk.node.image.topics
    assert not talk.node.partitions


def test_many_topics_are_only_checked_where_that_is_asked_for(talk: Dialogue) -> None:
    wanted = [topic(f"t-{number}") for number in range(35)]
    assert error_codes_of(create(talk, *wanted, dry=True)) == [ErrorCode.NONE] * 35
    assert not talk.node.image.topics


def test_a_collision_is_over_once_the_other_topic_is_deleted(talk: Dialogue) -> None:
    assert error_codes_of(create(talk, topic("a.b"))) == [ErrorCode.NONE]
    assert error_codes_of(create(talk, topic("a_b"))) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    delete(talk, DeleteTopicState(name="a.b"))
    assert error_codes_of(create(talk, topic("a_b"))) == [ErrorCode.NONE]


def error_codes_of(results: list[Any]) -> list[int]:
    return [each.error_code for each in results]


def test_a_refusal_that_rests_on_a_proposal_waits_for_it(talk: Dialogue) -> None:
    """A proposed topic may never be committed: no client may see it."""
    talk.hold_syncs = True
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="soon", num_partitions=1, replication_factor=1)]
    )
    first, second = talk.send(request), talk.send(request)
    assert (first.waiting, second.waiting) == (True, True)
    talk.release_syncs()
    codes = [exchange.answer.topics[0].error_code for exchange in (first, second)]
    assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]


def test_what_the_broker_asks_of_itself_is_answered_with_a_message(talk: Dialogue) -> None:
    answers: list[Any] = []
    request = CreateTopicsRequest(topics=[topic("a"), topic("not/a/name")])
    talk.node.peers.ask(talk.node.node_id, request).when_done(answers.append)
    talk.settle()
    codes = [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert error_codes_of(answers[0].topics) == codes
