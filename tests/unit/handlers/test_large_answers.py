"""Answers about very many partitions: made piece by piece, and the same as if made at once."""

import pytest

from barnabas.handlers import describe_configs, describe_log_dirs, metadata
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.testing.dialogue import Dialogue
from barnabas.testing.requests import create_topic, delete_topic

TOPIC = 2
SIZES = {"a": 1, "b": 7, "c": 3, "d": 1}
CONFIGS = DescribeConfigsRequest(
    resources=[
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name) for name in (*SIZES, "no")
    ]
)
QUESTIONS: list[tuple[Message, int]] = [
    *((MetadataRequest(topics=None), version) for version in range(1, 14)),
    *((DescribeLogDirsRequest(topics=None), version) for version in range(1, 6)),
    *((CONFIGS, version) for version in range(1, 5)),
]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have two partitions, or one resource, be all that is described in one event."""
    monkeypatch.setattr(metadata, "PARTITIONS_AT_ONCE", 2)
    monkeypatch.setattr(describe_log_dirs, "PARTITIONS_AT_ONCE", 2)
    monkeypatch.setattr(describe_configs, "RESOURCES_AT_ONCE", 1)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{type(q[0]).__name__}-{q[1]}")
def test_pieces_make_the_same_answer(
    talk: Dialogue, question: tuple[Message, int], request: pytest.FixtureRequest
) -> None:
    for name, partitions in SIZES.items():
        create_topic(talk, name, partitions)
    whole = talk.ask(*question)
    request.getfixturevalue("small_pieces")
    exchange = talk.send(*question)
    events = 0
    while exchange.content is None:
        talk.pass_time(1)
        events += 1
    assert events >= 3
    answer = exchange.answer
    for each in (whole, answer):
        for result in getattr(each, "results", ()):
            if hasattr(result, "usable_bytes"):
                result.usable_bytes = 0  # the disk may fill up meanwhile
    assert answer == whole


@pytest.mark.usefixtures("small_pieces")
def test_a_topic_that_goes_while_topics_are_described(talk: Dialogue) -> None:
    for name, partitions in SIZES.items():
        create_topic(talk, name, partitions)
    exchange = talk.send(MetadataRequest(topics=None))
    delete_topic(talk, "c")
    create_topic(talk, "e", 9)
    while exchange.waiting:
        talk.pass_time(1)
    described = {topic.name: len(topic.partitions) for topic in exchange.answer.topics}
    assert described == SIZES, "each topic that was there when the client asked"
