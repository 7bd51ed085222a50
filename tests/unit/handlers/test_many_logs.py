"""Tests topics with many partitions: a single broker opens their logs in steps, then answers."""

from itertools import pairwise

from barnabas.model.errors import ErrorCode
from barnabas.node.cluster.local_topics import OPENED_AT_ONCE
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.support.talk.dialogue import Dialogue, Exchange
from tests.support.talk.requests import create_topic, delete_topic, produce

MANY = 5 * OPENED_AT_ONCE


def create(talk: Dialogue, *sizes: int) -> Exchange:
    """Create topics with a number of partitions each."""
    topics = [
        CreatableTopic(name=f"t{number}", num_partitions=size, replication_factor=1)
        for number, size in enumerate(sizes)
    ]
    return talk.send(CreateTopicsRequest(topics=topics))


def opened_by_step(talk: Dialogue, exchange: Exchange) -> list[int]:
    """Return how many logs were open after each step, until the response came."""
    counts = [len(talk.node.partitions)]
    while exchange.content is None:
        talk.step_scan()
        counts.append(len(talk.node.partitions))
    return counts


def test_one_large_topic(talk: Dialogue) -> None:
    talk.hold_scans = True
    exchange = create(talk, MANY)
    counts = opened_by_step(talk, exchange)
    assert counts[-1] == MANY
    assert max(after - before for before, after in pairwise([0, *counts])) <= OPENED_AT_ONCE
    assert exchange.answer.topics[0].error_code == 0


def test_many_small_topics(talk: Dialogue) -> None:
    talk.hold_scans = True
    counts = opened_by_step(talk, create(talk, *[1] * MANY))
    assert counts[-1] == MANY
    assert max(after - before for before, after in pairwise([0, *counts])) <= OPENED_AT_ONCE


def test_the_answer_finds_every_partition_open(talk: Dialogue) -> None:
    create_topic(talk, "orders", MANY)
    assert produce(talk, "orders", partition=MANY - 1).error_code == 0


def test_a_topic_that_is_deleted_before_all_of_it_is_open(talk: Dialogue) -> None:
    talk.hold_scans = True
    exchange = create(talk, MANY)
    delete_topic(talk, "t0")
    talk.release_scans()
    assert not exchange.waiting
    assert not talk.node.partitions
    code = produce(talk, "t0", partition=MANY - 1).error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_start_opens_every_log_before_it_serves(talk: Dialogue) -> None:
    create_topic(talk, "orders", MANY)
    talk.hold_scans = True
    talk.restart()
    assert len(talk.node.partitions) == MANY
