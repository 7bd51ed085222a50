"""Tests that the log of a share coordinator stays short on a real partition, across a restart."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.image import SHARE_STATE_TOPIC
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.share_state import SharePartitionKey
from barnabas.storage.log import Log
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.share_talk import GROUP, told, update

INTERVAL_MS = 60_000
WRITES = 50


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    settings = {"share.tidy_interval": "60s", "share.state_partitions": 1}
    talk = Dialogue(tmp_path, settings)
    talk.node.create_topic("orders", 2, {}, talk.now_ms)
    talk.settle()
    return talk


def key(talk: Dialogue, number: int) -> SharePartitionKey:
    return SharePartitionKey(GROUP, talk.node.image.topics["orders"].topic_id, number)


def answer_of(talk: Dialogue, pending: Pending[Any]) -> Any:
    answers: list[Any] = []
    pending.when_done(answers.append, answers.append)
    talk.settle()
    talk.pass_time(20)
    (answer,) = answers
    return answer


def fill(talk: Dialogue) -> None:
    states = talk.node.share_states
    starts = dict.fromkeys((0, 1), 0)
    answer_of(talk, states.initialize(GROUP, key(talk, 0).topic_id, starts, 0))
    answer_of(talk, states.write(key(talk, 1), update("3 x5", count=1)))
    for offset in range(WRITES):
        assert answer_of(talk, states.write(key(talk, 0), update(f"{2 * offset} k1"))) is None


def log_of(talk: Dialogue) -> Log:
    return talk.node.partitions[TopicPartition(SHARE_STATE_TOPIC, 0)].log


def stored(talk: Dialogue) -> list[tuple[int, str]]:
    """Return the start offset and the runs of both share partitions."""
    found = [answer_of(talk, talk.node.share_states.read(key(talk, n), 0)) for n in (0, 1)]
    return [(each.start_offset, told(each.batches)) for each in found]


def test_what_snapshots_replace_is_deleted_and_a_restart_loses_nothing(talk: Dialogue) -> None:
    fill(talk)
    before = stored(talk)
    written = log_of(talk).end_offset
    for _ in range(2):
        talk.pass_time(INTERVAL_MS)
    answer_of(talk, talk.node.share_states.write(key(talk, 0), update("0 k1")))
    talk.pass_time(INTERVAL_MS)
    assert log_of(talk).start_offset >= written
    assert stored(talk) == before
    for crash in (False, True):
        talk.restart(crash=crash)
        talk.pass_time(20)
        assert stored(talk) == before


def test_nothing_is_deleted_before_the_snapshots_are_safe(talk: Dialogue) -> None:
    fill(talk)
    talk.pass_time(INTERVAL_MS)
    answer_of(talk, talk.node.share_states.write(key(talk, 0), update("0 k1")))
    talk.hold_syncs = True
    talk.pass_time(INTERVAL_MS)
    assert log_of(talk).start_offset == 0
    talk.release_syncs()
    assert log_of(talk).start_offset > 0
