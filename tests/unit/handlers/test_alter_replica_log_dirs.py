"""Tests AlterReplicaLogDirs: a replica may stay in its folder, and there is no other folder."""

from pathlib import Path

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import create_topic


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    talk = Dialogue(tmp_path)
    create_topic(talk, "a", 2)
    return talk


def move(talk: Dialogue, path: str, topic: str, *partitions: int) -> list[tuple[str, int, int]]:
    wanted = AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[wanted])])
    return [
        (result.topic_name, partition.partition_index, partition.error_code)
        for result in talk.ask(request).results
        for partition in result.partitions
    ]


def test_to_stay_is_granted(talk: Dialogue, tmp_path: Path) -> None:
    assert move(talk, str(tmp_path), "a", 0, 1) == [("a", 0, 0), ("a", 1, 0)]


def test_there_is_no_other_folder(talk: Dialogue) -> None:
    assert move(talk, "/elsewhere", "a", 1) == [("a", 1, ErrorCode.LOG_DIR_NOT_FOUND)]


def test_a_partition_that_is_none(talk: Dialogue, tmp_path: Path) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move(talk, str(tmp_path), "a", 9) == [("a", 9, unknown)]
    assert move(talk, str(tmp_path), "b", 0) == [("b", 0, unknown)]
