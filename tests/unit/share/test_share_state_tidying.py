"""Tests that the log of a share coordinator stays short, and loses nothing."""

import pytest

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.share_state import SharePartitionKey
from barnabas.share import share_state_tidying
from tests.support.talk.share_talk import GROUP, KEY, TOPIC, ShareTalk

OTHER = SharePartitionKey(GROUP, TOPIC, 1)
SECOND_TOPIC = TopicId(bytes([8] * 16))
INTERVAL_MS = 300_000


def reload_from(talk: ShareTalk) -> ShareTalk:
    """Return a coordinator that reads what was not deleted."""
    successor = ShareTalk()
    for record in talk.runner.records[talk.log.deleted_before :]:
        successor.machine.replay(record, None)
    return successor


def test_cold_share_partitions_get_snapshots_and_what_they_replace_is_deleted() -> None:
    talk = ShareTalk()
    talk.initialize()
    talk.initialize(key=OTHER)
    talk.write("0-4 k1", count=5)
    for _ in range(3):
        talk.write("7 a1", key=OTHER)
    talk.runner.pass_time(INTERVAL_MS)
    talk.write("9 k1", key=OTHER)
    assert talk.log.deleted_before == 0
    written = len(talk.runner.records)
    talk.runner.pass_time(INTERVAL_MS)
    assert talk.log.deleted_before == 6, "where the first round began"
    assert len(talk.runner.records) == written + 2, "both get a snapshot"
    successor = reload_from(talk)
    for key in (KEY, OTHER):
        assert successor.state(key) == talk.state(key)
        assert successor.summary(key) == talk.summary(key)


def test_an_idle_coordinator_writes_nothing() -> None:
    talk = ShareTalk()
    talk.initialize()
    talk.runner.pass_time(3 * INTERVAL_MS)
    written = len(talk.runner.records)
    talk.runner.pass_time(10 * INTERVAL_MS)
    assert len(talk.runner.records) == written


def test_many_snapshots_take_several_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_state_tidying, "SLICE_BATCHES", 3)
    talk = ShareTalk(topics={TOPIC: 9})
    keys = [SharePartitionKey(GROUP, TOPIC, number) for number in range(9)]
    for key in keys:
        talk.initialize(key=key)
    talk.runner.pass_time(INTERVAL_MS)
    talk.runner.pass_time(100)
    for key in keys:
        talk.write("3 k1", key=key)
    talk.runner.pass_time(INTERVAL_MS)
    talk.runner.pass_time(100)
    assert max(len(entry.records) for entry in talk.runner.log) == 2
    assert talk.log.deleted_before >= 9
    successor = ShareTalk(topics={TOPIC: 9})
    for record in talk.runner.records[talk.log.deleted_before :]:
        successor.machine.replay(record, None)
    assert [successor.state(key) for key in keys] == [talk.state(key) for key in keys]


def test_nothing_is_deleted_if_a_snapshot_cannot_be_written() -> None:
    talk = ShareTalk()
    talk.initialize()
    talk.write("0-4 k1")
    talk.runner.pass_time(INTERVAL_MS)
    talk.write("5 k1")
    talk.runner.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    talk.runner.pass_time(2 * INTERVAL_MS)
    talk.runner.refusal = None
    assert reload_from(talk).state() == talk.state()
    talk.runner.pass_time(3 * INTERVAL_MS)
    assert talk.log.deleted_before > 0
    assert reload_from(talk).state() == talk.state()


def test_the_state_of_a_deleted_topic_is_deleted_in_the_second_round() -> None:
    talk = ShareTalk(topics={TOPIC: 1, SECOND_TOPIC: 1})
    second = SharePartitionKey(GROUP, SECOND_TOPIC, 0)
    talk.initialize()
    talk.initialize(key=second)
    talk.delete_topic(SECOND_TOPIC)
    talk.runner.pass_time(INTERVAL_MS)
    assert list(talk.machine.keys) == [KEY, second]
    talk.runner.pass_time(INTERVAL_MS)
    assert list(talk.machine.keys) == [KEY]
