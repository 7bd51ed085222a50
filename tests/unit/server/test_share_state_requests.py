"""Tests requests to a share coordinator through the sockets of two brokers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.support.talk.peer_pair import Pair
from tests.support.talk.share_state_requests import (
    initialize_request,
    read_request,
    summary_request,
    write_request,
)
from tests.support.talk.share_talk import KEY

SHARE = 2


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    made.close()


def parts(answer: Any) -> list[Any]:
    return [part for topic in answer.results for part in topic.partitions]


def test_a_broker_keeps_state_at_another(pair: Pair) -> None:
    node = pair.answerer.node

    def create() -> None:
        node.create_topic("orders", 1, {}, node.timers.wall_ms)

    pair.answerer.run_event(create)
    found = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[KEY.coordinator_key])
    (coordinator,) = pair.wait(pair.ask(found)).coordinators
    assert coordinator.error_code == 0
    topics = [node.image.topics["orders"].topic_id]
    for request in (initialize_request(topics, 3), write_request(topics, 3, 9)):
        assert [part.error_code for part in parts(pair.wait(pair.ask(request)))] == [0]
    (part,) = parts(pair.wait(pair.ask(read_request(topics, 5))))
    (run,) = part.state_batches
    assert (part.start_offset, run.first_offset, run.last_offset) == (3, 3, 9)
    (part,) = parts(pair.wait(pair.ask(summary_request(topics))))
    assert (part.leader_epoch, part.start_offset) == (5, 3)
