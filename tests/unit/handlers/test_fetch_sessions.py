"""Tests fetch sessions (KIP-227): after the first request, both sides send only changes."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.requests import batch, create_topic, produce

INITIAL, FINAL = 0, -1


class Consumer:
    """A consumer that counts its session epochs."""

    def __init__(self, talk: Dialogue, version: int = 12) -> None:
        self.talk = talk
        self.version = version
        self.session_id = 0
        self.epoch = INITIAL

    def send(
        self,
        *wanted: tuple[str, int, int],
        forget: tuple[tuple[str, int], ...] = (),
        wait_ms: int = 0,
    ) -> Exchange:
        """Fetch (topic, partition, offset); remove (topic, partition) from the session."""
        topics = [
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                ],
            )
            for topic, partition, offset in wanted
        ]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=topics,
            forgotten_topics_data=[
                ForgottenTopic(topic=topic, partitions=[partition]) for topic, partition in forget
            ],
        )
        self.epoch += 1
        return self.talk.send(request, self.version)

    def fetch(self, *wanted: tuple[str, int, int], **more: Any) -> dict[tuple[str, int], Any]:
        answer = self.send(*wanted, **more).answer
        assert answer.error_code == 0
        self.session_id = answer.session_id
        return changes_in(answer)


def changes_in(answer: Any) -> dict[tuple[str, int], Any]:
    return {(t.topic, p.partition_index): p for t in answer.responses for p in t.partitions}


@pytest.fixture
def consumer(talk: Dialogue) -> Consumer:
    """A session over a-0, a-1 and b-0, with one batch read from each partition of a."""
    create_topic(talk, "a", 2)
    create_topic(talk, "b")
    for partition in (0, 1):
        produce(talk, "a", batch(10), partition=partition)
    made = Consumer(talk)
    first = made.fetch(("a", 0, 0), ("a", 1, 0), ("b", 0, 0))
    assert made.session_id > 0
    assert {place: len(p.records) > 0 for place, p in first.items()} == {
        ("a", 0): True,
        ("a", 1): True,
        ("b", 0): False,
    }
    return made


def test_only_what_changed_is_answered(consumer: Consumer) -> None:
    assert consumer.fetch(("a", 0, 10), ("a", 1, 10)) == {}
    produce(consumer.talk, "a", batch(10), partition=1)
    assert set(consumer.fetch()) == {("a", 1)}
    assert consumer.fetch(("a", 1, 20)) == {}


def test_what_was_not_acknowledged_by_a_new_offset_comes_again(consumer: Consumer) -> None:
    for _ in range(3):
        again = consumer.fetch()
        assert {place: len(p.records) > 0 for place, p in again.items()} == {
            ("a", 0): True,
            ("a", 1): True,
        }


def test_nothing_new_waits(consumer: Consumer) -> None:
    exchange = consumer.send(("a", 0, 10), ("a", 1, 10), wait_ms=500)
    consumer.talk.pass_time(499)
    assert exchange.waiting
    produce(consumer.talk, "b", batch(3))
    assert set(changes_in(exchange.answer)) == {("b", 0)}


def test_nothing_new_is_answered_with_nothing_when_time_is_up(consumer: Consumer) -> None:
    exchange = consumer.send(("a", 0, 10), ("a", 1, 10), wait_ms=500)
    consumer.talk.pass_time(500)
    assert exchange.answer.responses == []
    assert exchange.answer.session_id == consumer.session_id


def test_forgotten_partitions_are_left_out(consumer: Consumer) -> None:
    consumer.fetch(("a", 0, 10), forget=(("a", 1), ("none", 3)))
    for partition in (0, 1):
        produce(consumer.talk, "a", batch(10), partition=partition)
    assert set(consumer.fetch()) == {("a", 0)}
    consumer.fetch(("a", 0, 20))
    assert set(consumer.fetch(("a", 1, 10))) == {("a", 1)}


def test_a_partition_wanted_and_forgotten_at_once_is_forgotten(consumer: Consumer) -> None:
    assert consumer.fetch(("a", 0, 10), ("a", 1, 5), forget=(("a", 1),)) == {}


def test_new_partitions_join(consumer: Consumer) -> None:
    create_topic(consumer.talk, "c")
    produce(consumer.talk, "c")
    found = consumer.fetch(("a", 0, 10), ("a", 1, 10), ("c", 0, 0))
    assert set(found) == {("c", 0)}


def test_the_end_of_a_new_partition_is_returned_at_the_timeout(consumer: Consumer) -> None:
    create_topic(consumer.talk, "c")
    exchange = consumer.send(("a", 0, 10), ("a", 1, 10), ("c", 0, 0), wait_ms=500)
    assert exchange.waiting
    consumer.talk.pass_time(500)
    assert changes_in(exchange.answer)[("c", 0)].high_watermark == 0
    assert consumer.fetch() == {}


def test_errors_are_shown_until_they_are_over(consumer: Consumer) -> None:
    for _ in range(2):
        found = consumer.fetch(("a", 0, 99), ("a", 1, 10))
        assert {place: p.error_code for place, p in found.items()} == {("a", 0): 1}
    assert consumer.fetch(("a", 0, 10))[("a", 0)].error_code == 0, "its new end must be sent"
    assert consumer.fetch() == {}


def test_a_moved_high_watermark_is_sent_once(consumer: Consumer) -> None:
    consumer.fetch(("a", 0, 10), ("a", 1, 10))
    produce(consumer.talk, "a", batch(10), partition=0)
    found = consumer.fetch(("a", 0, 20))
    assert {place: p.high_watermark for place, p in found.items()} == {("a", 0): 20}
    assert consumer.fetch() == {}


def test_unknown_sessions_and_epochs_out_of_step(consumer: Consumer) -> None:
    consumer.fetch()
    session_id, epoch = consumer.session_id, consumer.epoch
    for wrong_id, wrong_epoch, code in (
        (session_id + 1, 1, 70),
        (0, 1, 70),
        (session_id, epoch + 1, 71),
        (session_id, epoch - 1, 71),
    ):
        consumer.session_id, consumer.epoch = wrong_id, wrong_epoch
        answer = consumer.send(wait_ms=500).answer
        assert (answer.error_code, answer.session_id, answer.responses) == (code, 0, [])
    consumer.session_id, consumer.epoch = session_id, epoch
    assert set(consumer.fetch()) == {("a", 0), ("a", 1)}


def test_a_session_by_name_does_not_continue_by_id(consumer: Consumer) -> None:
    consumer.version = 13
    assert consumer.send().answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_final_epoch_ends_a_session(consumer: Consumer) -> None:
    session_id = consumer.session_id
    consumer.epoch = FINAL
    last = consumer.send(("a", 0, 0)).answer
    assert (last.error_code, last.session_id) == (0, 0)
    assert set(changes_in(last)) == {("a", 0)}
    consumer.session_id, consumer.epoch = session_id, 1
    assert consumer.send().answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not any(p.watermark.watchers for p in consumer.talk.node.partitions.values())


def test_a_new_session_ends_the_one_it_names(consumer: Consumer) -> None:
    before = consumer.session_id
    consumer.epoch = INITIAL
    consumer.fetch(("b", 0, 0))
    assert consumer.session_id not in (0, before)
    assert len(consumer.talk.node.sessions) == 1


def test_a_session_closed_while_it_waits_leaves_nothing_behind(consumer: Consumer) -> None:
    waiting = consumer.send(("a", 0, 10), ("a", 1, 10), wait_ms=500)
    consumer.epoch = FINAL
    consumer.send(("b", 0, 0))
    consumer.talk.pass_time(500)
    assert not waiting.waiting
    assert not any(p.watermark.watchers for p in consumer.talk.node.partitions.values())


def test_the_oldest_session_makes_room(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"performance.fetch_session_slots": 2})
    create_topic(talk, "a")
    first, second, third = (Consumer(talk) for _ in range(3))
    first.fetch(("a", 0, 0))
    second.fetch(("a", 0, 0))
    first.fetch()
    third.fetch(("a", 0, 0))
    assert second.send().answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert first.fetch() == third.fetch() == {}
    assert len(talk.node.sessions) == 2


def test_sessions_can_be_off(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"performance.fetch_session_slots": 0})
    create_topic(talk, "a")
    consumer = Consumer(talk)
    assert set(consumer.fetch(("a", 0, 0))) == {("a", 0)}
    assert consumer.session_id == 0


def test_epochs_wrap_to_1(consumer: Consumer) -> None:
    session = consumer.talk.node.sessions.resume(consumer.session_id, 1, by_id=False)
    session.next_epoch = consumer.epoch = (1 << 31) - 1
    consumer.fetch()
    consumer.epoch = 1
    assert set(consumer.fetch()) == {("a", 0), ("a", 1)}


def test_a_topic_recreated_under_its_name_is_followed(consumer: Consumer) -> None:
    talk = consumer.talk
    consumer.fetch(("a", 0, 10), ("a", 1, 10))
    waiting = consumer.send(wait_ms=500)
    talk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="b")]))
    assert {place: p.error_code for place, p in changes_in(waiting.answer).items()} == {("b", 0): 3}
    assert consumer.fetch()[("b", 0)].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    create_topic(talk, "b")
    assert consumer.fetch()[("b", 0)].error_code == 0
    waiting = consumer.send(wait_ms=500)
    produce(talk, "b", batch(2))
    assert changes_in(waiting.answer)[("b", 0)].high_watermark == 2


def test_a_busy_partition_starves_no_other(talk: Dialogue) -> None:
    create_topic(talk, "a", 2)
    for partition in (0, 1):
        for _ in range(3):
            produce(talk, "a", batch(10, value=bytes(50_000)), partition=partition)
    consumer = Consumer(talk)
    consumer.fetch(("a", 0, 0), ("a", 1, 0))
    seen = {place for _ in range(2) for place, p in consumer.fetch().items() if p.records}
    assert seen == {("a", 0), ("a", 1)}
