"""Tests confluent-kafka in both kinds of groups: offsets, resets, metadata, administration."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.testing.waiting import eventually

confluent_kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")

pytestmark = pytest.mark.compat

FIRST_MS = 1_700_000_000_000
PROTOCOLS = ("classic", "consumer")
Open = Callable[..., Any]


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def consumer(group_bootstrap: str, group: str, protocol: str) -> Iterator[Open]:
    """Return a function that creates consumers, which are closed at the end."""
    made: list[Any] = []

    def make(**changes: object) -> Any:
        settings = {
            "bootstrap.servers": group_bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 20,
            "log_level": 2,
        }
        if protocol == "classic":
            settings["heartbeat.interval.ms"] = 300
        given = {name.replace("_", "."): value for name, value in changes.items()}
        made.append(confluent_kafka.Consumer(settings | given))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def client(group_bootstrap: str) -> Any:
    return admin.AdminClient({"bootstrap.servers": group_bootstrap})


def place(topic: str, partition: int, *offset: int) -> Any:
    return confluent_kafka.TopicPartition(topic, partition, *offset)


def read(consumer: Any, count: int) -> list[tuple[int, int]]:
    """Return partition and offset of the next records."""
    found: list[tuple[int, int]] = []

    def enough() -> bool:
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            found.append((message.partition(), message.offset()))
        return len(found) >= count

    eventually(enough)
    return found


def committed(consumer: Any, topic: str) -> list[int]:
    places = consumer.committed([place(topic, 0), place(topic, 1)], timeout=20)
    return [one.offset for one in places]


def test_a_group_continues_where_it_was_committed(consumer: Open, numbered: str) -> None:
    first = consumer()
    first.subscribe([numbered])
    assert sorted(read(first, 40)) == [(p, offset) for p in range(2) for offset in range(20)]
    done = first.commit(offsets=[place(numbered, 0, 7), place(numbered, 1, 15)], asynchronous=False)
    assert [one.error for one in done] == [None, None]
    assert committed(first, numbered) == [7, 15]
    first.close()
    second = consumer()
    second.subscribe([numbered])
    assert sorted(read(second, 18)) == [(0, n) for n in range(7, 20)] + [
        (1, n) for n in range(15, 20)
    ]


def test_closing_commits_where_the_client_does_it_itself(consumer: Open, numbered: str) -> None:
    first = consumer(enable_auto_commit=True)
    first.subscribe([numbered])
    read(first, 40)
    first.close()
    second = consumer()
    second.subscribe([numbered])
    assert committed(second, numbered) == [20, 20]


def test_a_group_without_offsets_begins_at_the_end(
    group_bootstrap: str, consumer: Open, numbered: str
) -> None:
    reader = consumer(auto_offset_reset="latest")
    reader.subscribe([numbered])
    producer = confluent_kafka.Producer({"bootstrap.servers": group_bootstrap})

    def something_new() -> Any:
        producer.produce(numbered, "new", partition=0)
        producer.flush(20)
        return reader.poll(0.5)

    assert eventually(something_new).offset() >= 20


def test_a_group_without_offsets_may_be_refused(consumer: Open, numbered: str) -> None:
    reader = consumer(auto_offset_reset="error")
    reader.subscribe([numbered])
    message = eventually(lambda: reader.poll(0.5))
    assert message.error().name() == "_AUTO_OFFSET_RESET"


def test_a_group_is_sent_back_to_a_time(consumer: Open, numbered: str) -> None:
    reader = consumer()
    asked = [place(numbered, partition, FIRST_MS + 95) for partition in range(2)]
    found = reader.offsets_for_times(asked, timeout=20)
    reader.commit(offsets=found, asynchronous=False)
    reader.subscribe([numbered])
    assert sorted(read(reader, 20)) == [(p, offset) for p in range(2) for offset in range(10, 20)]


def test_a_commit_carries_a_note(consumer: Open, numbered: str) -> None:
    noted = confluent_kafka.TopicPartition(numbered, 0, 3, "a note: ä")
    consumer().commit(offsets=[noted], asynchronous=False)
    (back,) = consumer().committed([place(numbered, 0)], timeout=20)
    assert (back.offset, back.metadata) == (3, "a note: ä")


def test_a_note_may_be_too_long(consumer: Open, numbered: str) -> None:
    noted = confluent_kafka.TopicPartition(numbered, 0, 3, "x" * 5000)
    with pytest.raises(confluent_kafka.KafkaException, match="OFFSET_METADATA_TOO_LARGE"):
        consumer().commit(offsets=[noted], asynchronous=False)


def test_paused_partitions_wait(consumer: Open, numbered: str) -> None:
    reader = consumer()
    reader.subscribe([numbered])
    before = read(reader, 1)
    reader.pause(reader.assignment())
    assert [reader.poll(0.1) for _ in range(5)] == [None] * 5
    reader.resume(reader.assignment())
    assert len({*before, *read(reader, 39)}) == 40


def test_partitions_taken_by_hand_use_the_offsets_of_the_group(
    consumer: Open, numbered: str
) -> None:
    first = consumer()
    first.assign([place(numbered, 0, 4)])
    assert read(first, 3) == [(0, 4), (0, 5), (0, 6)]
    first.commit(asynchronous=False)
    second = consumer()
    second.assign([place(numbered, 0)])
    assert read(second, 1) == [(0, 7)]


def test_members_share_what_they_subscribe_to(consumer: Open, numbered: str) -> None:
    first, second = consumer(), consumer()
    for one in (first, second):
        one.subscribe([numbered])

    def shared() -> bool:
        first.poll(0.05)
        second.poll(0.05)
        return [len(one.assignment()) for one in (first, second)] == [1, 1]

    eventually(shared)
    owned = {one.partition for one in (*first.assignment(), *second.assignment())}
    assert owned == {0, 1}


def test_a_pattern_finds_topics(consumer: Open, numbered: str) -> None:
    reader = consumer(topic_metadata_refresh_interval_ms=500)
    reader.subscribe([f"^{numbered[:-3]}.*"])
    assert len(read(reader, 40)) == 40


def test_one_instance_id_has_one_member(consumer: Open, numbered: str, protocol: str) -> None:
    first = consumer(group_instance_id="one")
    first.subscribe([numbered])
    read(first, 1)
    second = consumer(group_instance_id="one")
    second.subscribe([numbered])
    # Classic groups fence the old owner of the id; consumer groups refuse the new one.
    refused, reason = {
        "classic": (first, "fenced by other consumer with same group.instance.id"),
        "consumer": (second, "instance ID is still used by another member"),
    }[protocol]
    found: list[str] = []

    def look() -> bool:
        for one in (first, second):
            message = one.poll(0.1)
            if message is not None and message.error() is not None:
                assert one is refused, message.error()
                found.append(message.error().str())
        return bool(found)

    eventually(look)
    assert reason in found[0]


def test_groups_are_listed_and_described(
    consumer: Open, client: Any, group: str, numbered: str, protocol: str
) -> None:
    reader = consumer(client_id="teller")
    reader.subscribe([numbered])
    read(reader, 1)
    state, kind = confluent_kafka.ConsumerGroupState, confluent_kafka.ConsumerGroupType
    listed = client.list_consumer_groups(states={state.STABLE}).result(20).valid
    (found,) = [one for one in listed if one.group_id == group]
    assert found.type == (kind.CLASSIC if protocol == "classic" else kind.CONSUMER)
    assert not found.is_simple_consumer_group
    described = client.describe_consumer_groups([group])[group].result(20)
    assert described.state == state.STABLE
    (member,) = described.members
    assert member.client_id == "teller"
    assert sorted(p.partition for p in member.assignment.topic_partitions) == [0, 1]


def test_offsets_of_a_group_are_listed_and_altered(
    consumer: Open, client: Any, group: str, numbered: str
) -> None:
    consumer().commit(offsets=[place(numbered, 0, 3)], asynchronous=False)
    asked = confluent_kafka.ConsumerGroupTopicPartitions(group)
    listed = client.list_consumer_group_offsets([asked])[group].result(20)
    assert [(one.partition, one.offset) for one in listed.topic_partitions] == [(0, 3)]
    wanted = confluent_kafka.ConsumerGroupTopicPartitions(group, [place(numbered, 1, 8)])
    client.alter_consumer_group_offsets([wanted])[group].result(20)
    assert committed(consumer(), numbered) == [3, 8]


def test_a_group_is_deleted_once_it_is_empty(
    consumer: Open, client: Any, group: str, numbered: str
) -> None:
    reader = consumer()
    reader.subscribe([numbered])
    read(reader, 1)
    reader.commit(asynchronous=False)
    with pytest.raises(confluent_kafka.KafkaException, match="NON_EMPTY_GROUP"):
        client.delete_consumer_groups([group])[group].result(20)
    reader.close()
    client.delete_consumer_groups([group])[group].result(20)
    assert committed(consumer(), numbered) == [confluent_kafka.OFFSET_INVALID] * 2
    with pytest.raises(confluent_kafka.KafkaException, match="GROUP_ID_NOT_FOUND"):
        client.delete_consumer_groups([group])[group].result(20)
