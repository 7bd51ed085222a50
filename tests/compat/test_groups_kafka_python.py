"""Tests kafka-python in groups: offsets, resets, metadata of commits, pauses, administration."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.testing.waiting import eventually

kafka = pytest.importorskip("kafka")
admin = pytest.importorskip("kafka.admin")

pytestmark = pytest.mark.compat

FIRST_MS = 1_700_000_000_000
Open = Callable[..., Any]


@pytest.fixture
def consumer(python_consumer: dict[str, Any]) -> Iterator[Open]:
    """Return a function that creates consumers, which are closed at the end."""
    made: list[Any] = []

    def make(*topics: str, **changes: object) -> Any:
        made.append(kafka.KafkaConsumer(*topics, **(python_consumer | changes)))
        made[-1].topics()  # fetched before it joins: see membership_kafka_python
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def client(group_bootstrap: str) -> Iterator[Any]:
    made = kafka.KafkaAdminClient(bootstrap_servers=group_bootstrap)
    yield made
    made.close()


def place(topic: str, partition: int) -> Any:
    return kafka.TopicPartition(topic, partition)


def at(offset: int, note: str = "") -> Any:
    return kafka.OffsetAndMetadata(offset, note, -1)


def read(consumer: Any, count: int) -> list[tuple[int, int]]:
    """Return partition and offset of the next records."""
    found: list[tuple[int, int]] = []

    def enough() -> bool:
        for records in consumer.poll(500, max_records=count - len(found)).values():
            found.extend((record.partition, record.offset) for record in records)
        return len(found) >= count

    eventually(enough)
    return found


def test_a_group_continues_where_it_was_committed(consumer: Open, numbered: str) -> None:
    first = consumer(numbered)
    assert sorted(read(first, 40)) == [(p, offset) for p in range(2) for offset in range(20)]
    first.commit({place(numbered, 0): at(7), place(numbered, 1): at(15)})
    assert [first.committed(place(numbered, p)) for p in range(2)] == [7, 15]
    first.close()
    rest = [(0, n) for n in range(7, 20)] + [(1, n) for n in range(15, 20)]
    assert sorted(read(consumer(numbered), 18)) == rest


def test_closing_commits_where_the_client_does_it_itself(consumer: Open, numbered: str) -> None:
    first = consumer(numbered, enable_auto_commit=True)
    read(first, 40)
    first.close()
    assert [consumer().committed(place(numbered, p)) for p in range(2)] == [20, 20]


def test_a_group_without_offsets_begins_at_the_end(
    group_bootstrap: str, consumer: Open, numbered: str
) -> None:
    reader = consumer(numbered, auto_offset_reset="latest")
    producer = kafka.KafkaProducer(bootstrap_servers=group_bootstrap)

    def something_new() -> Any:
        producer.send(numbered, b"new", partition=0).get(20)
        return reader.poll(500)

    try:
        ((first, *_),) = eventually(something_new).values()
        assert first.offset >= 20
    finally:
        producer.close()


def test_a_group_without_offsets_may_be_refused(consumer: Open, numbered: str) -> None:
    reader = consumer(numbered, auto_offset_reset="none")
    with pytest.raises(kafka.errors.NoOffsetForPartitionError):
        eventually(lambda: reader.poll(500))


def test_a_group_is_sent_back_to_a_time(consumer: Open, numbered: str) -> None:
    reader = consumer()
    found = reader.offsets_for_times({place(numbered, p): FIRST_MS + 95 for p in range(2)})
    reader.assign(list(found))
    reader.commit({where: at(one.offset) for where, one in found.items()})
    rest = [(p, offset) for p in range(2) for offset in range(10, 20)]
    assert sorted(read(consumer(numbered), 20)) == rest


def test_a_commit_carries_a_note(consumer: Open, numbered: str) -> None:
    writer = consumer()
    writer.assign([place(numbered, 0)])
    writer.commit({place(numbered, 0): at(3, "a note: ä")})
    back = consumer().committed(place(numbered, 0), metadata=True)
    assert (back.offset, back.metadata) == (3, "a note: ä")


def test_paused_partitions_wait(consumer: Open, numbered: str) -> None:
    reader = consumer(numbered)
    before = read(reader, 1)
    reader.pause(*reader.assignment())
    assert [reader.poll(100) for _ in range(5)] == [{}] * 5
    reader.resume(*reader.assignment())
    assert len({*before, *read(reader, 39)}) == 40


def test_partitions_taken_by_hand_use_the_offsets_of_the_group(
    consumer: Open, numbered: str
) -> None:
    first = consumer()
    first.assign([place(numbered, 0)])
    first.seek(place(numbered, 0), 4)
    assert read(first, 3) == [(0, 4), (0, 5), (0, 6)]
    first.commit()
    second = consumer()
    second.assign([place(numbered, 0)])
    assert read(second, 1) == [(0, 7)]


def test_an_old_holder_of_an_instance_id_is_fenced(consumer: Open, numbered: str) -> None:
    first = consumer(numbered, group_instance_id="one")
    read(first, 1)
    second = consumer(numbered, group_instance_id="one")
    read(second, 1)
    with pytest.raises((kafka.errors.FencedInstanceIdError, kafka.errors.CommitFailedError)):
        first.commit()
    second.commit()


def test_groups_are_listed_and_described(
    consumer: Open, client: Any, group: str, numbered: str
) -> None:
    reader = consumer(numbered, client_id="teller")
    read(reader, 1)
    listed = client.list_groups(states_filter=["Stable"], types_filter=["classic"])
    (found,) = [one for one in listed if one["group_id"] == group]
    assert (found["protocol_type"], found["group_state"]) == ("consumer", "Stable")
    described = client.describe_groups([group])[group]
    assert (described["group_state"], described["protocol_data"]) == ("Stable", "range")
    (member,) = described["members"]
    assert member["client_id"] == "teller"


def test_offsets_of_a_group_are_listed_altered_and_deleted(
    consumer: Open, client: Any, group: str, numbered: str
) -> None:
    first, second = place(numbered, 0), place(numbered, 1)
    client.alter_group_offsets(group, {first: at(3, "by hand"), second: at(4)})
    listed = client.list_group_offsets([group])[group]
    assert {where: (one.offset, one.metadata) for where, one in listed.items()} == {
        first: (3, "by hand"),
        second: (4, ""),
    }
    client.delete_group_offsets(group, [second])
    assert list(client.list_group_offsets({group: None})[group]) == [first]
    reset = client.reset_group_offsets(group, {first: admin.OffsetSpec.LATEST})
    assert reset[first]["offset"] == 20
    assert consumer().committed(first) == 20


def test_a_group_is_deleted_once_it_is_empty(
    consumer: Open, client: Any, group: str, numbered: str
) -> None:
    reader = consumer(numbered)
    read(reader, 1)
    reader.commit()
    assert client.delete_groups([group]) == {group: "NonEmptyGroupError"}
    reader.close()
    assert client.delete_groups([group]) == {group: "OK"}
    assert consumer().committed(place(numbered, 0)) is None
    assert client.delete_groups([group]) == {group: "GroupIdNotFoundError"}
