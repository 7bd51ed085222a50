"""Fixtures: a coordinator on a list of records, and a group that a test controls."""

from collections.abc import Callable, Collection

import pytest

from barnabas.groups.directory import GroupType
from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.protocol.coordinator_codec import encode
from barnabas.protocol.coordinator_records.group_metadata import GroupMetadataKey
from tests.support.talk.classic_talk import ClassicTalk
from tests.support.talk.group_runner import GroupRunner


class ControlledGroup:
    """A group whose responses a test sets."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.type = GroupType.CLASSIC
        self.state = "Stable"
        self.protocol_type = "consumer"
        self.is_empty = False
        self.empty_since_ms: int | None = None
        self.refusal: ErrorCode | None = None
        self.topics: set[str] = set()
        self.asked: list[tuple[object, ...]] = []
        self.touched: list[str] = []

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> None:
        self.asked.append((member_id, instance_id, epoch, transactional))
        if self.refusal is not None:
            raise ApiError(self.refusal)

    def may_commit_late(
        self, member_id: str, epoch: int, partitions: Collection[TopicPartition]
    ) -> bool:
        return False

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        self.asked.append((member_id, epoch))
        if self.refusal is not None:
            raise ApiError(self.refusal)

    def touch(self, member_id: str) -> None:
        self.touched.append(member_id)

    def subscribes_to(self, topic: str) -> bool:
        return topic in self.topics

    def tombstones(self) -> list[CoordinatorRecord]:
        return [encode(GroupMetadataKey(group=self.group_id), None)]


@pytest.fixture
def runner() -> GroupRunner:
    return GroupRunner({"a": 3, "b": 1})


@pytest.fixture
def controlled_group(runner: GroupRunner) -> Callable[[str], ControlledGroup]:
    def add(group_id: str) -> ControlledGroup:
        group = ControlledGroup(group_id)
        runner.machine.groups[group_id] = group
        return group

    return add


@pytest.fixture
def talk() -> ClassicTalk:
    """Members that send requests to a coordinator's state machine."""
    return ClassicTalk()
