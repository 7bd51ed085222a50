"""Lines of the audit log on their way to the topic: on one broker, and over several."""

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.permissions import Operation, PatternType, ResourceType
from barnabas.node import audit_topic
from barnabas.node.audit_topic import LINGER_MS, RETRY_MAX_MS
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import batch, create_topic, delete_topic, fetch, produce, read
from tests.support.talk.rights import ADMIN, SECURED, acl, caller, set_acls
from tests.support.talk.together import Together

TOPIC = "audit-lines"
PLACE = TopicPartition(TOPIC, 0)
SETTINGS = {**SECURED, "security.audit_topic": TOPIC}
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
WRITE = (Operation.WRITE, ResourceType.TOPIC)
HOUR_MS = 3600 * 1000


def lines(talk: Dialogue) -> list[dict[str, Any]]:
    """Return the lines that the topic has, as a super user reads them."""
    before, talk.caller = talk.caller, caller(ADMIN)
    found = read(fetch(talk, TOPIC).records)
    talk.caller = before
    return [json.loads(record.value or b"") for record in found]


def deny(talk: Dialogue, topic: str = "orders") -> None:
    """Have a client be denied something."""
    talk.caller = caller()
    assert produce(talk, topic, batch()).error_code == DENIED


@pytest.fixture
def broker(tmp_path: Path) -> Dialogue:
    return Dialogue(tmp_path, SETTINGS)


def test_the_first_line_creates_the_topic(broker: Dialogue) -> None:
    deny(broker)
    assert TOPIC not in broker.node.image.topics, "the request waited for the topic"
    broker.pass_time(LINGER_MS)
    broker.pass_time(1)
    (line,) = lines(broker)
    assert (line["principal"], line["operation"], line["resource"]) == (
        "User:alice",
        "WRITE",
        "orders",
    )
    assert broker.node.image.topics[TOPIC].config["retention.ms"] == str(30 * 24 * HOUR_MS)
    assert not broker.audited, "there is no file"


def test_lines_keep_their_order_and_share_a_batch(broker: Dialogue) -> None:
    names = [f"topic-{number}" for number in range(20)]
    for name in names:
        deny(broker, name)
    broker.pass_time(LINGER_MS)
    broker.pass_time(1)
    assert [line["resource"] for line in lines(broker)] == names


def test_writing_makes_no_lines(broker: Dialogue) -> None:
    deny(broker)
    for _ in range(10):
        broker.pass_time(5_000)
    assert len(lines(broker)) == 1


def test_a_file_and_a_topic_have_the_same_lines(tmp_path: Path) -> None:
    broker = Dialogue(tmp_path, {**SETTINGS, "security.audit_file": "audit.log"})
    deny(broker)
    broker.pass_time(LINGER_MS)
    broker.pass_time(1)
    assert lines(broker) == broker.audited


def test_a_deleted_topic_is_created_again(broker: Dialogue) -> None:
    deny(broker)
    broker.pass_time(LINGER_MS)
    broker.pass_time(1)
    broker.caller = caller(ADMIN)
    delete_topic(broker, TOPIC)
    deny(broker, "others")
    broker.pass_time(LINGER_MS)
    broker.pass_time(1)
    assert [line["resource"] for line in lines(broker)] == ["others"]


def test_lines_beyond_the_limit_are_counted(
    broker: Dialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_topic, "QUEUE_BYTES_MAX", 1000)
    for number in range(10):
        deny(broker, f"topic-{number}")
    broker.pass_time(LINGER_MS)
    broker.pass_time(1)
    broker.pass_time(LINGER_MS)
    *written, last = lines(broker)
    assert 0 < len(written) < 10
    assert last == {"time": last["time"], "broker": 1, "dropped": 10 - len(written)}
    events = [(notice.level, notice.facts.get("lines")) for notice in broker.notices]
    assert ("warning", 10 - len(written)) in events


def test_a_disk_that_refuses_keeps_lines_and_fails_no_request(
    broker: Dialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny(broker)
    broker.pass_time(LINGER_MS)
    broker.pass_time(1)
    log = broker.node.partitions[PLACE].log

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(log, "append", refuse)
        deny(broker, "kept")
        for _ in range(20):
            broker.pass_time(1_000)
    broker.pass_time(RETRY_MAX_MS)
    assert [line["resource"] for line in lines(broker)] == ["orders", "kept"]
    said = [notice.event for notice in broker.notices]
    assert said.count("cannot write to the audit topic; retrying") == 1
    assert said[-1] == "the audit topic is written again"


# --- rights to write to it ---


def existing(broker: Dialogue) -> None:
    broker.caller = caller(ADMIN)
    create_topic(broker, TOPIC)
    broker.caller = caller()


def test_a_client_needs_an_acl_for_its_very_name(broker: Dialogue) -> None:
    existing(broker)
    for granted in (acl(WRITE, "*"), acl(WRITE, "audit", prefixed=True)):
        set_acls(broker, [granted])
        assert produce(broker, TOPIC, batch()).error_code == DENIED
    set_acls(broker, [acl(WRITE, TOPIC)])
    assert produce(broker, TOPIC, batch()).error_code == ErrorCode.NONE
    set_acls(broker, [acl(WRITE, TOPIC), acl(WRITE, "*", deny=True)])
    assert produce(broker, TOPIC, batch()).error_code == DENIED


def test_it_is_not_open_where_other_topics_without_acls_are(tmp_path: Path) -> None:
    broker = Dialogue(tmp_path, {**SETTINGS, "security.allow_everyone_if_no_acl": True})
    existing(broker)
    assert produce(broker, TOPIC, batch()).error_code == DENIED
    broker.pass_time(LINGER_MS)
    (line,) = lines(broker)
    assert "audit topic" in line["reason"]


def test_a_prefix_that_allows_everything_else_allows_to_read(broker: Dialogue) -> None:
    existing(broker)
    everything = (Operation.ALL, ResourceType.TOPIC)
    granted = acl(everything, "audit", prefixed=True)
    assert granted.pattern_type == PatternType.PREFIXED
    set_acls(broker, [granted])
    assert fetch(broker, TOPIC).error_code == ErrorCode.NONE


def test_its_records_cannot_be_deleted_and_it_is_internal(broker: Dialogue) -> None:
    existing(broker)
    broker.caller = caller(ADMIN)
    wanted = DeleteRecordsPartition(partition_index=0, offset=0)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=[wanted])])
    (topic,) = broker.ask(request).topics
    assert topic.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    assert broker.ask(asked).topics[0].is_internal


# --- several brokers ---


@pytest.fixture
def brokers(tmp_path: Path) -> Together:
    found = Together(tmp_path, settings=SETTINGS)
    found.create(TOPIC, leaders=[1])
    return found


def at(brokers: Together, number: int) -> list[str]:
    return [line["resource"] for line in lines(brokers[number])]


def test_a_broker_sends_its_lines_to_the_leader(brokers: Together) -> None:
    deny(brokers[2])
    brokers.pass_time(LINGER_MS)
    (line,) = lines(brokers[1])
    assert (line["broker"], line["resource"]) == (2, "orders")
    sent = [asked for asked in brokers.asked if asked[2] != ApiKey.FETCH]
    assert sent == [(2, 1, ApiKey.PRODUCE)]


def test_lines_continue_at_the_next_leader(brokers: Together) -> None:
    deny(brokers[2])
    brokers.pass_time(LINGER_MS)
    brokers.dead.add(1)
    deny(brokers[2], "meanwhile")
    brokers.pass_time(LINGER_MS)
    brokers.move(TOPIC, 0, to=3)
    brokers.pass_time(1_000)
    assert at(brokers, 3) == ["orders", "meanwhile"]


def test_a_leader_that_becomes_a_follower_sends_its_lines(brokers: Together) -> None:
    deny(brokers[1])
    brokers.stop_commits(TOPIC, 0)
    brokers.pass_time(LINGER_MS)
    brokers.move(TOPIC, 0, to=2, committed_only=True)
    brokers.pass_time(1_000)
    assert at(brokers, 2) == ["orders"]


def test_a_line_that_the_leader_refuses_as_too_large_is_dropped(tmp_path: Path) -> None:
    brokers = Together(tmp_path, settings=SETTINGS)
    brokers.create(TOPIC, leaders=[1], config={"max.message.bytes": "400"})
    for name in ("one", "x" * 290, "two"):
        deny(brokers[2], name)
    brokers.pass_time(10_000)
    first, second, last = lines(brokers[1])
    assert (first["resource"], second["resource"], last["dropped"]) == ("one", "two", 1)


def test_a_leader_that_hangs_holds_up_no_request(brokers: Together) -> None:
    brokers.hold(ApiKey.PRODUCE)
    for number in range(30):
        deny(brokers[2], f"topic-{number}")
        brokers.pass_time(LINGER_MS)
    assert len(brokers.held) == 1, "one batch is under way at a time"
    brokers.release()
    brokers.pass_time(LINGER_MS)
    assert at(brokers, 1) == [f"topic-{number}" for number in range(30)]
