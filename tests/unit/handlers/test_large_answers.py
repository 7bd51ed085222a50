"""Tests responses about very many partitions: built in steps, with the same content."""

from pathlib import Path

import pytest

from barnabas.handlers.admin import describe_configs
from barnabas.handlers.cluster import metadata
from barnabas.model import steps
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import create_topic, delete_topic

TOPIC = 2
SIZES = {"a": 1, "b": 7, "c": 3, "d": 1}
CONFIGS = DescribeConfigsRequest(
    resources=[
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name) for name in (*SIZES, "no")
    ]
)
NAMED = [MetadataRequestTopic(name=name) for name in (*SIZES, "no", "?")]
QUESTIONS: list[tuple[Message, int]] = [
    *((MetadataRequest(topics=None), version) for version in range(1, 14)),
    *((MetadataRequest(topics=NAMED), version) for version in range(1, 14)),
    *((DescribeLogDirsRequest(topics=None), version) for version in range(1, 6)),
    *((CONFIGS, version) for version in range(1, 5)),
]


@pytest.fixture
def tiny_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit an event to describe one thing only."""
    monkeypatch.setattr(steps, "EVENT_UNITS", 1)
    monkeypatch.setattr(metadata, "AT_ONCE_MAX", 0)
    monkeypatch.setattr(describe_configs, "AT_ONCE_MAX", 0)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{type(q[0]).__name__}-{q[1]}")
def test_steps_make_the_same_answer(
    tmp_path: Path, question: tuple[Message, int], request: pytest.FixtureRequest
) -> None:
    talk = Dialogue(tmp_path / "data", {"broker.auto_create_topics": False})
    for name, partitions in SIZES.items():
        create_topic(talk, name, partitions)
    whole = talk.ask(*question)
    request.getfixturevalue("tiny_events")
    talk.hold_scans = True
    exchange = talk.send(*question)
    events = 0
    while exchange.content is None:
        talk.step_scan()
        events += 1
    assert events >= len(SIZES)
    answer = exchange.answer
    for each in (whole, answer):
        for result in getattr(each, "results", ()):
            if hasattr(result, "usable_bytes"):
                result.usable_bytes = 0  # the disk may fill up meanwhile
    assert answer == whole


@pytest.mark.usefixtures("tiny_events")
def test_a_topic_that_goes_while_topics_are_described(talk: Dialogue) -> None:
    for name, partitions in SIZES.items():
        create_topic(talk, name, partitions)
    talk.hold_scans = True
    exchange = talk.send(MetadataRequest(topics=None))
    delete_topic(talk, "c")
    create_topic(talk, "e")
    talk.release_scans()
    described = {topic.name: len(topic.partitions) for topic in exchange.answer.topics}
    assert described == SIZES, "every topic that existed when the client sent the request"
